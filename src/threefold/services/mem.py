"""Curated memory as a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from msgspec import Meta

from threefold.errors import Conflict
from threefold.model.memory import Layer, Memory, Status, Visibility
from threefold.model.ref import ObjectRef
from threefold.model.resolved import Resolved, Shown
from threefold.realms.mem import Mem
from threefold.realms.mem.policy import Rule
from threefold.services.calls import Caller, operation
from threefold.services.realms import Limit, Next, Query, RealmService, Why, after_of, next_of
from threefold.services.service import Ref, Service

Id = Annotated[str, "the memory's id, such as mem_…, or its reference"]
Note = Annotated[str, "the compact note: what is so, in a sentence"]
Context = Annotated[str, "why it is there: where it was said, an example"]
Kind = Annotated[str, "such as fact, preference, decision, constraint"]
In = Annotated[Layer | None, "how long it lives, and for whom"]
Tags = Annotated[list[str] | None, "tags; of a search all of them must be there"]
Layers = Annotated[list[Layer] | None, "only these layers"]
Kinds = Annotated[list[str] | None, "only these kinds"]
Owner = Annotated[str | None, "whom or what it is about, where that is not the user"]
Statuses = Annotated[list[Status] | None, "in these states; what is held unless given"]
Source = Annotated[str | None, "a reference or name of what it came from"]
Share = Annotated[float, Meta(ge=0, le=1)]
At = Annotated[int | None, "only if it is at this revision; else it is refused"]


class Found(TypedDict):
    """Memories that answer, best first."""

    memories: list[dict[str, Any]]
    mode: str
    warnings: list[str]


class Page(TypedDict):
    """Memories in a list; `next` is there where more may follow."""

    memories: list[dict[str, Any]]
    next: str | None


class MemService(RealmService, Service):
    """What is true, curated by a person and proposed by agents."""

    namespace = "mem"
    line = "Curated memory: small notes of what is true about the user, the team and the system"
    about = (
        "Each note has why it is there, its evidence and scores, and a history. An agent proposes; a proposal is held "
        "once the person confirms it. The hotset is what every turn begins with. Layers: working, session and longterm "
        "are the user's, organizational the tenant's, global everyone's."
    )
    kinds: ClassVar[Mapping[str, str]] = {"record": "a memory, mem:record:<id>"}

    def resolve(self, caller: Caller, ref: Ref) -> Resolved:
        """See `Service.resolve`."""
        return self._mem(caller).resolve(_object(ref))

    def show(self, caller: Caller, refs: Sequence[Ref], size: int) -> Mapping[str, Shown]:
        """See `Service.show`."""
        return self._mem(caller).show([_object(ref) for ref in refs], size)

    @operation()
    def search(
        self,
        caller: Caller,
        query: Query,
        layers: Layers = None,
        tags: Tags = None,
        kinds: Kinds = None,
        owner: Owner = None,
        min_relevance: Share = 0.0,
        min_confidence: Share = 0.0,
        limit: Limit = 10,
        mode: Annotated[Literal["hybrid", "fulltext", "semantic"], "by words and meaning, or one of them"] = "hybrid",
        statuses: Statuses = None,
        explain: Annotated[bool, "show how each score came about"] = False,
    ) -> Found:
        """Find memories that answer a question, the best first; those of the tenant and of everyone too."""
        found = self._mem(caller).recall(
            query, layers, tags, kinds, owner, min_relevance, min_confidence, limit, mode, statuses, explain
        )
        memories = [each.as_json() for each in found]
        return {"memories": memories, "mode": found.mode, "warnings": list(found.warnings)}

    @operation()
    def list(
        self,
        caller: Caller,
        layers: Layers = None,
        tags: Tags = None,
        kinds: Kinds = None,
        owner: Owner = None,
        statuses: Statuses = None,
        limit: Limit = 20,
        cursor: Next = None,
    ) -> Page:
        """List memories, those last touched first."""
        found = self._mem(caller).list(layers, tags, kinds, owner, statuses, limit, after_of(cursor))
        return {"memories": [told(each) for each in found], "next": next_of(found, limit)}

    @operation()
    def proposals(self, caller: Caller, limit: Limit = 20, cursor: Next = None) -> Page:
        """List what waits for the person's word, newest first."""
        found = self._mem(caller).proposals(limit, after_of(cursor))
        return {"memories": [told(each) for each in found], "next": next_of(found, limit)}

    @operation()
    def get(
        self,
        caller: Caller,
        id: Id,
        as_of: Annotated[str | None, "as it stood then"] = None,
    ) -> dict[str, Any]:
        """Get one memory with its evidence and scores."""
        mem = self._mem(caller)
        record = mem.get(id_of(id), as_of)
        return {**record.as_json(), "ref": record.ref, "scores": mem.scores(record.id).as_json()}

    @operation()
    def history(self, caller: Caller, id: Id) -> dict[str, Any]:
        """Get what became of a memory: who changed it, when, why, and how it stood afterwards."""
        return {"revisions": [each.as_json() for each in self._mem(caller).history(id_of(id))]}

    @operation()
    def hotset(
        self,
        caller: Caller,
        goal: Annotated[str | None, "what is to be done"] = None,
        limit: Annotated[int, Meta(ge=1, le=8)] = 8,
    ) -> dict[str, Any]:
        """Get the memories that every turn begins with, at most eight, and how each got in."""
        found = self._mem(caller).hotset(goal, limit)
        return {"memories": [{**told(each.record), "because": dict(each.because)} for each in found]}

    @operation("propose")
    def propose(
        self,
        caller: Caller,
        memory: Note,
        context: Context = "",
        kind: Kind = "fact",
        layer: In = None,
        tags: Tags = None,
        owner: Owner = None,
        importance: Share | None = None,
        source: Source = None,
    ) -> dict[str, Any]:
        """Suggest a memory, which is not held before the person confirms it.

        Say what is so in a sentence, and in `context` where it was said.
        """
        made = self._mem(caller).propose(memory, context, kind, layer, tags or (), owner, importance, source=source)
        return told(made)

    @operation("write")
    def upsert(
        self,
        caller: Caller,
        memory: Annotated[str | None, "the compact note; needed for a new one"] = None,
        id: Annotated[str | None, "the memory to change; a new one without"] = None,
        context: Annotated[str | None, "why it is there"] = None,
        kind: Annotated[str | None, "such as fact, preference, decision"] = None,
        layer: In = None,
        tags: Tags = None,
        owner: Owner = None,
        importance: Share | None = None,
        visibility: Annotated[Visibility | None, "who sees it"] = None,
        pinned: Annotated[bool, "into the hotset (of a new one)"] = False,
        source: Source = None,
        revision: At = None,
        why: Why = None,
    ) -> dict[str, Any]:
        """Keep a memory, or change one; the same content again confirms the one that is there."""
        given = {"memory": memory, "context": context, "kind": kind, "layer": layer, "tags": tags, "owner": owner,
                 "importance": importance, "visibility": visibility}  # fmt: skip
        said: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        if id is not None:
            return told(self._mem(caller).update(id_of(id), revision=revision, why=why, **said))
        return told(self._mem(caller).remember(said.pop("memory", ""), pinned=pinned, source=source, **said))

    @operation("write", idempotent=True)
    def confirm(self, caller: Caller, id: Id, why: Why = None) -> dict[str, Any]:
        """Say that a memory is so: a proposal is held from now on, a held one more firmly."""
        return self._changed(caller, id, lambda mem, known: mem.confirm(known, why))

    @operation("write", idempotent=True)
    def reject(self, caller: Caller, id: Id, why: Why = None) -> dict[str, Any]:
        """Refuse a proposal; it is not proposed again."""
        return self._changed(caller, id, lambda mem, known: mem.reject(known, why))

    @operation("write")
    def contradict(self, caller: Caller, id: Id, why: Why = None, source: Source = None) -> dict[str, Any]:
        """Say that something speaks against a memory: it is held less firmly."""
        return self._changed(caller, id, lambda mem, known: mem.contradict(known, why, source))

    @operation("write", idempotent=True)
    def pin(
        self,
        caller: Caller,
        id: Id,
        pinned: Annotated[bool, "or no more"] = True,
    ) -> dict[str, Any]:
        """Put a memory into the hotset whatever its salience is, or take it out."""
        return self._changed(caller, id, lambda mem, known: mem.pin(known, pinned))

    @operation("write", idempotent=True)
    def retire(self, caller: Caller, id: Id, why: Why = None) -> dict[str, Any]:
        """Hold a memory no more, and keep it with its history."""
        return self._changed(caller, id, lambda mem, known: mem.retire(known, why))

    @operation("write")
    def undo(self, caller: Caller, id: Id, why: Why = None) -> dict[str, Any]:
        """Take the last change of a memory back, which is a change too."""
        return self._changed(caller, id, lambda mem, known: mem.undo(known, why))

    @operation("write")
    def reconcile(
        self,
        caller: Caller,
        apply: Annotated[bool, "do it, in one transaction"] = False,
        id: Annotated[str | None, "only if it is still this proposal, by its id; else it is refused"] = None,
    ) -> dict[str, Any]:
        """Propose what to do about memories that say the same, more, the opposite, or are stale; and do it if told."""
        mem = self._mem(caller)
        proposed = mem.reconcile()
        if id is not None and proposed.id != id:
            raise Conflict(f"proposal {id!r} is out of date: memories were changed since; look at {proposed.id!r}")
        return (mem.apply_proposal(proposed) if apply else proposed).as_json()

    @operation("write")
    def undo_reconcile(
        self, caller: Caller, id: Annotated[str, "the proposal's id, as `reconcile` gave it"]
    ) -> dict[str, Any]:
        """Take back what a reconciling did; the ids of the memories that stand as they did before."""
        return {"memories": [*self._mem(caller).undo_proposal(id)]}

    @operation()
    def policy(self, caller: Caller, agent: Annotated[str | None, "of one agent"] = None) -> dict[str, Any]:
        """Get what agents may do with memory: nothing, propose, or hold some kinds at once."""
        found = self._mem(caller).policy(agent)
        return {"rule": found.rule, "kinds": [*found.kinds]}

    @operation("write", idempotent=True)
    def allow(
        self,
        caller: Caller,
        rule: Annotated[Rule, "what agents may do"],
        kinds: Kinds = None,
        agent: Annotated[str | None, "only this agent"] = None,
    ) -> dict[str, Any]:
        """Set what agents may do with memory; with `auto` they hold `kinds` at once."""
        found = self._mem(caller).allow(rule, kinds or (), agent)
        return {"rule": found.rule, "kinds": [*found.kinds]}

    @operation("write", destructive=True, idempotent=True)
    def delete(self, caller: Caller, id: Id) -> dict[str, Any]:
        """Remove a memory with its history from every file of the store, for good."""
        return self._mem(caller).delete(id_of(id)).as_json()

    def _changed(self, caller: Caller, id_: str, change: Callable[[Mem, str], Memory]) -> dict[str, Any]:
        return told(change(self._mem(caller), id_of(id_)))


def id_of(named: str) -> str:
    """The id of a memory that is named by it or by its reference."""
    return named.removeprefix("mem:record:")


def told(record: Memory) -> dict[str, Any]:
    """A memory as plain values, without its evidence."""
    return {**record.as_json(evidence=False), "ref": record.ref}


def _object(ref: Ref) -> ObjectRef:
    assert isinstance(ref, ObjectRef)  # noqa: S101 - of this namespace no other kind is parsed
    return ref
