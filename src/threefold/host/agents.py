"""Agents as values: what one can do, and what does it; and which of several a request goes to."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from threefold.errors import Conflict, InvalidInput, NotFound
from threefold.host.run import Run
from threefold.model.chat import Tool
from threefold.model.context import FINDER
from threefold.model.scope import check_id
from threefold.text.terms import index_terms, query_terms

# What an agent that is a function may give: its answer, or pieces of it as they come.
Answered = str | Awaitable[str] | Iterator[str] | AsyncIterator[str]
Executor = Callable[[Run], Answered]
# What the built-in agents are called, in the record too: what they said can be told apart by it.
ASSISTANT: Final = "assistant"
RESERVED: Final = (ASSISTANT, FINDER)
# The share of a goal's words that a description has counts so much beside what a capability is sure of.
_WORDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that an agent can do, and how sure it is of that, from 0 to 1."""

    id: str
    description: str = ""
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Act:
    """A tool with the function that does it: called with the arguments as keywords, plain or `async`."""

    tool: Tool
    call: Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent. With an `executor` it is whatever that does; without one the host's chat model speaks for it, under
    `instructions` and with `tools`.

    `capabilities` and `description` are what a request is matched with.
    """

    name: str
    description: str = ""
    capabilities: tuple[Capability, ...] = ()
    instructions: str = ""
    tools: tuple[Act, ...] = ()
    executor: Executor | None = None


class Agents:
    """The agents of a host, by name."""

    def __init__(self) -> None:
        self._agents: dict[str, Agent] = {}

    def register(self, agent: Agent | Executor, name: str | None = None) -> Agent:
        """Make an agent known; a function becomes one under its own `name`.

        Raises:
            InvalidInput: it is neither, malformed, or takes more or less than a run. Conflict: the name is taken, or
            that of a built-in agent.
        """
        if not isinstance(agent, Agent):
            if not callable(agent):
                raise InvalidInput(f"agent {repr(agent)[:100]} is no Agent and cannot be called")
            own = name or str(getattr(agent, "__name__", type(agent).__name__))
            agent = Agent(own, (getattr(agent, "__doc__", None) or "").strip(), executor=agent)
        check_id(agent.name, "agent name")
        _check_takes_one(agent)
        for capability in agent.capabilities:
            if not isinstance(capability.confidence, int | float) or not 0 <= capability.confidence <= 1:
                raise InvalidInput(f"confidence {capability.confidence!r} of {capability.id!r} must be from 0 to 1")
        if agent.name in RESERVED:
            raise Conflict(f"agent name {agent.name!r} is that of a built-in agent; give this one another name")
        if agent.name in self._agents:
            raise Conflict(f"an agent {agent.name!r} is registered already; give this one another name")
        self._agents[agent.name] = agent
        return agent

    def list(self) -> tuple[Agent, ...]:
        """The agents in order of registration."""
        return tuple(self._agents.values())

    def get(self, name: str) -> Agent:
        """One agent.

        Raises:
            NotFound: there is none of this name.
        """
        if name not in self._agents:
            there = ", ".join(self._agents) or "none"
            raise NotFound(f"agent {name!r} is not registered; there are: {there}")
        return self._agents[name]

    def choose(self, goal: str, capability: str | None = None) -> Agent | None:
        """Which agent a request goes to; None where there are none.

        One that has the `capability`, where one is asked for, the surest first. Else the one whose capabilities and
        description share most words with the goal, weighed by confidence; of equals the one registered first.

        Raises:
            NotFound: no agent has the capability.
        """
        able = list(self._agents.values())
        if capability is not None:
            able = [agent for agent in able if any(each.id == capability for each in agent.capabilities)]
            if not able:
                raise NotFound(f"capability {capability!r}: no agent has it")
            return max(able, key=lambda agent: max(c.confidence for c in agent.capabilities if c.id == capability))
        words = frozenset(query_terms(goal))
        return max(able, key=lambda agent: _fit(agent, words), default=None)


def _fit(agent: Agent, words: Collection[str]) -> float:
    """How well an agent fits words of a goal: the best of its capabilities, and a part of its description."""

    def share(text: str) -> float:
        return len(set(index_terms(text)) & set(words)) / max(len(words), 1)

    able = (share(f"{each.id} {each.description}") * each.confidence for each in agent.capabilities)
    return max(able, default=0.0) + _WORDS * share(f"{agent.name} {agent.description}")


def _check_takes_one(agent: Agent) -> None:
    if agent.executor is None:
        return
    try:
        inspect.signature(agent.executor).bind(None)
    except ValueError:  # nothing tells what it takes
        return
    except TypeError as error:
        raise InvalidInput(f"agent {agent.name!r} is called with one argument, the run: {error}") from None
