"""How much of what one turn may hold: checked as it is collected, and again where a whole `Turn` is recorded."""

from __future__ import annotations

from collections.abc import Sequence

from threefold.errors import InvalidInput

MAX_SUBMISSIONS = 1000
MAX_SUMMARY = 24_000
MAX_REFS, MAX_ANCHORS, MAX_ANCHOR = 64, 32, 256
MAX_FILE_BYTES = 100 * 2**20
# What is sent to a live turn at once: it is kept twice until that is recorded, and read whole by its agent.
MAX_SENT_TEXT = 1_000_000
MAX_SENT_FILES, MAX_SENT_BYTES = 50, 250 * 2**20


def check_submissions(count: int) -> None:
    """Refuse more submissions than a turn folds."""
    if count > MAX_SUBMISSIONS:
        raise InvalidInput(f"a turn folds at most {MAX_SUBMISSIONS} submissions, not {count}")


def check_file(name: str, data: bytes) -> None:
    """Refuse a file that is too large."""
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInput(f"file {name!r} has {len(data):,} bytes; at most {MAX_FILE_BYTES:,} are kept")


def check_summary(text: str, refs: Sequence[str], anchors: Sequence[str]) -> None:
    """Refuse a summary that is too long, or anchors that are no short lines."""
    if len(text) > MAX_SUMMARY:
        raise InvalidInput(f"summary has {len(text)} characters; at most {MAX_SUMMARY} are kept")
    if len(refs) > MAX_REFS or len(anchors) > MAX_ANCHORS:
        raise InvalidInput(f"a summary carries at most {MAX_REFS} refs and {MAX_ANCHORS} anchors")
    if any(len(anchor) > MAX_ANCHOR or "\n" in anchor for anchor in anchors):
        raise InvalidInput(f"an anchor is one line of at most {MAX_ANCHOR} characters")


def check_sent(text: str, files: Sequence[tuple[str, bytes]]) -> None:
    """Refuse a text that is too long, or files that are too many or too large, to be sent to a live turn at once."""
    if len(text) > MAX_SENT_TEXT:
        raise InvalidInput(
            f"text has {len(text):,} characters; at most {MAX_SENT_TEXT:,} are taken, attach it as a file"
        )
    if len(files) > MAX_SENT_FILES:
        raise InvalidInput(f"attachments: {len(files)} files; at most {MAX_SENT_FILES} are taken at once")
    for name, data in files:
        check_file(name, data)
    size = sum(len(data) for _, data in files)
    if size > MAX_SENT_BYTES:
        raise InvalidInput(f"attachments have {size:,} bytes; at most {MAX_SENT_BYTES:,} are taken at once")
