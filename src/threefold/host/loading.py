"""Agents by name, `MODULE:NAME`, for servers that are started from the command line."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any

from threefold.errors import InvalidInput, ThreefoldError
from threefold.host.agents import Agent, Agents


def load_agents(names: Sequence[str]) -> tuple[Agent, ...]:
    """The agents that names stand for, each an `Agent`, a function, or a list of them; the working directory is looked
    into first.

    Raises:
        InvalidInput: a name is malformed, its module cannot be loaded, or what it names is no agent. Conflict: two
        agents have one name, or that of a built-in one.
    """
    here = os.getcwd()  # noqa: PTH109 - as the import system has it
    if names and here not in sys.path:
        sys.path.insert(0, here)
    agents = Agents()
    for name in names:
        value = _named(name)
        try:
            for each in _listed(value):
                agents.register(_checked(each))
        except ThreefoldError as error:
            raise type(error)(f"agent {name}: {error}") from None
    return agents.list()


def _named(name: str) -> Any:
    module, colon, path = name.partition(":")
    if not (colon and module and path):
        raise InvalidInput(f"agent {name!r} must be MODULE:NAME, such as helpers:guide")
    try:
        loaded = importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything as it is loaded
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise InvalidInput(f"agent {name}: module {module!r} cannot be loaded from here: {why}") from None
    try:
        return reduce(getattr, path.split("."), loaded)
    except AttributeError:
        raise InvalidInput(f"agent {name}: module {module!r} has no {path!r}") from None


def _listed(value: Any) -> list[Any]:
    if value in ([], ()):
        raise InvalidInput("it is an empty list; name an Agent, a function, or a list of them")
    return list(value) if isinstance(value, list | tuple) else [value]


def _checked(value: Any) -> Any:
    if isinstance(value, type):
        raise InvalidInput(f"{value.__name__} is a class; name an Agent, a function, or a list of them")
    return value
