"""What concerns every realm at once: the context of a request, one search, one way to get what a reference names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple, TypedDict

from msgspec import Meta

from threefold.errors import Forbidden, InvalidInput
from threefold.model.context import ComputedContext, ThreadPart
from threefold.model.resolved import cut
from threefold.model.times import iso
from threefold.services.bound import Services
from threefold.services.calls import ALL, Caller, operation
from threefold.services.realms import SIZE, Of, Query, RealmService, Reference, Size
from threefold.services.registry import Registry
from threefold.services.service import Service
from threefold.text.tokens import count_tokens

Budget = Annotated[int, Meta(ge=1, le=200_000, description="tokens at most")]
Refs = Annotated[list[str], Meta(min_length=1, max_length=100, description="references of any namespace")]
_TITLE: Final = 100
_REALMS: Final = ("conv", "mem", "doc", "cnv")


class Result(TypedDict):
    """Something that was found: `id` and `url` are its reference."""

    id: str
    title: str
    text: str
    url: str


class Results(TypedDict):
    """What was found, best first."""

    results: list[Result]


class Fetched(TypedDict):
    """What a reference names, as text."""

    id: str
    title: str
    text: str
    url: str
    metadata: dict[str, Any]


class Me(TypedDict):
    """As whom one is here; `grants` are null where all were given."""

    user: str
    tenant: str
    app: str | None
    agent: str | None
    grants: list[str] | None


class _Hit(NamedTuple):
    score: float
    result: Result


class Everything(RealmService, Service):
    """What concerns every realm at once."""

    namespace = ALL
    line = "Everything at once: the context of a request, one search, one way to what a reference names"
    about = (
        "`context` is what an agent should see for a request, computed under a budget. `search` looks into the record, "
        "memory and documents; `fetch` gives what a result names as text; `describe` tells what several references "
        "name, `whoami` as whom one is here. Each realm's own service does more."
    )

    def __init__(self, of: Of, registry: Registry) -> None:
        super().__init__(of)
        self._registry = registry

    @operation()
    def context(
        self,
        caller: Caller,
        goal: Annotated[str, "what is to be done, or the question"],
        thread: Annotated[str | None, "the conversation that the request belongs to"] = None,
        budget: Budget = 4_000,
        engine: Annotated[str | None, "another context engine than the default one"] = None,
        explain: Annotated[bool, "show what was taken and why, and what was left out and why"] = False,
    ) -> dict[str, Any]:
        """Compute what an agent should see for a request: memory, the thread, boards, documents, earlier turns.

        One text under a budget of tokens, every piece quoted with a label, and the reference behind each label.
        """
        for realm in _REALMS:
            caller.need(f"{realm}:read")
        found = self._of(caller).context(goal, thread, budget, engine)
        return {
            "text": found.text,
            "refs": dict(found.refs),
            "estimated_tokens": found.estimated_tokens,
            "budget": found.budget,
            "engine": found.engine,
            "dropped": len(found.dropped),
            "warnings": list(found.warnings),
            **(explained(found) if explain else {}),
        }

    @operation()
    def search(
        self, caller: Caller, query: Query, limit: Annotated[int, Meta(ge=1, le=50, description="how many")] = 10
    ) -> Results:
        """Search the record, memory and documents at once, the best first; `fetch` gives each whole."""
        found = [list(find(caller, query, limit)) for find in (self._turns, self._memories, self._chunks)]
        # Scores of different collections do not compare: the best of each first, then the second ones.
        order = [(rank, -hit.score, hit.result["id"], hit) for hits in found for rank, hit in enumerate(hits)]
        return {"results": [hit.result for *_, hit in sorted(order)[:limit]]}

    @operation()
    def fetch(self, caller: Caller, id: Reference, size: Size = SIZE) -> Fetched:
        """Get what a reference names as text: a turn, a message, a memory, a passage, a board, an app's object."""
        objects = Services(self._registry, caller).objects
        found = objects.resolve(id)
        shown = objects.describe([found.ref], size)[found.ref]
        metadata = {"kind": found.kind, **shown.more, **({} if shown.at is None else {"at": shown.at.isoformat()})}
        return {"id": found.ref, "title": shown.title, "text": shown.text, "url": found.ref, "metadata": metadata}

    @operation()
    def describe(self, caller: Caller, refs: Refs, size: Size = 300) -> dict[str, Any]:
        """Get what references name, now, several at once; what cannot be seen says why."""
        found = Services(self._registry, caller).objects.describe(refs, size)
        return {"objects": [each.as_json() for each in found.values()]}

    @operation(free=True)
    def whoami(self, caller: Caller) -> Me:
        """Tell as whom one is here: user, tenant, app, agent, and what was granted; null grants are all of them."""
        scope, grants = caller.scope, None if caller.grants is None else sorted(caller.grants)
        return {"user": scope.user, "tenant": scope.tenant, "app": scope.app, "agent": scope.agent, "grants": grants}

    @operation("write", destructive=True, idempotent=True)
    def forget(
        self, caller: Caller, confirm: Annotated[str, "the user's own name, as `whoami` gives it"]
    ) -> dict[str, Any]:
        """Forget everything of the user, for good: conversations, memories, documents, boards, what waits.

        From every file of the store. It is the person's alone, and needs the write grants of all realms. Of a caller of
        one app it is what that app recorded. The receipt lists what went.
        """
        for realm in _REALMS:
            caller.need(f"{realm}:write")
        if caller.scope.agent is not None:
            raise Forbidden("forgetting everything is the person's: use a handle or a token without agent")
        if confirm != caller.scope.user:
            own = caller.scope.user
            raise InvalidInput(f"confirm {confirm[:100]!r} must be the user's own name, {own!r}; nothing went")
        return self._conv(caller).forget().as_json()

    def _turns(self, caller: Caller, query: str, limit: int) -> Iterator[_Hit]:
        if caller.may("conv:read"):
            for hit in self._conv(caller).search(query, limit=limit):
                yield _hit(hit.score, hit.ref, f"{hit.role}, {hit.at.date().isoformat()}: {hit.text}", hit.text)

    def _memories(self, caller: Caller, query: str, limit: int) -> Iterator[_Hit]:
        if caller.may("mem:read"):
            for each in self._mem(caller).recall(query, limit=limit):
                yield _hit(each.score, each.ref, each.record.memory, each.record.memory)

    def _chunks(self, caller: Caller, query: str, limit: int) -> Iterator[_Hit]:
        if caller.may("doc:read"):
            for chunk in self._doc(caller).retrieve(query, limit):
                above = " › ".join((chunk.title or chunk.source, *chunk.headings))
                yield _hit(chunk.score, chunk.ref, above, chunk.text)


