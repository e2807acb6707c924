"""Which context engines there are, and which one is asked. Where one fails the default one answers, and says so."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from threefold.context.default import DefaultEngine
from threefold.context.engine import Compacted, ContextEngine, EngineInfo, Happened
from threefold.context.sources import Sources
from threefold.errors import Conflict, EngineFailed, InvalidInput, NotFound, ThreefoldError
from threefold.model.context import ComputedContext, Intent
from threefold.text.tokens import count_tokens

GROUP: Final = "threefold.context_engines"
"""The group of entry points under which packages offer engines: each names a class or function that makes one."""


class Contexts:
    """The context engines of a host. May be used from several threads.

    Plain methods of an engine run in the caller's thread; `async` ones in one loop of this manager, always the same, so
    that an engine may keep connections.
    """

    def __init__(self, offered: Callable[[], Sequence[EntryPoint]] | None = None) -> None:
        self._engines: dict[str, ContextEngine] = {}
        self._begun: set[str] = set()
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._builtin = DefaultEngine()
        self._default = self._builtin.info.id
        self.problems: tuple[str, ...] = ()
        self.register(self._builtin)
        for point in (offered or _installed)():
            try:
                self.register(_called(repr(point.name), partial(_made, point)))
            except ThreefoldError as error:
                self.problems += (f"context engine {point.name!r} of an installed package is left out: {error}",)

    def list(self) -> tuple[EngineInfo, ...]:
        """What engines there are, in order of registration."""
        return tuple(engine.info for engine in self._engines.values())

    @property
    def default(self) -> str:
        """The id of the engine that is asked where none is named."""
        return self._default

    def register(self, engine: ContextEngine) -> None:
        """Make an engine known.

        Raises:
            InvalidInput: it is none. Conflict: its id is taken.
        """
        info = getattr(engine, "info", None)
        lacks = [name for name in ("assemble", "compact") if not callable(getattr(engine, name, None))]
        if not isinstance(info, EngineInfo) or lacks:
            raise InvalidInput(f"engine {engine!r} lacks {', '.join(lacks) or 'info, an EngineInfo'}")
        with self._lock:
            if info.id in self._engines:
                raise Conflict(f"a context engine {info.id!r} is registered already; give this one another id")
            self._engines[info.id] = engine

    def set_default(self, id: str) -> None:  # noqa: A002 - the interface's name
        """Ask this engine where none is named.

        Raises:
            NotFound: there is none of this id.
        """
        self._default = self._engine(id).info.id

    def assemble(self, intent: Intent, sources: Sources, engine: str | None = None) -> ComputedContext:
        """The context of a request by an engine, the default one unless it is named.

        Where the engine fails or goes over the budget, the built-in one answers and `warnings` say so.

        Raises:
            NotFound: there is no such engine. Otherwise what the realms raise.
        """
        chosen = self._engine(engine or self._default)
        if chosen is self._builtin:
            return self._builtin.assemble(intent, sources)
        try:
            return self._assembled(chosen, intent, sources)
        except EngineFailed as error:
            answer = self._builtin.assemble(intent, sources)
            return replace(answer, warnings=(*answer.warnings, f"{error}; the default engine answered"))

    def compact(self, thread: str, sources: Sources, engine: str | None = None) -> Compacted:
        """Let an engine make a thread's context smaller.

        Raises:
            NotFound: no such engine or thread. EngineFailed: the engine failed.
        """
        chosen = self._engine(engine or self._default)
        if chosen is self._builtin:
            return self._builtin.compact(thread, sources)
        made = self._call(chosen, "compact", thread, sources)
        if not isinstance(made, Compacted):
            raise EngineFailed(f"context engine {chosen.info.id!r}: compact gave {type(made).__name__}, not Compacted")
        return made

    def after_turn(self, happened: Happened, sources: Sources) -> tuple[str, ...]:
        """Tell the engine that answered that its turn was recorded, then give it a quiet moment; what failed of it."""
        engine = self._engines.get(happened.context.engine, self._builtin)
        failed = []
        for hook, values in (("after_turn", (happened, sources)), ("maintain", (sources,))):
            try:
                self._hook(engine, hook, *values)
            except EngineFailed as error:
                failed.append(str(error))
        return tuple(failed)

    def dispose(self) -> tuple[str, ...]:
        """End every engine that was begun; what failed of it. Safe to call twice."""
        failed = []
        with self._lock:
            begun, self._begun = self._begun, set()
        for id_ in sorted(begun):
            try:
                self._hook(self._engines[id_], "dispose")
            except EngineFailed as error:
                failed.append(str(error))
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)
        return tuple(failed)

    def _engine(self, id_: str) -> ContextEngine:
        engine = self._engines.get(id_)
        if engine is None:
            raise NotFound(f"context engine {id_!r} is not registered; there are {', '.join(self._engines)}")
        return engine

    def _assembled(self, engine: ContextEngine, intent: Intent, sources: Sources) -> ComputedContext:
        with self._lock:
            if engine.info.id not in self._begun:
                self._hook(engine, "bootstrap")
                self._begun.add(engine.info.id)
        self._hook(engine, "ingest", intent, sources)
        made = self._call(engine, "assemble", intent, sources)
        if not isinstance(made, ComputedContext):
            raise EngineFailed(f"context engine {engine.info.id!r} gave {type(made).__name__}, not a ComputedContext")
        tokens = count_tokens(made.text)
        if tokens > intent.budget:
            raise EngineFailed(
                f"context engine {engine.info.id!r} gave {tokens} tokens where {intent.budget} were allowed"
            )
        return replace(made, engine=engine.info.id, estimated_tokens=tokens, budget=intent.budget)

    def _hook(self, engine: ContextEngine, name: str, *values: object) -> None:
        """Call an engine's method that it need not have."""
        if callable(getattr(engine, name, None)):
            self._call(engine, name, *values)

    def _call(self, engine: ContextEngine, name: str, *values: object) -> Any:
        method = getattr(engine, name)
        return _called(f"{engine.info.id!r}: {name}", lambda: self._finished(method(*values)))

    def _finished(self, made: Any) -> Any:
        """A value, or what a coroutine gives."""
        if not inspect.isawaitable(made):
            return made

        async def waited() -> Any:
            return await made

        return asyncio.run_coroutine_threadsafe(waited(), self._running()).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=_run, args=(self._loop,), name="threefold-contexts", daemon=True).start()
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


def _called(name: str, call: Callable[[], Any]) -> Any:
    """Call foreign code, which may raise anything: it becomes an error of ours.

    Raises:
        EngineFailed: it raised.
    """
    try:
        return call()
    except Exception as error:
        raise EngineFailed(f"context engine {name} failed: {type(error).__name__}: {error}") from error


def _made(point: EntryPoint) -> Any:
    return point.load()()


def _installed() -> Sequence[EntryPoint]:
    return tuple(entry_points(group=GROUP))
