"""PDF: the text of each page, as it is written there; what is a picture of text has none."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from typing import Any, Final

from threefold.errors import InvalidInput
from threefold.model.document import Extracted

MAX_PAGES: Final = 10_000
MIME: Final = "application/pdf"
_PARTED: Final = "\n\n"
# A word that was parted at the end of a line; ends of lines; what no text has.
_PARTED_WORD: Final = re.compile("[\ufffe\u0002](?:\r\n|\r|\n)?")
_LINE_END: Final = re.compile("\r\n?")
_UNWANTED: Final = re.compile("[\x00-\x08\x0e-\x1f\ufffe\uffff]")
# The library may be in one place at a time.
_ALONE: Final = threading.Lock()


def read_pdf(data: bytes, what: str = "content") -> Extracted:
    """The text of a PDF, pages parted by a blank line; `pages` are the places where they begin.

    Raises:
        InvalidInput: it is encrypted, damaged, has too many pages, or what reads it is not installed.
    """
    try:
        import pypdfium2
    except ImportError:
        raise InvalidInput(f"{what} is a PDF, to read which: pip install 'threefold[documents]'") from None
    with _ALONE:
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            why = "is encrypted: give it without its password" if "assword" in str(error) else "is a damaged PDF"
            raise InvalidInput(f"{what} {why} ({error})") from None
        try:
            if len(document) > MAX_PAGES:
                raise InvalidInput(f"{what} has {len(document):,} pages, at most {MAX_PAGES:,} are read")
            texts = [_page(document, number) for number in range(len(document))]
            title = document.get_metadata_dict(skip_empty=True).get("Title")
        except pypdfium2.PdfiumError as error:
            raise InvalidInput(f"{what} is a damaged PDF ({error})") from None
        finally:
            document.close()
    return joined(texts, title, what)


def _page(document: Any, number: int) -> str:
    page = document[number]
    try:
        reader = page.get_textpage()
        try:
            text: str = reader.get_text_bounded()
        finally:
            reader.close()
    finally:
        page.close()
    return _UNWANTED.sub("", _LINE_END.sub("\n", _PARTED_WORD.sub("", text)))


def joined(texts: Sequence[str], title: str | None, what: str) -> Extracted:
    """Pages as one text, and what there is to say of them."""
    starts, place = [], 0
    for text in texts:
        starts.append(place)
        place += len(text) + len(_PARTED)
    blank = [number for number, text in enumerate(texts, 1) if not text.strip()]
    warnings = (f"{what}: no text on {_ranges(blank)}; scanned pages need OCR first",) if blank else ()
    name = " ".join(_UNWANTED.sub("", title or "").split()) or None
    return Extracted(_PARTED.join(texts), MIME, name, tuple(starts), literal=False, warnings=warnings)


def _ranges(numbers: Sequence[int]) -> str:
    """Such as `pages 1-3, 7`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    told = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs[:20])
    return ("page " if len(numbers) == 1 else "pages ") + told + (", …" if len(runs) > 20 else "")
