"""The few protocols that a contributor implements. Contract suites for them are in `threefold.testing`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from threefold.model.rows import RowKey
from threefold.model.scope import Scope

if TYPE_CHECKING:
    # What signatures alone name is loaded by those who work with it.
    import numpy as np

    from threefold.model.candidates import Candidates
    from threefold.model.chat import Message, Reply, Tool
    from threefold.model.commit import Commit, Outcome
    from threefold.model.document import Extracted
    from threefold.model.moving import MovedTurn, TurnKey
    from threefold.model.query import Query
    from threefold.model.record import CatalogEntry, Conversation, StoredTurn, TurnRecord
    from threefold.model.resolved import Resolved, Shown
    from threefold.model.retention import Gone, Receipt, Target
    from threefold.model.rows import StoredRow


class CatalogQuery(NamedTuple):
    """Which turns to list: of one conversation or all, in a window, from an ordinal or after a cursor.

    `ordinal` counts the turns of the conversation by start time, 1 = first, -1 = last, and needs a conversation.
    `after` is the cursor of the last page: (started, conversation, turn). `until` is exclusive. `labels` are groups of
    labels: a turn is listed that has one of each group. With `bare` entries tell neither
    their ordinal and position nor what they were about (0, 0, empty), which is most of the work.
    """

    now: datetime
    conversation: str | None = None
    ordinal: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    newest_first: bool = False
    limit: int = 20
    after: tuple[datetime, str, str] | None = None
    labels: tuple[tuple[str, ...], ...] = ()
    bare: bool = False


class Store(Protocol):
    """Where records are kept. Every method works inside the scope it is given and never outside it.

    Implementations map every driver error to `threefold.errors`, may be called from any thread, and promise: a commit
    that returned survives the death of the process and of the machine; a commit that raised left nothing.
    """

    def commit(self, commit: Commit) -> tuple[Outcome, ...]:
        """Apply all writes in one transaction; one outcome for each.

        Raises:
            Conflict: a write contradicts what is stored. NotFound: feedback on a turn that is not there.
            Forbidden: the conversation belongs to another app of the user. Unavailable: the store is busy or full.
            BytesGone: the bytes of a file are not there, looked for while no one else can remove them.
        """
        ...

    def candidates(self, query: Query) -> Candidates:
        """Up to three candidate lists over the scope's rows that pass the filter."""
        ...

    def rows(
        self, scope: Scope, keys: Sequence[RowKey], now: datetime, around: int = 0, whole: bool = True
    ) -> tuple[StoredRow, ...]:
        """All unexpired rows of the turns that `keys` name and of the `around` turns before and after each.

        In order of conversation and position; unknown keys are left out. With `whole` off only the rows that `keys`
        name themselves, by their numbers in the turn; `around` must be 0 then.
        """
        ...

    def turn(self, scope: Scope, conversation: str, turn: str, now: datetime) -> StoredTurn | Gone | None:
        """A turn whole; or why it is gone, told to the owner only; or None where there never was one.

        Raises:
            Forbidden: it belongs to another app of the same user.
        """
        ...

    def records(
        self, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime, rows: bool = True
    ) -> tuple[TurnRecord, ...]:
        """The records of the named turns (conversation, turn), in order of the keys; what is not there is left out.

        Without `rows` these are not read: a record has none, and a block of its log whose text is a row's has no text.

        Raises:
            Forbidden: one belongs to another app of the same user.
        """
        ...

    def replays(
        self, scope: Scope, keys: Sequence[tuple[str, str]], now: datetime
    ) -> Mapping[tuple[str, str], Mapping[str, Any]]:
        """What `records` would give as their `replay`, by key, in order of the keys: all that is kept of what a realm
        tells by values. Raises as `records`.
        """
        ...

    def catalog(self, scope: Scope, query: CatalogQuery) -> tuple[CatalogEntry, ...]:
        """Turns in order of their start; costs O(page)."""
        ...

    def conversations(
        self, scope: Scope, now: datetime, limit: int, after: tuple[datetime, str] | None = None
    ) -> tuple[Conversation, ...]:
        """Conversations by last activity, newest first; `after` is the (last activity, id) of the last page's end."""
        ...

    def purge(self, scope: Scope, target: Target) -> Receipt:
        """Remove the target from every file of the store, blobs included.

        Raises:
            Unavailable: the store is busy; nothing was removed.
        """
        ...


class PendingRow(NamedTuple):
    """A row that waits for its vector: whose it is, its text, how often embedding it failed.

    `number` is what the store that gave it may know it by; it means nothing to others.
    """

    scope: Scope
    key: RowKey
    text: str
    attempts: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True)
