"""Earlier turns for a context: what was asked or answered then, around what matched."""

from __future__ import annotations

from collections.abc import Collection

from threefold.context.gathering import FORMS, Cut, Gathered, Limits
from threefold.context.packing import Forms, Item
from threefold.context.sources import Sources
from threefold.model.context import FINDER, Intent
from threefold.realms.conv.hits import Hit
from threefold.realms.conv.refs import turn_ref
from threefold.text.asking import ENDING, asks
from threefold.text.quoting import named, spoken

_SPOKEN = ("user", "assistant")
# So many more are looked for where a thread shows some of them already.
_MORE = 5


def gather_turns(
    gathered: Gathered, intent: Intent, sources: Sources, limits: Limits, terms: tuple[str, ...], shown: Collection[str]
) -> None:
    """Add turns that answer the goal. Those in `shown` the thread shows, unless it finds no room for them."""
    if not intent.goal.strip():
        return
    more = min(len(shown), _MORE)
    found = sources.conv.search(intent.goal, limit=limits.turns + more, snippets=_SPOKEN, size=None)
    gathered.add((_item(hit, terms) for hit in found if not _echoes(hit)), gathered.least(found, limits))


def _echoes(hit: Hit) -> bool:
    """Whether a turn is but a question, to which what is kept elsewhere was quoted."""
    said = [each.text for each in hit.snippets if each.distance == 0 and each.role == "user"]
    return hit.agent == FINDER and all(asks(text[-ENDING:]) for text in said)


def _item(hit: Hit, terms: tuple[str, ...]) -> Item:
    about = {"conversation": hit.conversation, "turn": hit.turn, "role": hit.role}
    ref, head = turn_ref(hit.conversation, hit.turn), (hit.at.date().isoformat(),)
    return Item("turn", ref, head, _forms(hit, terms), hit.text, "answers the goal", hit.score, about=about)


def _forms(hit: Hit, terms: tuple[str, ...]) -> Forms:
    """What matched alone, then the whole turn: first shortened, then as it was."""
    said = [(each.role, Cut(each.text, terms)) for each in hit.snippets if each.distance == 0]
    if hit.role not in _SPOKEN:
        said.append((hit.role, Cut(hit.text, terms)))
    speaker = hit.role if hit.author is None else f"{hit.role} {named(hit.author, 30)}"
    matched = (speaker, Cut(hit.text, terms))
    if hit.agent == FINDER:
        said = [each for each in said if each[0] != "assistant"] or said
        matched = matched if hit.role != "assistant" else said[0]
    least, more = FORMS

    def shown(size: int | None) -> str:
        return "\n".join(spoken(role, cut.text if size is None else cut.part(size)) for role, cut in said)

    return Forms(lambda: spoken(matched[0], matched[1].part(least)), lambda: shown(more // 2), lambda: shown(None))
