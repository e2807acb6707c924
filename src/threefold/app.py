"""Threefold and the scoped handle: wiring, no logic."""

from __future__ import annotations

import os
import sys
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from threefold.backends.opening import open_backend
from threefold.embedders.opening import open_embedder
from threefold.errors import Conflict, Forbidden, IntegrityError, InvalidInput, NotFound
from threefold.jobs.collect import GRACE, collect_blobs, count_unreferenced
from threefold.model.ref import ConvRef, parse_ref
from threefold.model.scope import Scope, check_id
from threefold.model.times import Moment
from threefold.model.times import now as system_clock
from threefold.models.opening import check_chat
from threefold.ports import Backend, Blobs, ChatModel, Embedder, StoreState, Summarizer
from threefold.realms.conv import Conv
from threefold.realms.wiring import Ports
from threefold.redaction.opening import open_redactor
from threefold.search.embedding import Background, Questions, embed
from threefold.search.rank import Ranking

if TYPE_CHECKING:
    # Loaded where they are used, so that `import threefold` stays quick.
    from threefold.archive import Restored
    from threefold.archive.export import Exported
    from threefold.context.manager import Contexts
    from threefold.context.sources import Sources
    from threefold.importers import Skipped
    from threefold.jobs.embed import Progress
    from threefold.jobs.worker import Worker
    from threefold.model.context import ComputedContext
    from threefold.model.document import Extracted
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
    from threefold.services import Caller, Registry, Service, Services
    from threefold.transfer import Comparison, Copied

DEFAULT_TTL = timedelta(days=365)
# Turns that an import records in one transaction.
IMPORT_GROUP = 64


@dataclass(frozen=True, slots=True)
class Config:
    """How a store is opened. Only entry points read the environment; everything else is told.

    `ttl` is the time to live of what is recorded, None for no end. `durable=False` gives up surviving the loss of
    power (not of the process) for faster writes. `background=False` starts no thread: vectors are made by
    `Threefold.embed_pending`. `blobs` is where bytes of files are kept: a folder, or a URL such as
    `s3://bucket/prefix`, `gs://…` or `az://…`; None for beside the record.

    `embedder` is `"bundled"`; `"onnx"`; `"multilingual"`; the address of a server that speaks OpenAI's
    `/v1/embeddings`, such as `"http://localhost:11434/v1"`; an `Embedder`; or None for none. `embedder_model` names the
    server's model, or the folder of an ONNX model. `embedder_key` is the server's key. `embedder_dimensions` asks the
    server for so many; without it they are what the model gives.

    `chat` is a language model: `"anthropic"`; the address of a server that speaks OpenAI's `/v1/chat/completions`, such
    as `"http://localhost:11434/v1"`; a `ChatModel`; or None for none. Nothing needs one. `chat_model` names the
    model, `chat_key` is the server's key. See `docs/models.md`.

    With `decay` memories grow less relevant once a day, in the background; else only by `Threefold.decay`.

    `redact` is the rule by which secrets and personal data are taken out before anything is stored, embedded or
    indexed: `"secrets"`, `"secrets+personal"` (both need `pip install 'threefold[redact]'`), a function from text to
    text, or None, for a literal record. See `docs/privacy.md`.

    `summarizer` writes the summaries of threads; without one the chat model does, and without that they are sentences
    of what was said.
    """

    embedder: Embedder | str | None = "bundled"
    ttl: timedelta | None = DEFAULT_TTL
    ranking: Ranking = Ranking()
    durable: bool = True
    background: bool = True
    clock: Callable[[], datetime] = system_clock
    blobs: str | None = None
    embedder_model: str | None = None
    embedder_key: str | None = field(default=None, repr=False)
    embedder_dimensions: int | None = None
    decay: bool = True
    redact: Callable[[str], str] | str | None = None
    summarizer: Summarizer | None = None
    chat: ChatModel | str | None = None
    chat_model: str | None = None
    chat_key: str | None = field(default=None, repr=False)


def default_store() -> str:
    """`THREEFOLD_DB`, else a folder in the user's data directory."""
    named = os.environ.get("THREEFOLD_DB")
    if named:
        return named
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(os.environ.get("XDG_DATA_HOME", Path.home() / ".local" / "share"))
    return str(base / "threefold")


def default_blobs() -> str | None:
    """`THREEFOLD_BLOBS`, which goes with `THREEFOLD_DB`; else None, for beside the record."""
    return os.environ.get("THREEFOLD_BLOBS") or None


