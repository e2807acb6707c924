"""An open store: wiring, no logic."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from threefold.backends.opening import open_backend
from threefold.config import Config, default_blobs, default_store
from threefold.embedders.opening import open_embedder
from threefold.errors import Conflict, IntegrityError, InvalidInput, NotFound
from threefold.handle import Commons, Handle, Wired
from threefold.jobs.collect import GRACE, collect_blobs, count_unreferenced
from threefold.model.scope import Scope, check_id
from threefold.models.opening import check_chat
from threefold.ports import Backend, Blobs, ChatModel, StoreState, Summarizer
from threefold.realms.wiring import Ports
from threefold.redaction.opening import open_redactor
from threefold.search.embedding import Background, Questions, embed

if TYPE_CHECKING:
    # Loaded where they are used, so that `import threefold` stays quick.
    from threefold.archive import Bounds, Restored
    from threefold.context.manager import Contexts
    from threefold.jobs.embed import Progress
    from threefold.jobs.worker import Worker
    from threefold.model.document import Extracted
    from threefold.model.retention import Receipt
    from threefold.realms.access.requests import Requests
    from threefold.realms.access.tokens import Tokens
    from threefold.realms.conv.lanes import Lanes
    from threefold.services import Caller, Registry, Service, Services
    from threefold.transfer import Comparison, Copied


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
    path: str | Path | IO[bytes],
    into: Threefold,
    user: str | None = None,
    tenant: str | None = None,
    on_turn: Callable[[int], None] | None = None,
    bounds: Bounds | None = None,
) -> Restored:
    """Read an export back for the user it was made of, or for another; of a path, or of a file that is open.

    What is there already stays as it is, but for turns of which the archive has a fuller edition. With `bounds` the
    archive is taken to be somebody else's: it may unpack to so much and no more, its turns are kept as long as those
    that are recorded now, and what the store's rule of redaction takes out must not be in it.

    Raises:
        NotFound, IntegrityError, Unavailable: the file is not there, damaged, or cannot be read.
        InvalidInput: it goes beyond the bounds. Conflict: another turn is recorded under one of its ids.
    """
    from threefold.archive import read_owner, restore_user
    from threefold.realms.returning import admitted, admitted_of_others

    source = Path(path) if isinstance(path, str | Path) else path
    owner = read_owner(source, bounds)
    scope = into.user(user or owner.user, tenant or owner.tenant).scope
    now, ttl = into.config.clock(), into.config.ttl
    own = bounds is None
    admit = admitted if own else admitted_of_others(into._ports.redact, None if ttl is None else now + ttl)  # noqa: SLF001
    restored = restore_user(into._backend, into._blobs, scope, source, now, admit, on_turn, bounds)  # noqa: SLF001
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
    def _wired(self) -> Wired:
        return Wired(self._ports, lambda: self.contexts, self.services)

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
        return Handle(Scope(user, tenant, app, agent), self._wired)

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
    def lanes(self) -> Lanes:
        """What was sent to live turns and is not recorded yet: what `threefold.Door` works with."""
        from threefold.realms.conv.lanes import Lanes

        return Lanes(self._ports, self._backend)

    @cached_property
    def _registry(self) -> Registry:
        from threefold.realms.cnv import Cnv
        from threefold.services.published import registry
        from threefold.services.realms import Realms

        def of(caller: Caller) -> Realms:
            handle = Handle(caller.scope, self._wired)
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

    @cached_property
    def tokens(self) -> Tokens:
        """Tokens, with which users come in over a network: make them, list them, revoke them."""
        from threefold.realms.access.tokens import Tokens

        return Tokens(self._backend, self.config.clock)

    @cached_property
    def requests(self) -> Requests:
        """Requests with a key, which are done once however often they come; for surfaces."""
        from threefold.realms.access.requests import Requests

        return Requests(self._backend, self.config.clock)

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
        """Remove every user of a tenant from every file of the store; the receipt lists them. Its tokens go first."""
        from threefold.model.retention import Target

        for token in self.tokens.list(tenant=tenant):
            with suppress(NotFound):  # another one revoked it in this moment
                self.tokens.revoke(token.id)
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
