"""How a memory is kept: as a record of the realm `mem`, one conversation each, with all that became of it. Pure.

What is searched is the note and its context as they are now; the revisions before lie beside them, unsearched. So what
expires or is deleted goes as a whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from threefold.errors import IntegrityError, InvalidInput
from threefold.model.codec import digest_of, log_to_json
from threefold.model.memory import Evidence, Memory, Revision
from threefold.model.record import Block, TurnLog, TurnRecord
from threefold.model.rows import Row
from threefold.model.times import parse_moment
from threefold.realms.mem.scores import scores
from threefold.text.terms import index_terms

TURN: Final = "record"
_TYPE: Final = "mem.record"
# Scores are labelled by so many steps, so that a search can leave out what is below a threshold before it cuts.
STEPS: Final = 20
# The full stop that ends a note. It is none where another stands in its word (`e.g.`, `U.S.`), after others (`...`), or
# where it is a place (`git add .`, `ls ../.`): to hold two notes that are one does less harm than to lose one.
_FULL_STOP: Final = re.compile(r"(?<![^ ])([^ .．。।۔…]*[^ .．。।۔…*/\\])[.．]$|([^ .．。।۔…]) ?[。।۔]$")
_MOMENTS: Final = ("created", "updated", "touched", "expires")


@dataclass(frozen=True, slots=True)
class Kept:
    """A memory with its revisions, oldest first; `digest` is what a change of it names."""

    record: Memory
    revisions: tuple[Revision, ...]
    digest: str = ""


def content_key(memory: str, layer: str, owner: str | None) -> str:
    """What makes two notes the same content: their text but for case, spacing, how Unicode writes it, a full stop."""
    return _key(_FULL_STOP.sub(r"\1\2", _folded(memory)), layer, owner)


def key_labels(memory: str, layer: str, owner: str | None) -> tuple[str, ...]:
    """Labels of which a memory of the same content has one.

    The second is what notes that end with a full stop were labelled by when it still counted. It finds them when they
    are said as they stand; said without it, they become two as before, which the reconciler merges.
    """
    keys = content_key(memory, layer, owner), _key(_folded(memory), layer, owner)
    return tuple(f"key:{key}" for key in dict.fromkeys(keys))


def _folded(memory: str) -> str:
    return " ".join(unicodedata.normalize("NFC", memory).casefold().split())


def _key(text: str, layer: str, owner: str | None) -> str:
    return blake2b(f"{layer}\0{owner or ''}\0{text}".encode(), digest_size=10).hexdigest()


def to_record(kept: Kept) -> TurnRecord:
    """What is stored of a memory."""
    record = kept.record
    text = f"{record.memory}\n{record.context}" if record.context else record.memory
    row = Row(0, "note", _TYPE, TURN, text, record.touched, terms=index_terms(text))
    log = TurnLog(
        turn=TURN,
        started=record.touched,
        ended=record.updated,
        status="completed",
        blocks=(Block(_TYPE, TURN, record.touched, text),),
        counts={_TYPE: 1},
    )
    body = {"record": record.as_json(), "revisions": [each.as_json() for each in kept.revisions]}
    return TurnRecord(
        conversation=record.id,
        turn=TURN,
        state="minimal",
        log=log,
        rows=(row,),
        files=(),
        replay=body,
        digest=digest_of([log_to_json(log), body]),
        head="",
        app=record.app,
        expires=record.expires,
        labels=labels_of(record),
    )


def labels_of(record: Memory) -> tuple[str, ...]:
    """What a memory can be asked for by."""
    found = scores(record, record.touched)
    return (
        f"key:{content_key(record.memory, record.layer, record.owner)}",
        f"layer:{record.layer}",
        f"status:{record.status}",
        f"kind:{record.kind}",
        f"visibility:{record.visibility}",
        f"confidence:{step(found.confidence)}",
        f"salience:{step(found.salience)}",
        *(f"tag:{tag}" for tag in record.tags),
        *((f"owner:{record.owner}",) if record.owner is not None else ()),
        *(("pinned",) if record.pinned else ()),
    )


def step(score: float) -> int:
    """Which of `STEPS` a score from 0 to 1 falls into."""
    return min(int(score * STEPS), STEPS - 1)


def steps_from(least: float) -> tuple[int, ...]:
    """The steps in which scores of at least this may be."""
    return tuple(range(step(least), STEPS))


def memory_of(id_: str, replay: Mapping[str, Any]) -> Memory:
    """The memory that was stored, without its revisions.

    Raises:
        IntegrityError: it is none.
    """
    try:
        return _from_json(replay["record"])
    except (KeyError, TypeError, AttributeError, InvalidInput) as error:
        raise _damaged(id_, error) from None


def from_record(stored: TurnRecord) -> Kept:
    """The memory that was stored, with its revisions.

    Raises:
        IntegrityError: it is none.
    """
    record = memory_of(stored.conversation, stored.replay)
    try:
        revisions = tuple(_revision_from_json(each) for each in stored.replay["revisions"])
    except (KeyError, TypeError, AttributeError, InvalidInput) as error:
        raise _damaged(stored.conversation, error) from None
    return Kept(record, revisions, stored.digest)


def _damaged(id_: str, error: Exception) -> IntegrityError:
    return IntegrityError(f"the memory {id_!r} is damaged: {error!r}")


def as_it_stood(kept: Kept, moment: datetime) -> Memory | None:
    """The memory as it stood at a moment, with the evidence there was; None where it was not there yet."""
    before = [each for each in kept.revisions if each.at <= moment]
    if not before:
        return None
    evidence = tuple(each for each in kept.record.evidence if each.at <= moment)
    touched = max((each.at for each in evidence), default=before[-1].record.touched)
    return replace(before[-1].record, evidence=evidence, touched=touched)


def _from_json(value: Mapping[str, Any], evidence: Sequence[Evidence] = ()) -> Memory:
    given = dict(value)
    for name in _MOMENTS:
        given[name] = None if value[name] is None else parse_moment(value[name], name)
    given["tags"], given["supersedes"] = tuple(value["tags"]), tuple(value["supersedes"])
    given["evidence"] = tuple(_evidence_from_json(each) for each in value.get("evidence", ())) or tuple(evidence)
    return Memory(**given)


def _evidence_from_json(value: Mapping[str, Any]) -> Evidence:
    return Evidence(**{**value, "at": parse_moment(value["at"], "at")})


def _revision_from_json(value: Mapping[str, Any]) -> Revision:
    at = parse_moment(value["at"], "at")
    return Revision(_from_json(value["record"]), value["by"], at, value["act"], value.get("why"), value.get("agent"))
