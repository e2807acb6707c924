"""What becomes of a memory: each change is a pure function from how it stood to how it stands. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from threefold.errors import Conflict, InvalidInput
from threefold.model.memory import HELD, LIFETIMES, Actor, Evidence, Layer, Memory, Revision, Signal, Status, Visibility
from threefold.realms.mem import checking
from threefold.realms.mem.keeping import Kept
from threefold.realms.mem.places import of_layer
from threefold.realms.mem.scores import IMPORTANCE, USUAL_IMPORTANCE, distinct

# The oldest evidence of what was said over and over is dropped.
MAX_EVIDENCE: Final = 200
MAX_REVISIONS: Final = 200


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, as the host says, and when; `clean` redacts why."""

    by: Actor
    at: datetime
    agent: str | None = None
    clean: Callable[[str | None], str | None] = lambda text: text

    def evidence(self, signal: Signal, source: str | None = None, note: str | None = None) -> Evidence:
        """Evidence from this writer."""
        return Evidence(signal, self.by, self.at, self.agent, self.clean(source), self.clean(note))

    def revision(self, record: Memory, act: str, why: str | None = None) -> Revision:
        """A revision by this writer."""
        return Revision(record, self.by, self.at, act, self.clean(why), self.agent)


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory as it is given to be kept, checked."""

    memory: str
    context: str
    kind: str
    layer: Layer
    tags: tuple[str, ...]
    owner: str | None
    importance: float | None
    pinned: bool
    visibility: Visibility
    source: str | None
    metadata: Mapping[str, Any]
    ttl: timedelta | None
    app: str | None = None


def made(id_: str, draft: Draft, status: Status, writer: Writer, signal: Signal) -> Kept:
    """A new memory."""
    importance = draft.importance
    record = Memory(
        id=id_,
        memory=draft.memory,
        context=draft.context,
        kind=draft.kind,
        layer=draft.layer,
        tags=draft.tags,
        importance=IMPORTANCE.get(draft.kind, USUAL_IMPORTANCE) if importance is None else importance,
        created=writer.at,
        updated=writer.at,
        touched=writer.at,
        status=status,
        owner=draft.owner,
        visibility=draft.visibility,
        pinned=draft.pinned,
        evidence=(writer.evidence(signal, draft.source),),
        expires=expiry(draft.layer, writer.at, draft.ttl),
        metadata=draft.metadata,
        app=draft.app,
    )
    act = "proposed" if status == "proposed" else "remembered"
    return Kept(record, (writer.revision(record, act),))


def said_again(kept: Kept, draft: Draft, status: Status, writer: Writer, signal: Signal) -> Kept:
    """The same content once more: one more piece of evidence, and as relevant as when it was new.

    What it adds is taken over: tags, a context where there was none, a pin. What was set aside is held again if
    `status` says that the writer may hold it; a rejected proposal is not proposed again.
    """
    before = kept.record
    if before.status == "rejected" and status == "proposed":
        return kept
    record = replace(
        with_evidence(before, writer.evidence(signal, draft.source)),
        touched=writer.at,
        expires=expiry(before.layer, writer.at, draft.ttl, before),
        context=before.context or draft.context,
        tags=tuple(dict.fromkeys((*before.tags, *draft.tags))),
        pinned=before.pinned or draft.pinned,
        status=status if before.status not in HELD and status != "proposed" else before.status,
    )
    if record.status == "active" and before.status not in HELD:
        record = replace(record, superseded_by=None)
    changed = (record.context, record.tags, record.pinned, record.status) != (
        before.context, before.tags, before.pinned, before.status,
    )  # fmt: skip
    return revised(kept, record, writer, "remembered again") if changed else replace(kept, record=record)


def confirmed(kept: Kept, writer: Writer, why: str | None = None) -> Kept:
    """A person says that it is so."""
    if kept.record.status in ("merged", "superseded"):
        raise Conflict(f"memory {kept.record.id!r} gave way to {kept.record.superseded_by!r}; confirm that one")
    record = replace(
        with_evidence(kept.record, writer.evidence("confirmed", note=why)),
        status="active",
        touched=writer.at,
        expires=expiry(kept.record.layer, writer.at, None, kept.record),
    )
    return revised(kept, record, writer, "confirmed", why)


def contradicted(kept: Kept, writer: Writer, why: str | None = None, source: str | None = None) -> Kept:
    """Something speaks against it: it is held less firmly."""
    record = with_evidence(kept.record, writer.evidence("contradicted", source, why))
    status: Status = "weakened" if record.status == "active" else record.status
    return revised(kept, replace(record, status=status), writer, "contradicted", why)


def set_aside(kept: Kept, status: Status, writer: Writer, why: str | None = None, by: str | None = None) -> Kept:
    """It is held no more: rejected, retired, superseded or merged into another, `by`."""
    record = replace(kept.record, status=status, pinned=False, superseded_by=by or kept.record.superseded_by)
    return revised(kept, record, writer, status, why)


def pinned(kept: Kept, pin: bool, writer: Writer) -> Kept:
    """Into the hotset whatever its salience is, or no more."""
    if pin and kept.record.status not in HELD:
        raise Conflict(f"memory {kept.record.id!r} is {kept.record.status}; confirm it before it is pinned")
    if kept.record.pinned == pin:
        return kept
    return revised(kept, replace(kept.record, pinned=pin), writer, "pinned" if pin else "unpinned")


def edited(kept: Kept, changes: Mapping[str, Any], writer: Writer, why: str | None = None) -> Kept:
    """Some fields anew; a new text is new evidence. Tags may be a list, or `{"add": […], "remove": […]}`.

    Raises:
        InvalidInput: a field is unknown or its value refused.
    """
    before = kept.record
    checks: Mapping[str, Callable[[Any], Any]] = {
        "memory": checking.note_text,
        "context": checking.context_text,
        "kind": checking.kind_name,
        "layer": lambda value: _layer(before.layer, value),
        "visibility": checking.visibility_name,
        "metadata": checking.metadata_of,
        "importance": lambda value: checking.share(value, "importance"),
        "tags": lambda value: _tags(before.tags, value),
        "owner": checking.owner_name,
    }
    unknown = [name for name in changes if name not in checks]
    if unknown:
        raise InvalidInput(f"{unknown[0]} cannot be updated; what can is {', '.join(checks)}")
    values = {name: checks[name](value) for name, value in changes.items()}
    record = replace(before, **values)
    if record == before:
        return kept
    if record.layer != before.layer:
        record = replace(record, expires=expiry(record.layer, writer.at, None))
    if record.memory != before.memory:
        record = replace(with_evidence(record, writer.evidence("edited", note=why)), touched=writer.at)
    return revised(kept, record, writer, "updated", why)


def undone(kept: Kept, writer: Writer, why: str | None = None) -> Kept:
    """As it stood before its last revision, and without the evidence that came with it; other evidence stays."""
    if len(kept.revisions) < 2:
        raise Conflict(f"memory {kept.record.id!r} has one revision; delete it instead")
    last, before = kept.revisions[-1], kept.revisions[-2].record
    evidence = tuple(each for each in kept.record.evidence if (each.by, each.at) != (last.by, last.at))
    return revised(kept, replace(before, evidence=evidence), writer, "undone", why)


def revised(kept: Kept, record: Memory, writer: Writer, act: str, why: str | None = None) -> Kept:
    """A new revision."""
    record = replace(record, revision=kept.record.revision + 1, updated=writer.at)
    revisions = (*kept.revisions, writer.revision(record, act, why))
    return replace(kept, record=record, revisions=revisions[-MAX_REVISIONS:])


def expiry(layer: Layer, now: datetime, ttl: timedelta | None, before: Memory | None = None) -> datetime | None:
    """When it ends: what was asked for, else as long as it was given before, else the layer's lifetime."""
    if ttl is None and before is not None and before.expires is not None:
        ttl = before.expires - before.touched
    ttl = LIFETIMES.get(layer) if ttl is None else ttl
    return None if ttl is None else now + ttl


def with_evidence(record: Memory, evidence: Evidence) -> Memory:
    """The record with one more piece of evidence."""
    found = (*record.evidence, evidence)
    if len(found) > MAX_EVIDENCE:
        found = tuple(distinct(found))[-MAX_EVIDENCE:]
    return replace(record, evidence=found)


def _layer(before: Layer, given: object) -> Layer:
    layer = checking.layer_name(given)
    if of_layer(layer) != of_layer(before):
        raise InvalidInput(f"layer {layer!r} is kept elsewhere; remember it there, and retire this one")
    return layer


def _tags(before: Collection[str], given: object) -> tuple[str, ...]:
    if not isinstance(given, Mapping):
        return checking.tag_names(given)
    if unknown := set(given) - {"add", "remove"}:
        raise InvalidInput(f"tags has {', '.join(sorted(map(str, unknown)))}; it is a list, or has add and remove")
    gone = set(checking.tag_names(given.get("remove", ())))
    return checking.tag_names([tag for tag in (*before, *checking.tag_names(given.get("add", ()))) if tag not in gone])
