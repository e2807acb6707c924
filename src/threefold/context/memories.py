"""Memories for a context: what is at hand, what is always there, what answers the goal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from threefold.context.gathering import Gathered, Limits, forms
from threefold.context.packing import Forms, Item
from threefold.context.sources import Sources
from threefold.model.context import Intent
from threefold.model.memory import Layer, Memory
from threefold.realms.mem.hotset import Hot
from threefold.realms.mem.recalling import Recall
from threefold.text.quoting import set_in, spoken

# So many answers are looked at in each place.
_DEPTH: Final = 20
# Layers that lie in one place are asked together: one user's memories take no room from what is shared.
_PLACES: Sequence[Sequence[Layer]] = (("working", "session", "longterm"), ("organizational",), ("global",))


def gather_memories(
    gathered: Gathered, intent: Intent, sources: Sources, limits: Limits, terms: tuple[str, ...]
) -> None:
    """Add memories of every layer."""
    asked = bool(intent.goal.strip())
    recalls = [sources.mem.recall(intent.goal, layers=layers, limit=_DEPTH) for layers in _PLACES] if asked else []
    hot = sources.mem.hotset(found=_together(recalls), limit=limits.hotset)
    likely: dict[str, float] = {}
    for found in recalls:
        least = gathered.least(found, limits)
        likely |= {each.record.id: each.score for each in found if each.score >= least}
    records = {each.record.id: each.record for found in recalls for each in found}
    left = [record for id_, record in records.items() if id_ not in likely]
    most: Mapping[Layer, int] = {
        "working": limits.working, "session": limits.session, "longterm": limits.longterm,
        "organizational": limits.organizational, "global": limits.global_,
    }  # fmt: skip
    for layer in most:
        of_layer = [record for record in records.values() if record.layer == layer and record.id in likely]
        if layer in ("working", "session"):
            at_hand = sources.mem.list(layers=[layer], limit=most[layer])
            chosen = dict.fromkeys([record.id for record in (*of_layer, *at_hand)][: most[layer]])
            known = {record.id: record for record in (*of_layer, *at_hand)}
            gathered.add(_item(known[id_], "at hand", likely, terms) for id_ in chosen)
        else:
            gathered.add(_held(layer, of_layer[: most[layer]], hot, likely, terms))
    shown = {item.about["id"] for item in gathered.items}
    for record in left:
        if record.id not in shown:
            gathered.drop(_item(record, "", {}, terms), "irrelevant")


def _together(recalls: Sequence[Recall]) -> Recall | None:
    """What was recalled in all places, the likeliest first."""
    if not recalls:
        return None
    return Recall(tuple(sorted((each for found in recalls for each in found), key=lambda each: -each.score)))


def _held(
    layer: Layer, asked: Iterable[Memory], hot: Sequence[Hot], likely: Mapping[str, float], terms: tuple[str, ...]
) -> Iterator[Item]:
    """What is always there, then what answers the goal."""
    always = [each.record for each in hot if each.record.layer == layer]
    for record in always:
        yield _item(record, "pinned" if record.pinned else "salient", likely, terms)
    there = {record.id for record in always}
    yield from (_item(record, "answers the goal", likely, terms) for record in asked if record.id not in there)


def _item(record: Memory, because: str, likely: Mapping[str, float], terms: tuple[str, ...]) -> Item:
    """`likely` has those that answer the goal."""
    about = {"id": record.id, "memory": record.memory, "kind": record.kind, "tags": list(record.tags)}
    shown, score = _forms(record, terms), likely.get(record.id)
    return Item(record.layer, record.ref, _head(record), shown, record.memory, because, score, about=about)


def _head(record: Memory) -> tuple[str, ...]:
    """Who said so and when, in our words first; then what kind of memory it is, in theirs."""
    first = record.evidence[0] if record.evidence else None
    who = {"user": "the user", "import": "an import", "reconciler": "the reconciler"}
    by = "" if first is None else who.get(first.by) or f"agent “{first.agent}”"
    # Who of many curated what they share is not what tells how far it can be relied on.
    own = record.layer in _PLACES[0]
    said = "" if first is None else f"{first.signal} by {by}" if own or first.by == "agent" else first.signal
    doubt = "contested" if record.status == "weakened" else ""
    return (said, doubt, record.touched.date().isoformat(), record.kind)


def _forms(record: Memory, terms: tuple[str, ...]) -> Sequence[str]:
    """The note, shortened, then whole, then with why it is there, as a line of its own."""
    note = forms(record.memory, terms)
    shown = [partial(_set_in, note, number) for number in range(len(note))]
    if not record.context:
        return Forms(*shown)
    whole, why = spoken("note", record.memory), spoken("why", record.context)
    return Forms(*shown, lambda: f"{whole}\n{why}")


def _set_in(note: Sequence[str], number: int) -> str:
    return set_in(note[number])
