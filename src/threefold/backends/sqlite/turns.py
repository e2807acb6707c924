"""A turn in its tables: put in, and another edition put in its place."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count

import apsw

from threefold.backends.editions import kept_rows
from threefold.backends.packing import pack, pack_log
from threefold.backends.sqlite import scrubbing
from threefold.backends.sqlite.connection import fetch, one, scalar
from threefold.backends.sqlite.indexing import forget_words, index_rows, renew_index, unindex_rows
from threefold.backends.sqlite.keys import marks
from threefold.backends.sqlite.removal import doom_files, settle_conversation
from threefold.backends.sqlite.rows import usual_name
from threefold.model.commit import Recorded
from threefold.model.record import TurnRecord
from threefold.model.retention import tombstone
from threefold.model.rows import Row
from threefold.model.times import from_micros, to_micros
from threefold.model.titles import title_of
from threefold.text.asking import asks

# The number of a turn that is there, and what is known of it.
Stored = tuple[int, Recorded]

# What an edition says of its turn, and of a row beside what it says.
_TURN = "state, status, started, ended, expires, agent, app, digest, head, log, replay, title"
_ROW = "position, role, event_type, path, batch, at, expires"


def recorded(db: apsw.Connection, owner: int, conversation: int, turn: str) -> Stored | None:
    """Number of a turn that is there, and what is known of it."""
    found = one(
        db,
        "SELECT id, state, digest, head, ended FROM turns WHERE +owner = ? AND conversation = ? AND name = ?",
        (owner, conversation, turn),
    )
    if found is None:
        return None
    number, state, digest, head, ended = found
    return int(number), Recorded(state, bytes(digest).hex(), head, from_micros(ended))


def make_conversation(db: apsw.Connection, owner: int, record: TurnRecord, app: str | None) -> int:
    """The number of a new conversation that begins with this turn."""
    started = to_micros(record.log.started)
    db.execute(
        "INSERT INTO conversations (owner, name, title, app, started, last_activity) VALUES (?, ?, ?, ?, ?, ?)",
        (owner, record.conversation, title_of(record), app, started, to_micros(record.log.ended)),
    )
    return db.last_insert_rowid()


def insert(db: apsw.Connection, owner: int, conversation: int, record: TurnRecord, position: int | None = None) -> int:
    """Put a turn into every table, its first row at `position`, by default the next one; returns its number."""
    db.execute(
        f"INSERT INTO turns (owner, conversation, name, {_TURN}) VALUES (?, ?, ?, {marks(12)})",
        (owner, conversation, record.turn, *_of_turn(record)),
    )
    turn = db.last_insert_rowid()
    last = _touch_conversation(db, owner, conversation, record, len(record.rows) if position is None else 0)
    _attach(db, owner, turn, record)
    if record.rows:
        first = last - len(record.rows) + 1 if position is None else position
        rows = list(enumerate(record.rows, _next_number(db)))
        _insert_rows(db, owner, conversation, turn, record, rows, first)
        words = sum(len(row.terms) for row in record.rows)
        db.execute("UPDATE owners SET rows = rows + ?, words = words + ? WHERE id = ?", (len(rows), words, owner))
    return turn


def change(
    db: apsw.Connection, owner: int, conversation: int, turn: int, record: TurnRecord, position: int | None = None
) -> None:
    """Put another edition in the place of a turn that is there; `position` as for `insert`.

    The turn keeps its number and feedback, and each row that says what one said, wherever in the turn that was, keeps
    its number with its words and its vector, or place in the queue. Of what was said otherwise nothing stays.
    """
    renew_index(db)
    found = fetch(db, "SELECT seq, id, author, text, word_count FROM rows WHERE +owner = ? AND turn = ?", (owner, turn))
    before = {row[0]: row for row in found}
    kept = kept_rows({seq: row[2:4] for seq, row in before.items()}, record.rows)
    same = [(before[kept[row.seq]][1], row) for row in record.rows if row.seq in kept]
    old = [before[seq] for seq in sorted(before.keys() - set(kept.values()))]
    free = chain([row[1] for row in old], count(_next_number(db)))
    new = [(next(free), row) for row in record.rows if row.seq not in kept]
    terms: set[str] = set()
    unindex_rows(db, owner, [row[1:4] for row in old], terms)
    db.executemany("DELETE FROM rows WHERE +owner = ? AND id = ?", [(owner, row[1]) for row in old])
    # Caches take what changed from its marks, and what came behind the last; where numbers went, they are read anew. So
    # they are where a turn has its first row: its place among the others is that of its number.
    gone = len(record.rows) < len(found)
    words = sum(len(row.terms) for _, row in new) - sum(row[4] for row in old)
    ((changes, vectors),) = fetch(
        db,
        """UPDATE owners SET rows = rows + ?, words = words + ?, changes = changes + 1, vectors = vectors + ?,
                  replaced = replaced + ?, rewritten = rewritten + ? WHERE id = ? RETURNING changes, vectors""",
        (len(record.rows) - len(found), words, bool(old), gone, gone or not found, owner),
    )
    last = scalar(
        db,
        "UPDATE conversations SET positions = positions + ? WHERE owner = ? AND id = ? RETURNING positions",
        (len(record.rows) if position is None else 0, owner, conversation),
    )
    first = last - len(record.rows) + 1 if position is None else position
    if any(now != then for now, then in kept.items()):
        # No two may have one place at any moment: all leave theirs before they take the new ones.
        db.execute("UPDATE rows SET seq = -1 - seq WHERE +owner = ? AND turn = ?", (owner, turn))
    db.executemany(
        f"UPDATE rows SET (seq, {_ROW}, change) = ({marks(9)}) WHERE +owner = ? AND id = ?",
        [(row.seq, *_of_row(record, row, first), changes, owner, number) for number, row in same],
    )
    _insert_rows(db, owner, conversation, turn, record, new, first, (changes, vectors))
    forget_words(db, owner, terms)
    edition = (*_of_turn(record), owner, turn)
    db.execute(f"UPDATE turns SET ({_TURN}) = ({marks(12)}) WHERE +owner = ? AND id = ?", edition)
    doom_files(db, owner, [turn])
    db.execute(
        f"DELETE FROM labels WHERE +owner = ? AND turn = ? AND label NOT IN ({marks(len(record.labels))})",
        (owner, turn, *record.labels),
    )
    _attach(db, owner, turn, record)
    settle_conversation(db, owner, conversation)
    scrubbing.note(db)


def _of_turn(record: TurnRecord) -> tuple[object, ...]:
    log = record.log
    return (
        record.state,
        log.status,
        to_micros(log.started),
        to_micros(log.ended),
        None if record.expires is None else to_micros(record.expires),
        record.agent,
        record.app,
        bytes.fromhex(record.digest),
        record.head,
        pack_log(log, record.rows),
        pack(dict(record.replay)) if record.replay else None,
        record.title or None,
    )


def _of_row(record: TurnRecord, row: Row, first: int) -> tuple[object, ...]:
    batch = None if row.batch == f"{record.turn}.batch" else row.batch or ""
    expires = None if record.expires is None else to_micros(record.expires)
    return first + row.seq, row.role, *usual_name(row), batch, to_micros(row.at), expires


def _next_number(db: apsw.Connection) -> int:
    """From where on new rows are numbered: under the write lock nobody else numbers any."""
    return int(scalar(db, "SELECT coalesce(max(id), 0) + 1 FROM rows"))


def _insert_rows(
    db: apsw.Connection,
    owner: int,
    conversation: int,
    turn: int,
    record: TurnRecord,
    rows: Sequence[tuple[int, Row]],
    first: int,
    changed: tuple[int, int] = (0, 0),
) -> None:
    """Put rows with these numbers into table and index; the first row of the turn stands at position `first`."""
    db.executemany(
        f"""INSERT INTO rows (id, owner, conversation, turn, seq, {_ROW}, author, word_count, asks, text,
                              change, vector_change) VALUES ({marks(18)})""",
        [
            (
                number, owner, conversation, turn, row.seq, *_of_row(record, row, first),
                row.author, len(row.terms), asks(row.text), row.text, *changed,
            )
            for number, row in rows
        ],
    )  # fmt: skip
    index_rows(db, owner, rows)


def _attach(db: apsw.Connection, owner: int, turn: int, record: TurnRecord) -> None:
    """Put in files and labels; and a turn that is there is not remembered as removed."""
    if record.files:
        db.executemany(
            "INSERT INTO files (turn, path, owner, digest, size, mime) VALUES (?, ?, ?, ?, ?, ?)",
            [(turn, f.path, owner, f.digest, f.size, f.mime) for f in record.files],
        )
    if record.labels:
        db.executemany(
            "INSERT OR IGNORE INTO labels (owner, label, turn) VALUES (?, ?, ?)",
            [(owner, label, turn) for label in record.labels],
        )
    buried = (owner, tombstone(record.conversation, record.turn))
    db.execute("DELETE FROM tombstones WHERE owner = ? AND hash = ?", buried)


def _touch_conversation(db: apsw.Connection, owner: int, conversation: int, record: TurnRecord, positions: int) -> int:
    """Count the turn in, and take so many positions for its rows; returns the last one."""
    last = scalar(
        db,
        """UPDATE conversations SET turns = turns + 1, positions = positions + ?, title = coalesce(?, title),
                  started = min(started, ?), last_activity = max(last_activity, ?)
           WHERE owner = ? AND id = ? RETURNING positions""",
        (
            positions,
            title_of(record) if record.title else None,
            to_micros(record.log.started),
            to_micros(record.log.ended),
            owner,
            conversation,
        ),
    )
    return int(last)