def explained(found: ComputedContext) -> dict[str, Any]:
    """What a context is made of, each with the tokens of its text, and what was left out, as plain values."""
    entries = [
        {"label": each.label, "section": each.section, "ref": each.ref, "text": each.text, "because": each.because,
         "score": each.score, "whole": each.whole, "tokens": count_tokens(each.text)}
        for each in found.entries
    ]  # fmt: skip
    left_out = [
        {"section": each.section, "ref": each.ref, "why": each.why, "tokens": each.tokens, "score": each.score}
        for each in found.dropped
    ]
    thread = None if found.thread is None else _thread(found.thread)
    return {"entries": entries, "left_out": left_out, "thread": thread}


def _thread(part: ThreadPart) -> dict[str, Any]:
    messages = [
        {
            "label": said.label,
            "role": said.role,
            "text": said.text,
            "at": iso(said.at),
            "ref": said.ref,
            "tokens": count_tokens(said.text),
        }
        for said in part.messages
    ]
    summary = {"summary": part.summary, "summary_tokens": count_tokens(part.summary)}
    return {"name": part.name, "messages": messages, "left_out": part.left_out, **summary}


def _hit(score: float, ref: str, title: str, text: str) -> _Hit:
    return _Hit(score, {"id": ref, "title": cut(" ".join(title.split()), _TITLE), "text": cut(text, 300), "url": ref})