class StoreState:
    """What the operator may know of a store, all users together."""

    counts: dict[str, int] = field(default_factory=dict)
    embedder: str | None = None
    dimensions: int | None = None
    pending: int = 0
    failed: int = 0
    last_failure: str | None = None
    problems: tuple[str, ...] = ()


class Upkeep(Protocol):
    """The operator's side of a store: work after the commit, over all users. Not reachable through a user's handle."""

    def claim(self, limit: int, now: datetime, lease_seconds: float) -> tuple[PendingRow, ...]:
        """Rows that wait for a vector and that no other worker has claimed; the claim ends after `lease_seconds`."""
        ...

    def put_vectors(self, model: str, done: Sequence[tuple[PendingRow, np.ndarray]]) -> int:
        """Store vectors (float32, (dimensions,)) of rows that still wait; returns how many were stored.

        Raises:
            Conflict: the store holds vectors of another model or another number of dimensions.
        """
        ...

    def embedding_failed(self, rows: Sequence[PendingRow], why: str, retry_at: datetime) -> None:
        """Note a failure, visible in `state`, and release the claims so that the rows are tried again."""
        ...

    def reset_vectors(self) -> int:
        """Drop all vectors and queue every row again; returns how many rows wait."""
        ...

    def expire(self, now: datetime, limit: int = 1000) -> int:
        """Purge turns whose time to live is over, finish what earlier purges left; returns how many turns went."""
        ...

    def blob_refs(self) -> Iterator[tuple[Scope, str]]:
        """Owner and digest of every file that a turn refers to."""
        ...

    def collect(self, scope: Scope, digests: Collection[str], before: datetime) -> int:
        """Delete those of the owner's blobs that no turn refers to and that were written before that moment.

        Both are looked at while no commit of the owner can come between. Returns how many went.
        """
        ...

    def collect_strays(self, found: Mapping[str, Collection[str]], before: datetime) -> int:
        """As `collect`, for blobs by owner's key (`Blobs.key`), of keys that are no owner's in the store."""
        ...

    def scopes(self) -> Iterator[Scope]:
        """Every owner in the store."""
        ...

    def labelled(
        self, realm: str, label: str, now: datetime, before: datetime | None, limit: int
    ) -> tuple[tuple[Scope, str, str], ...]:
        """Owner, conversation and id of turns of a realm that have a label, over all owners, by their start.

        Only unexpired ones, and with `before` only those that start before that moment.
        """
        ...

    def state(self, now: datetime, check: bool = False) -> StoreState:
        """Counts and problems; with `check`, a full look through the store's structures."""
        ...

    def reindex(self) -> int:
        """Rebuild every index from the rows; returns how many rows were indexed."""
        ...

    def identity(self) -> str:
        """A random name of this store, the same for as long as it exists; told to a place of blobs that is marked."""
        ...

    def scrub(self) -> tuple[str, ...]:
        """Rewrite or overwrite what removals left in unused places of the files; says in a sentence what is left."""
        ...

    def turn_keys(self, scope: Scope, after: int = 0, limit: int = 1000) -> tuple[TurnKey, ...]:
        """The owner's turns that arrived after the arrival number `after`, in that order, expired ones too."""
        ...

    def moved(self, scope: Scope, keys: Sequence[TurnKey]) -> tuple[MovedTurn, ...]:
        """The turns whole, as they are now, in the order of `keys`, expired ones too; those gone are left out."""
        ...

    def receive(self, scope: Scope, turns: Sequence[MovedTurn], model: str | None) -> int:
        """Take in turns of another store in one transaction; returns how many are new or replaced.

        They arrive in the order given, keep their positions, and are told from what is there as by `Store.commit`. A
        turn that is there with the same digest only gets the feedback given, in place of its own, and vectors for
        rows that wait. Rows must have their terms; rows without a vector are queued. `model` made the vectors. Files'
        bytes are not asked for: they are put before, and what the other store lost stays lost.

        Raises:
            Conflict: another turn is recorded under one of the ids, the conversation is another app's, or the store
                holds vectors of another model; nothing was taken in.
        """
        ...

    def tombstones(self, scope: Scope) -> Mapping[bytes, Gone]:
        """What is remembered of removed turns: `threefold.model.retention.tombstone` of each, and why it went."""
        ...

    def bury(self, scope: Scope, tombstones: Mapping[bytes, Gone]) -> None:
        """Remember removals of another store; turns that are there stay."""
        ...

    def close(self) -> None:
        """Release files and connections; safe to call twice."""
        ...


class Backend(Store, Upkeep, Protocol):
    """Both sides of one store."""


