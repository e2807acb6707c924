"""A dot plot as SVG: a row for each thing measured, a mark for each kind of value, of its own shape and colour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

_WIDTH, _LEFT, _RIGHT, _LINE, _TOP = 760, 268, 70, 30, 92
_STYLE = """\
text { font: 14px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.title { font-size: 17px; font-weight: 600; } .faint { fill: #59636e; font-size: 13px; } .value { font-weight: 600; }
.card { fill: #ffffff; stroke: #d1d9e0; } .grid { stroke: #e6eaef; } .span { stroke: #b6c2cf; stroke-width: 3; }
.ring { fill: #ffffff; stroke: #59636e; stroke-width: 2; } .diamond { fill: #b35900; }
.dot { fill: #0969da; stroke: #ffffff; } .tick { stroke: #1a7f37; stroke-width: 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc; } .faint { fill: #9da7b3; } .card { fill: #0d1117; stroke: #3d444d; } .grid { stroke: #262c36; }
  .span { stroke: #4d5866; } .ring { fill: #0d1117; stroke: #9da7b3; } .diamond { fill: #f0a04b; }
  .dot { fill: #58a6ff; stroke: #0d1117; } .tick { stroke: #3fb950; }
}"""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: its key in rows, its name in the legend, and its mark: ring, diamond, dot or tick."""

    key: str
    name: str
    mark: str


@dataclass(frozen=True, slots=True)
class Row:
    """A thing measured, and its values by kind."""

    name: str
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Axis:
    """What the width stands for, and where its lines are."""

    low: float
    high: float
    ticks: Sequence[float]
    logarithmic: bool = False

    def place(self, value: float) -> float:
        """The x of a value, held inside the plot."""
        low, high, at = (math.log(v) if self.logarithmic else v for v in (self.low, self.high, max(value, self.low)))
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * min((at - low) / (high - low), 1.0), 1)


def drawn(title: str, sense: str, kinds: Sequence[Kind], rows: Sequence[Row], axis: Axis, shown: str) -> str:
    """The picture. The last dot's value stands at the right of its row, all values in the description."""
    bottom = _TOP + _LINE * len(rows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 40}" width="{_WIDTH}" '
        f'height="{bottom + 40}" role="img" aria-labelledby="title desc">',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(_said(kinds, rows, sense, shown))}</desc>',
        f"<style>\n{_STYLE}\n</style>",
        f'<rect class="card" x="0.5" y="0.5" width="{_WIDTH - 1}" height="{bottom + 39}" rx="8"/>',
        f'<text class="title" x="24" y="34">{escape(title)}</text>',
        f'<text class="faint" x="{_WIDTH - 24}" y="34" text-anchor="end">{escape(sense)}</text>',
        *_legend(kinds),
    ]
    for tick in axis.ticks:
        x = axis.place(tick)
        parts.append(f'<line class="grid" x1="{x}" y1="{_TOP - 10}" x2="{x}" y2="{bottom}"/>')
        parts.append(f'<text class="faint" x="{x}" y="{bottom + 20}" text-anchor="middle">{tick:g}</text>')
    for number, row in enumerate(rows):
        parts += _row(kinds, row, axis, _TOP + _LINE * number + _LINE // 2 - 5, shown)
    return "\n".join([*parts, "</svg>", ""])


def _said(kinds: Sequence[Kind], rows: Sequence[Row], sense: str, shown: str) -> str:
    told = (
        f"{row.name}: "
        + ", ".join(f"{kind.name} {shown.format(row.values[kind.key])}" for kind in kinds if kind.key in row.values)
        for row in rows
    )
    return f"{sense.capitalize()}. {'; '.join(told)}."


def _legend(kinds: Sequence[Kind]) -> list[str]:
    parts, x = [], 32
    for kind in kinds:
        parts.append(_mark(kind.mark, x, 60))
        parts.append(f'<text x="{x + 13}" y="65">{escape(kind.name)}</text>')
        x += 44 + 8 * len(kind.name)
    return parts


def _row(kinds: Sequence[Kind], row: Row, axis: Axis, y: int, shown: str) -> list[str]:
    dots = [(kind, axis.place(row.values[kind.key])) for kind in kinds if kind.key in row.values]
    ends = [x for kind, x in dots if kind.mark != "tick"]
    parts = [
        f'<text x="{_LEFT - 20}" y="{y + 5}" text-anchor="end">{escape(row.name)}</text>',
        f'<line class="span" x1="{min(ends)}" y1="{y}" x2="{max(ends)}" y2="{y}"/>',
        *(_mark(kind.mark, x, y) for kind, x in dots),
    ]
    last = next((row.values[kind.key] for kind, _ in reversed(dots) if kind.mark == "dot"), None)
    if last is not None:
        text = shown.format(last)
        parts.append(f'<text class="value" x="{_WIDTH - 24}" y="{y + 5}" text-anchor="end">{text}</text>')
    return parts


def _mark(mark: str, x: float, y: float) -> str:
    if mark == "tick":
        return f'<line class="tick" x1="{x}" y1="{y - 10}" x2="{x}" y2="{y + 10}"/>'
    if mark == "diamond":
        return f'<path class="diamond" d="M{x} {y - 7}L{round(x + 7, 1)} {y}L{x} {y + 7}L{round(x - 7, 1)} {y}Z"/>'
    return f'<circle class="{mark}" cx="{x}" cy="{y}" r="6"/>'
