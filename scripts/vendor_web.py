"""Fetch the libraries of the web pages, pinned, with their licences: python scripts/vendor_web.py

Each file is checked against the SHA-256 that stands here. Modules import each other by path afterwards, since a page
under a strict policy can have no import map. Needs npm; the pages themselves need nothing of it.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

VENDOR = Path(__file__).parents[1] / "src" / "threefold" / "surfaces" / "web" / "vendor"
# What a bare import becomes.
NAMES = {
    "preact": "./preact.js",
    "preact/hooks": "./preact-hooks.js",
    "@preact/signals-core": "./signals-core.js",
}


class Library(NamedTuple):
    """A package with its version; the files of it that are kept, by their name here, with path and SHA-256."""

    package: str
    files: dict[str, tuple[str, str]]


LIBRARIES = (
    Library(
        "preact@10.29.8",
        {
            "preact.js": ("dist/preact.module.js", "c30e721ebfdc6e2ad4c18c14d2dfb82667829c8aec27de1207774e3fc16858a8"),
            "preact-hooks.js": (
                "hooks/dist/hooks.module.js",
                "a6ee626f2d01570592dd569a792e3f050154aa02890eead8c223fa3ed5aa3d5a",
            ),
            "LICENSE.preact": ("LICENSE", "1fe6958409c8c257a70c587a18b6f7f412b179b456630790d30b2ec9a8e4b7d4"),
        },
    ),
    Library(
        "@preact/signals-core@1.14.5",
        {
            "signals-core.js": (
                "dist/signals-core.module.js",
                "45c263e519aaf3b6ef9b0a12a8b63dc06cdfcbd35bffc8203ec68c6117e6fcd7",
            ),
            "LICENSE.signals-core": ("LICENSE", "a11fc89e4c6b118854c7a667734a0b2e6bf2af5e45c6686de31adbccc8f3ae8d"),
        },
    ),
    Library(
        "@preact/signals@2.11.4",
        {
            "signals.js": (
                "dist/signals.module.js",
                "89074d9db96b7f8e1be47f93913355b8cef829fb939f18a3a3ee320854ceebf8",
            ),
            "LICENSE.signals": ("LICENSE", "a11fc89e4c6b118854c7a667734a0b2e6bf2af5e45c6686de31adbccc8f3ae8d"),
        },
    ),
    Library(
        "htm@3.1.1",
        {
            "htm.js": ("dist/htm.module.js", "ab33dd3f38059b9be4d5f5350128eefb2356639c4e0bbe9d9e8b3ba75847e9e4"),
            "LICENSE.htm": ("LICENSE", "740725f7252e750af735d0028cc534970772f513331e9f68150fede8fb3ce00f"),
        },
    ),
    Library(
        "marked@18.2.1",
        {
            "marked.js": ("lib/marked.esm.js", "5371fea86fd0656b4fc7bea7c94c663109d82789b69433eeee78d42895aa44de"),
            "LICENSE.marked": ("LICENSE", "8e3a3f82f59a60958f56ca08f445647c32a4733dc7ca6c2c46f6eb898471ab9c"),
        },
    ),
    Library(
        "dompurify@3.5.0",
        {
            "purify.js": ("dist/purify.es.mjs", "5e8c53cd086a012531fc754ee6a7ad7a02e8a06fc4dadd805b912e128c3f6c58"),
            "LICENSE.dompurify": ("LICENSE", "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"),
        },
    ),
)


def fetched(package: str, folder: Path) -> tarfile.TarFile:
    """The archive of a package, as the registry has it."""
    done = subprocess.run(
        ["npm", "pack", package, "--silent", "--ignore-scripts"], cwd=folder, check=True, capture_output=True, text=True
    )
    return tarfile.open(folder / done.stdout.strip().splitlines()[-1])


def by_path(source: str) -> str:
    """A module whose imports name files beside it, and that says nothing of a map of its source."""
    source = re.sub(r"(from\s*|import\s*)([\"'])([^\"'./][^\"']*)\2", _named, source)
    return re.sub(r"\n?//# sourceMappingURL=\S+\s*$", "\n", source)


def _named(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{NAMES.get(found[3], found[3])}{found[2]}"


def main() -> int:
    """Fetch, check and write every file; says which hash differs."""
    VENDOR.mkdir(parents=True, exist_ok=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for library in LIBRARIES:
            archive = fetched(library.package, Path(folder))
            for name, (path, digest) in library.files.items():
                member = archive.extractfile(f"package/{path}")
                data = b"" if member is None else member.read()
                found = hashlib.sha256(data).hexdigest()
                if found != digest:
                    print(f"{library.package} {path}: SHA-256 {found}, not {digest}; look at it before it is pinned")
                    wrong += 1
                    continue
                made = by_path(data.decode()) if name.endswith(".js") else data.decode()
                (VENDOR / name).write_text(made.rstrip("\n") + "\n", encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
