"""Which chat model the command line works with: `--chat`, else the environment, else none."""

from __future__ import annotations

import argparse
import os
from typing import Any


def add_options(group: Any, fresh: bool) -> None:
    """Options that name it. A key has none: what stands in a command line can be read by others."""
    missing = None if fresh else argparse.SUPPRESS
    group.add_argument(
        "--chat",
        metavar="NAME",
        default=missing,
        help="a language model: anthropic, http(s)://… of a server, or none (default: $THREEFOLD_CHAT, then none); its "
        "key is $THREEFOLD_CHAT_KEY",
    )
    group.add_argument(
        "--chat-model",
        metavar="MODEL",
        default=missing,
        help="the name of the model (default: $THREEFOLD_CHAT_MODEL)",
    )


def chosen(options: argparse.Namespace) -> dict[str, Any]:
    """Settings of `Config`; what the environment says beside the name is left out where there is none."""
    name = options.chat or os.environ.get("THREEFOLD_CHAT") or "none"
    own = {} if options.chat_model is None else {"chat_model": options.chat_model}
    if name == "none":
        return own
    found = {
        "chat": name,
        "chat_model": os.environ.get("THREEFOLD_CHAT_MODEL") or None,
        "chat_key": os.environ.get("THREEFOLD_CHAT_KEY") or None,
    }
    return {**found, **own}
