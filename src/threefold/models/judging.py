"""A chat model's word on notes that the rules are not sure of: what `mem.reconcile(judge=…)` takes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from threefold.errors import Unavailable
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

Known = tuple[str, str, bool]
"""Two notes, and whether they say the same."""
KNOWN: Final[tuple[Known, ...]] = (
    ("is allergic to peanuts", "must not eat anything with peanuts in it, because of an allergy", True),
    ("flies to Rome on Friday", "flies from Rome on Friday", False),
    ("the office has been in Leeds since March", "in March the office moved to Leeds", True),
    ("has two sisters", "has two brothers", False),
    ("fährt lieber mit dem Zug als mit dem Auto", "zieht die Bahn dem Auto vor", True),
    ("mag Kaffee", "mag Tee", False),
    ("vive con sus padres", "comparte casa con su madre y su padre", True),
    ("no come carne", "come carne", False),
    ("встаёт рано", "просыпается ни свет ни заря", True),
    ("Ankara'da yaşıyor", "Ankara'da çalışıyor", False),
    ("他每天骑车上班", "他天天骑自行车去公司", True),
    ("남동생이 의사다", "여동생이 의사다", False),
    ("猫を二匹飼っている", "家に猫が二匹いる", True),
    ("वह शाकाहारी है", "उसकी पत्नी शाकाहारी है", False),
    ("يعمل طبيبا في القاهرة", "مهنته الطب ويمارسها في القاهرة", True),
    ("likes tea", "mag keinen Tee", False),
)
"""What a model is asked first. One of 1.5 thousand million parameters told twelve of them right, and what the rules had
found it made worse: `docs/benchmarks.md`, "Reconciling"."""
# One in so many of them may be told wrong.
_SLIP: Final = 8

log = logging.getLogger("threefold")


def model_judge(
    model: ChatModel, seconds: float = SECONDS, known: Sequence[Known] = KNOWN
) -> Callable[[Sequence[Mapping[str, Any]]], Iterable[Mapping[str, Any]]]:
    """A judge that asks `model` once for all pairs, for `seconds` at most, after it was asked about `known` ones.

    A model that tells more than one in eight of the known pairs wrong is not believed. Notes are named by number, which
    a model cannot misspell; an answer on a pair that was not shown is left out. Where the model fails, or is not
    believed, `reconcile` goes by its rules and says so.
    """

    def told(pairs: Sequence[tuple[str, str]]) -> Iterable[Mapping[str, Any]]:
        lines = [{"pair": number, "first": one, "second": other} for number, (one, other) in enumerate(pairs, 1)]
        data, mark = framed(lines, "notes")
        asked = [Message("system", _TASK.format(rule=rule(mark))), Message("user", data)]
        reply = run(lambda: model.chat(asked, schema=_SCHEMA), seconds, "the model's judgement")
        return reply.data["pairs"] if isinstance(reply.data, dict) else []

    def judge(pairs: Sequence[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
        if not pairs:
            return []
        if known:
            _examine(known, told([(one, other) for one, other, _ in known]), model.name)
        return _named(pairs, told([(pair["first"]["memory"], pair["second"]["memory"]) for pair in pairs]), model.name)

    return judge


def _examine(known: Sequence[Known], given: Iterable[Mapping[str, Any]], model: str) -> None:
    """See whether a model told pairs right.

    Raises:
        Unavailable: too many were told wrong, or not at all.
    """
    said = {answer["pair"]: answer["relation"] == "same" for answer in given}
    right = sum(said.get(number) == same for number, (_, _, same) in enumerate(known, 1))
    if _SLIP * (len(known) - right) > len(known):
        raise Unavailable(
            f"model {model!r} told {right} of {len(known)} known pairs of notes right; give a larger one, or none"
        )


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
