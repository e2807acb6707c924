"""Books: .epub, whose chapters are web pages."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from threefold.errors import InvalidInput
from threefold.extractors.html import markdown_of
from threefold.extractors.packed import Packed

_CONTAINER: Final = "{urn:oasis:names:tc:opendocument:xmlns:container}"
_OPF: Final = "{http://www.idpf.org/2007/opf}"


def book(packed: Packed) -> Iterator[str]:
    """The chapters in the order in which they are read.

    Raises:
        InvalidInput: it does not say which these are.
    """
    root = next(iter(packed.xml("META-INF/container.xml").iter(f"{_CONTAINER}rootfile")), None)
    name = "" if root is None else root.get("full-path", "")
    if not packed.has(name):
        raise InvalidInput(f"{packed.what} is a damaged book: it does not say what is in it")
    package, folder = packed.xml(name), posixpath.dirname(name)
    items = {item.get("id"): item.get("href", "") for item in package.iter(f"{_OPF}item")}
    for each in package.iter(f"{_OPF}itemref"):
        member = posixpath.normpath(posixpath.join(folder, unquote(items.get(each.get("idref"), ""))))
        if packed.has(member):
            yield markdown_of(packed.text(member), packed.what)
