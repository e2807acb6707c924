"""Which embedder the command line works with: `--embedder`, else the environment, else the bundled one."""

from __future__ import annotations

import argparse
import os
from typing import Any

from threefold.embedders.opening import settings_for
from threefold.errors import InvalidInput


def add_options(group: Any, fresh: bool) -> None:
    """Options that name it. A key has none: what stands in a command line can be read by others."""
    missing = None if fresh else argparse.SUPPRESS
    group.add_argument(
        "--embedder",
        metavar="NAME",
        default=missing,
        help="bundled, onnx, multilingual, none, or http(s)://… of a server (default: $THREEFOLD_EMBEDDER, then "
        "bundled); its key is $THREEFOLD_EMBEDDER_KEY",
    )
    group.add_argument(
        "--embedder-model",
        metavar="MODEL",
        default=missing,
        help="the server's model, or the folder of an ONNX model (default: $THREEFOLD_EMBEDDER_MODEL)",
    )


def chosen(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of `Config`; none where nothing was said.

    What the environment says beside the name is left out where the embedder takes none.

    Raises:
        InvalidInput: a number is none.
    """
    name = options.embedder or os.environ.get("THREEFOLD_EMBEDDER") or None
    own = {} if options.embedder_model is None else {"embedder_model": options.embedder_model}
    if name is None:
        return own
    found = {
        "embedder_model": os.environ.get("THREEFOLD_EMBEDDER_MODEL") or None,
        "embedder_key": os.environ.get("THREEFOLD_EMBEDDER_KEY") or None,
        "embedder_dimensions": _number("THREEFOLD_EMBEDDER_DIMENSIONS"),
    }
    known = {k: v for k, v in found.items() if k in settings_for(name)}
    return {"embedder": None if name == "none" else name, **known, **own}


def _number(variable: str) -> int | None:
    given = os.environ.get(variable)
    if given and not given.isdecimal():
        raise InvalidInput(f"{variable} {given!r} must be a number of dimensions, or empty for the model's own")
    return int(given) if given else None
