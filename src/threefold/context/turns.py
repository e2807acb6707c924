"""Earlier turns for a context: what was asked or answered then, around what matched."""

from __future__ import annotations

from collections.abc import Collection

from threefold.context.gathering import FORMS, Gathered, Limits, part
from threefold.context.packing import Forms, Item
from threefold.context.sources import Sources
from threefold.model.context import FINDER, Intent
from threefold.realms.conv.hits import Hit
from threefold.realms.conv.refs import turn_ref

_SPOKEN = ("user", "assistant")


def gather_turns(
    gathered: Gathered, intent: Intent, sources: Sources, limits: Limits, terms: tuple[str, ...], shown: Collection[str]
) -> None:
    """Add turns that answer the goal, but those whose references are `shown` already."""
    if not intent.goal.strip():
        return
    found = sources.conv.search(intent.goal, limit=limits.turns, snippets=_SPOKEN, size=None, without=shown)
    gathered.warnings += found.warnings
    gathered.add((_item(hit, terms) for hit in found), limits.least(found.relevance))


def _item(hit: Hit, terms: tuple[str, ...]) -> Item:
    about = {"conversation": hit.conversation, "turn": hit.turn, "role": hit.role}
    ref, head = turn_ref(hit.conversation, hit.turn), hit.at.date().isoformat()
    return Item("turn", ref, head, _forms(hit, terms), "answers the goal", hit.score, about=about)


def _forms(hit: Hit, terms: tuple[str, ...]) -> Forms:
    """What matched alone, then the whole turn: first shortened, then as it was."""
    said = [(each.role, each.text) for each in hit.snippets if each.distance == 0]
    if hit.role not in _SPOKEN:
        said.append((hit.role, hit.text))
    matched = (hit.author or hit.role, hit.text)
    if hit.agent == FINDER:
        said = [each for each in said if each[0] != "assistant"] or said
        matched = matched if hit.role != "assistant" else said[0]
    least, more = FORMS

    def shown(size: int | None) -> str:
        return "\n".join(f"{role}: {text if size is None else part(text, terms, size)}" for role, text in said)

    return Forms(
        lambda: f"{matched[0]}: {part(matched[1], terms, least)}", lambda: shown(more // 2), lambda: shown(None)
    )
