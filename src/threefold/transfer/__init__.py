"""Moving everything from one store to another of any kind, and proving that it arrived."""

from threefold.transfer.check import Comparison, compare
from threefold.transfer.copy import Copied, Place, copy

__all__ = ["Comparison", "Copied", "Place", "compare", "copy"]
