"""Lanes over HTTP: what is sent is kept, what happens is told as it happens, to whom it may be told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from http_server import Server, problem, served

import threefold
from threefold import Agent
from threefold.testing.fakes import HashEmbedder

ENDS = ("RUN_FINISHED", "RUN_ERROR")


class Waits:
    """An agent that begins, and ends when it is told to."""

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, run: Any) -> str:
        self.begun.set()
        assert self.go.wait(30)
        return f"done: {run.goal}"


@pytest.fixture
def server() -> Iterator[Server]:
    with threefold.open(":memory:", embedder=HashEmbedder(8), background=False) as db, served(db) as made:
        yield made


class Viewer:
    """Follows a conversation from now on, in a thread of its own."""

    def __init__(self, server: Server, token: str | None = None, after: str | None = None, **params: str) -> None:
        self.told: list[dict] = []
        self._there, self._more = threading.Event(), threading.Condition()
        headers = {} if after is None else {"Last-Event-ID": after}
        self.thread = threading.Thread(target=self._follow, args=(server, token, headers, params), daemon=True)
        self.thread.start()
        assert self._there.wait(30)

    def _follow(self, server: Server, token: str | None, headers: dict, params: dict) -> None:
        id_ = ""
        with (
            server.client(token) as client,
            client.stream("GET", "/v1/lanes/trip/events", headers=headers, params=params) as stream,
        ):
            assert stream.headers["content-type"].startswith("text/event-stream")
            for line in stream.iter_lines():
                self._there.set()
                id_ = line[4:] if line.startswith("id: ") else id_
                if line.startswith("data: "):
                    with self._more:
                        self.told.append({"id": id_, **json.loads(line[6:])})
                        self._more.notify_all()

    def ends(self, turns: int = 1) -> list[dict]:
        """All that was told, once so many turns have ended."""
        with self._more:
            assert self._more.wait_for(lambda: sum(map(ended, self.told)) >= turns, 30), self.told
            return list(self.told)


def ended(event: dict) -> bool:
    return event["type"] in ENDS


def test_what_is_sent_is_kept_answered_and_told_as_it_happens(server: Server) -> None:
    with server.client() as client:
        waits = Waits()
        server.live.kernel.agents.register(Agent("waits", "waits", executor=waits))
        viewer = Viewer(server, agent="waits")
        sent = client.post("/v1/lanes/trip", json={"text": "Plan 旅行", "agent": "waits", "key": "k1"})
        assert sent.status_code == 202
        assert sent.json()["joined"] == "opened"
        again = client.post("/v1/lanes/trip", json={"text": "Plan 旅行", "agent": "waits", "key": "k1"})
        assert (again.json()["joined"], again.json()["turn"]) == ("repeated", sent.json()["turn"])
        assert waits.begun.wait(30)
        lane = client.get("/v1/lanes/trip", params={"agent": "waits"}).json()
        assert (lane["turn"], [each["text"] for each in lane["submissions"]]) == (sent.json()["turn"], ["Plan 旅行"])
        more = client.post("/v1/lanes/trip", json={"text": "by train", "agent": "waits", "kind": "followup"})
        assert more.json()["joined"] == "queued"
        waits.go.set()
        told = viewer.ends(2)
        assert [each["type"] for each in told if ended(each)] == ["RUN_FINISHED"] * 2
        turns = server.db.user("ann").conv.turns("trip")
        assert [turn.status for turn in turns] == ["completed", "completed"]
        said = server.db.user("ann").conv.turn(told[-1]["result"]["ref"])
        assert [message.text for message in said.messages] == ["by train", "done: by train"]


def test_files_come_with_their_text_in_one_form(server: Server) -> None:
    with server.client(**{"x-threefold-request": "1"}) as client:
        viewer, pdf = Viewer(server), ("map.pdf", b"%PDF-1.4", "application/pdf")
        files = [("files", pdf), ("files", ("地図.txt", b"a map", "text/plain"))]
        sent = client.post("/v1/lanes/trip", data={"text": "What\r\nis this?", "key": "k"}, files=files)
        assert sent.status_code == 202, sent.text
        viewer.ends()
        turn = server.db.user("ann").conv.turns("trip")[0]
        view = server.db.user("ann").conv.turn(f"conv:ar:conv_trip.turn_{turn.turn}.turn.log")
        assert view.messages[0].text == "What\nis this?"  # as browsers send a line's end in a form
        assert {card.name for card in view.attachments} == {"map.pdf", "地図.txt"}
        assert server.db.user("ann").read(view.attachments[1].ref) in (b"a map", b"%PDF-1.4")
        problem(client.post("/v1/lanes/trip", data={"text": "x"}, files=[("other", ("a", b"b"))]), 422)


def test_a_viewer_goes_on_behind_the_last_event_it_saw(server: Server) -> None:
    with server.client() as client:
        viewer = Viewer(server)
        client.post("/v1/lanes/trip", json={"text": "one"})
        whole = viewer.ends()
        rest = Viewer(server, after=whole[3]["id"]).ends()
        assert [each["id"] for each in rest] == [each["id"] for each in whole[4:]]
        problem(client.get("/v1/lanes/trip/events", params={"after": "nonsense"}), 422)


def test_a_turn_is_stopped_and_recorded_as_cancelled(server: Server) -> None:
    with server.client() as client:
        waits = Waits()
        server.live.kernel.agents.register(Agent("waits", "waits", executor=waits))
        viewer = Viewer(server, agent="waits")
        sent = client.post("/v1/lanes/trip", json={"text": "Plan", "agent": "waits"}).json()
        assert waits.begun.wait(30)
        stopped = client.post("/v1/lanes/trip/cancel", json={"turn": sent["turn"], "agent": "waits"})
        assert stopped.json() == {"cancelled": True}
        viewer.ends()
        waits.go.set()
        assert server.db.user("ann").conv.turns("trip")[0].status == "cancelled"
        assert client.post("/v1/lanes/trip/cancel", json={}).json() == {"cancelled": False}


def test_what_waits_is_withdrawn_by_its_address(server: Server) -> None:
    with server.client() as client:
        waits = Waits()
        server.live.kernel.agents.register(Agent("waits", "waits", executor=waits))
        viewer = Viewer(server, agent="waits")
        sent = client.post("/v1/lanes/trip", json={"text": "Plan", "agent": "waits"}).json()
        assert waits.begun.wait(30)
        more = [
            client.post("/v1/lanes/trip", json={"text": text, "agent": "waits"}).json()
            for text in ("by 電車", "on foot")
        ]
        here = "/v1/lanes/trip/submissions"
        taken = client.delete(f"{here}/{more[0]['submission']}", params={"agent": "waits"})
        assert (taken.status_code, taken.json()["text"]) == (200, "by 電車")
        problem(client.delete(f"{here}/{more[0]['submission']}", params={"agent": "waits"}), 404)
        problem(client.delete(f"{here}/{more[1]['submission']}"), 404)  # in the lane of no agent
        problem(client.delete(f"{here}/{sent['submission']}", params={"agent": "waits"}), 409)
        problem(client.post(f"{here}/{more[1]['submission']}", json={}), 405)
        for grants in (["*:read"], ["*:read", "conv:write"]):
            with server.client(server.token("bob", grants=grants)) as bob:
                status = 404 if "conv:write" in grants else 403
                problem(bob.delete(f"{here}/{more[1]['submission']}", params={"agent": "waits"}), status)
        lane = client.get("/v1/lanes/trip", params={"agent": "waits"}).json()
        assert [each["text"] for each in lane["waiting"]] == ["on foot"]
        waits.go.set()
        told = viewer.ends(2)
        gone = [each["value"] for each in told if each.get("name") == "threefold.withdrawn"]
        assert gone == [{"submission": more[0]["submission"]}]


def test_an_agent_is_named_in_the_query_or_the_body_of_every_call(server: Server) -> None:
    with server.client() as client:
        waits = Waits()
        server.live.kernel.agents.register(Agent("waits", "waits", executor=waits))
        viewer, here = Viewer(server, agent="waits"), "/v1/lanes/trip"
        assert client.post(f"{here}?agent=waits", json={"text": "Plan"}).json()["joined"] == "opened"
        assert waits.begun.wait(30)
        problem(client.post(f"{here}?agent=waits", json={"text": "x", "agent": "other"}), 422)
        problem(client.post(f"{here}/cancel?agent=waits", json={"agent": "other"}), 422)
        both = client.post(f"{here}?agent=waits", json={"text": "by 電車", "agent": "waits"})
        assert both.json()["joined"] == "queued"
        for method, path in (
            ("GET", ""),
            ("POST", ""),
            ("POST", "/cancel"),
            ("GET", "/events"),
            ("DELETE", "/submissions/x"),
        ):
            for query in ("agnet=waits", "agent=waits&agent=other"):
                body = {"json": {"text": "x"} if not path else {}} if method == "POST" else {}
                assert "query" in problem(client.request(method, f"{here}{path}?{query}", **body), 422)["detail"]
        assert client.post(f"{here}/cancel?agent=waits", json={}).json() == {"cancelled": True}
        waits.go.set()
        viewer.ends(2)


def test_too_much_at_once_says_when_to_send_it_again(db: threefold.Threefold) -> None:
    waits = Waits()
    with served(db, [waits], waiting=1, user_lanes=1) as server, server.client() as client:
        client.post("/v1/lanes/trip", json={"text": "Plan"})
        assert waits.begun.wait(30)
        assert client.post("/v1/lanes/trip", json={"text": "waits"}).status_code == 202
        for lane, said in (("trip", "1 submissions wait"), ("other", "1 conversations of 'ann' run already")):
            refused = client.post(f"/v1/lanes/{lane}", json={"text": "x"})
            assert said in problem(refused, 429)["detail"]
            assert refused.headers["Retry-After"] == "10"
        waits.go.set()


def test_a_cancel_that_is_sent_again_under_its_key_stops_nothing_more(server: Server) -> None:
    key = {"Idempotency-Key": "7f3b0f5e-3f0a-4a41-9d3e-5b1f1c9c2a11"}
    with server.client() as client:
        waits = Waits()
        server.live.kernel.agents.register(Agent("waits", "waits", executor=waits))
        viewer, next_ = Viewer(server, agent="waits"), {"text": "next", "agent": "waits", "kind": "followup"}
        client.post("/v1/lanes/trip", json={"text": "Plan", "agent": "waits"})
        assert waits.begun.wait(30)
        client.post("/v1/lanes/trip", json=next_)
        first = client.post("/v1/lanes/trip/cancel", json={"agent": "waits"}, headers=key)
        viewer.ends()
        again = client.post("/v1/lanes/trip/cancel", json={"agent": "waits"}, headers=key)
        assert (first.json(), again.json()) == ({"cancelled": True}, {"cancelled": True})
        assert ("Idempotency-Replayed" in first.headers, again.headers["Idempotency-Replayed"]) == (False, "true")
        problem(client.post("/v1/lanes/trip/cancel", json={"agent": "waits", "turn": "x"}, headers=key), 409)
        waits.go.set()
        viewer.ends(2)
        turns = {turn.status for turn in server.db.user("ann").conv.turns("trip")}
        assert turns == {"cancelled", "completed"}


def test_a_withdrawal_that_is_sent_again_under_its_key_is_answered_the_same(server: Server) -> None:
    key = {"Idempotency-Key": "9f3b0f5e-3f0a-4a41-9d3e-5b1f1c9c2a11"}
    with server.client() as client:
        waits = Waits()
        server.live.kernel.agents.register(Agent("waits", "waits", executor=waits))
        viewer = Viewer(server, agent="waits")
        client.post("/v1/lanes/trip", json={"text": "Plan", "agent": "waits"})
        assert waits.begun.wait(30)
        sent = client.post("/v1/lanes/trip", json={"text": "by 電車", "agent": "waits"}).json()
        here = f"/v1/lanes/trip/submissions/{sent['submission']}?agent=waits"
        first, again = (client.delete(here, headers=key) for _ in range(2))
        assert (first.status_code, first.json()["text"]) == (200, "by 電車")
        assert (again.content, again.headers["Idempotency-Replayed"]) == (first.content, "true")
        waits.go.set()
        viewer.ends()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"text": ""}, 422), ({"txt": "x"}, 422), ({}, 422), ({"text": 5}, 422), ({"text": "x", "kind": "shout"}, 422),
        ({"text": "x", "agent": "nobody"}, 404), ({"text": "x", "owner": "bob"}, 422), ([], 422),
    ],
)  # fmt: skip
def test_what_is_off_is_said_and_nothing_is_kept(server: Server, body: Any, status: int) -> None:
    with server.client() as client:
        problem(client.post("/v1/lanes/trip", json=body), status)
        assert client.get("/v1/lanes/trip").json()["turn"] is None
        assert server.db.user("ann").conv.turns("trip") == ()


def test_a_lane_is_its_owners_and_needs_the_grants_of_what_an_answer_shows(server: Server) -> None:
    with server.client() as client:
        viewer = Viewer(server)
        client.post("/v1/lanes/trip", json={"text": "of ann alone"})
        viewer.ends()
    writer = server.token("bob", grants=["conv:read", "conv:write"])
    with server.client(writer) as bob:
        problem(bob.post("/v1/lanes/trip", json={"text": "x"}), 403)
        assert bob.get("/v1/lanes/trip").json()["submissions"] == []
    whole = server.token("bob", grants=["*:read", "conv:write"])
    with server.client(whole) as bob:
        follows = Viewer(server, whole)
        assert bob.post("/v1/lanes/trip", json={"text": "mine"}).status_code == 202
        assert "of ann alone" not in json.dumps(follows.ends())
    problem(httpx2.get(f"{server.url}/v1/lanes/trip/events", headers={"Authorization": "Bearer tf_no"}), 401)
    reader = server.token("bob", grants=["mem:read"])
    with server.client(reader) as bob:
        problem(bob.get("/v1/lanes/trip/events"), 403)
        problem(bob.post("/v1/lanes/trip/cancel", json={}), 403)
    app = server.token("bob", grants=["*:read", "conv:write"], app="one")
    with server.client(app) as bob:
        problem(bob.post("/v1/lanes/trip", json={"text": "x"}), 403)
        problem(bob.get("/v1/lanes/trip"), 403)
        problem(bob.get("/v1/lanes/trip/events"), 403)
