"""Whether what an engine gave is a context: the types of all that is shown, recorded or counted; and the budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from threefold.errors import EngineFailed
from threefold.model.context import SECTIONS, ComputedContext, Dropped, Entry, Intent, Said, ThreadPart
from threefold.text.tokens import count_tokens


def checked(name: str, made: object, intent: Intent) -> ComputedContext:
    """The context that the engine `name` gave, with its tokens as they are.

    What goes to a model is either `text`, or `background` with the messages of the thread: both are counted.

    Raises:
        EngineFailed: it is none, or takes more than the budget.
    """
    if not isinstance(made, ComputedContext):
        raise EngineFailed(f"context engine {name!r} gave {type(made).__name__}, not a ComputedContext")
    wrong = next(_wrong(made), None)
    if wrong is not None:
        raise EngineFailed(f"context engine {name!r} gave a context with {wrong}")
    said = made.thread.messages if made.thread is not None else ()
    apart = count_tokens(made.background) + sum(count_tokens(each.text) for each in said)
    tokens = max(count_tokens(made.text), apart)
    if tokens > intent.budget:
        raise EngineFailed(f"context engine {name!r} gave {tokens} tokens where {intent.budget} were allowed")
    return replace(made, engine=name, estimated_tokens=tokens, budget=intent.budget)


def _wrong(made: ComputedContext) -> Iterator[str]:
    """What is not as it should be, in words."""
    yield from _texts(made, "text", "background")
    yield from _types(made, computed_at=datetime, user=Mapping, warnings=tuple, dropped=tuple)
    yield from (f"a warning that is {type(each).__name__}" for each in made.warnings if not _is_text(each))
    for name in ("memories", "knowledge", "documents", "turns", "extra"):
        yield from _types(made, **{name: tuple})
        for entry in getattr(made, name):
            yield from _entry(entry)
    for each in made.dropped:
        yield from _types_of(each, Dropped)
        yield from _texts(each, "ref", "why")
    if made.thread is not None:
        yield from _thread(made.thread)


def _entry(entry: Any) -> Iterator[str]:
    yield from _types_of(entry, Entry)
    yield from _texts(entry, "label", "ref", "text", "because")
    yield from _types(entry, about=Mapping, whole=bool)
    if entry.section not in SECTIONS:
        yield f"section {entry.section!r}"
    score = entry.score
    if score is not None and not (isinstance(score, int | float) and math.isfinite(score)):
        yield f"score {score!r}"


def _thread(thread: Any) -> Iterator[str]:
    yield from _types_of(thread, ThreadPart)
    yield from _texts(thread, "name", "summary", "status")
    yield from _types(thread, messages=tuple)
    for said in thread.messages:
        yield from _types_of(said, Said)
        yield from _texts(said, "text", "ref")
        if said.role not in ("user", "assistant"):
            yield f"role {said.role!r}"


def _types_of(value: object, kind: type) -> Iterator[str]:
    if not isinstance(value, kind):
        yield f"{type(value).__name__} where a {kind.__name__} belongs"


def _types(value: object, **kinds: type) -> Iterator[str]:
    for name, kind in kinds.items():
        if not isinstance(getattr(value, name), kind):
            yield f"{name} that is {type(getattr(value, name)).__name__}"


def _texts(value: object, *names: str) -> Iterator[str]:
    yield from (f"{name} that is no text of Unicode" for name in names if not _is_text(getattr(value, name)))


def _is_text(value: object) -> bool:
    """Whether it is text that has bytes: no lone surrogates."""
    return isinstance(value, str) and value == value.encode("utf-8", "replace").decode()
