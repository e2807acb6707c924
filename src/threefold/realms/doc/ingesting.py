"""Taking a document in: what was given, its text, redacted and cut, kept in one commit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from os import PathLike
from pathlib import Path, PurePath
from typing import Any, Final

from threefold.errors import Conflict, InvalidInput, NotFound, Unavailable
from threefold.model.clean import storable
from threefold.model.codec import digest_of, plain_json
from threefold.model.commit import Outcome
from threefold.model.document import STRATEGIES, Extracted, Ingested, Strategy
from threefold.model.record import TurnRecord
from threefold.model.ref import ObjectRef
from threefold.model.scope import Scope, check_id
from threefold.realms.doc import places
from threefold.realms.doc.keeping import MAX_TITLE, TEXT_MIME, Draft, from_record, to_record
from threefold.realms.doc.shelf import Shelf
from threefold.realms.places import Place
from threefold.realms.redacting import Pass
from threefold.realms.wiring import Ports
from threefold.text.chunking import chunk
from threefold.text.quoting import named

# Larger files are refused before they are read.
MAX_BYTES: Final = 64 * 2**20
MAX_SOURCE: Final = 1_000
_TRIES: Final = 5
_TOKENS: Final = range(16, 8_193)


@dataclass(frozen=True, slots=True)
class Settings:
    """How a document is cut, checked: see `Doc.ingest`."""

    strategy: Strategy = "recursive"
    chunk_tokens: int = 512
    overlap: int = 50

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            raise InvalidInput(f"strategy {self.strategy!r} must be one of {', '.join(STRATEGIES)}")
        if not _whole(self.chunk_tokens) or self.chunk_tokens not in _TOKENS:
            raise InvalidInput(
                f"chunk_tokens {self.chunk_tokens!r} must be a whole number from {_TOKENS[0]} to {_TOKENS[-1]:,}"
            )
        if not _whole(self.overlap) or not 0 <= self.overlap <= self.chunk_tokens // 2:
            raise InvalidInput(
                f"overlap {self.overlap!r} must be a whole number from 0 to {self.chunk_tokens // 2}, half a chunk"
            )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Given:
    """What is to be taken in: the bytes, where they are from, and a name that may tell their type.

    `title`, `mime` and `metadata` are what the caller says of them.
    """

    data: bytes
    source: str
    name: str
    title: str | None = None
    mime: str | None = None
    metadata: Mapping[str, Any] | None = None
    ttl: timedelta | None = None


def given(content: object, source: object, title: object, mime: object, metadata: object, ttl: object) -> Given:
    """The arguments of `Doc.ingest`, checked; a file is read.

    Raises:
        InvalidInput: one is malformed. NotFound, Unavailable: there is no such file, or it cannot be read.
    """
    if isinstance(content, PathLike):
        path = Path(content)
        data = read_file(path)
        source = path.resolve().as_posix() if source is None else source
        name = path.name
    elif isinstance(content, str | bytes | bytearray):
        kind = "text" if isinstance(content, str) else "bytes"
        if source is None:
            raise InvalidInput(
                f"source is missing: {kind} need one, such as a URL; to take in a file, give its pathlib.Path"
            )
        data = storable(content).encode() if isinstance(content, str) else bytes(content)
        name = "" if isinstance(content, str) and mime is None else PurePath(str(source)).name
        mime = TEXT_MIME if isinstance(content, str) and mime is None else mime
    else:
        raise InvalidInput(
            f"content must be a text, bytes, or the pathlib.Path of a file, not {type(content).__name__}"
        )
    return Given(data, _source(source), name, _optional(title, "title"), _optional(mime, "mime"), _metadata(metadata),
                 _ttl(ttl))  # fmt: skip


def read_file(path: Path) -> bytes:
    """The bytes of a file.

    Raises:
        NotFound: there is none. InvalidInput: it is a folder, or too large. Unavailable: it cannot be read.
    """
    try:
        folder, size = path.is_dir(), path.stat().st_size
        data = path.read_bytes() if not folder and size <= MAX_BYTES else b""
    except FileNotFoundError:
        raise NotFound(f"content: there is no file {str(path)!r}") from None
    except (OSError, ValueError) as error:
        raise Unavailable(f"content: {str(path)!r} cannot be read: {error}") from None
    if folder:
        raise InvalidInput(f"content: {str(path)!r} is a folder; use ingest_folder")
    if size > MAX_BYTES:
        raise InvalidInput(f"content: {str(path)!r} has {size:,} bytes, at most {MAX_BYTES:,} are taken in")
    return data


def _source(value: object) -> str:
    source = check_id(value, "source")
    if len(source.encode()) > MAX_SOURCE:
        raise InvalidInput(f"source is longer than {MAX_SOURCE} bytes; use a shorter one")
    return source


def _optional(value: object, name: str) -> str | None:
    return None if value is None else check_id(value, name)


def _metadata(value: object) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInput(f"metadata must be an object, not {type(value).__name__}")
    return None if value is None else plain_json(dict(value), "metadata")


def _ttl(value: object) -> timedelta | None:
    if value is not None and not (isinstance(value, timedelta) and value > timedelta(0)):
        raise InvalidInput("ttl must be a positive timedelta, or None for no end")
    return value


def ingest(scope: Scope, ports: Ports, place: Place, what: Given, how: Settings) -> Ingested:
    """Keep a document in place of what was known of its source; see `Doc.ingest`."""
    shelf = Shelf.at(scope, ports, place)
    key = _key(what, how)
    if ports.redact is None and what.ttl is None:
        # Nothing is read out of a file that was given just so before.
        known = shelf.light(places.document_id(place, what.source, scope.app))
        if known is not None and known.replay.get("given") == key:
            return _unchanged(known)
    draft = _draft(scope, ports, place, what, how)
    for _ in range(_TRIES):
        before = shelf.record(draft.id)
        if before is not None and before.replay["edition"] == draft.edition:
            return _unchanged(before)
        now = ports.clock()
        created = now if before is None else from_record(before).created
        chunks = chunk(draft.text, how.strategy, how.chunk_tokens, how.overlap)
        record = to_record(draft, chunks, created, now, key)
        outcome = shelf.put(draft, record, "" if before is None else before.digest)
        if outcome is not None:
            return _outcome(record, before, outcome)
    raise Conflict(f"document {draft.source!r} is being taken in by many at once; try again")


def _key(what: Given, how: Settings) -> str:
    """What tells what was given from what was given before."""
    told = [what.title, what.mime, what.name, what.metadata, what.ttl is None, how.strategy, how.chunk_tokens]
    return digest_of([hashlib.sha256(what.data).hexdigest(), *told, how.overlap])


def _unchanged(record: TurnRecord) -> Ingested:
    return replace(_outcome(record, None, "unchanged"), kept=int(record.replay["chunks"]))


def _outcome(record: TurnRecord, before: TurnRecord | None, outcome: Outcome) -> Ingested:
    known = {row.path for row in before.rows} if before is not None else set()
    return Ingested(
        id=record.conversation,
        ref=str(ObjectRef("doc", record.conversation)),
        source=str(record.replay["source"]),
        outcome=outcome,
        chunks=int(record.replay["chunks"]),
        kept=sum(row.path in known for row in record.rows),
        tokens=int(record.replay["tokens"]),
        warnings=tuple(record.replay["warnings"]),
    )


def _draft(scope: Scope, ports: Ports, place: Place, what: Given, how: Settings) -> Draft:
    if len(what.data) > MAX_BYTES:
        raise InvalidInput(f"content has {len(what.data):,} bytes, at most {MAX_BYTES:,} are taken in")
    found = ports.extract(what.data, what.mime, what.name)
    if not found.text.strip() and not found.warnings:
        raise InvalidInput(f"content of {what.source!r} is empty: there is no text to find it by")
    done = Pass(ports.redact)
    text, pages = _redacted(found, done)
    taken_out = bool(done.counts) or _hidden(what.data, found, done)
    source = done.text(what.source)
    title = done.text(what.title or found.title or PurePath(source).stem or source)
    warnings = tuple(map(done.text, found.warnings))
    if taken_out:
        warnings += ("something was redacted: the bytes that were given are not kept, only the text without it",)
    return Draft(
        id=places.document_id(place, source, scope.app),
        source=source,
        title=named(title, MAX_TITLE) or source[:MAX_TITLE],
        mime=found.mime,
        text=text,
        original=None if taken_out else what.data,
        strategy=how.strategy,
        chunk_tokens=how.chunk_tokens,
        overlap=how.overlap,
        metadata=done.json(what.metadata or {}),
        pages=pages,
        app=scope.app if place == "own" else None,
        expires=None if what.ttl is None else ports.clock() + what.ttl,
        warnings=warnings,
        redacted=done.counts,
    )


def _redacted(found: Extracted, done: Pass) -> tuple[str, tuple[int, ...]]:
    """The text without what is not to be kept, page by page, since places move."""
    text = storable(found.text)
    if not found.pages:
        return done.text(text), ()
    parts = [done.text(text[a:b]) for a, b in zip(found.pages, (*found.pages[1:], len(text)), strict=True)]
    starts = [0]
    for part in parts[:-1]:
        starts.append(starts[-1] + len(part))
    return "".join(parts), tuple(starts)


def _hidden(data: bytes, found: Extracted, done: Pass) -> bool:
    """Whether something is not to be kept that stands in a file beside its text, such as a comment in HTML."""
    if found.literal or not found.mime.startswith("text/"):
        return False
    written = data.decode("utf-8", "replace")
    return done.peek(written) != written
