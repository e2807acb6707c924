"""Threads as operations of the record's service."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from threefold.services.calls import Caller, operation
from threefold.services.realms import Limit, Next, RealmService, after_of, next_of

Name = Annotated[str, "the thread's name, which is that of its conversation"]
Window = Annotated[int, Meta(ge=1, le=500, description="how many of the last messages come whole")]
Archived = Annotated[bool, "archived ones too"]


class Threads(TypedDict):
    """A page of threads; `next` is there where more may follow."""

    threads: list[dict[str, Any]]
    next: str | None


class ThreadOperations(RealmService):
    """Conversations with a window over their last messages and a summary of what is before it."""

    @operation()
    def threads(self, caller: Caller, limit: Limit = 20, cursor: Next = None, archived: Archived = False) -> Threads:
        """List threads, those last written to first."""
        found = self._of(caller).threads(limit, after_of(cursor), archived)
        return {"threads": [each.as_json() for each in found], "next": next_of(found, limit)}

    @operation()
    def thread(self, caller: Caller, name: Name, window: Window = 50) -> dict[str, Any]:
        """Get a thread as an agent is given it: its last messages, and a summary of all before them."""
        return self._of(caller).thread(name).context(window).as_json()

    @operation("write")
    def say(
        self,
        caller: Caller,
        name: Name,
        role: Annotated[Literal["user", "assistant"], "who says it"],
        text: Annotated[str, "what is said"],
        author: Annotated[str | None, "whose words they are, where several speak"] = None,
    ) -> dict[str, Any]:
        """Add a message to a thread, which is made when new."""
        return {"ref": self._of(caller).thread(name).add(role, text, author=author)}

    @operation("write", idempotent=True)
    def archive(
        self, caller: Caller, name: Name, archived: Annotated[bool, "or open it again"] = True
    ) -> dict[str, Any]:
        """Take a thread out of the list and refuse further messages; nothing is removed."""
        thread = self._of(caller).thread(name)
        return (thread.archive() if archived else thread.reopen()).as_json()
