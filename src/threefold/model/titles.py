"""How a conversation and a turn are named in a list."""

from __future__ import annotations

from threefold.model.record import TurnRecord

MAX_TITLE = 120
ABOUT_SIZE = 800


def title_of(record: TurnRecord) -> str:
    """The given title, else the beginning of what was said first, else the conversation's id; one line."""
    return one_line(record.title or next((row.text for row in record.rows), record.conversation))


def one_line(said: str) -> str:
    """The beginning of what was said, in one line of at most `MAX_TITLE` characters."""
    line = " ".join(said[: 4 * MAX_TITLE].split())
    return line if len(line) <= MAX_TITLE else line[: MAX_TITLE - 1] + "…"
