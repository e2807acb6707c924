"""Where bytes are kept: immutable, by content, apart for each owner."""

from threefold.backends.blobs.local import LocalBlobs
from threefold.backends.blobs.memory import MemoryBlobs

__all__ = ["LocalBlobs", "MemoryBlobs"]
