"""Write into the pages what their examples print: each ```python block that a ```text block follows. A test compares.

python scripts/make_printed.py
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
_BLOCK = re.compile(r"^```python\n(?P<code>.*?)^```\n(?:\n(?P<shown>```text\n.*?^```\n))?", re.MULTILINE | re.DOTALL)


def pages() -> Iterator[Path]:
    """The pages that show what an example prints."""
    for page in sorted(DOCS.glob("*.md")):
        if any(match["shown"] for match in _BLOCK.finditer(page.read_text("utf-8"))):
            yield page


def printed(text: str) -> str:
    """The page's text with what its examples print now, run in order and in one namespace."""
    names: dict[str, Any] = {}

    def run(match: re.Match[str]) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(match["code"], names)
        if match["shown"] is None:
            return match[0]
        lines = "\n".join(line.rstrip() for line in out.getvalue().splitlines())
        return f"```python\n{match['code']}```\n\n```text\n{lines}\n```\n"

    return _BLOCK.sub(run, text)


def main() -> int:
    """Write them."""
    for page in pages():
        page.write_text(printed(page.read_text("utf-8")), "utf-8")
        print(f"docs/{page.name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
