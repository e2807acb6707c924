"""How a store is opened: its settings, and what the environment says where nothing else does."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from threefold.model.times import now as system_clock
from threefold.ports import ChatModel, Embedder, Summarizer
from threefold.search.rank import Ranking

DEFAULT_TTL = timedelta(days=365)


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
