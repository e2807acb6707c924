"""What is kept in memory of what was asked about last."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    N = TypeVar("N", bound=np.generic)

# What must grow makes room for this share more.
SPARE = 0.25


class Sized(Protocol):
    """Something of a known size."""

    @property
    def size(self) -> int:
        """In bytes."""
        ...


K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=Sized)


class Recent(Generic[K, T]):
    """The most recently used entries by key, at most `max_bytes` in all, but always the last one.

    An entry is never changed but replaced by another, so that it can be read without a lock.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[K, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: K) -> T | None:
        """The entry of a key, if it is held."""
        with self._lock:
            return self._held.get(key)

    def put(self, key: K, entry: T) -> None:
        """Hold an entry, and drop those that were not used for longest."""
        with self._lock:
            self._held[key] = entry
            self._held.move_to_end(key)
            while sum(each.size for each in self._held.values()) > self._max_bytes and len(self._held) > 1:
                self._held.popitem(last=False)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._held.clear()


def extended(held: npt.NDArray[N], count: int, new: npt.NDArray[N], axis: int = 0) -> npt.NDArray[N]:
    """An array that has `new` behind the first `count` of `held` along an axis, and some room behind that.

    The room behind what is held is written without a lock: nobody reads there, and another that grows the same writes
    the same. So who has seen rows that were changed since grows a copy.
    """
    import numpy as np

    total = count + new.shape[axis]
    if total > held.shape[axis]:
        shape = list(held.shape)
        shape[axis] = int(total * (1.0 + SPARE))
        roomier = np.empty(shape, dtype=held.dtype)
        np.moveaxis(roomier, axis, 0)[:count] = np.moveaxis(held, axis, 0)[:count]
        held = roomier
    np.moveaxis(held, axis, 0)[count:total] = np.moveaxis(new, axis, 0)
    return held
