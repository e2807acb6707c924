"""Requests, checked."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from threefold.errors import InvalidInput
from threefold.model.clean import storable
from threefold.model.context import Intent
from threefold.model.scope import check_id
from threefold.realms.conv.recorder import new_turn_id

BUDGET: Final = 4_000
"""Tokens of a context unless others are named: a few per cent of what current models take, room for some twenty
memories, five chunks and ten turns."""
MAX_BUDGET: Final = 1_000_000


def intent_of(
    goal: str,
    thread: str | None = None,
    budget: int = BUDGET,
    permissions: Collection[str] = (),
    policies: Collection[str] = (),
    id_: str | None = None,
) -> Intent:
    """A request as a value.

    Raises:
        InvalidInput: naming the argument that is off.
    """
    if not isinstance(goal, str):
        raise InvalidInput(f"goal must be text, not {type(goal).__name__}")
    if not isinstance(budget, int) or isinstance(budget, bool) or not 0 <= budget <= MAX_BUDGET:
        raise InvalidInput(f"budget {budget!r} must be a whole number of tokens from 0 to {MAX_BUDGET:,}")
    return Intent(
        id=new_turn_id() if id_ is None else check_id(id_, "intent id"),
        goal=storable(goal),
        budget=budget,
        thread=None if thread is None else check_id(thread, "thread"),
        permissions=_texts(permissions, "permissions"),
        policies=_texts(policies, "policies"),
    )


def _texts(values: Collection[str], name: str) -> tuple[str, ...]:
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise InvalidInput(f"{name} must be a list of texts")
    return tuple(values)
