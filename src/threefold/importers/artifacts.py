"""Artifacts of claude.ai as files: documents and programs that the assistant wrote, and changed, beside its answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from threefold.importers.base import file_name, first_text, mapping, text

_TAG = re.compile(r"<antArtifact\b([^<>]*)>\n?(.*?)</antArtifact>", re.DOTALL)
_CLOSING = "</antArtifact>"
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')
_TOOLS = ("artifacts", "create_artifact", "artifact")
_ENDINGS = {
    "text/markdown": ".md",
    "text/html": ".html",
    "text/plain": ".txt",
    "image/svg+xml": ".svg",
    "application/javascript": ".js",
    "application/json": ".json",
    "application/vnd.ant.react": ".jsx",
    "application/vnd.ant.mermaid": ".mmd",
    "application/vnd.ant.code": ".txt",
}
_LANGUAGES = {
    "python": ".py",
    "javascript": ".js",
    "typescript": ".ts",
    "java": ".java",
    "c": ".c",
    "cpp": ".cpp",
    "go": ".go",
}

Made = list[tuple[str, bytes, str | None]]


class Artifacts:
    """The artifacts of one conversation, as they stand; changes are applied to what they change."""

    def __init__(self) -> None:
        self._content: dict[str, tuple[str, str, str | None]] = {}  # id → path, content, media type

    def in_text(self, words: str) -> tuple[str, Made]:
        """`words` without artifact tags but with what stood within them, and the files that they make."""
        made: Made = []

        def replaced(found: re.Match[str]) -> str:
            about = dict(_ATTRIBUTE.findall(found[1]))
            content = found[2].rstrip()
            made.append(self._file(about.get("identifier", ""), about, content))
            title = about.get("title", "").strip()
            return f"{title}\n\n{content}" if title else content

        # Behind the last closing tag there is nothing to find, but many an opening one could be tried in vain.
        end = words.rfind(_CLOSING) + len(_CLOSING)
        if end < len(_CLOSING):
            return words, made
        return (_TAG.sub(replaced, words[:end]) + words[end:]).strip(), made

    def in_call(self, block: Mapping[str, Any]) -> Made:
        """The files that a call of the artifact tool makes or changes."""
        given = mapping(block.get("input"))
        if block.get("type") != "tool_use" or block.get("name") not in _TOOLS:
            return []
        name, content = text(given.get("id")), given.get("content")
        if isinstance(content, str) and content:
            return [self._file(name, given, content)]
        old, new = given.get("old_str"), given.get("new_str")
        if name in self._content and isinstance(old, str) and old and isinstance(new, str):
            path, before, mime = self._content[name]
            if old in before:
                self._content[name] = (path, before.replace(old, new, 1), mime)
                return [(path, self._content[name][1].encode(), mime)]
        return []

    def _file(self, name: str, about: Mapping[str, Any], content: str) -> tuple[str, bytes, str | None]:
        known = self._content.get(name)
        kind = text(about.get("type")) or (known[2] if known else "") or ""
        ending = _LANGUAGES.get(text(about.get("language")).lower()) or _ENDINGS.get(kind, ".txt")
        title = file_name(first_text(name, about.get("title")), "artifact")
        path = known[0] if known else f"artifacts/{title}{'' if title.endswith(ending) else ending}"
        self._content[name] = (path, content, kind or None)
        return path, content.encode(), kind or None
