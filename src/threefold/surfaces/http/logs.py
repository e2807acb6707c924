"""The log on standard error: a line for each request, as JSON or plain."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from traceback import walk_tb
from typing import Any

from threefold.model.times import iso


class Lines(logging.Formatter):
    """A line for each record: JSON, or plain for people. What failed is told without the words of the error.

    So is what agents, engines and libraries have to say: only their kind of error and their numbers are told.
    """

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        noted: dict[str, Any] = getattr(record, "noted", {})
        at = iso(datetime.fromtimestamp(record.created, UTC))
        if self._as_json:
            said = {} if noted else {"message": message_of(record)}
            told = {"at": at, "level": record.levelname.lower(), "logger": record.name, **said, **noted}
            return json.dumps(told, ensure_ascii=False)
        if noted:
            line = "{method} {route} {status} {ms} ms {request}".format(**noted)
            return f"{at} {line}"
        return f"{at} {record.levelname} {record.name}: {message_of(record)}"


def message_of(record: logging.LogRecord) -> str:
    """What a record says, without anybody's words."""
    if record.name == "threefold" or record.name.startswith("threefold.http"):
        return record.getMessage()
    said, given = str(record.msg).partition("\n")[0], record.args
    if given:
        bare = {k: _bare(v) for k, v in given.items()} if isinstance(given, Mapping) else tuple(map(_bare, given))
        try:
            said %= bare
        except (TypeError, ValueError, KeyError):  # it wants something else at some place
            said = said.partition("%")[0].rstrip()
    kind, _, trace = record.exc_info or (None, None, None)
    if kind is None:
        return said
    *_, (frame, line) = [(None, 0), *walk_tb(trace)]
    where = "" if frame is None else f" at {Path(frame.f_code.co_filename).name}:{line}"
    return f"{said}: {kind.__name__}{where}"


def _bare(value: object) -> object:
    if isinstance(value, BaseException):
        return type(value).__name__
    return value if isinstance(value, int | float) else "…"


def log_to_stderr(as_json: bool) -> None:
    """Log what this server does on standard error, and of libraries only what goes wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(as_json))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("threefold").setLevel(logging.INFO)
    # The protocol's library has what was sent in its messages.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
