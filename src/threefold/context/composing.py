"""From what was gathered to the context that an agent is given: packed, framed, counted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from threefold.context import rendering
from threefold.context.gathering import Gathered
from threefold.context.packing import Costs, Item, Packed, Taken, pack
from threefold.context.rendering import labelled, rendered
from threefold.context.sources import Sources
from threefold.model.context import ComputedContext, Dropped, Entry, Intent, Said, ThreadPart
from threefold.text.tokens import count_tokens


def compose(intent: Intent, sources: Sources, gathered: Gathered, engine: str = "default") -> ComputedContext:
    """Pack what was gathered under the intent's budget, and frame it."""
    gathered.without_repetitions()
    packed = _packed(gathered, intent.budget)
    shown, over, text, tokens = _fitted(packed.taken, intent.budget)
    dropped = [Dropped(item.section, item.ref, "budget", cost, item.score) for item, cost in (*packed.left, *over)]
    entries = [_entry(label, each) for label, each in shown if each.item.section != "thread"]
    memories = _of(entries, "working", "session", "longterm")
    return ComputedContext(
        intent_id=intent.id,
        goal=intent.goal,
        text=text,
        background=rendered([(label, each) for label, each in shown if "role" not in _spoken(each)]),
        estimated_tokens=tokens,
        budget=intent.budget,
        computed_at=sources.clock(),
        user=_user(sources, memories),
        engine=engine,
        permissions=intent.permissions,
        policies=intent.policies,
        memories=memories,
        knowledge=_of(entries, "organizational", "global"),
        boards=_of(entries, "board"),
        documents=_of(entries, "document"),
        turns=_of(entries, "turn"),
        extra=_of(entries, "extra"),
        thread=_thread(intent, shown, dropped, gathered.archived),
        dropped=(*dropped, *gathered.dropped),
        warnings=tuple(dict.fromkeys(gathered.warnings)),
    )


def _packed(gathered: Gathered, budget: int) -> Packed:
    """What fits; turns that the thread shows are not shown twice, those that it has no room for are."""
    room = budget - rendering.introduction_tokens()
    headings, costs = rendering.heading_tokens(), Costs()
    packed = pack(gathered.items, room, rendering.written, headings, costs)
    by_thread = {each.item.about.get("turn") for each in packed.taken if each.item.section == "thread"}
    twice = [item for item in gathered.items if item.section == "turn" and item.ref in by_thread]
    if not twice:
        return packed
    for item in twice:
        gathered.drop(item, "duplicate")
    shown_there = {id(item) for item in twice}
    gathered.items = [item for item in gathered.items if id(item) not in shown_there]
    return pack(gathered.items, room, rendering.written, headings, costs)


class _Fitted(NamedTuple):
    """What is shown with its labels, what had to go after all with its tokens, the text and its tokens."""

    shown: list[tuple[str, Taken]]
    over: list[tuple[Item, int]]
    text: str
    tokens: int


def _fitted(taken: Sequence[Taken], budget: int) -> _Fitted:
    """What fits once it is written as a whole, which may take a token more than its parts."""
    kept, over = list(taken), list[tuple[Item, int]]()
    while True:
        shown = labelled(kept)
        text = rendered(shown)
        tokens = count_tokens(text)
        if tokens <= budget:
            return _Fitted(shown, over, text, tokens)
        last = kept.pop()
        if last.form:
            kept.append(last._replace(form=last.form - 1))
        else:
            over.append((last.item, count_tokens(rendering.written(last.item, 0))))


def _spoken(taken: Taken) -> Mapping[str, Any]:
    """What is known of a message of the thread; nothing of anything else."""
    return taken.item.about if taken.item.section == "thread" else {}


def _entry(label: str, taken: Taken) -> Entry:
    item = taken.item
    text, whole = item.forms[taken.form], taken.form == len(item.forms) - 1
    return Entry(label, item.section, item.ref, text, item.because, item.score, whole, item.about)


def _of(entries: Sequence[Entry], *sections: str) -> tuple[Entry, ...]:
    return tuple(entry for entry in entries if entry.section in sections)


def _user(sources: Sources, memories: Sequence[Entry]) -> dict[str, Any]:
    scope = sources.scope
    preferences = [entry.about["memory"] for entry in memories if entry.about.get("kind") == "preference"]
    return {"id": scope.user, "tenant": scope.tenant, "app": scope.app, "agent": scope.agent,
            "preferences": preferences}  # fmt: skip


def _thread(
    intent: Intent, shown: Sequence[tuple[str, Taken]], dropped: Sequence[Dropped], archived: bool
) -> ThreadPart | None:
    if intent.thread is None:
        return None
    parts = [(label, each.item) for label, each in shown if each.item.section == "thread"]
    messages = tuple(
        Said(item.about["role"], item.forms[0], item.about["at"], item.ref, item.about["author"], label)
        for label, item in parts
        if "role" in item.about
    )
    summary = next((item.forms[0] for _, item in parts if "role" not in item.about), "")
    left_out = sum(each.section == "thread" and not each.ref.startswith("thread:") for each in dropped)
    return ThreadPart(intent.thread, summary, messages, left_out, "archived" if archived else "active")
