"""The log on standard error: a line for each request, as JSON or plain."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from threefold.model.times import iso


class Lines(logging.Formatter):
    """A line for each record: JSON, or plain for people. What failed is told without the words of the error."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        noted: dict[str, Any] = getattr(record, "noted", {})
        at = iso(datetime.fromtimestamp(record.created, UTC))
        if self._as_json:
            said = {} if noted else {"message": record.getMessage()}
            told = {"at": at, "level": record.levelname.lower(), "logger": record.name, **said, **noted}
            return json.dumps(told, ensure_ascii=False)
        if noted:
            line = "{method} {route} {status} {ms} ms {request}".format(**noted)
            return f"{at} {line}"
        return f"{at} {record.levelname} {record.name}: {record.getMessage()}"


def log_to_stderr(as_json: bool) -> None:
    """Log what this server does on standard error, and of libraries only what goes wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines(as_json))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("threefold").setLevel(logging.INFO)
    # The protocol's library has what was sent in its messages.
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)
