"""The public names are a list, documented, and cheap to import."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import threefold
from threefold import ports
from threefold.model.scope import Scope
from threefold.realms.conv.realm import Conv
from threefold.realms.conv.recorder import TurnHandle
from threefold.realms.conv.threads import Thread

PUBLIC = [
    "Act",
    "Agent",
    "Caller",
    "Capability",
    "Commons",
    "Config",
    "Conflict",
    "Door",
    "Expired",
    "Forbidden",
    "Handle",
    "IntegrityError",
    "InvalidInput",
    "Kernel",
    "NotFound",
    "Purged",
    "Ranking",
    "Resolved",
    "Service",
    "Threefold",
    "ThreefoldError",
    "TooMany",
    "Tool",
    "Unavailable",
    "compare_stores",
    "copy_store",
    "open",
    "operation",
    "restore",
]


def test_the_public_names_are_these() -> None:
    assert threefold.__all__ == PUBLIC
    for name in PUBLIC:
        assert getattr(threefold, name).__doc__


def test_names_that_users_rely_on_exist() -> None:
    turn = (
        "prompt followup steer attach step publish summary note answer source context event stream fail cancel record"
    )
    for name in turn.split():
        assert callable(getattr(TurnHandle, name))
    for name in ["search", "conversations", "turns", "turn", "feedback", "timeline", "record", "forget"]:
        assert callable(getattr(Conv, name))
    for name in ["start", "submit", "ask", "stream", "close", "remember", "recall", "thread"]:
        assert callable(getattr(threefold.Kernel, name))
    for name in ["start", "submit", "cancel", "lane", "events", "look", "close"]:
        assert callable(getattr(threefold.Door, name))
    for name in ["turn", "context", "thread", "threads", "resolve", "read", "forget", "export", "import_history"]:
        assert callable(getattr(threefold.Handle, name))


@pytest.mark.parametrize(
    "cls", [threefold.Threefold, threefold.Handle, Conv, TurnHandle, Thread], ids=lambda c: c.__name__
)
def test_every_public_method_is_documented(cls: type) -> None:
    for name, value in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_"):
            assert value.__doc__, f"{cls.__name__}.{name}"


def test_every_store_method_takes_a_scope_and_every_port_is_narrow() -> None:
    store = {n: f for n, f in inspect.getmembers(ports.Store, inspect.isfunction) if not n.startswith("_")}
    assert len(store) < 10
    for name, method in store.items():
        first = list(inspect.signature(method).parameters.values())[1]
        carries = {"scope", "commit", "query"}
        assert first.name in carries, name


def test_importing_loads_no_heavy_library() -> None:
    code = "import sys, threefold, json; print(json.dumps(sorted(m for m in sys.modules if '.' not in m)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & {"numpy", "apsw", "sqlite3", "asyncio", "zipfile", "tqdm"}


def test_a_search_loads_nothing_that_only_other_calls_need(tmp_path: Path) -> None:
    with threefold.open(tmp_path, background=False) as db, db.user("alice").turn("trip") as turn:
        turn.prompt("Where should we eat fish in Lisbon?")
    code = (
        "import json, sys, threefold\n"
        "with threefold.open(sys.argv[1], background=False) as db:\n"
        "    assert db.user('alice').conv.search('fish in Lisbon')\n"
        "print(json.dumps(sorted(m for m in sys.modules if m.startswith('threefold.'))))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    rooms = {f"threefold.backends.sqlite.{name}" for name in ("commits", "moving", "reads", "removal", "upkeep")}
    recording = {f"threefold.realms.conv.{name}" for name in ("fold", "recorder", "resolve", "view")}
    values = {f"threefold.model.{name}" for name in ("commit", "moving", "record", "retention", "turn")}
    others = {"threefold.jobs.embed", "threefold.jobs.worker", "threefold.text.dates.numeric"}
    assert not loaded & (rooms | recording | values | others)


def test_errors_form_one_tree_and_keep_the_usual_bases() -> None:
    for name in PUBLIC:
        value = getattr(threefold, name)
        if isinstance(value, type) and issubclass(value, Exception):
            assert issubclass(value, threefold.ThreefoldError)
    assert issubclass(threefold.InvalidInput, ValueError)
    assert issubclass(threefold.Expired, threefold.NotFound)
    assert issubclass(threefold.Purged, LookupError)


def test_unknown_settings_and_stores_are_refused_by_name() -> None:
    with pytest.raises(threefold.InvalidInput, match="colour"):
        threefold.open(":memory:", colour="red")
    with pytest.raises(threefold.InvalidInput, match="mysql"):
        threefold.open("mysql://somewhere/db", embedder=None)
    with pytest.raises(threefold.InvalidInput, match="embedder"):
        threefold.open(":memory:", embedder="no-such-model")
    with pytest.raises(threefold.InvalidInput, match="negative"):
        threefold.Ranking(k=-1)


def test_metadata_cannot_change_who_it_is() -> None:
    assert Scope("alice").owner == Scope("alice", "default")
    with pytest.raises(AttributeError):
        Scope("alice").user = "bob"  # type: ignore[misc]
