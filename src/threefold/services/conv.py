"""The record as a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict, cast

from threefold.model.ref import ObjectRef
from threefold.model.resolved import Resolved, Shown
from threefold.model.times import iso
from threefold.realms.conv.refs import turn_ref
from threefold.services.calls import Caller, operation
from threefold.services.realms import (
    SIZE,
    Limit,
    Next,
    Object,
    Query,
    Reference,
    Size,
    after_of,
    next_of,
    object_of,
    owned,
)
from threefold.services.service import Ref, Service
from threefold.services.threads import ThreadOperations

Role = Literal["user", "assistant", "summary", "note", "attachment"]
Roles = Annotated[list[Role] | None, "only what these said"]
Beside = Annotated[list[Role] | None, "roles whose texts of the matched turn come along"]
Name = Annotated[str | None, "only this conversation"]
Since = Annotated[str | None, "from when on, such as 2026-05-01 or 2026-05-01T09:00:00Z"]
Until = Annotated[str | None, "until when, exclusive"]


class Snippet(TypedDict):
    """A text of the matched turn or of one near it."""

    ref: str
    role: str
    text: str
    at: str
    distance: int


class Hit(TypedDict):
    """A turn that was found, by what matched best in it."""

    ref: str
    conversation: str
    turn: str
    role: str
    author: str | None
    agent: str | None
    text: str
    matched: list[str]
    at: str
    score: float
    roles: list[str]
    snippets: list[Snippet]
    also: NotRequired[list[dict[str, Any]]]
    explain: NotRequired[dict[str, Any]]


class Hits(TypedDict):
    """What a search found; `mode` says what ran, `warnings` what could not."""

    hits: list[Hit]
    mode: str
    warnings: list[str]
    corrections: dict[str, list[str]]


class Entry(TypedDict):
    """A turn in the catalog."""

    ref: str
    conversation: str
    turn: str
    ordinal: int
    started: str
    ended: str
    status: str
    about: str
    agent: str | None


class Turns(TypedDict):
    """A page of the catalog; `next` is there where more may follow."""

    turns: list[Entry]
    next: str | None


class Listed(TypedDict):
    """A conversation in a list."""

    ref: str
    id: str
    title: str
    started: str
    last_activity: str
    turns: int


class Conversations(TypedDict):
    """A page of conversations; `next` is there where more may follow."""

    conversations: list[Listed]
    next: str | None


class ConvService(ThreadOperations, Service):
    """What happened, when, in what context."""

    namespace = "conv"
    line = "The record of conversations: what was said and done, when, word for word"
    about = (
        "Every turn of every conversation, complete and never edited: messages, attachments, steps, files, sources. "
        "Search by what was said; list by time or ordinal; get what a reference names. Nothing is written here but "
        "feedback: the host records turns."
    )
    kinds: ClassVar[Mapping[str, str]] = {
        "conversation": "a whole conversation, conv:conversation:<id>",
        "turn": "a turn, conv:ar:conv_<conversation>.turn_<turn>.turn.log",
        "message": "what was said, conv:ar:…",
        "file": "bytes, conv:fi:…",
        "step": "a tool's call or result, conv:tc:…",
    }

    def resolve(self, caller: Caller, ref: Ref) -> Resolved:
        """See `Service.resolve`."""
        return self._conv(caller).resolve(ref)

    def show(self, caller: Caller, refs: Sequence[Ref], size: int) -> Mapping[str, Shown]:
        """See `Service.show`."""
        return self._conv(caller).show(refs, size)

    @operation()
    def search(
        self,
        caller: Caller,
        query: Query,
        roles: Roles = None,
        conversation: Name = None,
        since: Since = None,
        until: Until = None,
        limit: Limit = 5,
        snippets: Beside = None,
        neighbours: Annotated[int, "of how many turns before and after as well"] = 0,
        group: Annotated[Literal["turn", "conversation"], "one hit for each"] = "turn",
        explain: Annotated[bool, "show how each score came about"] = False,
        size: Size = 300,
    ) -> Hits:
        """Find earlier turns by what was said in them, the best first.

        By meaning, words and spelling at once; times that the question names, such as "last week", count. Each hit
        has a reference that `get` takes.
        """
        found = self._conv(caller).search(
            query, roles, conversation, since=since, until=until, limit=limit, snippets=snippets or (),
            neighbours=neighbours, group=group, explain=explain, size=size,
        )  # fmt: skip
        corrections = {word: [each for each, _ in said] for word, said in (found.corrections or {}).items()}
        hits = [cast(Hit, hit.as_json()) for hit in found]
        return {"hits": hits, "mode": found.mode, "warnings": list(found.warnings), "corrections": corrections}

    @operation()
    def catalog(
        self,
        caller: Caller,
        conversation: Name = None,
        ordinal: Annotated[int | None, "only the n-th turn of the conversation: 1 first, -1 last"] = None,
        since: Since = None,
        until: Until = None,
        order: Annotated[Literal["oldest", "newest"], "which come first"] = "oldest",
        limit: Limit = 20,
        cursor: Next = None,
    ) -> Turns:
        """List turns in order of time, with what each was about.

        By conversation, by ordinal ("the second turn", "the last one"), or by a window of time.
        """
        found = self._conv(caller).turns(conversation, ordinal, since, until, order, limit, after_of(cursor))
        turns: list[Entry] = [
            {
                "ref": turn_ref(each.conversation, each.turn), "conversation": each.conversation, "turn": each.turn,
                "ordinal": each.ordinal, "started": iso(each.started), "ended": iso(each.ended),
                "status": each.status, "about": each.about, "agent": each.agent,
            }
            for each in found
        ]  # fmt: skip
        return {"turns": turns, "next": next_of(found, limit)}

    @operation()
    def list(self, caller: Caller, limit: Limit = 20, cursor: Next = None) -> Conversations:
        """List conversations, the last active first."""
        found = self._conv(caller).conversations(limit, after_of(cursor))
        conversations: list[Listed] = [
            {
                "ref": str(ObjectRef("conv", each.id, "conversation")), "id": each.id, "title": each.title,
                "started": iso(each.started), "last_activity": iso(each.last_activity), "turns": each.turns,
            }
            for each in found
        ]  # fmt: skip
        return {"conversations": conversations, "next": next_of(found, limit)}

    @operation()
    def get(self, caller: Caller, ref: Reference, size: Size = SIZE) -> Object:
        """Get what a reference into the record names, whole.

        A turn with its messages, files, steps and sources; a message; a step's result; a conversation. Longer texts
        are cut.
        """
        return object_of(self._conv(caller).resolve(owned(ref, "conv")), size)

    @operation()
    def editions(self, caller: Caller, ref: Reference) -> dict[str, Any]:
        """Get the references of all editions of a file in its conversation, the oldest first."""
        conv = self._conv(caller)
        return {"refs": [*conv.editions(conv.parse(ref))]}

    @operation("write")
    def feedback(
        self,
        caller: Caller,
        ref: Reference,
        reaction: Annotated[Literal["ok", "not_ok", "neutral"] | None, "none takes it back"] = None,
        text: Annotated[str | None, "what is said with it"] = None,
    ) -> dict[str, Any]:
        """Put a reaction on a turn, or take it back."""
        machine = caller.scope.agent is not None
        self._conv(caller).feedback(ref, reaction, text, "machine" if machine else "user")
        return {"ref": ref, "reaction": reaction}

    @operation("write", destructive=True, idempotent=True)
    def delete(
        self,
        caller: Caller,
        conversation: Annotated[str, "the conversation to remove"],
        turn: Annotated[str | None, "only this turn of it"] = None,
    ) -> dict[str, Any]:
        """Remove a conversation, or one of its turns, from every file of the store, for good.

        The receipt lists what went.
        """
        return self._conv(caller).forget(conversation, turn).as_json()
