"""`threefold serve` with several processes: they answer as one, end as one, and one that dies is replaced."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from serve_process import serving, start, workers
from waiting import wait_until

import threefold

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for as Linux has them")
ENDS = ("RUN_FINISHED", "RUN_ERROR")
AGENTS = '''
import multiprocessing
import os
import time
from pathlib import Path

HERE = Path(__file__).parent


def waits(run):
    """Waits until it may go on."""
    run.say(f"{os.getpid()} ")
    while not (HERE / "go").exists():
        time.sleep(0.02)
        run.say("")
    run.say(f"done: {run.goal}")
    return "".join(run.pieces)


def stubborn(run):
    """Does not listen."""
    (HERE / "begun").touch()
    while not (HERE / "go").exists():
        time.sleep(0.02)
    return "done"




if multiprocessing.parent_process() is None:
    here_alone = waits
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where the agents are."""
    made = tmp_path / "agents"
    made.mkdir()
    (made / "helpers.py").write_text(AGENTS)
    yield made
    (made / "go").touch()


class Viewer:
    """Follows a conversation over a connection of its own."""

    def __init__(self, http: httpx2.Client, **params: str) -> None:
        self.told: list[dict[str, Any]] = []
        self.there, self.over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, args=(str(http.base_url), params), daemon=True)
        self._thread.start()
        assert self.there.wait(30)

    def _follow(self, url: str, params: dict[str, str]) -> None:
        try:
            with (
                suppress(httpx2.TransportError),  # the process that told it is gone
                httpx2.Client(base_url=url, timeout=120) as http,
                http.stream("GET", "/v1/lanes/trip/events", params=params) as stream,
            ):
                for line in stream.iter_lines():
                    self.there.set()
                    if line.startswith("data: "):
                        self.told.append(json.loads(line[6:]))
        finally:
            self.over.set()

    @property
    def text(self) -> str:
        """What was said so far."""
        return "".join(each["delta"] for each in self.told if each["type"] == "TEXT_MESSAGE_CONTENT")

    @property
    def ended(self) -> bool:
        """Whether a turn ended."""
        return any(each["type"] in ENDS for each in self.told)


