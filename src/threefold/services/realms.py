"""The realms of Threefold as services see them: of a caller, and their plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, NamedTuple, Protocol, TypedDict

from msgspec import Meta

from threefold.errors import InvalidInput
from threefold.model.context import ComputedContext
from threefold.model.paging import Cursor
from threefold.model.ref import parse_ref
from threefold.model.resolved import Resolved, cut
from threefold.realms.cnv import Cnv
from threefold.realms.conv import Conv
from threefold.realms.conv.threads import Thread
from threefold.realms.conv.threads.values import ThreadEntry
from threefold.realms.doc import Doc
from threefold.realms.mem import Mem
from threefold.services.calls import Caller
from threefold.services.service import Ref, namespace_of

Limit = Annotated[int, Meta(ge=1, le=100, description="how many")]
Size = Annotated[int, Meta(ge=1, le=100_000, description="about how many characters of text at most")]
Query = Annotated[str, Meta(description="a question, or words, in any language")]
Reference = Annotated[str, Meta(description="a reference, as other calls give it")]
Next = Annotated[str | None, Meta(description="the `next` of the page before")]
Why = Annotated[str | None, Meta(description="a reason, which is kept")]
# Plain values of an object are cut where they are longer, in characters of JSON text.
SIZE: Final = 8_000


class Realms(NamedTuple):
    """What one caller can do with each realm; boards show what the caller may see, whatever is pinned to them.

    `context` takes a goal, a thread, a budget and an engine; `threads` a limit, a cursor, whether archived ones too.
    """

    conv: Conv
    mem: Mem
    doc: Doc
    cnv: Cnv
    context: Callable[[str, str | None, int, str | None], ComputedContext]
    thread: Callable[[str], Thread]
    threads: Callable[[int, Cursor | None, bool], Sequence[ThreadEntry]]


Of = Callable[[Caller], Realms]


class RealmService:
    """What the services of the realms share: they work as the scope that calls."""

    def __init__(self, of: Of) -> None:
        self._of = of

    def _conv(self, caller: Caller) -> Conv:
        return self._of(caller).conv

    def _mem(self, caller: Caller) -> Mem:
        return self._of(caller).mem

    def _cnv(self, caller: Caller) -> Cnv:
        return self._of(caller).cnv

    def _doc(self, caller: Caller) -> Doc:
        return self._of(caller).doc


class Paged(Protocol):
    """An entry of a list that comes in pages."""

    @property
    def cursor(self) -> Cursor:
        """Where a page that ends with it ended."""
        ...


class Object(TypedDict):
    """An object: its plain values; `cut` says whether texts in it were shortened."""

    ref: str
    kind: str
    value: Any
    cut: bool


def object_of(found: Resolved, size: int) -> Object:
    """A resolved object as plain values with texts of at most so many characters each."""
    value, was_cut = _bounded(found.value, size)
    return {"ref": found.ref, "kind": found.kind, "value": value, "cut": was_cut}


def _bounded(value: Any, size: int) -> tuple[Any, bool]:
    if isinstance(value, str):
        return cut(value, size), len(value) > size
    if isinstance(value, dict):
        made = {key: _bounded(each, size) for key, each in value.items()}
        return {key: each for key, (each, _) in made.items()}, any(was for _, was in made.values())
    if isinstance(value, list):
        listed = [_bounded(each, size) for each in value]
        return [each for each, _ in listed], any(was for _, was in listed)
    return value, False


def owned(ref: str, namespace: str) -> Ref:
    """A reference into a namespace.

    Raises:
        InvalidInput: it is malformed, or names something of another namespace.
    """
    parsed = parse_ref(ref)
    if namespace_of(parsed) != namespace:
        raise InvalidInput(f"reference {ref!r} is {namespace_of(parsed)}'s; give one that begins with {namespace}:")
    return parsed


def next_of(page: Sequence[Paged], limit: int) -> str | None:
    """The cursor of the page behind this one; None where this one is the last."""
    return page[-1].cursor.token() if len(page) == limit else None


def after_of(cursor: str | None) -> Cursor | None:
    """Where a page begins.

    Raises:
        InvalidInput: the cursor is none.
    """
    return None if cursor is None else Cursor.parse(cursor)
