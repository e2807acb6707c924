"""JSON that was asked for: found in what a model said, held against the schema, and asked for once more.

A schema may refer to parts of itself, never to an address: nothing is fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from threefold.errors import InvalidInput, Unavailable
from threefold.model.chat import Message, Reply

_FENCED: Final = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
# What some local models think stands before the answer.
_THOUGHT: Final = re.compile(r"<think>.*?</think>", re.DOTALL)
_LONGEST_WORD: Final = 300
# Of so many opening braces one begins the answer, or none does: each is read to its end.
_MOST_BEGINNINGS: Final = 256
Ask = Callable[[Sequence[Message]], Awaitable[Reply]]


async def fitting(ask: Ask, name: str, messages: Sequence[Message], schema: Mapping[str, Any]) -> Reply:
    """A reply whose `data` fits `schema`: `ask` is awaited once, and again where the first does not.

    A reply that calls tools is given as it is: the answer comes when they are done.

    Raises:
        InvalidInput: the schema is none, or the model will not answer. Unavailable: no answer fits.
    """
    check = checker(schema)
    reply = await ask(messages)
    found = _checked(reply, name, check)
    if isinstance(found, str):
        told = f"{found}. Answer again, with nothing but JSON that fits this schema: {json.dumps(schema)}"
        reply = await ask([*messages, Message("assistant", reply.text or "(nothing)"), Message("user", told)])
        found = _checked(reply, name, check)
    if isinstance(found, str):
        raise Unavailable(f"model {name!r} gave no JSON that fits the schema, asked twice: {found}")
    return found


def _checked(reply: Reply, name: str, check: Callable[[Any], str | None]) -> Reply | str:
    """The reply with its data, or what is wrong with it, in a sentence to the model."""
    if reply.calls:
        return reply
    if reply.finish == "refused":
        raise InvalidInput(f"model {name!r} will not answer: {reply.text[:_LONGEST_WORD] or 'it does not say why'}")
    wrong = ""
    for value in values_in(reply.text):
        found = check(value)
        if found is None:
            return replace(reply, data=value)
        wrong = wrong or f"Your JSON does not fit: {found}"
    if reply.finish == "length":
        raise Unavailable(f"model {name!r} came to its limit of tokens within the JSON; give more max_tokens")
    return wrong or "Your answer holds no JSON"


def checker(schema: Mapping[str, Any]) -> Callable[[Any], str | None]:
    """Says of a value what keeps it from fitting, or None.

    Raises:
        InvalidInput: the schema is not one of an object, or malformed.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise InvalidInput("schema must be the JSON Schema of an object: {'type': 'object', 'properties': …}")
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"schema is not JSON: {error}") from None
    return _compiled(text)


@lru_cache(64)
def _compiled(text: str) -> Callable[[Any], str | None]:
    try:
        import fastjsonschema
    except ImportError:
        raise Unavailable("checking JSON is not installed; pip install 'threefold[chat]'") from None
    try:
        fits = fastjsonschema.compile(json.loads(text), handlers=_Nowhere(), use_default=False)
    # The compiler meets what a malformed schema holds as Python does.
    except (ValueError, TypeError, AttributeError, LookupError, RecursionError, re.error) as error:
        raise InvalidInput(f"schema is no JSON Schema: {error}") from None

    def check(value: Any) -> str | None:
        try:
            fits(value)
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)[:_LONGEST_WORD]
        return None

    return check


class _Nowhere(dict[str, Callable[[str], Any]]):
    """Takes every kind of address, and fetches none."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> Callable[[str], Any]:
        def refuse(address: str) -> Any:
            raise ValueError(f"it refers to {address}, and only parts of itself may be referred to")

        return refuse


def values_in(text: str) -> Iterator[Any]:
    """The JSON values in what a model said, likeliest first: all of it, code blocks, then objects amid prose."""
    # Before the last end every thought has one; looking for an end behind it would take the square of the length.
    said, (before, close, rest) = text, text.rpartition("</think>")
    text = _THOUGHT.sub("", before + close) + rest
    for whole in (said, text, *_FENCED.findall(text)):
        try:
            yield _DECODER.decode(whole.strip())
        except (ValueError, RecursionError):
            continue
    place = text.find("{")
    for _ in range(_MOST_BEGINNINGS):
        if place < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            yield value
        place = text.find("{", end)


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(parse_constant=_no_number)
