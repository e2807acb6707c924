"""What is said to a chat model and what it answers, whoever made the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]
# Why a model stopped: it was done, wants tools called, came to the limit of tokens, or would not go on.
Finish = Literal["stop", "tools", "length", "refused"]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool that the model wants called; `id` ties the result to it."""

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `calls` are those of an assistant; a message of the role `tool` is the result of the call `call`."""

    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    call: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """What a model may call: `parameters` is the JSON Schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that went in and came out, as the server counted them; 0 where it does not say."""

    input: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. `data` is the JSON value where a schema was asked for, and fits it."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    finish: Finish = "stop"
    usage: Usage = Usage()
    data: Any = None