def asked(http: httpx2.Client, count: int, ask: Any) -> list[Any]:
    """Ask over so many connections at once, so that several processes answer."""

    def one(number: int) -> Any:
        with httpx2.Client(base_url=http.base_url, timeout=60) as own:
            return ask(own, number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


def test_several_processes_answer_as_one(store: str) -> None:
    with serving(store, "--workers", "2") as (process, http):
        assert len(workers(process.pid)) == 2
        made = http.post("/v1/mem/records", json={"memory": "likes tea"}).json()
        statuses = asked(http, 12, lambda own, _: own.get(f"/v1/mem/records/{made['id']}").status_code)
        assert statuses == [200] * 12
        key = {"Idempotency-Key": "0f8fad5b-d9cb-469f-a165-70867728950e"}
        body = {"memory": "prefers trains"}

        def remember(own: httpx2.Client, _: int) -> httpx2.Response:
            return own.post("/v1/mem/records", json=body, headers=key)

        answers = [*asked(http, 12, remember), remember(http, 0)]
        done = [each for each in answers if each.status_code == 200]
        # While it is being done, others are told so; it is done once.
        assert {each.status_code for each in answers} <= {200, 409}
        assert len({each.content for each in done}) == 1
        assert sum("idempotency-replayed" not in each.headers for each in done) == 1
        assert len(http.get("/v1/mem/records").json()["memories"]) == 2
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_rate_is_that_of_all_processes_together(store: str) -> None:
    with serving(store, "--workers", "3", "--rate", "10") as (_, http):
        statuses = asked(http, 60, lambda own, _: own.get("/v1/services").status_code)
        # What two count in the same moment may count as one.
        assert 10 <= statuses.count(200) <= 15
        assert set(statuses) == {200, 429}


@pytest.mark.parametrize(
    ("store", "sign"), [("sqlite", signal.SIGINT), ("postgres", signal.SIGTERM)], indirect=["store"]
)
def test_streams_and_turns_end_with_it(store: str, folder: Path, sign: signal.Signals) -> None:
    given = ("--workers", "2", "--agent", "helpers:waits")
    with serving(store, *given, folder=folder) as (process, http):
        viewers = [Viewer(http) for _ in range(4)]
        http.post("/v1/lanes/trip", json={"text": "Plan"})
        assert wait_until(lambda: all(viewer.text for viewer in viewers))
        process.send_signal(sign)
        assert all(viewer.over.wait(30) for viewer in viewers)
        _, log = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "exceeded" not in log  # nobody was waited for until patience ended
        assert "Traceback" not in log
    with threefold.open(store, embedder=None, background=False) as db:
        assert [turn.status for turn in db.user("ann").conv.turns("trip")] == ["cancelled"]


def test_viewers_at_every_process_are_told_the_same(store: str, folder: Path) -> None:
    with serving(store, "--workers", "2", "--agent", "helpers:waits", folder=folder) as (_, http):
        viewers = [Viewer(http) for _ in range(6)]
        sent = http.post("/v1/lanes/trip", json={"text": "Plan"}).json()
        assert wait_until(lambda: all(viewer.text for viewer in viewers))
        # What is sent to any of them reaches the one that runs the turn.
        more = {"text": "And Porto?", "key": "k"}
        joined = asked(http, 6, lambda own, _: own.post("/v1/lanes/trip", json=more).json()["joined"])
        assert sorted(joined) == ["queued", *["repeated"] * 5]
        (folder / "go").touch()
        assert wait_until(lambda: all(sum(e["type"] in ENDS for e in viewer.told) == 2 for viewer in viewers))
        for viewer in viewers[1:]:
            assert viewer.text == viewers[0].text
        assert {each["runId"] for each in viewers[0].told if each["type"] == "RUN_STARTED"} >= {sent["turn"]}
        again = http.post("/v1/lanes/trip/cancel", json={"turn": sent["turn"]})
        assert again.json() == {"cancelled": False}


def test_a_turn_is_stopped_from_any_process(store: str, folder: Path) -> None:
    with serving(store, "--workers", "2", "--agent", "helpers:waits", folder=folder) as (_, http):
        viewer = Viewer(http)
        sent = http.post("/v1/lanes/trip", json={"text": "Plan"}).json()
        assert wait_until(lambda: viewer.text)
        stop = {"turn": sent["turn"]}
        stopped = asked(http, 4, lambda own, _: own.post("/v1/lanes/trip/cancel", json=stop).json()["cancelled"])
        assert any(stopped)
        assert wait_until(lambda: viewer.ended)
        turns = http.get("/v1/conv/turns", params={"conversation": "trip"}).json()["turns"]
        assert [turn["status"] for turn in turns] == ["cancelled"]


def test_one_that_dies_is_replaced_and_its_turn_taken_over(store: str, folder: Path) -> None:
    impatient = (str(Path(__file__).parent.parent / "serve_impatiently.py"),)
    given = ("--workers", "2", "--agent", "helpers:waits")
    with serving(store, *given, folder=folder, program=impatient) as (process, http):
        viewer = Viewer(http)
        sent = http.post("/v1/lanes/trip", json={"text": "Plan"}).json()
        assert wait_until(lambda: viewer.text.endswith(" "))
        runs = int(viewer.text)
        before = workers(process.pid)
        assert runs in before
        follows = asked(http, 8, lambda own, _: own.post("/v1/lanes/trip", json={"text": "And?"}).status_code)
        assert follows == [202] * 8
        os.kill(runs, signal.SIGKILL)
        assert wait_until(lambda: len(workers(process.pid)) == 2 and runs not in workers(process.pid))
        (folder / "go").touch()

        def turns() -> list[dict[str, Any]]:
            with httpx2.Client(base_url=http.base_url, timeout=60) as own:
                found: list[dict[str, Any]] = own.get("/v1/conv/turns?conversation=trip").json()["turns"]
                return found

        assert wait_until(lambda: len(turns()) == 2)
        assert [(turn["turn"] == sent["turn"], turn["status"]) for turn in turns()] == [
            (True, "failed"),
            (False, "completed"),
        ]
        assert asked(http, 8, lambda own, _: own.get("/health").status_code) == [200] * 8
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_they_end_when_the_first_one_is_gone(tmp_path: Path) -> None:
    with serving(str(tmp_path / "store"), "--workers", "2") as (process, _):
        alive = workers(process.pid)
        process.kill()
        process.wait(30)
        assert wait_until(lambda: not any(Path(f"/proc/{each}").exists() for each in alive))


def test_where_one_cannot_begin_none_does(tmp_path: Path, folder: Path) -> None:
    given = ("--port", "0", "--workers", "2", "--agent", "helpers:here_alone")
    process = start(str(tmp_path / "store"), "serve", *given, folder=folder)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (1, "")
    assert "module 'helpers' has no 'here_alone'" in err
    assert err.splitlines()[-1].startswith("threefold: a worker ended before it answered")


@pytest.mark.parametrize("count", ["1", "2"])
def test_a_second_signal_waits_for_nobody(tmp_path: Path, folder: Path, count: str) -> None:
    given = ("--workers", count, "--agent", "helpers:stubborn")
    with serving(str(tmp_path / "store"), *given, folder=folder) as (process, http):
        http.post("/v1/lanes/trip", json={"text": "Plan"})
        assert wait_until((folder / "begun").exists)
        process.send_signal(signal.SIGTERM)
        # It began to end: the one that runs no turn is gone, or the only one takes nobody in any more.
        assert wait_until(lambda: len(workers(process.pid)) < 2 if count == "2" else refuses(http))
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        assert workers(process.pid) == []


@pytest.mark.parametrize("count", ["1", "2"])
def test_an_agent_that_does_not_look_is_left_behind(tmp_path: Path, folder: Path, count: str) -> None:
    store = str(tmp_path / "store")
    with serving(store, "--workers", count, "--agent", "helpers:stubborn", folder=folder) as (process, http):
        http.post("/v1/lanes/trip", json={"text": "Plan"})
        assert wait_until((folder / "begun").exists)
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
        assert process.returncode == 0
        assert "are left behind" in log
        assert "Traceback" not in log
    with threefold.open(store, embedder=None, background=False) as db:
        assert [turn.status for turn in db.user("ann").conv.turns("trip")] == ["cancelled"]


def refuses(http: httpx2.Client) -> bool:
    try:
        http.get("/health")
    except httpx2.TransportError:
        return True
    return False
