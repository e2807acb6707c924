"""What a reconciler would do about memories that say the same, more, or the opposite, or have gone stale. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from threefold.model.memory import Memory
from threefold.realms.mem import changing
from threefold.realms.mem.changing import Writer
from threefold.realms.mem.hotset import vouched
from threefold.realms.mem.keeping import Kept
from threefold.realms.mem.likeness import Likeness
from threefold.realms.mem.scores import Decay, scores

Act = Literal["merge", "refine", "supersede", "weaken", "retire"]
# Held to be stale: untouched for so long, of little salience, and with no person behind it.
STALE_AFTER: Final = timedelta(days=180)
STALE_BELOW: Final = 0.4

Compare = Callable[[Kept, Kept], Likeness]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do. `keep` stands afterwards, `give` gives way to it; the other way round nothing is lost.

    merge: they say the same, `give` is merged into `keep`. refine: `keep` says more. supersede: they contradict each
    other and `keep` is newer. weaken: `give` is contradicted by `keep`, and stays. retire: `give` is stale; there is no
    `keep`.
    """

    act: Act
    give: str
    keep: str | None
    likelihood: float
    why: str

    def as_json(self) -> dict[str, Any]:
        """The step as plain JSON values."""
        return {
            "act": self.act, "give": self.give, "keep": self.keep, "likelihood": self.likelihood, "why": self.why,
        }  # fmt: skip


def plan(
    kept: Sequence[Kept],
    found: Mapping[tuple[int, int], Likeness],
    compare: Compare,
    now: datetime,
    decays: Sequence[Decay],
) -> tuple[Step, ...]:
    """Steps for memories that are held. `found` says of the places of those that may be alike how they stand.

    Each memory gives way at most once, and never to one that itself gives way.
    """
    steps: dict[int, Step] = {}
    into = _merged(kept, found, compare)
    for give, keep in into.items():
        like = found.get((min(give, keep), max(give, keep))) or compare(kept[give], kept[keep])
        steps[give] = _step("merge", kept[give], kept[keep], like.likelihood, "they say the same")
    for (one, other), like in sorted(found.items(), key=lambda item: (-item[1].likelihood, item[0])):
        if one in steps or other in steps or like.relation not in ("refines", "contradicts"):
            continue
        step = _refined(kept, one, other, like) if like.relation == "refines" else _contradicted(kept, one, other, like)
        if step is not None and not {step[1].keep} & {each.give for each in steps.values()}:
            steps[step[0]] = step[1]
    kept_by = {step.keep for step in steps.values()}
    for number, each in enumerate(kept):
        if number not in steps and each.record.id not in kept_by and stale(each.record, now, decays):
            since = f"not touched since {each.record.touched:%Y-%m-%d}, and no person stands behind it"
            steps[number] = Step("retire", each.record.id, None, 1.0, since)
    return tuple(steps[number] for number in sorted(steps))


def comparable(one: Kept, other: Kept) -> bool:
    """Whether one may give way to the other: nothing private becomes shared, nothing short-lived lasting."""
    return all(
        getattr(one.record, name) == getattr(other.record, name) for name in ("layer", "owner", "visibility", "app")
    )


def stale(record: Memory, now: datetime, decays: Sequence[Decay]) -> bool:
    """Whether a memory may be retired."""
    return (
        not record.pinned
        and not vouched(record)
        and now - record.touched > STALE_AFTER
        and scores(record, now, decays).salience < STALE_BELOW
    )


def _authority(record: Memory) -> tuple[Any, ...]:
    """Which of two that say the same stays: by whose word, then how firmly, then the older."""
    own = scores(record, record.touched)
    return vouched(record), record.pinned, own.confidence, -record.created.timestamp(), record.id


