"""Operations under the addresses of what they are about: one table. A call of one is a call of the operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Alias(NamedTuple):
    """A method at a path, and the operation that it is.

    What `{…}` in the path names is the argument of this name, or of the one that `arguments` has for it.
    """

    method: str
    path: str
    namespace: str
    operation: str
    arguments: Mapping[str, str] = {}

    def fixed(self, named: Mapping[str, str]) -> dict[str, str]:
        """The arguments that a path gives."""
        return {self.arguments.get(name, name): value for name, value in named.items()}


ALIASES: Final = (
    Alias("GET", "/v1/mem/records", "mem", "list"),
    Alias("POST", "/v1/mem/records", "mem", "upsert"),
    Alias("GET", "/v1/mem/records/{id}", "mem", "get"),
    Alias("PUT", "/v1/mem/records/{id}", "mem", "upsert"),
    Alias("PATCH", "/v1/mem/records/{id}", "mem", "upsert"),
    Alias("DELETE", "/v1/mem/records/{id}", "mem", "delete"),
    Alias("GET", "/v1/mem/records/{id}/history", "mem", "history"),
    Alias("GET", "/v1/cnv/boards", "cnv", "list"),
    Alias("POST", "/v1/cnv/boards", "cnv", "upsert"),
    Alias("GET", "/v1/cnv/boards/{board}", "cnv", "get"),
    Alias("PUT", "/v1/cnv/boards/{board}", "cnv", "upsert"),
    Alias("PATCH", "/v1/cnv/boards/{board}", "cnv", "upsert"),
    Alias("DELETE", "/v1/cnv/boards/{board}", "cnv", "delete"),
    Alias("GET", "/v1/cnv/boards/{board}/history", "cnv", "history"),
    Alias("POST", "/v1/cnv/boards/{board}/cards", "cnv", "pin"),
    Alias("GET", "/v1/doc/documents", "doc", "list"),
    Alias("POST", "/v1/doc/documents", "doc", "upsert"),
    Alias("GET", "/v1/doc/documents/{id}", "doc", "get"),
    Alias("PUT", "/v1/doc/documents/{id}", "doc", "upsert", {"id": "source"}),
    Alias("DELETE", "/v1/doc/documents/{id}", "doc", "delete"),
    Alias("GET", "/v1/conv/turns", "conv", "catalog"),
    Alias("GET", "/v1/conv/conversations", "conv", "list"),
    Alias("GET", "/v1/conv/conversations/{conversation}/turns", "conv", "catalog"),
    Alias("DELETE", "/v1/conv/conversations/{conversation}", "conv", "delete"),
)
