"""A language model's word on notes that the rules are not sure of. It is asked, checked, and never alone. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, cast, get_args

from threefold.realms.mem.likeness import Likeness, Relation, Side

Judge = Callable[[Sequence[Mapping[str, Any]]], Iterable[Mapping[str, Any]]]
"""Says of pairs of notes how they stand to each other, such as a chat model asked for structured output.

It is given `[{"first": {"id", "memory"}, "second": {"id", "memory"}}, …]` and gives for as many of them as it likes
`{"first": id, "second": id, "relation": "same", "refines", "contradicts" or "different", "finer": the finer one's id}`.
"""
# Pairs that are asked about: those whose rules say the least for sure.
MOST_ASKED: Final = 40
_Pair = tuple[int, int]
_Note = tuple[str, str]


def judged(
    notes: Sequence[_Note], found: Mapping[_Pair, Likeness], near: Mapping[_Pair, float], judge: Judge
) -> tuple[Mapping[_Pair, Likeness], tuple[str, ...]]:
    """What the rules found, with the judge's word where they are unsure; and what of it was refused, in sentences.

    Pairs are of places in `notes`, which has the id of each and what it says; `near` has the cosines of some.
    Notes that differ in a number, a date, a sign, or in what is so are never the same, whatever the judge says.
    """
    asked = sorted(found, key=lambda pair: (_sure(found[pair], near.get(pair, 0.0)), pair))[:MOST_ASKED]
    if not asked:
        return found, ()
    number = {id_: place for place, (id_, _) in enumerate(notes)}
    shown = [{"first": _shown(notes[one]), "second": _shown(notes[other])} for one, other in asked]
    after, refused = dict(found), list[str]()
    for answer in judge(shown):
        pair = tuple(sorted(number.get(str(answer.get(side)), -1) for side in ("first", "second")))
        relation = answer.get("relation")
        if len(pair) != 2 or pair not in found or relation not in get_args(Relation):
            refused.append(f"the judge's answer {dict(answer)!r} names no pair that it was asked about, or no relation")
        elif relation == "same" and found[pair].likelihood == 0.0:
            refused.append(f"the judge would merge notes that differ: {found[pair].because}")
        else:
            after[pair] = _told(found[pair], cast(Relation, relation), number.get(str(answer.get("finer"))), pair)
    return after, tuple(refused)


def _sure(like: Likeness, near: float) -> float:
    """How sure the rules are: little of notes that are near in meaning and told apart, or merged by a hair."""
    if like.relation == "same":
        return abs(like.likelihood - 0.5)
    return 1.0 - near if like.relation == "different" else 1.0


def _shown(note: _Note) -> Mapping[str, str]:
    return dict(zip(("id", "memory"), note, strict=True))


def _told(rules: Likeness, relation: Relation, finer: int | None, pair: _Pair) -> Likeness:
    side = None
    if relation == "refines":
        side = {pair[0]: "first", pair[1]: "second"}.get(-1 if finer is None else finer, rules.finer)
        if side is None:  # it does not say which, and neither do the rules
            return rules
    return Likeness(relation, rules.likelihood, cast(Side | None, side), {**rules.because, "judge": 1.0})
