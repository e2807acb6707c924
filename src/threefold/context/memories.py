"""Memories for a context: what is at hand, what is always there, what answers the goal; one recall for all of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from threefold.context.gathering import Gathered, Limits, forms
from threefold.context.packing import Item
from threefold.context.sources import Sources
from threefold.model.context import Intent
from threefold.model.memory import Layer, Memory
from threefold.realms.mem.hotset import DEPTH, Hot
from threefold.realms.mem.recalling import Recall
from threefold.text.quoting import named


def gather_memories(
    gathered: Gathered, intent: Intent, sources: Sources, limits: Limits, terms: tuple[str, ...]
) -> None:
    """Add memories of every layer."""
    found = sources.mem.recall(intent.goal, limit=DEPTH) if intent.goal.strip() else Recall()
    hot = sources.mem.hotset(found=found, limit=limits.hotset)
    gathered.warnings += found.warnings
    least = limits.least(found.relevance)
    answers = {each.record.id: each.score for each in found}
    at_hand: Sequence[tuple[Layer, int]] = (("working", limits.working), ("session", limits.session))
    for layer, most in at_hand:
        # Those that answer the goal first; else the last touched.
        listed = sources.mem.list(layers=[layer], limit=most)
        records = sorted(listed, key=lambda record: -answers.get(record.id, 0.0))
        gathered.add(_item(record, "at hand", answers, terms) for record in records)
    by_goal: Sequence[tuple[Layer, int]] = (
        ("longterm", limits.longterm),
        ("organizational", limits.organizational),
        ("global", limits.global_),
    )
    for layer, most in by_goal:
        gathered.add(_held(layer, most, found, hot, answers, terms), least)


def _held(
    layer: Layer, most: int, found: Recall, hot: Sequence[Hot], answers: Mapping[str, float], terms: tuple[str, ...]
) -> Iterator[Item]:
    """What is always there, then what answers the goal."""
    always = [each for each in hot if each.record.layer == layer]
    for each in always:
        yield _item(each.record, "pinned" if each.record.pinned else "salient", {}, terms)
    there = {each.record.id for each in always}
    asked = [each.record for each in found if each.record.layer == layer and each.record.id not in there]
    yield from (_item(record, "answers the goal", answers, terms) for record in asked[:most])


def _item(record: Memory, because: str, answers: Mapping[str, float], terms: tuple[str, ...]) -> Item:
    first = record.evidence[0] if record.evidence else None
    by = "" if first is None else f"{first.signal} by {'the user' if first.by == 'user' else first.agent or first.by}"
    doubt = "contested" if record.status == "weakened" else ""
    head = " · ".join(filter(None, (record.kind, by, doubt, record.touched.date().isoformat())))
    shown: Sequence[str] = forms(record.memory, terms)
    if record.context:
        shown = (*shown, f"{record.memory}\n({record.context})")
    about = {"id": record.id, "kind": record.kind, "layer": record.layer, "tags": list(record.tags)}
    return Item(record.layer, record.ref, named(head), shown, because, answers.get(record.id), about=about)
