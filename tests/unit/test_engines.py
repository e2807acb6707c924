"""Engines that hang, raise, ask each other, give odd things; and their end with the store."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

import threefold
from threefold.context import DefaultEngine, EngineInfo
from threefold.errors import EngineFailed, InvalidInput
from threefold.model.context import Dropped, Entry, Said, ThreadPart
from threefold.testing.fakes import Clock, HashEmbedder

WAIT = 20
RAISED = (SystemExit, GeneratorExit, asyncio.CancelledError, StopIteration, StopAsyncIteration)


class Engine:
    """Does what the default one does, but for what it is made with."""

    def __init__(self, id_: str = "mine", **methods: Callable[..., Any]) -> None:
        self.info = EngineInfo(id_, id_)
        self.calls: list[str] = []
        for name, method in methods.items():
            setattr(self, name, method)

    def assemble(self, intent, sources):
        return DefaultEngine().assemble(intent, sources)

    def compact(self, thread, sources):
        return DefaultEngine().compact(thread, sources)


@pytest.fixture
def db() -> Iterator[threefold.Threefold]:
    with threefold.open(":memory:", embedder=HashEmbedder(), background=False) as db:
        db.user("alice").mem.remember("likes ferries")
        db.embed_pending()
        yield db


def bounded(call: Callable[[], Any]) -> Any:
    """What a call gives, in a thread; a failure where it hangs."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()), daemon=True)
    thread.start()
    thread.join(WAIT)
    assert found, "it hangs or raised"
    return found[0]


async def usual(intent, sources):
    return DefaultEngine().assemble(intent, sources)


def test_an_engine_that_takes_too_long_is_answered_for(db: threefold.Threefold) -> None:
    gate = threading.Event()

    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    slow: dict[str, Engine] = {
        "plain": Engine("plain", assemble=lambda *_: gate.wait(WAIT)),
        "async": Engine("async", assemble=never),
        "beginning": Engine("beginning", bootstrap=never),
        "told": Engine("told", ingest=never),
    }
    for engine in slow.values():
        db.contexts.register(engine)
    db.contexts.engine_seconds = 0.2
    for name in slow:
        found = bounded(lambda name=name: db.user("alice").context("ferries", engine=name))
        assert (found.engine, len(found.memories)) == ("default", 1)
        assert "took longer than 0.2 seconds; the default engine answered" in found.warnings[-1]
    gate.set()


def test_one_that_is_slow_to_begin_holds_up_no_other(db: threefold.Threefold) -> None:
    begun, gate = threading.Event(), threading.Event()

    def bootstrap() -> None:
        begun.set()
        gate.wait(WAIT)

    db.contexts.register(Engine("slow", bootstrap=bootstrap))
    db.contexts.register(Engine("quick", bootstrap=lambda: None))
    waiting = threading.Thread(target=lambda: db.user("alice").context("x", engine="slow"))
    waiting.start()
    assert begun.wait(WAIT)
    assert bounded(lambda: db.user("alice").context("x", engine="quick").engine) == "quick"
    gate.set()
    waiting.join()


def test_an_engine_may_register_others_and_ask_them(db: threefold.Threefold) -> None:
    async def register() -> None:
        db.contexts.register(Engine("other", bootstrap=nothing, assemble=usual))

    async def nothing() -> None:
        await asyncio.sleep(0)

    async def ask(intent, sources):
        return db.contexts.assemble(intent, sources, "other")

    async def ask_the_handle(intent, sources):
        return db.user("alice").context(intent.goal, engine="asking", budget=intent.budget)

    db.contexts.register(Engine("asking", bootstrap=register, assemble=ask))
    db.contexts.register(Engine("farther", assemble=ask_the_handle))
    for name in ("asking", "farther"):
        found = bounded(lambda name=name: db.user("alice").context("ferries", engine=name))
        assert (found.engine, found.warnings) == (name, ())


@pytest.mark.parametrize(
    "raised", [SystemExit, GeneratorExit, asyncio.CancelledError, StopIteration, StopAsyncIteration]
)
def test_whatever_an_engine_raises_is_answered_for_and_ends_no_loop(db: threefold.Threefold, raised) -> None:
    def plain(*_: object) -> None:
        raise raised("of mine")

    async def later(*_: object) -> None:
        raise raised("of mine")

    db.contexts.register(Engine("plain", assemble=plain))
    db.contexts.register(Engine("later", assemble=later))
    db.contexts.register(Engine("good", assemble=usual))
    for name, engine in (("plain", "default"), ("later", "default"), ("good", "good")):
        found = bounded(lambda name=name: db.user("alice").context("x", engine=name))
        assert found.engine == engine
        assert bool(found.warnings) == (engine == "default")


