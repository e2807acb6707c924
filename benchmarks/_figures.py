"""A figure: what was measured, beside its floor and its target."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from _metrics import percentile


@dataclass(frozen=True, slots=True)
class Figure:
    """`ratio` is to the floor, in the sense that the target gives it; `more` is shown after the common fields."""

    figure: str
    n: int
    p50_ms: float | None = None
    p95_ms: float | None = None
    floor_p50_ms: float | None = None
    ratio: float | None = None
    target: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The line that is printed."""
        return {
            "figure": self.figure,
            "n": self.n,
            "p50_ms": _short(self.p50_ms),
            "p95_ms": _short(self.p95_ms),
            "floor_p50_ms": _short(self.floor_p50_ms),
            "ratio": _short(self.ratio),
            "target": self.target,
            **{name: _short(value) if isinstance(value, float) else value for name, value in self.more.items()},
        }


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def clocked(work: Callable[[], object]) -> float:
    """Milliseconds that one call takes."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def compared(figure: str, took: Sequence[float], floor: Sequence[float], target: str, **more: Any) -> Figure:
    """A figure from times in milliseconds and those of its floor, measured in turns in the same run."""
    median, bare = percentile(took, 0.5), percentile(floor, 0.5)
    return Figure(figure, len(took), median, percentile(took, 0.95), bare, median / bare, target, more)
