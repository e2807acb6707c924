"""Which context engines there are, and which one is asked. Where one fails the default one answers, and says so."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from threefold.context.checking import checked
from threefold.context.default import DefaultEngine
from threefold.context.engine import Compacted, ContextEngine, EngineInfo, Happened
from threefold.context.foreign import Loop, apart, called
from threefold.context.sources import Sources
from threefold.errors import Conflict, EngineFailed, InvalidInput, NotFound, ThreefoldError
from threefold.model.context import ComputedContext, Intent
from threefold.model.scope import check_id

GROUP: Final = "threefold.context_engines"
"""The group of entry points under which packages offer engines: each names a class or function that makes one."""
SECONDS: Final = 10.0
"""How long an engine may take for a context before the default one answers."""
_log = logging.getLogger("threefold.context")


@dataclass(slots=True)
class _Known:
    """An engine under the id that it was registered with; `lock` is held while it is begun or ended."""

    id: str
    info: EngineInfo
    engine: ContextEngine
    lock: threading.Lock = field(default_factory=threading.Lock)
    begun: bool = False


class Contexts:
    """The context engines of a store. May be used from several threads.

    Plain methods that a request waits for run in a thread of their own; `async` ones in one loop of this manager,
    always the same, so that an engine may keep connections. One that asks for a context from within an `async` method
    holds up that loop; what is `async` of the engine that it asks runs in a loop beside it.

    `engine_seconds` is how long an engine may take for a context, with what it does before its first.
    """

    def __init__(
        self, offered: Callable[[], Sequence[EntryPoint]] | None = None, engine_seconds: float = SECONDS
    ) -> None:
        self.engine_seconds = engine_seconds
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()
        self._loop = Loop()
        self._builtin = DefaultEngine()
        self._default = self._builtin.info.id
        self.problems: tuple[str, ...] = ()
        self.register(self._builtin)
        for point in (offered or _installed)():
            try:
                self.register(called(repr(point.name), partial(_made, point)))
            except ThreefoldError as error:
                self.problems += (f"context engine {point.name!r} of an installed package is left out: {error}",)

    def list(self) -> tuple[EngineInfo, ...]:
        """What engines there are, in order of registration."""
        return tuple(known.info for known in tuple(self._known.values()))

    @property
    def default(self) -> str:
        """The id of the engine that is asked where none is named."""
        return self._default

    def register(self, engine: ContextEngine) -> None:
        """Make an engine known.

        Raises:
            InvalidInput: it is none, or its id is malformed. Conflict: its id is taken.
        """
        info = called(type(engine).__name__, lambda: getattr(engine, "info", None))
        lacks = [name for name in ("assemble", "compact") if not callable(getattr(engine, name, None))]
        if not isinstance(info, EngineInfo) or lacks:
            raise InvalidInput(f"engine {engine!r} lacks {', '.join(lacks) or 'info, an EngineInfo'}")
        id_ = check_id(info.id, "engine id")
        with self._lock:
            if id_ in self._known:
                raise Conflict(f"a context engine {id_!r} is registered already; give this one another id")
            self._known[id_] = _Known(id_, info, engine)

    def set_default(self, id: str) -> None:  # noqa: A002 - the interface's name
        """Ask this engine where none is named.

        Raises:
            NotFound: there is none of this id.
        """
        self._default = self._chosen(id).id

    def is_builtin(self, engine: str | None = None) -> bool:
        """Whether this engine, the default one unless it is named, is Threefold's own, which needs no watching.

        Raises:
            NotFound: there is no such engine.
        """
        return self._chosen(engine).engine is self._builtin

    def assemble(self, intent: Intent, sources: Sources, engine: str | None = None) -> ComputedContext:
        """The context of a request by an engine, the default one unless it is named.

        Where the engine fails, takes longer than `engine_seconds` or goes over the budget, the built-in one answers and
        `warnings` say so.

        Raises:
            NotFound: there is no such engine. Otherwise what the realms raise.
        """
        chosen = self._chosen(engine)
        if chosen.engine is self._builtin:
            return self._builtin.assemble(intent, sources)
        try:
            working = partial(self._assembled, chosen, intent, sources)
            made: ComputedContext = apart(repr(chosen.id), working, self.engine_seconds)
        except EngineFailed as error:
            answer = self._builtin.assemble(intent, sources)
            return replace(answer, warnings=(*answer.warnings, f"{error}; the default engine answered"))
        return made

    def compact(self, thread: str, sources: Sources, engine: str | None = None) -> Compacted:
        """Let an engine make a thread's context smaller.

        Raises:
            NotFound: no such engine or thread. EngineFailed: the engine failed.
        """
        chosen = self._chosen(engine)
        if chosen.engine is self._builtin:
            return self._builtin.compact(thread, sources)
        self._begin(chosen)
        made = self._call(chosen, "compact", thread, sources)
        if not isinstance(made, Compacted):
            raise EngineFailed(f"context engine {chosen.id!r}: compact gave {type(made).__name__}, not Compacted")
        return made

    def after_turn(self, happened: Happened, sources: Sources) -> tuple[str, ...]:
        """Tell the engine that answered that its turn was recorded, then give it a quiet moment; what failed of it."""
        known = self._known.get(happened.context.engine)
        failed = list[str]()
        if known is None:
            return ()
        for hook, values in (("after_turn", (happened, sources)), ("maintain", (sources,))):
            try:
                self._hook(known, hook, *values)
            except EngineFailed as error:
                failed.append(str(error))
        return tuple(failed)

    def dispose(self) -> tuple[str, ...]:
        """End every engine that was begun, and the loop with what still runs in it; what failed of it.

        Closing the store does it. Safe to call twice; afterwards only engines that are plain can answer.
        """
        failed = []
        for known in tuple(self._known.values()):
            try:
                apart(repr(known.id), partial(self._end, known), self.engine_seconds)
            except EngineFailed as error:
                failed.append(str(error))
        self._loop.close()
        return tuple(failed)

    def ending(self) -> Callable[[], None]:
        """What ends the engines, for a store to call at its end; it keeps neither them nor what they hold alive."""
        return partial(_ended, weakref.ref(self), self._loop)

    def _chosen(self, id_: str | None) -> _Known:
        known = self._known.get(self._default if id_ is None else id_)
        if known is None:
            raise NotFound(f"context engine {id_!r} is not registered; there are {', '.join(tuple(self._known))}")
        return known

    def _assembled(self, known: _Known, intent: Intent, sources: Sources) -> ComputedContext:
        self._begin(known)
        self._hook(known, "ingest", intent, sources, seconds=self.engine_seconds)
        made = self._call(known, "assemble", intent, sources, seconds=self.engine_seconds)
        context: ComputedContext = called(repr(known.id), lambda: checked(known.id, made, intent))
        return context

    def _begin(self, known: _Known) -> None:
        """Begin an engine once. Where another thread is doing it this waits, for no longer than for a context."""
        if not known.lock.acquire(timeout=self.engine_seconds):
            raise EngineFailed(f"context engine {known.id!r} is still being begun")
        try:
            if not known.begun:
                self._hook(known, "bootstrap")
                known.begun = True
        finally:
            known.lock.release()

    def _end(self, known: _Known) -> None:
        with known.lock:
            begun, known.begun = known.begun, False
        if begun:
            self._hook(known, "dispose", seconds=self.engine_seconds)

    def _hook(self, known: _Known, name: str, *values: object, seconds: float | None = None) -> None:
        """Call an engine's method that it need not have."""
        if callable(getattr(known.engine, name, None)):
            self._call(known, name, *values, seconds=seconds)

    def _call(self, known: _Known, name: str, *values: object, seconds: float | None = None) -> Any:
        what = f"{known.id!r}: {name}"
        made = called(what, lambda: getattr(known.engine, name)(*values))
        return self._loop.finished(what, made, seconds)


def _ended(contexts: weakref.ref[Contexts], loop: Loop) -> None:
    there = contexts()
    for failed in () if there is None else there.dispose():
        _log.warning("%s", failed)
    loop.close()


def _made(point: EntryPoint) -> Any:
    return point.load()()


def _installed() -> Sequence[EntryPoint]:
    return tuple(entry_points(group=GROUP))
