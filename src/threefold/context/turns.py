"""Earlier turns for a context: what was asked or answered then, around what matched."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from threefold.context.gathering import FORMS, Gathered, Limits, forms
from threefold.context.packing import Item
from threefold.context.sources import Sources
from threefold.model.context import Intent
from threefold.realms.conv.hits import Hit
from threefold.realms.conv.refs import turn_ref

_SPOKEN = ("user", "assistant")


def gather_turns(
    gathered: Gathered, intent: Intent, sources: Sources, limits: Limits, terms: tuple[str, ...], shown: Collection[str]
) -> None:
    """Add turns that answer the goal, but those whose references are `shown` already."""
    if not intent.goal.strip():
        return
    found = sources.conv.search(intent.goal, limit=limits.turns + len(shown), snippets=_SPOKEN, size=None)
    gathered.warnings += found.warnings
    new = [hit for hit in found if turn_ref(hit.conversation, hit.turn) not in shown]
    gathered.add((_item(hit, terms) for hit in new[: limits.turns]), limits.least(found.relevance))


def _item(hit: Hit, terms: tuple[str, ...]) -> Item:
    about = {"conversation": hit.conversation, "turn": hit.turn, "role": hit.role}
    head = hit.at.date().isoformat()
    return Item("turn", turn_ref(hit.conversation, hit.turn), head, tuple(_forms(hit, terms)), "answers the goal",
                hit.score, about=about)  # fmt: skip


def _forms(hit: Hit, terms: tuple[str, ...]) -> Iterator[str]:
    """What matched alone, then the whole turn: first shortened, then as it was."""
    matched = f"{hit.author or hit.role}: "
    for size in FORMS[:1]:
        yield matched + forms(hit.text, terms, (size,))[0]
    said = [(each.role, each.text) for each in hit.snippets if each.distance == 0]
    if hit.role not in _SPOKEN:
        said.append((hit.role, hit.text))
    for size in FORMS[1:]:
        yield "\n".join(f"{role}: {forms(text, terms, (size // 2,))[0]}" for role, text in said)
    yield "\n".join(f"{role}: {text}" for role, text in said)
