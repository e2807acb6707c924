"""What a context engine is. The built-in one is no exception: it is registered like any other."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from threefold.context.sources import Sources
from threefold.model.context import ComputedContext, Intent


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine is called: `id` names it in code, the rest is for people."""

    id: str
    name: str
    description: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What compacting did to a thread: tokens of its context before and after, and the summary that stands for what
    left the window."""

    tokens_before: int
    tokens_after: int
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Happened:
    """A turn that was recorded: its reference, the intent that it answered, the context it was given, how it ended."""

    ref: str
    intent: Intent
    context: ComputedContext
    status: str
    answer: str = ""


@runtime_checkable
class ContextEngine(Protocol):
    """Computes contexts. All methods may be plain or `async`; a plain one that a request waits for has a thread of its
    own.

    An engine may further have any of these, which are called by the manager:

    - `bootstrap(self) -> None`: once, before the engine is used first.
    - `ingest(self, intent, sources) -> None`: a request has come in; before its context is assembled.
    - `after_turn(self, happened, sources) -> None`: its turn was recorded; in the background.
    - `maintain(self, sources) -> None`: a quiet moment after a turn, in the background.
    - `dispose(self) -> None`: once, when the store closes.

    What one of them raises never fails a request, nor does one that takes too long: the default engine answers, and the
    context says so.
    """

    @property
    def info(self) -> EngineInfo:
        """What it is called."""
        ...

    def assemble(self, intent: Intent, sources: Sources) -> ComputedContext | Awaitable[ComputedContext]:
        """The context of a request, within `intent.budget` tokens (`threefold.text.tokens.count_tokens`)."""
        ...

    def compact(self, thread: str, sources: Sources) -> Compacted | Awaitable[Compacted]:
        """Make a thread's context smaller."""
        ...
