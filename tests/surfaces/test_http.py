"""Operations over HTTP: the table as routes, the addresses of resources, errors, what there is."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from http_server import Server, problem, served

import threefold
from threefold import Service, operation
from threefold.errors import (
    Conflict,
    Expired,
    Forbidden,
    IntegrityError,
    InvalidInput,
    NotFound,
    Purged,
    TooMany,
    Unavailable,
)
from threefold.services import Caller
from threefold.surfaces.http.aliases import ALIASES

Open = Callable[..., threefold.Threefold]
ERRORS: dict[str, tuple[type[Exception], int]] = {
    "gone": (NotFound, 404), "late": (Expired, 410), "purged": (Purged, 410), "not yours": (Forbidden, 403),
    "taken": (Conflict, 409), "off": (InvalidInput, 422), "busy": (Unavailable, 503), "damaged": (IntegrityError, 500),
    "raised": (KeyError, 500), "many": (TooMany, 429),
}  # fmt: skip


class Lists(Service):
    """An app with what HTTP has to bring across."""

    namespace = "task"
    line = "Issues of a team"

    @operation()
    def find(
        self,
        caller: Caller,
        tags: list[str] | None = None,
        numbers: list[int] | None = None,
        filter: dict[str, Any] | None = None,  # noqa: A002
        any_value: Any = None,
        share: float = 1.0,
        whole: bool = False,
    ) -> dict[str, Any]:
        """Say what was given, and to whom."""
        given = {"tags": tags, "numbers": numbers, "filter": filter, "any": any_value, "share": share, "whole": whole}
        return {**given, "user": caller.scope.user, "tenant": caller.scope.tenant}

    @operation()
    def fail(self, caller: Caller, how: str) -> dict[str, Any]:
        """Fail in some way."""
        raise ERRORS[how][0](f"it is {how}: /secret/place 'query'")

    @operation("write")
    def add(self, caller: Caller, text: str) -> dict[str, Any]:
        """Make something new each time."""
        return {"made": uuid.uuid4().hex, "text": text}


@pytest.fixture
def server(db: threefold.Threefold) -> Iterator[Server]:
    with db.user("ann").turn("trip", turn="1") as turn:
        turn.prompt("Where is the harbour?")
        turn.answer("Behind the 駅")
    db.user("ann").mem.remember("prefers trains")
    db.publish(Lists())
    with served(db) as found:
        yield found


def test_what_reads_answers_to_both_methods_and_gives_what_python_does(server: Server) -> None:
    ann = server.db.user("ann")
    with server.client() as http:
        for query in ("harbour", "駅", "a&b=c 100% +1", "#?"):
            expected = json.loads(json.dumps(ann.services.call("conv", "search", query=query, limit=2)))
            for answered in (
                http.get("/v1/conv/search", params={"query": query, "limit": 2}),
                http.post("/v1/conv/search", json={"query": query, "limit": 2}),
            ):
                assert answered.status_code == 200, answered.text
                found = answered.json()
                assert [hit["ref"] for hit in found["hits"]] == [hit["ref"] for hit in expected["hits"]]
        assert http.get("/v1/mem/list").json() == ann.services.call("mem", "list")
        assert http.get("/v1/search", params={"query": "trains"}).json()["results"]
        assert http.head("/v1/mem/list").status_code == 200
        assert http.head("/v1/mem/list").content == b""


def test_a_query_has_lists_by_repetition_and_objects_as_json(server: Server) -> None:
    with server.client() as http:
        given = [("tags", "a,b"), ("tags", "c"), ("numbers", "1"), ("numbers", "2"), ("filter", '{"年": [1, null]}'),
                 ("any_value", '"x"'), ("share", "0.5"), ("whole", "true")]  # fmt: skip
        found = http.get("/v1/task/find", params=given).json()
        assert found == {"tags": ["a,b", "c"], "numbers": [1, 2], "filter": {"年": [1, None]}, "any": "x",
                         "share": 0.5, "whole": True, "user": "ann", "tenant": "default"}  # fmt: skip
        assert http.get("/v1/task/find", params={"tags": '["a", "b"]'}).json()["tags"] == ["a", "b"]
        assert http.get("/v1/task/find", params={"tags": "a"}).json()["tags"] == ["a"]
        assert "'[1' is no JSON" in problem(http.get("/v1/task/find?filter=[1"), 422)["detail"]
        assert "share is given 2 times" in problem(http.get("/v1/task/find?share=1&share=2"), 422)["detail"]
        assert "unknown field `user`" in problem(http.get("/v1/task/find?user=bob"), 422)["detail"]


def test_what_an_app_publishes_comes_and_goes(server: Server) -> None:
    with server.client() as http:
        assert http.get("/v1/task/find").status_code == 200
        assert "task" in [each["namespace"] for each in http.get("/v1/services").json()["services"]]
        assert "/v1/task/find" in http.get("/v1/openapi.json").json()["paths"]
        server.db.withdraw("task")
        assert "'task' is not published" in problem(http.get("/v1/task/find"), 404)["detail"]
        assert "/v1/task/find" not in http.get("/v1/openapi.json").json()["paths"]


def test_three_depths(server: Server) -> None:
    services = server.db.user("ann").services
    with server.client() as http:
        found = http.get("/v1/services").json()
        assert found == {"services": [each._asdict() for each in services.introductions()]}
        for each in services.introductions():
            about = services.about(each.namespace)
            assert http.get(f"/v1/services/{each.namespace}").json() == about
            for told in about["operations"]:
                schema = services.schema(each.namespace, told["name"])
                assert http.get(f"/v1/services/{each.namespace}/{told['name']}").json() == schema
        assert "'nope' is not published" in problem(http.get("/v1/services/nope"), 404)["detail"]
        assert "no operation 'nope'" in problem(http.get("/v1/services/mem/nope"), 404)["detail"]


def test_resources_are_operations_under_their_own_addresses(server: Server) -> None:
    with server.client() as http:
        made = http.post("/v1/mem/records", json={"memory": "likes tea"}).json()
        address = f"/v1/mem/records/{made['id']}"
        assert http.get(address).json()["memory"] == "likes tea"
        assert http.get(f"/v1/mem/records/{made['ref']}").json()["memory"] == "likes tea"
        assert http.patch(address, json={"tags": ["drinks"], "revision": 1}).json()["tags"] == ["drinks"]
        said = problem(http.patch(address, json={"tags": [], "revision": 1}), 409)["detail"]
        assert "revision" in said
        assert len(http.get(f"{address}/history").json()["revisions"]) == 2
        assert made["id"] in [
            each["id"] for each in http.get("/v1/mem/records", params={"tags": "drinks"}).json()["memories"]
        ]
        assert http.delete(address).json()["stores"]["turns"] == 1
        problem(http.get(address), 404)
        name = "a/b 駅 50%"
        board = "/v1/cnv/boards/a%2Fb%20%E9%A7%85%2050%25"
        assert http.put(board, json={"title": "Lisbon"}).json()["name"] == name
        card = http.post(f"{board}/cards", json={"ref": "conv:conversation:trip", "note": "für später"}).json()
        assert card["note"] == "für später"
        assert http.get(board).json()["cards"][0]["shown"]["standing"] == "there"
        assert [each["name"] for each in http.get("/v1/cnv/boards").json()["boards"]] == [name]
        assert len(http.get(f"{board}/history").json()["revisions"]) == 2
        source = "https://example.org/visa?a=1#b"
        document = f"/v1/doc/documents/{source.replace('/', '%2F').replace('?', '%3F').replace('#', '%23')}"
        assert http.put(document, json={"text": "# Visa\n\n60 €"}).json()["source"] == source
        assert http.get(document).json()["text"] == "# Visa\n\n60 €"
        assert http.get("/v1/doc/documents").json()["documents"][0]["source"] == source
        assert http.delete(document).status_code == 200
        assert http.get("/v1/conv/turns").json()["turns"][0]["turn"] == "1"
        assert http.get("/v1/conv/conversations/trip/turns", params={"ordinal": -1}).json()["turns"][0]["turn"] == "1"
        assert http.get("/v1/conv/conversations").json()["conversations"][0]["id"] == "trip"
        assert http.delete("/v1/conv/conversations/trip", params={"turn": "1"}).status_code == 200
        assert http.get("/v1/conv/conversations").json()["conversations"] == []


def test_an_address_and_a_body_do_not_contradict_each_other(server: Server) -> None:
    with server.client() as http:
        same = http.put("/v1/cnv/boards/lisbon", json={"board": "lisbon"})
        assert same.status_code == 200
        said = problem(http.put("/v1/cnv/boards/lisbon", json={"board": "porto"}), 422)["detail"]
        assert said == "board 'porto' is not the 'lisbon' of the path; leave it out"
        assert "stands in the query" in problem(http.post("/v1/mem/search?query=x", json={"query": "y"}), 422)["detail"]


def test_every_alias_names_an_operation_of_the_table(db: threefold.Threefold) -> None:
    services = db.user("ann").services
    for alias in ALIASES:
        found = services.operation(alias.namespace, alias.operation)
        named = {part[1:-1]: "" for part in alias.path.split("/") if part.startswith("{")}
        assert alias.fixed(named).keys() <= set(found.takes["properties"])
        assert (alias.method == "GET") == (found.access == "read")
        assert (alias.method == "DELETE") == found.destructive


@pytest.mark.parametrize("how", ERRORS)
def test_each_error_has_its_status(server: Server, how: str) -> None:
    status = ERRORS[how][1]
    with server.client() as http:
        answered = http.get("/v1/task/fail", params={"how": how})
    said = problem(answered, status)
    assert ("/secret/place" in said["detail"]) == (status != 500)  # an app's own words, but not of what it did not mean
    assert (answered.headers.get("retry-after") is not None) == (status in (429, 503))


def test_what_is_malformed_is_told(server: Server) -> None:
    with server.client() as http:
        for body in (b"{", b'{"a":', b"\xff\xfe", b"nul", b"[" * 100_000, b'{"a": 1e999999}'):
            answered = http.post("/v1/mem/search", content=body, headers={"Content-Type": "application/json"})
            problem(answered, 400 if answered.status_code == 400 else 422)
        for body in (b"[]", b'"x"', b"1", b"null"):
            answered = http.post("/v1/mem/search", content=body, headers={"Content-Type": "application/json"})
            assert "must be a JSON object" in problem(answered, 400)["detail"]
        said = problem(http.post("/v1/mem/search", json={}), 422)["detail"]
        assert "missing required field `query`" in said
        said = problem(http.post("/v1/mem/search", json={"query": "x", "limit": "5"}), 422)["detail"]
        assert "limit: Expected `int`, got `str`" in said
        for body in (b"query=x", b"<a/>"):
            token = server.token()
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/plain"}
            assert (
                "application/json" in problem(http.post("/v1/mem/search", content=body, headers=headers), 415)["detail"]
            )


def test_unknown_addresses_and_methods_are_told_as_problems(server: Server) -> None:
    with server.client() as http:
        for path in ("/v1", "/v1/", "/v1/mem", "/v1/mem/", "/v1/mem/nope", "/v1/a/b/c/d", "/v1/..%2f..%2fetc/passwd",
                     "/nope", "/v2/mem/search", "/v1/%00/x", "/v1/mem%2Fsearch", "/v1/%ff/x", "/v1/mem/__init__",
                     "/v1/mem/resolve", "/v1/mem/_changed"):  # fmt: skip
            problem(http.get(path), 404)
        assert "nothing at this address" in problem(http.get("/v1/nope"), 404)["detail"]
        problem(http.get("/v1/refs/x", params={"size": "0000000001999999999"}), 422)
        for method, path, allowed in [
            ("PATCH", "/v1/mem/search", "GET, HEAD, POST"), ("GET", "/v1/mem/upsert", "POST"),
            ("POST", "/v1/services", "GET, HEAD"), ("DELETE", "/v1/mem/records", "GET, HEAD, POST"),
            ("GET", "/v1/turns", "POST"), ("OPTIONS", "/v1/refs/x", "GET, HEAD"), ("BREW", "/v1/export", "GET, HEAD"),
            ("GET", "/v1/doc/files", "POST"),
        ]:  # fmt: skip
            answered = http.request(method, path)
            problem(answered, 405)
            assert answered.headers["allow"] == allowed
        problem(http.delete("/health"), 405)


def test_lists_are_paged_by_cursor(server: Server) -> None:
    mem = server.db.user("ann").mem
    for number in range(7):
        mem.remember(f"note number {number}", kind=f"kind{number}")
    with server.client() as http:
        found, cursor = [], None
        while True:
            page = http.get("/v1/mem/records", params={"limit": 3, **({"cursor": cursor} if cursor else {})}).json()
            found += [each["id"] for each in page["memories"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert len(found) == len(set(found)) == 8
        assert "cursor" in problem(http.get("/v1/mem/records?cursor=x"), 422)["detail"]


def test_a_request_with_a_key_is_done_once(server: Server) -> None:
    with server.client() as http:
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        first = http.post("/v1/task/add", json={"text": "ü"}, headers=headers)
        again = http.post("/v1/task/add", json={"text": "ü"}, headers=headers)
        assert again.content == first.content
        assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (None, "true")
        assert (
            "another request" in problem(http.post("/v1/task/add", json={"text": "b"}, headers=headers), 409)["detail"]
        )
        assert (
            "another request"
            in problem(http.post("/v1/mem/upsert", json={"text": "ü"}, headers=headers), 409)["detail"]
        )
        other = http.post("/v1/task/add", json={"text": "ü"}, headers={"Idempotency-Key": str(uuid.uuid4())})
        assert other.content != first.content
        token = server.token()
        theirs = http.post("/v1/task/add", json={"text": "ü"}, headers={**headers, "Authorization": f"Bearer {token}"})
        assert theirs.content != first.content
        failed = {"Idempotency-Key": "k"}
        problem(http.post("/v1/task/add", json={}, headers=failed), 422)
        assert http.post("/v1/task/add", json={"text": "mended"}, headers=failed).status_code == 200
        for key in ("", "x" * 256):
            answered = http.post("/v1/task/add", json={"text": "a"}, headers={"Idempotency-Key": key})
            assert "1 to 255 characters" in problem(answered, 422)["detail"]


def test_a_turn_of_another_host_is_recorded(server: Server) -> None:
    turn = {
        "conversation": "elsewhere/駅", "turn": "t1", "title": "A trip", "started": "2026-05-01T09:00:00Z",
        "submissions": [
            {"text": "Plan Lisbon", "at": "2026-05-01T09:00:00Z", "author": "Ann"},
            {"text": "with a dog", "kind": "followup", "at": "2026-05-01T09:00:05Z", "batch": "b2"},
        ],
        "steps": [{"name": "find", "arguments": {"city": "Lisbon"}, "result": [1], "at": "2026-05-01T09:00:06Z"}],
        "attachments": [{"name": "n.txt", "data": "aGVsbG8=", "text": "hello", "at": "2026-05-01T09:00:06Z"}],
        "files": [{"name": "out/plan.md", "data": "IyBQbGFu", "at": "2026-05-01T09:00:07Z"}],
        "context": [{"type": "page", "payload": {"url": "x"}, "at": "2026-05-01T09:00:06Z"}],
        "sources": [{"url": "https://example.org", "title": "Ferries"}],
        "notes": [{"text": "book early", "tag": "decision", "at": "2026-05-01T09:00:07Z"}],
        "summary": {"text": "planned", "anchors": ["Alfama"], "at": "2026-05-01T09:00:07Z"},
        "tokens": {"input": 10, "self": 1},
        "events": [{"type": "chat.step", "data": {"a": 1}, "at": "2026-05-01T09:00:07Z"}],
        "streams": [{"marker": "canvas", "text": "x"}],
        "answer": {"text": "Stay in Graça", "at": "2026-05-01T09:00:08Z"},
    }  # fmt: skip
    with server.client() as http:
        made = http.post("/v1/turns", json=turn).json()
        assert made["outcome"] == "created"
        assert http.post("/v1/turns", json=turn).json() == {**made, "outcome": "unchanged"}
        seen = server.db.user("ann").conv.turn(made["ref"])
        assert [each.text for each in seen.messages] == ["Plan Lisbon", "with a dog", "Stay in Graça"]
        assert server.db.user("ann").read(seen.files[0].ref) == b"# Plan"
        assert (
            http.get("/v1/conv/search", params={"query": "Graça"}).json()["hits"][0]["conversation"] == "elsewhere/駅"
        )
        failed = http.post("/v1/turns", json={"conversation": "c", "status": "failed", "error": "no luck"}).json()
        assert server.db.user("ann").conv.turn(failed["ref"]).status == "failed"
        for wrong, said in [
            ({}, "missing required field `conversation`"), ({"conversation": ""}, "conversation is empty"),
            ({"conversation": "c", "user": "bob"}, "unknown field `user`"),
            ({"conversation": "c", "submissions": [{"text": 1}]}, "$.submissions[0].text"),
            ({"conversation": "c", "files": [{"name": "../x", "data": ""}]}, "must be relative"),
            ({"conversation": "c", "files": [{"name": "x"}]}, "has no bytes"),
            ({"conversation": "c", "files": [{"name": "x", "data": "!"}]}, "turn: "),
            ({"conversation": "c", "steps": [{"name": "x", "status": "lost"}]}, "$.steps[0].status"),
            ({"conversation": "c", "error": "x"}, "error is of turns that failed"),
            ({"conversation": "c", "started": "yesterday"}, "started 'yesterday' is no moment"),
        ]:  # fmt: skip
            assert said in problem(http.post("/v1/turns", json=wrong), 422)["detail"]
