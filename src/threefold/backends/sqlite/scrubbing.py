"""What deleting leaves in SQLite's file, and how that is removed too.

`secure_delete` overwrites what is deleted, yet two kinds of copies stay, both measured by the tests of purging:

- When a page of a b-tree is split or merged, cells move and their old places become unallocated with the content in
  them; later deletions overwrite only the cells' new places. `overwrite_unallocated` fills those places with zeros.
- The full-text index keeps, for each of its pages, a separator made of the first term at the time it was written, and
  keeps it when that term goes. `renew_separators` takes a term that is still there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw

from threefold.backends.sqlite.connection import BUSY_MILLISECONDS, fetch, one, scalar, transaction
from threefold.backends.sqlite.indexing import varint

_CHUNK = 2**20
_LEAVES, _INTERIORS = (10, 13), (2, 5)  # first byte of a b-tree page; other pages begin with a page number or zeros
_SEGMENT_BITS = 37
# An overflow page begins with a page number; in a file of this size (128 GiB) its first byte could be that of a b-tree.
_TOO_MANY_PAGES = _INTERIORS[0] << 24
_DUE = "scrubbing due"


def note(db: apsw.Connection) -> None:
    """Note in the file that something was removed: scrubbing is due, whatever becomes of this process."""
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, 1)", (_DUE,))


def due(db: apsw.Connection) -> bool:
    """Whether something was removed since the file was last scrubbed."""
    return one(db, "SELECT 1 FROM meta WHERE key = ?", (_DUE,)) is not None


def scrub(db: apsw.Connection, path: Path) -> bool:
    """Leave nothing of what was removed in index, log and file; False where others kept the log busy.

    Call it on the writing connection outside a transaction. Its time follows the size of the file, in
    which others can read but not write.
    """
    if not due(db):
        return True
    with transaction(db):
        renew_separators(db)
    too_large = scalar(db, "PRAGMA page_count") >= _TOO_MANY_PAGES
    if too_large:
        db.execute("VACUUM")
    if not _empty_log(db):
        return False
    with transaction(db):
        log = path.with_name(path.name + "-wal")
        if log.exists() and log.stat().st_size:
            return False  # another process wrote in between
        # Pages that are held in memory are as they were before; this commit makes other connections drop theirs.
        db.execute("PRAGMA shrink_memory").fetchall()
        if not too_large:
            overwrite_unallocated(path)
        db.execute("DELETE FROM meta WHERE key = ?", (_DUE,))
    return True


def _empty_log(db: apsw.Connection) -> bool:
    """Fold the log into the file and cut it to nothing."""
    # A reader may take long: better to come back than to keep all writers waiting for it.
    db.set_busy_timeout(0)
    try:
        return not scalar(db, "PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        db.set_busy_timeout(BUSY_MILLISECONDS)


def renew_separators(db: apsw.Connection) -> int:
    """Replace separators of the full-text index that are of terms which are gone; returns how many were."""
    renewed = 0
    for segment, separator, place in fetch(db, "SELECT segid, term, pgno FROM words_idx"):
        page = one(db, "SELECT block FROM words_data WHERE id = ?", ((segment << _SEGMENT_BITS) + (place >> 1),))
        first = None if page is None else _first_term(page[0])
        if first is not None and not first.startswith(separator):
            db.execute(
                "UPDATE words_idx SET term = ? WHERE segid = ? AND term = ? AND pgno = ?",
                (first, segment, separator, place),
            )
            renewed += 1
    return renewed


def _first_term(page: bytes) -> bytes | None:
    """The first term of a leaf: its place is the first number behind the content, and it is stored whole."""
    content_size = int.from_bytes(page[2:4], "big")
    if content_size >= len(page):
        return None
    start, _ = varint(page, content_size)
    size, start = varint(page, start)
    return page[start : start + size]


def overwrite_unallocated(path: Path) -> int:
    """Fill unallocated places of all b-tree pages with zeros; returns how many places held something.

    Call it under the write lock and with an empty write-ahead log. Readers may go on: what is overwritten belongs to
    no cell. It goes through SQLite's own file layer, since closing a file in another way would drop its locks.
    """
    flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
    file = apsw.VFSFile("", str(path), [flags, 0])
    try:
        size = file.xFileSize()
        page_size = int.from_bytes(file.xRead(2, 16), "big")
        page_size = 65536 if page_size == 1 else page_size
        overwritten = 0
        for offset in range(0, size, _CHUNK):
            chunk = file.xRead(min(_CHUNK, size - offset), offset)
            for at in range(0, len(chunk), page_size):
                page = chunk[at : at + page_size]
                for start, end in _unallocated(page, 100 if offset + at == 0 else 0):
                    if page.count(0, start, end) != end - start:
                        file.xWrite(bytes(end - start), offset + at + start)
                        overwritten += 1
        if overwritten:
            file.xSync(apsw.SQLITE_SYNC_FULL)
        return overwritten
    finally:
        file.xClose()


def _unallocated(page: bytes, header: int) -> Iterator[tuple[int, int]]:
    """(start, end) of the places of a b-tree page that no cell uses; nothing for other pages.

    https://www.sqlite.org/fileformat2.html, section 1.6.
    """
    kind = page[header]
    if kind not in _LEAVES and kind not in _INTERIORS:
        return
    cells = int.from_bytes(page[header + 3 : header + 5], "big")
    content = int.from_bytes(page[header + 5 : header + 7], "big") or 65536
    pointers_end = header + (8 if kind in _LEAVES else 12) + 2 * cells
    if pointers_end < content <= len(page):
        yield pointers_end, content
    block = int.from_bytes(page[header + 1 : header + 3], "big")
    while content <= block <= len(page) - 4:
        following = int.from_bytes(page[block : block + 2], "big")
        size = int.from_bytes(page[block + 2 : block + 4], "big")
        yield block + 4, min(block + size, len(page))
        if following <= block:
            break
        block = following
