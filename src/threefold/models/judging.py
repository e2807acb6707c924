"""A chat model's word on notes that the rules are not sure of: what `mem.reconcile(judge=…)` takes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from threefold.model.chat import Message
from threefold.models.framing import framed, rule
from threefold.models.running import run
from threefold.ports import ChatModel

# A reconciler works while nobody waits, on forty pairs at most.
SECONDS: Final = 120.0
RELATIONS: Final = ("same", "refines", "contradicts", "different")
"""Those of `threefold.realms.mem`."""

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "pairs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "pair": {"type": "integer"},
                    "relation": {"type": "string", "enum": list(RELATIONS)},
                    "finer": {"type": "string", "enum": ["first", "second", "neither"]},
                },
                "required": ["pair", "relation", "finer"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["pairs"],
    "additionalProperties": False,
}
_TASK: Final = """\
You compare notes about a person, in pairs, and say how the two of a pair stand to each other.
{rule}
The relation is "same" where both say the same in other words or another language; "refines" where one says all that \
the other says, and more of it ("finer" names it); "contradicts" where they cannot both hold at the same time; \
"different" in every other case, also where they are about the same thing. In doubt it is "different". "finer" is \
"neither" unless the relation is "refines". Give each pair once, by its number."""

log = logging.getLogger("threefold")


def model_judge(
    model: ChatModel, seconds: float = SECONDS
) -> Callable[[Sequence[Mapping[str, Any]]], Iterable[Mapping[str, Any]]]:
    """A judge that asks `model` once for all pairs, for `seconds` at most.

    Notes are named by number, which a model cannot misspell; an answer on a pair that was not shown is left out. Where
    the model fails, `reconcile` goes by its rules and says so.
    """

    def judge(pairs: Sequence[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
        if not pairs:
            return []
        lines = [
            {"pair": number, "first": pair["first"]["memory"], "second": pair["second"]["memory"]}
            for number, pair in enumerate(pairs, 1)
        ]
        data, mark = framed(lines, "notes")
        asked = [Message("system", _TASK.format(rule=rule(mark))), Message("user", data)]
        reply = run(lambda: model.chat(asked, schema=_SCHEMA), seconds, "the model's judgement")
        given = reply.data["pairs"] if isinstance(reply.data, dict) else []
        return _named(pairs, given, model.name)

    return judge


def _named(
    pairs: Sequence[Mapping[str, Any]], given: Iterable[Mapping[str, Any]], model: str
) -> list[Mapping[str, Any]]:
    """The answers with the ids of the notes, the first on each pair."""
    found: dict[int, Mapping[str, Any]] = {}
    for answer in given:
        number = answer["pair"]
        if not 1 <= number <= len(pairs) or number in found:
            log.warning("model %r judged a pair that it was not asked about, or one twice: %r", model, number)
            continue
        pair = pairs[number - 1]
        ids = {side: pair[side]["id"] for side in ("first", "second")}
        found[number] = {**ids, "relation": answer["relation"], "finer": ids.get(answer["finer"])}
    return list(found.values())