def open(store: str | Path | None = None, config: Config | None = None, **settings: Any) -> Threefold:  # noqa: A001
    """Open a store: a folder (made when new), `postgresql://…`, `:memory:`, or None for the default one.

    The default one is `THREEFOLD_DB`, else a folder in the user's data directory.

    `settings` are fields of `Config`, such as `ttl=None` or `embedder=None`.

    Raises:
        InvalidInput: a setting or the store's name is unknown or malformed. Unavailable: the folder cannot be used or
            the server not reached. Conflict: a newer program wrote the store, or it is to be migrated first.
    """
    known = Config.__dataclass_fields__
    for name in settings:
        if name not in known:
            raise InvalidInput(f"setting {name!r} is unknown; known are {', '.join(known)}")
    chosen = replace(config or Config(), **settings)
    if chosen.ttl is not None and not (isinstance(chosen.ttl, timedelta) and chosen.ttl > timedelta(0)):
        raise InvalidInput("ttl must be a positive timedelta, or None for no end")
    if chosen.blobs is not None:
        check_id(chosen.blobs, "blobs")
    elif store is None:
        chosen = replace(chosen, blobs=default_blobs())
    name = default_store() if store is None else os.fspath(store)
    return Threefold(check_id(name, "store"), chosen)


def restore(
    path: str | Path,
    into: Threefold,
    user: str | None = None,
    tenant: str | None = None,
    on_turn: Callable[[int], None] | None = None,
) -> Restored:
    """Read an export back for the user it was made of, or for another.

    What is there already stays as it is, but for turns of which the archive has a fuller edition.

    Raises:
        NotFound, IntegrityError, Unavailable: the file is not there, damaged, or cannot be read.
    """
    from threefold.archive import read_owner, restore_user

    owner = read_owner(Path(path))
    handle = into.user(user or owner.user, tenant or owner.tenant)
    restored = restore_user(into._backend, into._blobs, handle.scope, Path(path), into.config.clock(), on_turn)  # noqa: SLF001
    into._wake()  # noqa: SLF001 - a part of the app
    return restored


def copy_store(source: Threefold, into: Threefold, on_turn: Callable[[int], None] | None = None) -> Copied:
    """Copy everything of every tenant and user into another store, of any kind; the source is only read.

    What `into` has already is left alone, so a copy that was interrupted is resumed by making it again.

    Raises:
        InvalidInput: both are the same store. Conflict: `into` has another turn under one of the ids, or vectors of
            another model; nothing of that user was written.
    """
    from threefold.transfer import Place, copy

    if source.name == into.name != ":memory:":
        raise InvalidInput(f"into: {into.name!r} is the source itself; name another store")
    copied = copy(Place(*source._sides), Place(*into._sides), source.config.clock(), on_turn)  # noqa: SLF001
    into._wake()  # noqa: SLF001 - a part of the app
    return copied


def compare_stores(
    source: Threefold,
    other: Threefold,
    deep: bool = False,
    questions: int = 200,
    on_turn: Callable[[int], None] | None = None,
) -> Comparison:
    """Whether `other` has all that `source` has, and finds the same rows for `questions` made of its texts.

    `deep` reads every file too and checks its hash.
    """
    from threefold.transfer import Place, compare

    places = Place(*source._sides), Place(*other._sides)  # noqa: SLF001 - a part of the app
    return compare(*places, source.config.clock(), source.embedder, deep, questions, on_turn)


