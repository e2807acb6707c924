"""What one user can do: the scoped handle, and the operator's on what several users share. Wiring, no logic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from threefold.errors import Conflict, Forbidden, InvalidInput
from threefold.model.ref import ConvRef, parse_ref
from threefold.model.scope import Scope
from threefold.model.times import Moment
from threefold.realms.conv import Conv
from threefold.realms.wiring import Ports

if TYPE_CHECKING:
    # Loaded where they are used, so that `import threefold` stays quick.
    from threefold.archive.export import Exported
    from threefold.context.manager import Contexts
    from threefold.context.sources import Sources
    from threefold.importers import Skipped
    from threefold.model.context import ComputedContext
    from threefold.model.paging import Cursor
    from threefold.model.resolved import Resolved, Shown
    from threefold.model.retention import Receipt
    from threefold.model.turn import Turn
    from threefold.ports import Objects
    from threefold.realms.cnv import Cnv
    from threefold.realms.conv.recorder import TurnHandle
    from threefold.realms.conv.threads import Thread
    from threefold.realms.conv.threads.values import ThreadEntry
    from threefold.realms.doc import Doc
    from threefold.realms.mem import Mem
    from threefold.realms.places import Place
    from threefold.services import Caller, Services

# Turns that an import records in one transaction.
IMPORT_GROUP = 64


@dataclass(frozen=True, slots=True)
class Imported:
    """Turns that are new or fuller now, turns that were there already, and what was skipped and why."""

    imported: int
    unchanged: int
    skipped: tuple[Skipped, ...]


class Wired(NamedTuple):
    """What a handle is wired to: ports, the context engines, and the services as a caller may use them."""

    ports: Ports
    contexts: Callable[[], Contexts]
    services: Callable[[Caller], Services]


class Commons:
    """What several users share, as the operator curates it."""

    def __init__(self, scope: Scope, ports: Ports, place: Place) -> None:
        self._where = scope, ports, place

    @cached_property
    def mem(self) -> Mem:
        """Curated memory."""
        from threefold.realms.mem import Mem

        return Mem(*self._where)

    @cached_property
    def doc(self) -> Doc:
        """Documents."""
        from threefold.realms.doc import Doc

        return Doc(*self._where)


class Handle:
    """Everything one user can do. `conv` is the record, `mem` curated memory, `doc` documents, `cnv` boards."""

    def __init__(self, scope: Scope, wired: Wired) -> None:
        self.scope = scope
        self._wired, self._ports = wired, wired.ports
        self.conv = Conv(scope, self._ports)

    @cached_property
    def mem(self) -> Mem:
        """Curated memory."""
        from threefold.realms.mem import Mem

        return Mem(self.scope, self._ports)

    @cached_property
    def doc(self) -> Doc:
        """Documents."""
        from threefold.realms.doc import Doc

        return Doc(self.scope, self._ports)

    @cached_property
    def cnv(self) -> Cnv:
        """Boards."""
        from threefold.realms.cnv import Cnv

        return Cnv(self.scope, self._ports, self.objects)

    @cached_property
    def sources(self) -> Sources:
        """What contexts are made of: this scope's realms, for context engines to read.

        Memory and boards are seen as an agent sees them, since a context is for one: what is the person's alone stays
        theirs.
        """
        from threefold.context.sources import Sources

        seen = Handle(replace(self.scope, agent=self.scope.agent or "agent"), self._wired)
        return Sources(self.scope, self.conv, seen.mem, self.doc, seen.cnv, self.thread, self._ports.clock)

    def context(
        self,
        goal: str,
        thread: str | None = None,
        budget: int | None = None,
        engine: str | None = None,
        permissions: Collection[str] = (),
        policies: Collection[str] = (),
    ) -> ComputedContext:
        """What an agent should see for a request: memory, the thread, documents, earlier turns, within a budget.

        Computed anew each time, never stored. `budget` is in tokens (4,000 unless given), `thread` the conversation
        that the request belongs to, `engine` another context engine than the default one (`Threefold.contexts`).
        `permissions` and `policies` are handed on to the agent as they are.

        Raises:
            InvalidInput: an argument is malformed. NotFound: there is no such engine.
        """
        from threefold.context.intents import BUDGET, intent_of

        intent = intent_of(goal, thread, BUDGET if budget is None else budget, permissions, policies)
        return self._wired.contexts().assemble(intent, self.sources, engine)

    def turn(
        self,
        conversation: str,
        turn: str | None = None,
        title: str | None = None,
        started: Moment = None,
        once: bool = False,
    ) -> TurnHandle:
        """Open a turn of a conversation; use it in a `with` block. See `TurnHandle`.

        With `once` a turn that is recorded under the id already stays as it is, and recording this one is a `Conflict`.
        """
        return self.conv.open_turn(conversation, turn, title, started, once)

    def thread(self, name: str) -> Thread:
        """A named conversation with a sliding window; nothing is made before something is added. See `Thread`."""
        from threefold.realms.conv.threads import Thread

        return Thread(self.scope, self._ports, name)

    def threads(
        self, limit: int = 20, after: ThreadEntry | Cursor | None = None, archived: bool = False
    ) -> tuple[ThreadEntry, ...]:
        """Threads, those last written to first, with `archived` ones too; `after` is the last one of the page before.

        Conversations that were only recorded are none.
        """
        from threefold.realms.conv.threads.realm import list_threads

        return list_threads(self.scope, self._ports, limit, after, archived)

    @cached_property
    def services(self) -> Services:
        """Every namespace, the realms' and those that apps publish: what there is, what each can do, and calling it."""
        from threefold.services import Caller

        return self._wired.services(Caller(self.scope))

    @property
    def objects(self) -> Objects:
        """What references of every namespace name, as this scope may see it."""
        return self.services.objects

    def resolve(self, ref: str, conversation: str | None = None) -> Resolved:
        """The object that a reference of any namespace names; `conversation` completes short forms.

        Raises:
            InvalidInput: malformed. NotFound (Expired, Purged): not there (any more), or nobody publishes its
                namespace. Forbidden: it is not this scope's to see.
        """
        return self.objects.resolve(str(parse_ref(ref, conversation)))

    def show(self, refs: Iterable[str], size: int = 300) -> Mapping[str, Shown]:
        """What references of any namespace name, now, by reference: each owner is asked once, as this scope.

        What cannot be seen says why (`Shown.standing`); at most `size` characters of text each.

        Raises:
            InvalidInput: a reference is malformed.
        """
        return self.objects.describe(list(refs), size)

    def editions(self, ref: str, conversation: str | None = None) -> tuple[str, ...]:
        """References of all editions of what a reference names, the oldest first.

        Of a file of the record: those that were published or attached under its path in the same conversation; each
        keeps its own reference and bytes. Of a board its revisions that can be read. Of all else the reference itself.

        Raises:
            as `resolve`.
        """
        found = parse_ref(self.resolve(ref, conversation).ref)
        if isinstance(found, ConvRef):
            return self.conv.editions(found)
        return self.cnv.editions(found) if found.namespace == "cnv" else (str(found),)

    def read(self, ref: str, conversation: str | None = None) -> bytes:
        """The exact bytes behind a reference, checked against their hash.

        Raises:
            as `resolve`; IntegrityError: the bytes are not those that were recorded.
        """
        found = self.resolve(ref, conversation)
        if found.ref.startswith("doc:"):
            return self.doc.read(found.ref)
        return found.as_bytes() if found.file is None else self._ports.blobs.get(self.scope, found.file.digest)

    def link(self, ref: str, conversation: str | None = None, expires: timedelta = timedelta(hours=1)) -> str:
        """A URL at which anyone who has it can fetch the exact bytes of a file until `expires` is over.

        `expires` is 1 second to 7 days. Forgetting the last turn with these bytes ends it too.

        Raises:
            as `resolve`; InvalidInput: `expires` is out of bounds, the reference names no file, or the bytes are kept
            in a place without URLs, such as a folder. Unavailable: the place cannot be reached or may not sign.
        """
        if not isinstance(expires, timedelta) or not timedelta(seconds=1) <= expires <= timedelta(days=7):
            raise InvalidInput(f"expires {expires!r} must be a timedelta from 1 second to 7 days")
        found = self.resolve(ref, conversation)
        if found.file is None:
            raise InvalidInput(f"reference {ref!r} names a {found.kind}, only files have links; use read")
        where = self.doc.place(found.ref) if found.ref.startswith("doc:") else self.scope
        url = self._ports.blobs.link(where, found.file.digest, int(expires.total_seconds()))
        if url is None:
            raise InvalidInput(f"blobs in {self._ports.blobs.place} have no URLs; use read, or keep them in s3://…")
        return url

    def export(self, path: str | Path, on_turn: Callable[[int], None] | None = None) -> Exported:
        """Write everything of the user into a zip file; `threefold.restore` reads it back.

        Raises:
            Unavailable: the file cannot be written; what stood there before is untouched.
        """
        from threefold.archive import export_user

        return export_user(self._ports.store, self._ports.blobs, self.scope, Path(path), self._ports.clock(), on_turn)

    def import_history(
        self,
        paths: Iterable[str | Path],
        kind: str = "auto",
        on_bytes: Callable[[int], None] | None = None,
    ) -> Imported:
        """Record the histories of other tools with their own times: see `threefold.importers`.

        `kind` is one of `threefold.importers.KINDS`. Importing again adds nothing. What cannot be read or kept is
        skipped and said why; `on_bytes` is told the progress.

        Raises:
            InvalidInput: a path does not exist, or `kind` is unknown. Unavailable: the store is busy or full.
        """
        from threefold.importers import Skipped, read

        counts, skipped = Counter[str](), list[Skipped]()
        found = read(paths, kind, on_bytes)
        while group := tuple(islice(found, IMPORT_GROUP)):
            skipped += [item for item in group if isinstance(item, Skipped)]
            turns = [item for item in group if not isinstance(item, Skipped)]
            if turns:
                self._import(turns, counts, skipped)
        return Imported(counts["created"] + counts["replaced"], counts["unchanged"], tuple(skipped))

    def _import(self, turns: list[Turn], counts: Counter[str], skipped: list[Skipped]) -> None:
        """Record a group in one transaction; where one of it cannot be kept, each alone."""
        from threefold.importers import Skipped

        try:
            counts.update(self.conv.record_all(turns))
        except (InvalidInput, Conflict, Forbidden) as error:
            if len(turns) == 1:
                where = f"conversation {turns[0].conversation!r}, turn {turns[0].id!r}"
                skipped.append(Skipped(where, str(error)))
                return
            for turn in turns:
                self._import([turn], counts, skipped)

    def forget(self, conversation: str | None = None, turn: str | None = None) -> Receipt:
        """Remove a turn, a conversation, or with no argument all of the user; returns a receipt."""
        return self.conv.forget(conversation, turn)
