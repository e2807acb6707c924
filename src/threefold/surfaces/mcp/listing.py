"""What namespaces list, and how references are written as URIs: for resources and for completion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote

from threefold.errors import InvalidInput
from threefold.model.ref import ConvRef, ObjectRef, escape, parse_ref
from threefold.services import Operation
from threefold.surfaces.mcp.desk import At

# Whoever types an id is shown those of the last so many.
_LOOKED: Final = 500
_PAGE: Final = 100
_SHARED: Final[Mapping[str, Any]] = {"shared": True}


class Listed(NamedTuple):
    """A page of references; `next` is there where more may follow."""

    refs: tuple[str, ...]
    next: str | None


class Template(NamedTuple):
    """How references of a kind are written, and what they name."""

    uri: str
    name: str
    about: str
    namespace: str


# What is written otherwise than `<namespace>:<kind>:<id>`.
_OWN: Final[Mapping[str, Sequence[tuple[str, str, str]]]] = {
    "conv": (
        (
            "conv:conversation:{conversation}",
            "conversation",
            "a conversation: what its turns were about",
        ),
        ("conv:ar:conv_{conversation}.turn_{turn}.turn.log", "turn", "a turn: what was said in it"),
        ("conv:fi:conv_{conversation}.turn_{turn}.{+path}", "file", "a file of a turn: its bytes"),
    ),
    "mem": (("mem:record:{id}", "memory", "a memory"),),
    "cnv": (("cnv:{board}", "board", "a board, as it stands now"),),
    "doc": (("doc:{id}", "document", "a document: its text"),),
}


def templates(at: At) -> tuple[Template, ...]:
    """The templates of every namespace whose objects the caller may read."""
    found: list[Template] = []
    for namespace, _ in at.services.introductions():
        if at.caller.may(f"{namespace}:read"):
            kinds = at.services.about(namespace)["kinds"]
            each = _OWN.get(namespace) or [(f"{namespace}:{kind}:{{id}}", kind, kinds[kind]) for kind in kinds]
            found += [Template(uri, name, about, namespace) for uri, name, about in each]
    return tuple(found)


def lists(at: At, memories: str = "list") -> Mapping[str, Operation]:
    """By namespace what lists its objects; of memories the operation that is named."""
    found = {}
    for each in at.services.operations():
        wanted = memories if each.namespace == "mem" else "list"
        if each.name == wanted and not each.takes.get("required"):
            found[each.namespace] = each
    return found


def listed(at: At, operation: Operation, limit: int, cursor: str | None = None) -> Listed:
    """A page of what an operation lists."""
    takes = operation.takes["properties"]
    most = takes.get("limit", {}).get("maximum", limit)
    asked = {"limit": min(limit, most), "cursor": cursor, **_SHARED}
    value = operation(at.caller, {name: each for name, each in asked.items() if name in takes and each is not None})
    entries = next((each for each in value.values() if isinstance(each, list)), []) if isinstance(value, dict) else []
    refs = [each.get("ref") for each in entries if isinstance(each, dict)]
    follows = value.get("next") if isinstance(value, dict) and "cursor" in takes else None
    return Listed(tuple(ref for ref in refs if isinstance(ref, str)), follows if isinstance(follows, str) else None)


def last(at: At, namespace: str) -> Iterator[str]:
    """References of a namespace, the last ones, as many as are looked through for a completion."""
    operation = lists(at).get(namespace)
    cursor, seen = None, 0
    while operation is not None and seen < _LOOKED:
        page = listed(at, operation, _PAGE, cursor)
        yield from page.refs
        seen, cursor = seen + _PAGE, page.next
        if cursor is None:
            return


def uri_of(ref: str) -> str:
    """A reference as a URI: what is not ASCII is escaped, which the grammar of references understands too."""
    return quote(ref, safe="".join(map(chr, range(0x21, 0x7F))))


def ref_of(uri: str) -> ConvRef | ObjectRef:
    """The reference that a URI is; a client that fills in a template leaves a full stop of an id as it is.

    Raises:
        InvalidInput: it is none.
    """
    try:
        return parse_ref(uri)
    except InvalidInput:
        head, _, id_ = uri.rpartition(":")
        if head.count(":") > 1 or not id_:
            raise
        return parse_ref(f"{head}:{escape(unquote(id_))}")
