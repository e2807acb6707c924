"""Documents: what is known of one, its chunks, and what taking one in came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from threefold.model.paging import Cursor
from threefold.model.ref import ObjectRef
from threefold.model.times import iso

Strategy = Literal["fixed", "recursive", "sentence", "paragraph"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


class Extracted(NamedTuple):
    """The text of a file as Markdown. `pages` are the places where pages begin, the first at 0; empty without pages.

    `literal` says that the text is the decoded file itself. `warnings` say in a sentence what could not be read.
    """

    text: str
    mime: str
    title: str | None = None
    pages: tuple[int, ...] = ()
    literal: bool = True
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it is kept. Sizes are those of its text; `digest` is the SHA-256 of that in UTF-8.

    `strategy`, `chunk_tokens` and `overlap` say how it was cut. `created` is when the source came first, `updated`
    when it changed last. `original` says whether the bytes that were given are kept.
    """

    id: str
    source: str
    title: str
    mime: str
    strategy: Strategy
    chunk_tokens: int
    overlap: int
    chunks: int
    tokens: int
    characters: int
    digest: str
    created: datetime
    updated: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)
    original: bool = True
    pages: int = 0
    app: str | None = None
    expires: datetime | None = None

    @property
    def cursor(self) -> Cursor:
        """Where a page that ends with it ended."""
        return Cursor(self.updated, self.id)

    @property
    def ref(self) -> str:
        """The document's reference."""
        return str(ObjectRef("doc", self.id))

    def as_json(self) -> dict[str, Any]:
        """The document as plain JSON values."""
        return {
            "id": self.id, "ref": self.ref, "source": self.source, "title": self.title, "mime": self.mime,
            "metadata": dict(self.metadata), "strategy": self.strategy, "chunk_tokens": self.chunk_tokens,
            "overlap": self.overlap, "chunks": self.chunks, "tokens": self.tokens, "characters": self.characters,
            "pages": self.pages, "digest": self.digest, "original": self.original, "app": self.app,
            "created": iso(self.created), "updated": iso(self.updated),
            "expires": None if self.expires is None else iso(self.expires),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk: `text` is `start` to `end` of the document's text, `number` its place among the chunks from 0.

    `headings` are those that all of it stands under, the outermost first; `page` is where it begins, from 1.
    """

    ref: str
    number: int
    text: str
    start: int
    end: int
    headings: tuple[str, ...] = ()
    page: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The chunk as plain JSON values."""
        return {
            "ref": self.ref, "number": self.number, "text": self.text, "start": self.start, "end": self.end,
            "headings": list(self.headings), "page": self.page,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a document: `kept` of its `chunks` were there already, word for word."""

    id: str
    ref: str
    source: str
    outcome: Literal["created", "replaced", "unchanged"]
    chunks: int
    kept: int
    tokens: int
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain JSON values."""
        return {
            "id": self.id, "ref": self.ref, "source": self.source, "outcome": self.outcome, "chunks": self.chunks,
            "kept": self.kept, "tokens": self.tokens, "warnings": list(self.warnings),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Library:
    """How much there is: documents, chunks, and tokens and characters of their texts; documents by type."""

    documents: int = 0
    chunks: int = 0
    tokens: int = 0
    characters: int = 0
    mimes: Mapping[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The figures as plain JSON values."""
        return {
            "documents": self.documents, "chunks": self.chunks, "tokens": self.tokens,
            "characters": self.characters, "mimes": dict(self.mimes),
        }  # fmt: skip
