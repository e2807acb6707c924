"""The documents of one scope: taken in, found, cited, removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Any

from threefold.errors import Forbidden, InvalidInput, NotFound
from threefold.model.clean import storable
from threefold.model.document import Document, Ingested, Library, Passage, Strategy
from threefold.model.paging import Cursor
from threefold.model.query import LISTS, ListName
from threefold.model.record import TurnRecord
from threefold.model.ref import ObjectRef
from threefold.model.resolved import Resolved, Shown
from threefold.model.retention import Receipt, Target
from threefold.model.scope import Scope
from threefold.realms.doc import places
from threefold.realms.doc.conditions import conditions
from threefold.realms.doc.folders import Folder, IngestedFolder, ingest_folder, watch_folder
from threefold.realms.doc.ingesting import Settings, given, ingest
from threefold.realms.doc.keeping import from_record, passage_of
from threefold.realms.doc.quotations import context_of
from threefold.realms.doc.resolving import referred, resolved, show
from threefold.realms.doc.retrieving import MAX_LIMIT, Asked, Retrieved, retrieve
from threefold.realms.doc.shelf import Shelf
from threefold.realms.places import SEEN_FROM, Place
from threefold.realms.wiring import Ports


class Doc:
    """Everything one scope can do with documents.

    `place` is where documents of this handle lie: a user's own, or what an operator's handle stands for. A user sees
    those of the tenant and of everyone too, and changes none of them.
    """

    def __init__(self, scope: Scope, ports: Ports, place: Place = "own") -> None:
        self._scope, self._ports, self._place = scope, ports, place
        self._shelf = Shelf.at(scope, ports, place)

    # Writing.

    def ingest(
        self,
        content: str | bytes | PathLike[str],
        source: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        strategy: Strategy = "recursive",
        chunk_tokens: int = 512,
        overlap: int = 50,
        title: str | None = None,
        mime: str | None = None,
        ttl: timedelta | None = None,
    ) -> Ingested:
        """Take a document in; the same source again replaces it, and changes nothing where nothing changed.

        Args:
            content: the `pathlib.Path` of a file; or a text (Markdown or plain), or bytes, which need a `source`. A
                `str` is a text always, never the name of a file.
            source: where it comes from, such as a URL: what makes it the same document. Of a file its path.
            metadata: a JSON object that `retrieve` can filter by.
            strategy: `recursive` (headings, then paragraphs, then sentences), `paragraph`, `sentence` or `fixed`.
            chunk_tokens: the most tokens of a chunk, 16 to 8,192.
            overlap: of how many tokens before its own a chunk is given too, up to half of `chunk_tokens`.
            title: by default what the document says.
            mime: its type; by default by its bytes and its name.
            ttl: how long it is kept; by default until it is removed.

        Raises:
            InvalidInput: an argument is malformed, or the file is damaged, encrypted, too large, or of a kind that
                cannot be read; the message says what to install. NotFound, Unavailable: there is no such file, or it
                cannot be read.
        """
        settings = Settings(strategy, chunk_tokens, overlap)
        what = given(content, source, title, mime, metadata, ttl)
        return ingest(self._scope, self._ports, self._place, what, settings)

    def ingest_folder(
        self,
        path: str | PathLike[str],
        metadata: Mapping[str, Any] | None = None,
        strategy: Strategy = "recursive",
        chunk_tokens: int = 512,
        overlap: int = 50,
        prune: bool = False,
        source: str | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> IngestedFolder:
        """Take in the files of a folder and its folders; those that did not change are left as they are.

        Hidden files, links, and what cannot be read are skipped, and said why. A file's source is its path, or with
        `source` that and its path within the folder. With `prune` documents whose files are gone from the folder are
        removed. `on_progress` is told how many files of how many are done. Others as in `ingest`.

        Raises:
            NotFound: there is no such folder. InvalidInput: an argument is malformed.
        """
        settings = Settings(strategy, chunk_tokens, overlap)
        return ingest_folder(self, Folder(path, source), metadata, settings, prune, on_progress)

    def watch_folder(
        self,
        path: str | PathLike[str],
        metadata: Mapping[str, Any] | None = None,
        strategy: Strategy = "recursive",
        chunk_tokens: int = 512,
        overlap: int = 50,
        prune: bool = False,
        source: str | None = None,
        interval: float = 1.0,
        stop: Callable[[], bool] | None = None,
        on_change: Callable[[IngestedFolder], None] | None = None,
    ) -> None:
        """`ingest_folder`, and again whenever a file is changed, until `stop` says so; `on_change` is told each time.

        Times and sizes of the files are looked at every `interval` seconds. Stopping it between leaves nothing half
        done.
        """
        settings = Settings(strategy, chunk_tokens, overlap)
        watch_folder(self, Folder(path, source), metadata, settings, prune, interval, stop, on_change)

    def remove(self, id_or_source: str) -> Receipt:
        """Remove a document from every file of the store; the receipt lists what went.

        Raises:
            NotFound: there is none. Forbidden: it is shared, and this is a user's handle.
        """
        document = self.get(id_or_source)
        if places.of_id(document.id) != self._place:
            raise Forbidden(f"document {document.id!r} is shared; it is the operator's to remove")
        return self._ports.store.purge(self._shelf.where, Target(conversation=document.id))

    def clear(self) -> Receipt:
        """Remove all documents of this handle, and nothing else."""
        stores, leftovers = Counter[str](), dict[str, None]()
        for document in list(self._shelf.all()):
            done = self._ports.store.purge(self._shelf.where, Target(conversation=document.id))
            stores.update(done.stores)
            leftovers.update(dict.fromkeys(done.leftovers))
        return Receipt("documents", dict(stores), tuple(leftovers))

    # Reading.

    def retrieve(
        self,
        query: str,
        limit: int = 5,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the interface's name
        source: str | Sequence[str] | None = None,
        explain: bool = False,
        lists: Sequence[ListName] = LISTS,
    ) -> Retrieved:
        """The chunks that answer a question, best first; of the documents of the tenant and of everyone too.

        Args:
            query: a question or words, in any language.
            limit: how many, up to 1,000.
            filter: what must hold of the metadata, such as `{"kind": "memo", "year": {"gte": 2020, "lt": 2024}}`;
                operations are `eq`, `ne`, `gt`, `gte`, `lt`, `lte`, `in` and `exists`, and all must hold.
            source: only documents from this source, or one of these.
            explain: show with each hit how its score came about.
            lists: which candidate lists to use.

        Raises:
            InvalidInput: naming the argument that is off; an empty `query` is.
        """
        return retrieve(self._scope, self._ports, self._place, _asked(query, limit, filter, source, explain, lists))

    def get_context(
        self,
        query: str,
        limit: int = 5,
        max_tokens: int | None = None,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        source: str | Sequence[str] | None = None,
    ) -> str:
        """What answers a question as one text for a prompt: passages, quoted, each under a line that says whence it is.

        Passages that touch are joined. With `max_tokens` the least relevant are left out, and the last one is cut.
        """
        if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens is True or max_tokens < 1):
            raise InvalidInput(f"max_tokens {max_tokens!r} must be a whole number from 1, or None for no limit")
        return context_of(self.retrieve(query, limit, filter, source).hits, max_tokens)

    def get(self, id_or_source: str) -> Document:
        """One document, by its id or its source; a user's own before those that are shared.

        Raises:
            NotFound: there is none.
        """
        return from_record(self._found(id_or_source)[1])

    def text(self, id_or_source: str) -> str:
        """The text of a document, as its chunks were cut from it.

        Raises:
            NotFound: there is none. IntegrityError: the bytes are not those that were kept.
        """
        shelf, record = self._found(id_or_source)
        return shelf.text(record)

    def chunks(self, id_or_source: str) -> tuple[Passage, ...]:
        """The chunks of a document in order.

        Raises:
            NotFound: there is none.
        """
        _, record = self._found(id_or_source)
        return tuple(passage_of(record.conversation, row) for row in record.rows)

    def list(
        self, limit: int = 20, after: Document | Cursor | None = None, shared: bool = False
    ) -> tuple[Document, ...]:
        """Documents of this handle, those last changed first; `after` is the last one of the page before.

        With `shared` those of the tenant and of everyone too.
        """
        _check_limit(limit)
        cursor = None if after is None else (after.cursor.at, after.cursor.id)
        found: list[Document] = []
        for place in SEEN_FROM[self._place] if shared else (self._place,):
            found += Shelf.at(self._scope, self._ports, place).page(limit, cursor)
        return tuple(sorted(found, key=lambda each: (each.updated, each.id), reverse=True)[:limit])

    def stats(self) -> Library:
        """How much there is of this handle's documents."""
        found = list(self._shelf.all())
        return Library(
            documents=len(found),
            chunks=sum(each.chunks for each in found),
            tokens=sum(each.tokens for each in found),
            characters=sum(each.characters for each in found),
            mimes=dict(sorted(Counter(each.mime for each in found).items())),
        )

    # References.

    def resolve(self, ref: str) -> Resolved:
        """The document or chunk that a reference names.

        Raises:
            InvalidInput: it is no reference to a document. NotFound (Expired, Purged): it is not there (any more).
        """
        parsed, _, record = referred(self._scope, self._ports, self._place, ref)
        return resolved(parsed, record)

    def show(self, refs: Sequence[ObjectRef], size: int = 300) -> Mapping[str, Shown]:
        """What parsed references name, by reference, with at most `size` characters of text; see `Shown`."""
        return show(self._scope, self._ports, self._place, refs, size)

    def place(self, ref: str) -> Scope:
        """The owner of the bytes of a document. Raises as `resolve`."""
        return referred(self._scope, self._ports, self._place, ref)[1].where

    def read(self, ref: str) -> bytes:
        """The exact bytes that were given, where they are kept, else the text; of a chunk its text.

        Raises:
            as `resolve`; IntegrityError: the bytes are not those that were kept.
        """
        parsed, shelf, record = referred(self._scope, self._ports, self._place, ref)
        found = resolved(parsed, record)
        return found.as_bytes() if found.file is None else self._ports.blobs.get(shelf.where, found.file.digest)

    # Inside.

    def _found(self, id_or_source: object) -> tuple[Shelf, TurnRecord]:
        if not isinstance(id_or_source, str):
            raise InvalidInput(f"id_or_source must be text, not {type(id_or_source).__name__}")
        for place in SEEN_FROM[self._place]:
            shelf = Shelf.at(self._scope, self._ports, place)
            ids = [places.document_id(place, id_or_source, self._scope.app)]
            if places.is_id(id_or_source) and places.of_id(id_or_source) == place:
                ids.insert(0, id_or_source)
            for id_ in ids:
                if (record := shelf.record(id_)) is not None:
                    return shelf, record
        raise NotFound(f"document {id_or_source!r}: no such document; list() names them by id and source")


def _asked(
    query: str, limit: int, filter_: Mapping[str, Any] | None, source: str | Sequence[str] | None, explain: bool,
    lists: Sequence[ListName],
) -> Asked:  # fmt: skip
    if not isinstance(query, str):
        raise InvalidInput(f"query must be text, not {type(query).__name__}")
    if not query.strip():
        raise InvalidInput("query is empty; ask a question, or give words to look for")
    _check_limit(limit)
    sources = (source,) if isinstance(source, str) else tuple(source or ())
    if not all(isinstance(each, str) for each in sources):
        raise InvalidInput("source must be a text, or a list of texts")
    return Asked(storable(query), limit, conditions(filter_), sources, lists, explain)


def _check_limit(limit: int) -> None:
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit {limit!r} must be a whole number from 1 to {MAX_LIMIT:,}")
