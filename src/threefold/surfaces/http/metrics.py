"""What Prometheus reads: requests by route and status, how long they took, what is in flight, what waits."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final

MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def method_of(sent: str) -> str:
    """A method that is known by its name; what else is sent is somebody's word."""
    return sent if sent in _METHODS else "OTHER"


class Metrics:
    """Counts of one process since it began."""

    def __init__(self) -> None:
        self.in_flight = 0
        self._requests = Counter[tuple[str, str, int]]()
        self._slots: dict[tuple[str, str], list[int]] = {}
        self._seconds = defaultdict[tuple[str, str], float](float)
        self._lock = threading.Lock()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds[method, route] += seconds
            self._slots.setdefault((method, route), [0] * (len(_BOUNDS) + 1))[bisect_left(_BOUNDS, seconds)] += 1

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """All of it as text; `gauges` are further ones: name → what it is, and its value."""
        with self._lock:
            return "\n".join(self._lines(gauges)) + "\n"

    def _lines(self, gauges: Mapping[str, tuple[str, float]]) -> Iterator[str]:
        yield from _head("threefold_http_requests_total", "counter", "requests that were answered")
        for (method, route, status), count in sorted(self._requests.items()):
            yield f'threefold_http_requests_total{{{_of(method, route)},status="{status}"}} {count}'
        name = "threefold_http_request_duration_seconds"
        yield from _head(name, "histogram", "how long requests took")
        for (method, route), slots in sorted(self._slots.items()):
            labels, below = _of(method, route), 0
            for bound, count in zip((*map(str, _BOUNDS), "+Inf"), slots, strict=True):
                below += count
                yield f'{name}_bucket{{{labels},le="{bound}"}} {below}'
            yield f"{name}_sum{{{labels}}} {self._seconds[method, route]:.6f}"
            yield f"{name}_count{{{labels}}} {below}"
        for gauge, (about, value) in gauges.items():
            yield from _head(gauge, "gauge", about)
            yield f"{gauge} {value:g}"


def _head(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP {name} {about}", f"# TYPE {name} {kind}"


def _of(method: str, route: str) -> str:
    safe = route.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'method="{method}",route="{safe}"'