AT = Clock()()
ENTRY = Entry("x1", "extra", "r", "text", "because")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"text": None}, "text that is no text"),
        ({"text": "\ud800"}, "text that is no text"),
        ({"background": 3}, "background that is no text"),
        ({"extra": [ENTRY]}, "extra that is list"),
        ({"extra": ("x",)}, "str where a Entry belongs"),
        ({"extra": (replace(ENTRY, score=float("nan")),)}, "score nan"),
        ({"extra": (replace(ENTRY, score="high"),)}, "score 'high'"),
        ({"extra": (replace(ENTRY, ref=None),)}, "ref that is no text"),
        ({"extra": (replace(ENTRY, section="mine"),)}, "section 'mine'"),
        ({"extra": (replace(ENTRY, about=None),)}, "about that is NoneType"),
        ({"thread": "t"}, "str where a ThreadPart belongs"),
        ({"thread": ThreadPart("t", messages=(Said("system", "x", AT, "r"),))}, "role 'system'"),
        ({"dropped": (Dropped("extra", 5, "budget", 1),)}, "ref that is no text"),
        ({"warnings": (3,)}, "a warning that is int"),
        ({"computed_at": None}, "computed_at that is NoneType"),
        ({"background": "word " * 400}, "tokens where 300 were allowed"),
        ({"thread": ThreadPart("t", messages=(Said("user", "word " * 400, AT, "r"),))}, "tokens where 300 were"),
    ],
)
def test_what_is_no_context_is_answered_for(db: threefold.Threefold, changes, said) -> None:
    def assemble(intent, sources):
        return replace(DefaultEngine().assemble(intent, sources), **changes)

    db.contexts.register(Engine(assemble=assemble))
    found = db.user("alice").context("ferries", budget=300, engine="mine")
    assert (found.engine, len(found.memories)) == ("default", 1)
    assert said in found.warnings[-1]


def test_an_engine_has_an_id_and_info_that_can_be_read(db: threefold.Threefold) -> None:
    for odd in ("", " ", 3):
        with pytest.raises(InvalidInput, match="engine id"):
            db.contexts.register(Engine(odd))  # type: ignore[arg-type]

    class Odd(Engine):
        @property
        def info(self):
            raise ValueError("of mine")

        @info.setter
        def info(self, _):
            pass

    with pytest.raises(EngineFailed, match="of mine"):
        db.contexts.register(Odd())


def opened() -> threefold.Threefold:
    return threefold.open(":memory:", embedder=None, background=False)


def test_closing_a_store_ends_what_engines_do(caplog: pytest.LogCaptureFixture) -> None:
    db, begun, ended = opened(), threading.Event(), list[str]()

    async def never(*_: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async def dispose() -> None:
        ended.append("disposed")
        raise RuntimeError("of mine")

    db.contexts.register(Engine(bootstrap=lambda: None, compact=never, dispose=dispose))
    failed: list[Exception] = []

    def compact() -> None:
        try:
            db.contexts.compact("t", db.user("alice").sources, "mine")
        except EngineFailed as error:
            failed.append(error)

    waiting = threading.Thread(target=compact, daemon=True)
    waiting.start()
    assert begun.wait(WAIT)
    db.close()
    waiting.join(WAIT)
    assert sorted(ended) == ["cancelled", "disposed"]
    assert len(failed) == 1
    assert "of mine" in caplog.text
    assert not db.contexts._loop._thread.is_alive()
    with pytest.raises(EngineFailed, match="the store is closed"):
        db.contexts.compact("t", db.user("alice").sources, "mine")


def test_a_store_that_is_forgotten_keeps_no_thread() -> None:
    db, ended = opened(), list[str]()
    db.contexts.register(Engine(assemble=usual, dispose=lambda: ended.append("disposed")))
    assert db.user("alice").context("x", engine="mine").engine == "mine"
    thread = db.contexts._loop._thread
    del db
    gc.collect()
    thread.join(WAIT)
    assert not thread.is_alive()


def test_an_engine_that_holds_the_store_keeps_it_no_longer_either() -> None:
    db = opened()

    async def held(intent, sources):
        assert db is not None
        return DefaultEngine().assemble(intent, sources)

    db.contexts.register(Engine(assemble=held))
    db.user("alice").context("x", engine="mine")
    thread = db.contexts._loop._thread
    db = None
    del held
    gc.collect()
    thread.join(WAIT)
    assert not thread.is_alive()
