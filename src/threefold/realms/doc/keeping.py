"""How a document is kept: one turn of a conversation of its own in the realm `doc`, its chunks as rows. Pure.

The bytes that were given are a file of the turn; the text is another one where it is not what the bytes say.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from threefold.errors import IntegrityError, InvalidInput
from threefold.model.codec import digest_of, log_to_json
from threefold.model.document import Document, Passage, Strategy
from threefold.model.record import Block, FileEntry, TurnLog, TurnRecord
from threefold.model.ref import ObjectRef
from threefold.model.rows import Row
from threefold.model.times import iso, parse_moment
from threefold.realms.doc.conditions import label, labels_of
from threefold.text.chunking import Chunk
from threefold.text.terms import index_terms

TURN: Final = "document"
ORIGINAL: Final = "original"
TEXT: Final = "text"
TEXT_MIME: Final = "text/markdown; charset=utf-8"
_TYPE: Final = "doc.chunk"
_ROLE: Final = "note"
_PARTED: Final = " › "
# The longest title, and the longest line above a chunk.
MAX_TITLE: Final = 300
_MAX_ABOVE: Final = 600


@dataclass(frozen=True, slots=True)
class Draft:
    """A document about to be kept, checked and redacted. `original` are the bytes that were given, None to keep none.

    `pages` are the places in `text` where pages begin.
    """

    id: str
    source: str
    title: str
    mime: str
    text: str
    original: bytes | None
    strategy: Strategy
    chunk_tokens: int
    overlap: int
    metadata: Mapping[str, Any] = field(default_factory=dict)
    pages: Sequence[int] = ()
    app: str | None = None
    expires: datetime | None = None
    warnings: tuple[str, ...] = ()
    redacted: Mapping[str, int] = field(default_factory=dict)

    @property
    def files(self) -> dict[str, tuple[bytes, str]]:
        """The bytes to keep with their type, by path."""
        text = self.text.encode()
        if self.original is None:
            return {TEXT: (text, TEXT_MIME)}
        found = {ORIGINAL: (self.original, self.mime)}
        return found if self.original == text else {**found, TEXT: (text, TEXT_MIME)}

    @property
    def edition(self) -> str:
        """What tells it from another edition: all that was given, not when."""
        told = [self.source, self.title, self.mime, self.strategy, self.chunk_tokens, self.overlap, self.app,
                dict(self.metadata), self.expires and iso(self.expires), list(self.pages), dict(self.redacted),
                self.warnings,
                {path: hashlib.sha256(data).hexdigest() for path, (data, _) in self.files.items()}]  # fmt: skip
        return digest_of(told)


def to_record(draft: Draft, chunks: Sequence[Chunk], created: datetime, now: datetime, key: str = "") -> TurnRecord:
    """What is stored of a document; `created` is when its source came first, `key` tells what was given."""
    files = tuple(
        FileEntry(path, hashlib.sha256(data).hexdigest(), len(data), mime) for path, (data, mime) in draft.files.items()
    )
    rows = tuple(_rows(draft, chunks, now))
    about = {"source": draft.source, "title": draft.title}
    log = TurnLog(
        turn=TURN,
        started=now,
        ended=now,
        status="completed",
        blocks=(Block("doc.document", TURN, now, meta=about),),
        counts={"doc.document": 1, _TYPE: len(rows)},
        redacted=dict(sorted(draft.redacted.items())),
    )
    body = {
        **about, "mime": draft.mime, "metadata": dict(draft.metadata), "strategy": draft.strategy,
        "chunk_tokens": draft.chunk_tokens, "overlap": draft.overlap, "chunks": len(rows),
        "tokens": sum(chunk.tokens for chunk in chunks), "characters": len(draft.text), "pages": len(draft.pages),
        "digest": hashlib.sha256(draft.text.encode()).hexdigest(), "created": iso(created),
        "warnings": list(draft.warnings), "given": key, "edition": draft.edition,
    }  # fmt: skip
    return TurnRecord(
        conversation=draft.id,
        turn=TURN,
        state="minimal",
        log=log,
        rows=rows,
        files=files,
        replay=body,
        digest=digest_of([log_to_json(log), body]),
        head="",
        title=draft.title,
        app=draft.app,
        expires=draft.expires,
        labels=(label("doc", draft.id), source_label(draft.source), *labels_of(draft.metadata)),
    )


def source_label(source: str) -> str:
    """The label of documents from a source."""
    return label("source", json.dumps(source))


def _rows(draft: Draft, chunks: Sequence[Chunk], at: datetime) -> Iterable[Row]:
    seen: Counter[str] = Counter()
    for seq, chunk in enumerate(chunks):
        text = draft.text[chunk.start : chunk.end]
        name = blake2b(text.encode(), digest_size=6).hexdigest()
        seen[name] += 1
        path = name if seen[name] == 1 else f"{name}-{seen[name]}"
        above = above_of(draft.title, chunk.headings)
        place = f"{chunk.start}-{chunk.end}" + page_of(draft.pages, chunk.start)
        yield Row(seq, _ROLE, _TYPE, path, text, at, place, above, index_terms(f"{above}\n{text}"))


def above_of(title: str, headings: Sequence[str]) -> str:
    """What a chunk is read under: the document's title and the headings, of which the first may be the title."""
    below = headings[1:] if headings[:1] == (title,) else headings
    return _PARTED.join(part.replace("›", ">") for part in (title, *below))[:_MAX_ABOVE]


def page_of(pages: Sequence[int], start: int) -> str:
    """`@` and the page, from 1, on which a place is; empty where there are no pages."""
    return f"@{sum(page <= start for page in pages)}" if pages else ""


def from_record(stored: TurnRecord) -> Document:
    """The document that was stored.

    Raises:
        IntegrityError: it is none.
    """
    body = stored.replay
    try:
        return Document(
            id=stored.conversation,
            updated=stored.log.ended,
            created=parse_moment(body["created"], "created"),
            original=any(file.path == ORIGINAL for file in stored.files),
            app=stored.app,
            expires=stored.expires,
            **{name: body[name] for name in ("source", "title", "mime", "metadata", "strategy", "chunk_tokens",
                                             "overlap", "chunks", "tokens", "characters", "pages", "digest")},
        )  # fmt: skip
    except (KeyError, TypeError, InvalidInput) as error:
        raise IntegrityError(f"the document {stored.conversation!r} is damaged: {error!r}") from None


def passage_of(id_: str, row: Row) -> Passage:
    """The chunk that a row is.

    Raises:
        IntegrityError: it is none.
    """
    try:
        span, _, page = (row.batch or "").partition("@")
        start, _, end = span.partition("-")
        _, *headings = (row.author or "").split(_PARTED)
        ref = str(ObjectRef("doc", id_, fragment=row.path))
        number = int(page) if page else None
        return Passage(ref, row.seq, row.text, int(start), int(end), tuple(headings), number)
    except ValueError as error:
        raise IntegrityError(f"the chunk {row.path!r} of document {id_!r} is damaged: {error!r}") from None
