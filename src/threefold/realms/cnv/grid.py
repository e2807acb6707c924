"""Where a card is put that is given no place: the first free cell of a grid, row by row. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from threefold.model.board import Rect

WIDTH: Final = 240.0
HEIGHT: Final = 160.0
COLUMNS: Final = 6
# More rows than a board has cards, since some cover several cells.
_ROWS: Final = 1_000
_GAP: Final = 20.0
_STEP_X, _STEP_Y = WIDTH + _GAP, HEIGHT + _GAP


def free_place(taken: Iterable[Rect]) -> Rect:
    """The first cell that no card lies in; the first of all where there is none."""
    covered = {cell for rect in taken for cell in _cells(rect)}
    cell = next((n for n in range(COLUMNS * _ROWS) if n not in covered), 0)
    row, column = divmod(cell, COLUMNS)
    return Rect(column * _STEP_X, row * _STEP_Y, WIDTH, HEIGHT)


def _cells(rect: Rect) -> Iterable[int]:
    """The cells that a card lies in, if only in part."""
    columns = _range(rect.x, rect.w, _STEP_X, WIDTH, COLUMNS)
    for row in _range(rect.y, rect.h, _STEP_Y, HEIGHT, _ROWS):
        yield from (row * COLUMNS + column for column in columns)


def _range(start: float, extent: float, step: float, cell: float, most: int) -> range:
    """Which cells of an axis overlap with what begins at `start`."""
    first = max(0, math.floor((start - cell) / step) + 1)
    return range(first, max(first, min(most, math.ceil((start + extent) / step))))
