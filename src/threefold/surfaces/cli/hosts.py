"""How a host of MCP servers is told to start this program: what to paste, and where."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple


class Host(NamedTuple):
    """Where its configuration is, and how it is written."""

    place: str
    write: Callable[[str, Sequence[str]], str]


def configuration(host: str, arguments: Sequence[str]) -> str:
    """What to paste into the configuration of a host, to start this very program with some arguments."""
    command, *before = _program()
    return HOSTS[host].write(command, [*before, *arguments])


def _program() -> list[str]:
    """The `threefold` that runs: hosts search no path, or another one than the shell does."""
    called = Path(sys.argv[0])
    for each in (called, called.with_name(called.name + ".exe")):
        if called.stem == "threefold" and each.is_file() and os.access(each, os.X_OK):
            return [str(each.absolute())]
    return [sys.executable, "-m", "threefold"]


def _json(name: str, **more: str) -> Callable[[str, Sequence[str]], str]:
    def write(command: str, arguments: Sequence[str]) -> str:
        server: dict[str, Any] = {**more, "command": command, "args": list(arguments)}
        return json.dumps({name: {"threefold": server}}, ensure_ascii=False, indent=2)

    return write


def _toml(command: str, arguments: Sequence[str]) -> str:
    # A JSON text is one of TOML's too.
    args = json.dumps(list(arguments), ensure_ascii=False)
    return f"[mcp_servers.threefold]\ncommand = {json.dumps(command, ensure_ascii=False)}\nargs = {args}"


HOSTS: Final[Mapping[str, Host]] = {
    "claude-code": Host(".mcp.json in a project, or ~/.claude.json for all of them", _json("mcpServers", type="stdio")),
    "claude-desktop": Host("claude_desktop_config.json: Settings, Developer, Edit Config", _json("mcpServers")),
    "cursor": Host(".cursor/mcp.json in a project, or ~/.cursor/mcp.json for all of them", _json("mcpServers")),
    "vscode": Host(".vscode/mcp.json in a workspace, or MCP: Open User Configuration", _json("servers", type="stdio")),
    "codex": Host("~/.codex/config.toml", _toml),
}
