"""Tables as Markdown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells as a table whose first row is its head; empty rows, and what is empty at their ends, left out."""
    filled = [trimmed for row in rows if (trimmed := _trimmed([" ".join(cell.split()) for cell in row]))]
    if not filled:
        return ""
    width = max(map(len, filled))
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in [*row, *[""] * (width - len(row))]) + " |"
             for row in filled]  # fmt: skip
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _trimmed(row: list[str]) -> list[str]:
    while row and not row[-1]:
        row.pop()
    return row
