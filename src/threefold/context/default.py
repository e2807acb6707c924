"""The default context engine: looks into every realm, packs what it found under the budget, tells what it left out."""

from __future__ import annotations

from typing import ClassVar

from threefold.context.boards import gather_boards
from threefold.context.composing import compose
from threefold.context.documents import gather_documents
from threefold.context.engine import Compacted, EngineInfo
from threefold.context.gathering import Gathered, Limits
from threefold.context.memories import gather_memories
from threefold.context.sources import Sources
from threefold.context.threads import gather_thread
from threefold.context.turns import gather_turns
from threefold.model.context import ComputedContext, Intent
from threefold.text.terms import query_terms


class DefaultEngine:
    """Computes a context from memory, thread, documents and record (docs/context.md)."""

    info: ClassVar = EngineInfo("default", "Threefold's own", "memory, thread, documents and earlier turns")

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()

    def assemble(self, intent: Intent, sources: Sources) -> ComputedContext:
        """See `ContextEngine.assemble`."""
        return compose(intent, sources, self.gather(intent, sources))

    def gather(self, intent: Intent, sources: Sources) -> Gathered:
        """What may belong into the context; an engine of your own may add to it, and then `compose`."""
        gathered, terms = Gathered(), query_terms(intent.goal)
        gather_memories(gathered, intent, sources, self.limits, terms)
        shown = gather_thread(gathered, intent, sources, self.limits)
        gather_boards(gathered, intent, sources, self.limits)
        gather_documents(gathered, intent, sources, self.limits, terms)
        gather_turns(gathered, intent, sources, self.limits, terms, shown)
        return gathered

    def compact(self, thread: str, sources: Sources) -> Compacted:
        """Write the summaries that are due of what left the thread's window."""
        there = sources.thread(thread)
        before = there.context(self.limits.window)
        there.maintain()
        after = there.context(self.limits.window)
        return Compacted(before.tokens, after.tokens, after.summary)
