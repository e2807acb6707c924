"""Curated memory of one scope: what is held to be true, by whose word, and how firmly."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any

from threefold.errors import Conflict, Forbidden, InvalidInput, NotFound
from threefold.model.memory import HELD, Layer, Memory, Revision, Signal, Status, Visibility
from threefold.model.paging import Cursor
from threefold.model.ref import ObjectRef
from threefold.model.resolved import Resolved, Shown
from threefold.model.retention import Receipt, Target
from threefold.model.scope import Scope
from threefold.model.times import parse_moment
from threefold.realms.asking import check_question
from threefold.realms.mem import changing, checking, places
from threefold.realms.mem.changing import Draft, Writer
from threefold.realms.mem.decaying import decays
from threefold.realms.mem.hotset import SIZE, Hot, hotset
from threefold.realms.mem.importing import Found, ImportedMemories, Skipped, read
from threefold.realms.mem.judging import Judge
from threefold.realms.mem.keeping import Kept, as_it_stood, content_key, key_labels
from threefold.realms.mem.mirror import Folder, Synced
from threefold.realms.mem.policy import Policy, Rule, allow, policy_for
from threefold.realms.mem.recalling import MAX_LIMIT, Mode, Recall, Wanted, recall, visible_to
from threefold.realms.mem.reconciling import Proposal, apply_proposal, propose, undo_proposal
from threefold.realms.mem.scores import Scores, scores
from threefold.realms.mem.shelf import Shelf
from threefold.realms.mem.showing import memory_ref, resolved, show
from threefold.realms.mem.syncing import sync
from threefold.realms.places import Place
from threefold.realms.redacting import Pass
from threefold.realms.wiring import Ports

_TRIES = 5
# What of a memory is text; the rest are labels that it is asked for by.
_TEXTS = ("memory", "context", "metadata")


class Mem:
    """Everything one scope can do with memory. A handle with an agent writes as that agent, else as the person.

    `place` is where new memories of this handle lie unless their layer says otherwise: a person's own, or what an
    operator's handle stands for.
    """

    def __init__(self, scope: Scope, ports: Ports, place: Place = "own") -> None:
        self._scope, self._ports, self._place = scope, ports, place
        self._shelf = Shelf(scope, ports)

    # Writing.

    def remember(
        self,
        memory: str,
        context: str = "",
        kind: str = "fact",
        layer: Layer | None = None,
        tags: Collection[str] = (),
        owner: str | None = None,
        importance: float | None = None,
        pinned: bool = False,
        visibility: Visibility = "shared",
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | None = None,
    ) -> Memory:
        """Keep a memory; the same content again confirms the one that is there.

        `memory` is the compact note, `context` why it is there. `source` is a reference or name of what it came from.
        `ttl` is how long it lives instead of its layer's time. As an agent it is a proposal, unless the person's policy
        says otherwise (`allow`).

        Raises:
            InvalidInput: an argument is malformed. Forbidden: the policy refuses agents, or the layer is not this
                handle's to write.
        """
        draft = self._draft(memory, context, kind, layer, tags, owner, importance, pinned, visibility, source,
                            metadata, ttl)  # fmt: skip
        return self._keep(draft, self._status(draft))

    def propose(
        self,
        memory: str,
        context: str = "",
        kind: str = "fact",
        layer: Layer | None = None,
        tags: Collection[str] = (),
        owner: str | None = None,
        importance: float | None = None,
        visibility: Visibility = "shared",
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        ttl: timedelta | None = None,
    ) -> Memory:
        """Suggest a memory, which is not held before a person confirms it. See `remember`."""
        draft = self._draft(memory, context, kind, layer, tags, owner, importance, False, visibility, source,
                            metadata, ttl)  # fmt: skip
        self._status(draft)
        return self._keep(draft, "proposed")

    def confirm(self, id: str, why: str | None = None) -> Memory:  # noqa: A002 - the interface's name
        """The person says that it is so: a proposal is held from now on, a held one more firmly."""
        return self._change(id, lambda kept: changing.confirmed(kept, self._writer(), why))

    def reject(self, id: str, why: str | None = None) -> Memory:  # noqa: A002
        """The person refuses a proposal; it is not proposed again."""
        return self._change(id, lambda kept: changing.set_aside(kept, "rejected", self._writer(), why))

    def contradict(self, id: str, why: str | None = None, source: str | None = None) -> Memory:  # noqa: A002
        """Something speaks against it: it is held less firmly."""
        return self._change(id, lambda kept: changing.contradicted(kept, self._writer(), why, source))

    def update(self, id: str, /, revision: int | None = None, why: str | None = None, **changes: Any) -> Memory:  # noqa: A002
        """Change `memory`, `context`, `kind`, `layer`, `tags`, `owner`, `importance`, `visibility` or `metadata`.

        With `revision` only where it is at that one. `tags` is a list, or `{"add": […], "remove": […]}`.

        Raises:
            Conflict: it is at another revision. NotFound: it is not there.
        """
        clean = Pass(self._ports.redact).json
        cleaned = {name: clean(value) if name in _TEXTS else value for name, value in changes.items()}
        return self._change(id, lambda kept: changing.edited(kept, cleaned, self._writer(), why), revision)

    def pin(self, id: str, pinned: bool = True) -> Memory:  # noqa: A002
        """Put it into the hotset whatever its salience is, or no more."""
        return self._change(id, lambda kept: changing.pinned(kept, pinned, self._writer()))

    def retire(self, id: str, why: str | None = None) -> Memory:  # noqa: A002
        """It is held no more, and kept with its history."""
        return self._change(id, lambda kept: changing.set_aside(kept, "retired", self._writer(), why))

    def undo(self, id: str, why: str | None = None) -> Memory:  # noqa: A002
        """As it stood before its last change, which is a change too."""
        return self._change(id, lambda kept: changing.undone(kept, self._writer(), why))

    def reconcile(self, apply: bool = False, judge: Judge | None = None) -> Proposal:
        """What is to be done about memories that say the same, more, or the opposite, or have gone stale.

        By rules over their texts, in any language and without a language model; a `judge` that has one may be asked
        where they are unsure (see `realms/mem/judging.py`), and is checked. Nothing is changed unless `apply` says so:
        review the proposal, then hand it to `apply_proposal`.
        """
        self._may_reconcile()
        proposal = propose(self._scope, self._ports, self._place, judge)
        return apply_proposal(self._scope, self._ports, self._place, proposal) if apply else proposal

    def apply_proposal(self, proposal: Proposal) -> Proposal:
        """Do what was proposed, all of it in one transaction.

        Raises:
            Conflict: one of the memories was changed since.
        """
        self._may_reconcile()
        return apply_proposal(self._scope, self._ports, self._place, proposal)

    def undo_proposal(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """Take back what a proposal did; the ids of the memories that stand as they did before.

        Raises:
            NotFound: none of this id was applied, or it was undone. Conflict: one of the memories was changed since.
        """
        self._may_reconcile()
        return undo_proposal(self._scope, self._ports, self._place, id)

    def delete(self, id: str) -> Receipt:  # noqa: A002
        """Remove it from every file of the store, with its history; the receipt lists what went."""
        self._may_curate(id)
        self._shelf.one(id)
        return self._ports.store.purge(self._shelf.place(id), Target(conversation=id))

    def import_memories(self, path: str | Path) -> ImportedMemories:
        """Take in memories of another system from a JSON file: mem0's, ChatGPT's `memory.json`, or a list like them.

        With their own times. What is there already stays; what was switched off there comes as retired.

        Raises:
            NotFound, Unavailable, InvalidInput: the file is not there, cannot be read, or holds no list of memories.
        """
        if self._scope.agent is not None:
            raise Forbidden("importing is the person's: use a handle without agent")
        counts, skipped = Counter[bool](), list[Skipped]()
        for found in read(Path(path)):
            if isinstance(found, Skipped):
                skipped.append(found)
            else:
                counts[self._take_in(found)] += 1
        return ImportedMemories(counts[True], counts[False], tuple(skipped))

    def _take_in(self, found: Found) -> bool:
        """Keep a memory of another system; False where it is there."""
        draft = self._draft(found.memory, "", "fact", None, found.tags, None, None, False, "shared", found.name,
                            found.metadata, None)  # fmt: skip
        where, now = places.place_of(self._scope, self._place), self._ports.clock()
        if self._shelf.newest(where, (key_labels(draft.memory, draft.layer, draft.owner),), 1):
            return False
        touched = min(found.touched or found.made or now, now)
        writer = Writer("import", min(found.made or touched, touched))
        made = changing.made(new_id(self._place, draft), draft, "active", writer, "imported")
        made = replace(made, record=replace(made.record, touched=touched))
        if not found.held:
            made = changing.set_aside(made, "retired", Writer("import", now), "switched off where it came from")
        return self._shelf.put([(made, "")])

    def sync(self, folder: str | Path) -> Synced:
        """Bring a folder of Markdown files and what is held together: take in what a person edited, added or deleted
        there, and write what changed here. What was changed on both sides is left alone and told as a conflict.

        Raises:
            Unavailable, InvalidInput: the folder cannot be used, or what it remembers is damaged.
        """
        if self._scope.agent is not None:
            raise Forbidden("syncing is the person's: use a handle without agent")
        layers = places.LAYERS_OF[self._place]
        held: dict[str, Memory] = {}
        page = self.list(layers=layers, limit=MAX_LIMIT)
        while page:
            held.update({record.id: record for record in page})
            page = self.list(layers=layers, limit=MAX_LIMIT, after=page[-1])
        return sync(Folder.open(Path(folder)), self, held)

    def allow(self, rule: Rule, kinds: Collection[str] = (), agent: str | None = None) -> Policy:
        """What agents may do: `off`, `propose` (the default), or `auto` for some `kinds`; all of them, or one `agent`.

        Raises:
            Forbidden: an agent asks. InvalidInput: the rule is none, or the kinds do not fit it.
        """
        if self._scope.agent is not None:
            raise Forbidden("an agent sets no policy; use the person's handle, without agent")
        return allow(self._scope, self._ports, rule, kinds, agent)

    # Reading.

    def recall(
        self,
        query: str,
        layers: Collection[Layer] | None = None,
        tags: Collection[str] | None = None,
        kinds: Collection[str] | None = None,
        owner: str | None = None,
        min_relevance: float = 0.0,
        min_confidence: float = 0.0,
        limit: int = 20,
        mode: Mode = "hybrid",
        statuses: Collection[Status] | None = None,
        explain: bool = False,
    ) -> Recall:
        """Memories that answer a question, best first; those of the tenant and of everyone too.

        `tags` must all be there. `mode` is `hybrid`, `fulltext` or `semantic`. `statuses` are those that are held
        (active, weakened), unless others are named.

        Raises:
            InvalidInput: naming the argument that is off; an empty `query` is.
        """
        text = check_question(query)
        wanted = self._wanted(layers, tags, kinds, owner, min_relevance, min_confidence, statuses)
        _check_limit(limit)
        return recall(self._scope, self._ports, text, wanted, limit, mode, explain)

    def list(
        self,
        layers: Collection[Layer] | None = None,
        tags: Collection[str] | None = None,
        kinds: Collection[str] | None = None,
        owner: str | None = None,
        statuses: Collection[Status] | None = None,
        limit: int = 20,
        after: Memory | Cursor | None = None,
    ) -> tuple[Memory, ...]:
        """Memories, those last touched first; `after` is the last one of the page before."""
        wanted = self._wanted(layers, tags, kinds, owner, 0.0, 0.0, statuses)
        _check_limit(limit)
        cursor = None if after is None else (after.cursor.at, after.cursor.id)
        ids: list[str] = []
        for place in places.of_layers(wanted.layers):
            labels = wanted.labels(self._scope.agent is not None, place)
            ids += self._shelf.newest(places.place_of(self._scope, place), labels, limit, cursor)
        found = list(self._shelf.memories(ids).values())
        return tuple(sorted(found, key=lambda record: (record.touched, record.id), reverse=True)[:limit])

    def proposals(self, limit: int = 20, after: Memory | Cursor | None = None) -> tuple[Memory, ...]:
        """What waits for the person's word, newest first."""
        waiting: tuple[Status, ...] = ("proposed",)
        return self.list(statuses=waiting, limit=limit, after=after)

    def get(self, id: str, as_of: datetime | str | None = None) -> Memory:  # noqa: A002
        """One memory; with `as_of` as it stood then.

        Raises:
            NotFound: it is not there, or was not then.
        """
        kept = self._seen(id)
        if as_of is None:
            return kept.record
        stood = as_it_stood(kept, parse_moment(as_of, "as_of"))
        if stood is None:
            raise _not_there(id)
        return stood

    def scores(self, id: str) -> Scores:  # noqa: A002
        """A memory's scores now, and from what they are."""
        return scores(self._seen(id).record, self._ports.clock(), decays(self._ports.store, self._ports.clock()))

    def history(self, id: str) -> tuple[Revision, ...]:  # noqa: A002
        """What became of it: who changed it, when, why, and how it stood afterwards; oldest first."""
        return self._seen(id).revisions

    def hotset(self, goal: str | None = None, limit: int = SIZE, found: Recall | None = None) -> tuple[Hot, ...]:
        """The memories that every turn begins with, at most eight: pinned ones, then by salience, and by the `goal`.

        `found` is what was recalled for the goal already, where it was: then it is not asked for again.
        """
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= SIZE:
            raise InvalidInput(f"limit {limit!r} must be a whole number from 1 to {SIZE}")
        return hotset(self._scope, self._ports, goal, limit, places.SEEN_FROM[self._place], found)

    def resolve(self, ref: ObjectRef) -> Resolved:
        """The memory that a parsed reference names. Raises as `get`."""
        return resolved(self.get(memory_ref(ref).id))

    def show(self, refs: Sequence[ObjectRef], size: int = 300) -> Mapping[str, Shown]:
        """What parsed references name, by reference, with at most `size` characters of text; see `Shown`."""
        try:
            kept = self._shelf.memories(dict.fromkeys(ref.id for ref in refs if places.is_id(ref.id)))
        except Forbidden:  # one is another app's; each is told of alone
            return show(refs, self.get, size)
        seen = {id_: record for id_, record in kept.items() if self._may_see(record)}

        def find(id_: str) -> Memory:
            if id_ not in seen:
                raise _not_there(id_)
            return seen[id_]

        return show(refs, find, size)

    def policy(self, agent: str | None = None) -> Policy:
        """What agents may do, or one of them."""
        return policy_for(self._scope, self._ports, self._scope.agent if agent is None else agent)

    # Inside.

    def _writer(self) -> Writer:
        agent = self._scope.agent
        clean = Pass(self._ports.redact).optional
        return Writer("user" if agent is None else "agent", self._ports.clock(), agent, clean)

    def _draft(
        self, memory: str, context: str, kind: str, layer: Layer | None, tags: Collection[str], owner: str | None,
        importance: float | None, pinned: bool, visibility: Visibility, source: str | None,
        metadata: Mapping[str, Any] | None, ttl: timedelta | None,
    ) -> Draft:  # fmt: skip
        if ttl is not None and not (isinstance(ttl, timedelta) and ttl > timedelta(0)):
            raise InvalidInput("ttl must be a positive timedelta, or None for the layer's own time")
        done = Pass(self._ports.redact)
        usual: dict[Place, Layer] = {"own": "longterm", "organization": "organizational", "everyone": "global"}
        return Draft(
            done.text(checking.note_text(memory)),
            done.text(checking.context_text(context)),
            checking.kind_name(kind),
            usual[self._place] if layer is None else checking.layer_name(layer),
            checking.tag_names(tags),
            checking.owner_name(owner),
            None if importance is None else checking.share(importance, "importance"),
            pinned is True,
            checking.visibility_name(visibility),
            None if source is None else checking.kind_name(source),
            done.json(checking.metadata_of(metadata)),
            ttl,
            self._scope.app,
        )

    def _status(self, draft: Draft) -> Status:
        """How a new memory of this handle begins."""
        place = places.of_layer(draft.layer)
        if place == "everyone" and self._place != "everyone":
            raise Forbidden("layer 'global' is the operator's to write: Threefold.everyone().mem")
        if self._place not in ("own", place):
            raise Forbidden(f"layer {draft.layer!r} is not what this handle stands for; use a user's handle")
        agent = self._scope.agent
        begins: Status = "active"
        if agent is not None:
            begins = policy_for(self._scope, self._ports, agent).status(draft.kind)
        # What one user says of the whole organization waits until it is confirmed there.
        return "proposed" if place != self._place else begins

    def _keep(self, draft: Draft, status: Status) -> Memory:
        writer, place = self._writer(), places.of_layer(draft.layer)
        signal: Signal = "stated" if writer.by == "user" else "observed"
        where = places.place_of(self._scope, place)
        # Of one that this handle does not see nothing is told: it gets one of its own.
        seen = (key_labels(draft.memory, draft.layer, draft.owner), visible_to(self._scope.agent is not None))
        id_ = new_id(place, draft)
        for _ in range(_TRIES):
            there = self._shelf.newest(where, seen, 1)
            if there:
                kept = self._shelf.one(there[0])
                after = changing.said_again(kept, draft, status, writer, signal)
                if after is kept or self._shelf.put([(after, kept.digest)]):
                    return after.record
                continue
            made = changing.made(id_, draft, status, writer, signal)
            if self._shelf.put([(made, "")]):
                return made.record
            # Taken by one whose text is another now, or made by somebody else in this moment.
            id_ = new_id(place, draft, secrets.token_hex(8))
        raise Conflict("this memory is being written by many at once; try again")

    def _change(self, id_: str, change: Callable[[Kept], Kept], revision: int | None = None) -> Memory:
        self._may_curate(id_)
        return self._shelf.change(id_, change, revision)

    def _may_reconcile(self) -> None:
        if self._scope.agent is not None:
            raise Forbidden("reconciling is the person's: use a handle without agent")

    def _may_curate(self, id_: str) -> None:
        if self._scope.agent is not None:
            raise Forbidden("an agent proposes; changing what is held is the person's: use a handle without agent")
        if places.of_id(id_) != self._place:
            raise Forbidden(f"memory {id_!r} is shared; it is curated by the operator, not by one user")

    def _seen(self, id_: str) -> Kept:
        kept = self._shelf.one(id_) if self._in_sight(id_) else None
        if kept is None or not self._may_see(kept.record):
            raise _not_there(id_)
        return kept

    def _in_sight(self, id_: str) -> bool:
        return set(places.LAYERS_OF[places.of_id(id_)]) <= set(places.SEEN_FROM[self._place])

    def _may_see(self, record: Memory) -> bool:
        hidden = "user" if self._scope.agent is not None else "agent"
        return self._in_sight(record.id) and record.visibility != hidden

    def _wanted(
        self,
        layers: Collection[Layer] | None, tags: Collection[str] | None, kinds: Collection[str] | None,
        owner: str | None, min_relevance: float, min_confidence: float, statuses: Collection[Status] | None,
    ) -> Wanted:  # fmt: skip
        seen = places.SEEN_FROM[self._place]
        return Wanted(
            tuple(layer for layer in checking.layer_names(layers) if layer in seen),
            checking.tag_names(tags or ()),
            checking.tag_names(kinds or ()),
            checking.owner_name(owner),
            checking.status_names(statuses, HELD),
            checking.share(min_relevance, "min_relevance"),
            checking.share(min_confidence, "min_confidence"),
        )


def new_id(place: Place, draft: Draft, salt: str = "") -> str:
    """The id of a new memory: the same for the same content, so that two who write it at once make one."""
    told = f"{content_key(draft.memory, draft.layer, draft.owner)}\0{draft.app or ''}\0{salt}"
    return places.prefix(place) + blake2b(told.encode(), digest_size=10).hexdigest()


def _not_there(id_: str) -> NotFound:
    return NotFound(f"memory {id_!r}: no such memory, or its time is over")


def _check_limit(limit: int) -> None:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit {limit!r} must be a whole number from 1 to {MAX_LIMIT}")