def _merged(kept: Sequence[Kept], found: Mapping[tuple[int, int], Likeness], compare: Compare) -> Mapping[int, int]:
    """Which memory is merged into which. In a group each says the same as each: alike is not passed on."""
    groups: dict[int, list[int]] = {}
    same = sorted((-like.likelihood, pair) for pair, like in found.items() if like.relation == "same")
    for _, (one, other) in same:
        left, right = groups.get(one, [one]), groups.get(other, [other])
        if left is right:
            continue
        joined = all(
            (pair in found and found[pair].relation == "same") or compare(kept[a], kept[b]).relation == "same"
            for a in left
            for b in right
            for pair in [(min(a, b), max(a, b))]
        )
        if joined:
            both = [*left, *right]
            groups.update(dict.fromkeys(both, both))
    into: dict[int, int] = {}
    for group in {id(group): group for group in groups.values()}.values():
        best = max(group, key=lambda number: _authority(kept[number].record))
        into.update({number: best for number in group if number != best})
    return into


def _refined(kept: Sequence[Kept], one: int, other: int, like: Likeness) -> tuple[int, Step] | None:
    """The coarser gives way, unless it is pinned, newer, or has a person's word and the finer has none."""
    finer, coarser = (one, other) if like.finer == "first" else (other, one)
    fine, coarse = kept[finer].record, kept[coarser].record
    if coarse.pinned or coarse.touched > fine.touched or (vouched(coarse) and not vouched(fine)):
        return None
    return coarser, _step("refine", kept[coarser], kept[finer], like.likelihood, "the other says more")


def _contradicted(kept: Sequence[Kept], one: int, other: int, like: Likeness) -> tuple[int, Step] | None:
    first, second = kept[one].record, kept[other].record
    if first.touched == second.touched:
        return None
    newer, older = (one, other) if first.touched > second.touched else (other, one)
    if vouched(kept[older].record) and not vouched(kept[newer].record):
        why = "an agent says the opposite of what a person said"
        return newer, _step("weaken", kept[newer], kept[older], like.likelihood, why)
    act: Act = "weaken" if kept[older].record.pinned else "supersede"
    return older, _step(act, kept[older], kept[newer], like.likelihood, "they contradict each other, this is newer")


def _step(act: Act, give: Kept, keep: Kept, likelihood: float, why: str) -> Step:
    return Step(act, give.record.id, keep.record.id, likelihood, why)


def changes(steps: Sequence[Step], kept: Mapping[str, Kept], writer: Writer) -> Mapping[str, Kept]:
    """How the memories stand after the steps, one revision each."""
    after = dict(kept)
    for step in steps:
        if step.act == "weaken":
            after[step.give] = changing.contradicted(after[step.give], writer, step.why, step.keep)
        elif step.act == "retire":
            after[step.give] = changing.set_aside(after[step.give], "retired", writer, step.why)
        else:
            status: Literal["merged", "superseded"] = "merged" if step.act == "merge" else "superseded"
            after[step.give] = changing.set_aside(after[step.give], status, writer, step.why, step.keep)
    for id_ in dict.fromkeys(step.keep for step in steps if step.keep is not None and step.act != "weaken"):
        mine = [step for step in steps if step.keep == id_ and step.act != "weaken"]
        after[id_] = _strengthened(after[id_], [kept[step.give].record for step in mine], mine, writer)
    return {id_: each for id_, each in after.items() if each is not kept[id_]}


def _strengthened(kept: Kept, gave: Sequence[Memory], steps: Sequence[Step], writer: Writer) -> Kept:
    record = kept.record
    for step in steps:
        if step.act == "merge":
            record = changing.with_evidence(record, writer.evidence("merged", step.give))
    merged = [each for each, step in zip(gave, steps, strict=True) if step.act == "merge"]
    record = replace(
        record,
        supersedes=tuple(dict.fromkeys((*record.supersedes, *(step.give for step in steps)))),
        tags=tuple(dict.fromkeys((*record.tags, *(tag for each in merged for tag in each.tags)))),
        context=record.context or next((each.context for each in merged if each.context), ""),
        importance=max([record.importance, *(each.importance for each in merged)]),
    )
    return changing.revised(kept, record, writer, "reconciled", "; ".join(dict.fromkeys(step.why for step in steps)))
