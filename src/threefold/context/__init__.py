"""What an agent should see now: computed for each request, from everything that is known, under a budget."""

from threefold.context.composing import compose
from threefold.context.default import DefaultEngine
from threefold.context.engine import Compacted, ContextEngine, EngineInfo, Happened
from threefold.context.gathering import Gathered, Limits
from threefold.context.manager import Contexts
from threefold.context.packing import Item
from threefold.context.sources import Sources

__all__ = [
    "Compacted", "ContextEngine", "Contexts", "DefaultEngine", "EngineInfo", "Gathered", "Happened", "Item", "Limits",
    "Sources", "compose",
]  # fmt: skip