class Blobs(Protocol):
    """Immutable bytes by content (SHA-256 in hex), kept apart for each owner.

    Every method raises Unavailable where the place cannot be reached or used.
    """

    @property
    def place(self) -> str:
        """Where the bytes are, for people to read: a folder, a URL without credentials, `memory`."""
        ...

    def key(self, scope: Scope) -> str:
        """The name under which an owner's bytes are kept; it does not tell who that is."""
        ...

    def put(self, scope: Scope, data: bytes) -> str:
        """Keep `data` durably and return its digest.

        Putting the same bytes again changes nothing but their time of writing, which is an hour old at most then: what
        was just put is never taken for something left over.
        """
        ...

    def get(self, scope: Scope, digest: str) -> bytes:
        """The bytes, checked against the digest.

        Raises:
            NotFound: no such blob for this owner. IntegrityError: the bytes are not what was put.
        """
        ...

    def has(self, scope: Scope, digest: str) -> bool:
        """Whether the owner has this blob."""
        ...

    def link(self, scope: Scope, digest: str, seconds: int) -> str | None:
        """A URL at which anyone can read the bytes for so long; None where this kind of place has none.

        Raises:
            NotFound: no such blob for this owner.
        """
        ...

    def delete(self, scope: Scope, digest: str) -> bool:
        """Remove a blob; False where there was none."""
        ...

    def sweep(self, scope: Scope, keep: Collection[str]) -> int:
        """Remove every blob of the owner but those in `keep`, unfinished ones too; returns how many went."""
        ...

    def digests(self, scope: Scope) -> Iterator[tuple[str, datetime]]:
        """Digest and time of writing of every blob of the owner."""
        ...

    def stale(self, before: datetime) -> Iterator[tuple[str, str]]:
        """(owner's key, name) of all blobs that were written before that moment, one owner after the other.

        The name of a blob is its digest; unfinished ones have names of their own.
        """
        ...

    def discard(self, owner: str, names: Collection[str], before: datetime) -> int:
        """Remove those of an owner's blobs, by key and names, that were written before; returns how many went."""
        ...


class Redactor(Protocol):
    """A rule by which texts are redacted before anything is stored of them."""

    def __call__(self, text: str, name: str = "") -> str:
        """`text` with `[redacted: kind]` in place of what is not to be kept; the same for the same text.

        `name` is what the text stands under, such as the key of a JSON object: some are told by it alone. A text that
        was redacted already stays as it is.
        """
        ...


class Extractor(Protocol):
    """Reads the text of files."""

    def __call__(self, data: bytes, mime: str | None = None, name: str = "") -> Extracted:
        """The text of a file as Markdown. `mime` and `name` may tell what it is, where its bytes do not.

        Raises:
            InvalidInput: it is damaged, encrypted, too large, or of a kind that cannot be read (here).
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors. `name` identifies model and version: vectors of different names are never mixed."""

    name: str
    dimensions: int

    @property
    def ready(self) -> bool:
        """Whether `embed` answers without loading a model first."""
        ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Float32 array of shape (len(texts), dimensions), in the order of `texts`, rows of length 1 or 0."""
        ...


class Objects(Protocol):
    """Objects of every namespace as one scope may see them, each looked up at its owner when it is asked for."""

    def describe(self, refs: Sequence[str], size: int = 300) -> Mapping[str, Shown]:
        """What references name, by reference, with at most about `size` characters of text each.

        Never raises for what cannot be seen: `Shown.standing` says so. References are long forms.
        """
        ...

    def resolve(self, ref: str) -> Resolved:
        """The object itself.

        Raises:
            InvalidInput: malformed. NotFound: not there (any more), or nobody publishes its namespace. Forbidden: it is
                not this scope's to see.
        """
        ...


class ChatModel(Protocol):
    """A language model that is talked to. Nothing needs one. `name` says which it is, for people to read.

    Both methods may be cancelled; the connection is given up then. Both raise `Unavailable` where the model cannot be
    reached, is busy or takes too long, and `InvalidInput` where it refuses the key, its name or the content.
    """

    name: str

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Reply:
        """The answer, whole. With a `schema` (JSON Schema of an object) it is JSON that fits it, in `Reply.data`."""
        ...

    def stream(
        self, messages: Sequence[Message], tools: Sequence[Tool] = (), max_tokens: int | None = None
    ) -> AsyncIterator[str | Reply]:
        """The pieces of its text as they come, and at the end the answer whole."""
        ...

    async def close(self) -> None:
        """Release connections; safe to call twice."""
        ...


class Summarizer(Protocol):
    """Makes a summary of messages longer, or a first one."""

    def __call__(self, before: str, messages: Sequence[tuple[str, str]], tokens: int) -> str:
        """A summary of what `before` (a summary, or empty) tells and of `messages` (role, text), oldest first.

        In the language of the messages, in at most so many `tokens`.
        """
        ...