class Threefold:
    """An open store. `user` gives the handle that everything else is done with. Use it as a context manager."""

    def __init__(self, name: str, config: Config) -> None:
        self.name, self.config = name, config
        self.embedder = open_embedder(
            config.embedder, config.embedder_model, config.embedder_key, config.embedder_dimensions
        )
        check_chat(config.chat, config.chat_model, config.chat_key)
        redact = open_redactor(config.redact)
        self._releases = list[Callable[[], None]]()
        self._backend, self._blobs = open_backend(name, config.durable, config.blobs)
        self._worker = self._background() if config.background else None
        self._ports = Ports(
            store=self._backend,
            blobs=self._blobs,
            embedder=self.embedder,
            clock=config.clock,
            ttl=config.ttl,
            ranking=config.ranking,
            committed=self._wake,
            warm=self._warm,
            question=Questions(self.embedder),
            redact=redact,
            extract=_extract,
            summarizer=config.summarizer or self._summarizer(),
            unrelated=Background(self.embedder),
        )
        # A forgotten close must not keep the thread or the files.
        self._finalizer = weakref.finalize(self, _shut, self._worker, self._backend, self._releases)
        self._wake()

    @cached_property
    def chat(self) -> ChatModel | None:
        """The language model that the store was opened with, or None. Closing the store closes one that it opened."""
        from threefold.models.opening import open_chat

        config = self.config
        model = open_chat(config.chat, config.chat_model, config.chat_key)
        drop = getattr(model, "drop", None)
        if isinstance(config.chat, str) and drop is not None:
            self._releases.append(drop)
        return model

    def _summarizer(self) -> Summarizer | None:
        if self.config.chat is None or self.chat is None:
            return None
        from threefold.models.summarizing import ModelSummarizer

        return ModelSummarizer(self.chat)

    @property
    def _sides(self) -> tuple[Backend, Blobs]:
        return self._backend, self._blobs

    def _background(self) -> Worker:
        from threefold.jobs.worker import Worker

        daily = (partial(_daily, self._backend, self.config.clock),) if self.config.decay else ()
        return Worker(self._backend, self._blobs, self.embedder, self.config.clock, *daily)

    def _wake(self) -> None:
        if self._worker is not None:
            self._worker.wake()

    def _warm(self) -> None:
        """Load the model in the background; where there is none, now, since nobody else will."""
        if self._worker is not None:
            self._worker.wake()
        elif self.embedder is not None:
            embed(self.embedder, ["."])

    def user(self, user: str, tenant: str = "default", app: str | None = None, agent: str | None = None) -> Handle:
        """A handle bound to one scope. There is no unscoped one.

        Raises:
            InvalidInput: an id is empty or malformed.
        """
        return Handle(Scope(user, tenant, app, agent), self)

    def organization(self, tenant: str = "default") -> Commons:
        """The operator's handle on what all users of a tenant share: memory `organizational`, and documents."""
        return Commons(Scope("operator", tenant), self._ports, "organization")

    def everyone(self) -> Commons:
        """The operator's handle on what all tenants share: memory of the layer `global`, and documents."""
        return Commons(Scope("operator"), self._ports, "everyone")

    @cached_property
    def contexts(self) -> Contexts:
        """The context engines: list them, register one, set the default."""
        from threefold.context.manager import Contexts

        contexts = Contexts()
        self._releases.append(contexts.ending())
        return contexts

    @cached_property
    def _registry(self) -> Registry:
        from threefold.realms.cnv import Cnv
        from threefold.services.published import registry
        from threefold.services.realms import Realms

        def of(caller: Caller) -> Realms:
            handle = Handle(caller.scope, self)
            cnv = Cnv(caller.scope, self._ports, self.services(caller).objects)
            return Realms(handle.conv, handle.mem, handle.doc, cnv, handle.context, handle.thread, handle.threads)

        return registry(of)

    def publish(self, service: Service) -> None:
        """Offer an app's namespace: its references resolve, its operations are called as those of the realms are.

        Raises:
            InvalidInput: it is no service, or its namespace is reserved. Conflict: the namespace is taken.
        """
        self._registry.publish(service)

    def withdraw(self, namespace: str) -> None:
        """Offer an app's namespace no more.

        Raises:
            NotFound: nobody publishes it. InvalidInput: it is one of Threefold's own.
        """
        self._registry.withdraw(namespace)

    def watch_services(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after each `publish` and `withdraw`, in the thread that did it; what is given ends that."""
        return self._registry.watch(changed)

    def services(self, caller: Caller) -> Services:
        """The services as a caller with some grants may use them; `Handle.services` are those of a person."""
        from threefold.services import Services

        return Services(self._registry, caller)

    def decay(
        self, factor: float = 0.95, floor: float = 0.1, older_than: float = 86_400.0, cycle: str | None = None
    ) -> bool:
        """Let memories grow less relevant: of what was not touched for `older_than` seconds, by `factor` to `floor`.

        A `cycle` runs once, whoever runs it; unless it is named it is the day. False where it ran already.
        """
        from threefold.realms.mem.decaying import decay

        return decay(self._backend, self.config.clock(), factor, floor, older_than, cycle)

    def embed_pending(self, limit: int | None = None, on_progress: Callable[[int], None] | None = None) -> Progress:
        """Embed rows that wait, in this thread, until none is due or `limit` rows are done."""
        from threefold.jobs.embed import MOST, Pace, Progress

        embedded, failed, why, pace = 0, 0, None, Pace()
        while self.embedder is not None and (limit is None or embedded + failed < limit):
            left = MOST if limit is None else limit - embedded - failed
            done = pace.embed_some(self._backend, self.embedder, self.config.clock, left)
            if done is None:
                break
            embedded, failed, why = embedded + done.embedded, failed + done.failed, done.why or why
            if on_progress is not None:
                on_progress(done.embedded + done.failed)
        return Progress(embedded, failed, why)

    def reembed(self) -> int:
        """Drop all vectors and queue every row for the embedder at hand; returns how many rows wait.

        Raises:
            Conflict: the store was opened without an embedder.
        """
        if self.embedder is None:
            raise Conflict("the store was opened without an embedder; open it with one to embed again")
        waiting = self._backend.reset_vectors()
        self._wake()
        return waiting

    def expire(self) -> int:
        """Remove everything whose time to live is over; returns how many turns went."""
        gone = 0
        while swept := self._backend.expire(self.config.clock()):
            gone += swept
        return gone

    def forget_tenant(self, tenant: str) -> Receipt:
        """Remove every user of a tenant from every file of the store; the receipt lists them."""
        from threefold.model.retention import Target

        return self._backend.purge(Scope("operator", tenant), Target(tenant=True))

    def scopes(self) -> Iterator[Scope]:
        """Every owner in the store, for the operator."""
        return self._backend.scopes()

    def state(self, check: bool = False) -> StoreState:
        """Counts, queue and problems, for the operator; `check` looks through all of it."""
        return self._backend.state(self.config.clock(), check)

    def embedder_knows(self, sample: int = 200) -> tuple[int, int]:
        """Of up to `sample` texts with a word in them, how many the embedder has a vector for; and how many those are.

        A model that never saw a script gives zeros for it, and search there goes by words alone. Texts are taken from
        the last turns of some users.

        Raises:
            ThreefoldError: the embedder failed.
        """
        from threefold.jobs.sampling import sample_texts

        if self.embedder is None:
            return 0, 0
        texts = sample_texts(self._backend, self.config.clock(), sample)
        return int(embed(self.embedder, texts).any(axis=1).sum()), len(texts)

    def missing_blobs(self) -> tuple[str, ...]:
        """Digests of files that turns refer to and that are not there, or not whole any more; reads them all."""
        missing = []
        for scope, digest in self._backend.blob_refs():
            try:
                self._blobs.get(scope, digest)
            except (NotFound, IntegrityError):
                missing.append(digest)
        return tuple(missing)

    def unreferenced_blobs(self, grace: timedelta = GRACE) -> int:
        """How many files `collect_blobs` would remove."""
        return count_unreferenced(self._backend, self._blobs, self.config.clock(), grace)

    def collect_blobs(self, grace: timedelta = GRACE) -> int:
        """Remove files that no turn refers to, left by writers that were killed; returns how many went.

        Those younger than `grace` stay, since their turn may be about to be recorded. A process that runs on with
        `background=True` does this once a day.
        """
        return collect_blobs(self._backend, self._blobs, self.config.clock(), grace)

    @property
    def blobs_place(self) -> str:
        """Where the bytes of files are kept: a folder, a URL, or `memory`."""
        return self._blobs.place

    def repair(self) -> int:
        """Rebuild the indexes from the record; returns how many rows were indexed."""
        return self._backend.reindex()

    def scrub(self) -> tuple[str, ...]:
        """Take what removals left out of unused places of the files; says in a sentence what could not be.

        On PostgreSQL every table is rewritten and locked meanwhile: choose a quiet moment.
        """
        return self._backend.scrub()

    def close(self) -> None:
        """Stop the background thread, end the context engines, release the files; safe to call twice."""
        self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _extract(data: bytes, mime: str | None = None, name: str = "") -> Extracted:
    """The extractors that are installed, loaded when the first document is taken in."""
    from threefold.extractors import extract

    return extract(data, mime, name)


def _daily(store: Backend, clock: Callable[[], datetime]) -> None:
    from threefold.realms.mem.decaying import decay

    decay(store, clock())


def _shut(worker: Worker | None, backend: Backend, releases: list[Callable[[], None]]) -> None:
    if worker is not None:
        worker.stop()
    try:
        for release in releases:
            release()
    finally:
        backend.close()


@dataclass(frozen=True, slots=True)
class Imported:
    """Turns that are new or fuller now, turns that were there already, and what was skipped and why."""

    imported: int
    unchanged: int
    skipped: tuple[Skipped, ...]


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

    def __init__(self, scope: Scope, db: Threefold) -> None:
        self.scope = scope
        self._db = db
        self._ports = db._ports  # noqa: SLF001 - the handle is a part of the app
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

        seen = Handle(replace(self.scope, agent=self.scope.agent or "agent"), self._db)
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
        return self._db.contexts.assemble(intent, self.sources, engine)

    def turn(
        self, conversation: str, turn: str | None = None, title: str | None = None, started: Moment = None
    ) -> TurnHandle:
        """Open a turn of a conversation; use it in a `with` block. See `TurnHandle`."""
        return self.conv.open_turn(conversation, turn, title, started)

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

        return self._db.services(Caller(self.scope))

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
