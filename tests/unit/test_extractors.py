"""The text of files: encodings, Markdown, HTML, PDF, office files; and that broken ones raise what is ours alone."""

from __future__ import annotations

import io
import random
import sys
import zipfile
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_files import docx, epub, odt, pdf, pptx, xlsx, zipped

from threefold.errors import InvalidInput
from threefold.extractors import extract, packed

PAGE = """<!doctype html><html><head><title>Guide &amp; more</title><style>p{x}</style>
<script>var s = "in a script"</script></head><body><nav><a href="/">Home</a></nav>
<h1>Main</h1><p>Hello <b>bold</b> wörld.</p><ul><li>one<ul><li>inner<ol><li>deep</li></ol></li></ul></li></ul>
<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>
<pre><code class="language-python">def f():
    return "&lt;x&gt;"
</code></pre><p style="display:none">unseen one</p><p hidden>unseen two</p><!-- unseen three -->
<img src="data:image/png;base64,AAAA" alt="a picture"><template>unseen four</template></body></html>"""


@pytest.mark.parametrize(
    "data",
    ["é 日本 🎉".encode(), "\ufeffé 日本 🎉".encode(), "é 日本 🎉".encode("utf-16"), "é 日本 🎉".encode("utf-32"),
     b"\xfe\xff" + "é 日本 🎉".encode("utf-16-be")],
)  # fmt: skip
def test_texts_are_read_in_their_encoding(data: bytes) -> None:
    assert extract(data).text == "é 日本 🎉"


def test_other_encodings_are_named() -> None:
    data = "größe".encode("windows-1252")
    with pytest.raises(InvalidInput, match="charset="):
        extract(data, name="a.txt")
    assert extract(data, "text/plain; charset=windows-1252").text == "größe"
    assert extract("日本".encode("shift_jis"), 'text/plain; charset="shift_jis"').text == "日本"
    with pytest.raises(InvalidInput, match="no encoding"):
        extract(data, "text/plain; charset=nonsense")
    assert extract("plain".encode("utf-16-le")).text == "plain"


@pytest.mark.parametrize("data", [b"\x00\x01\x02binary", b"\x89PNG\r\n\x1a\n\x00\x00", bytes(range(256)) * 5])
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="neither text"):
        extract(data, name="x.bin")
    with pytest.raises(InvalidInput, match="neither text"):
        extract(b"abc", "image/png")


def test_titles_of_markdown() -> None:
    assert extract(b"---\ntitle: 'Front'\ntags: [a]\n---\n# Head\n").title == "Front"
    assert extract(b'+++\ntitle = "Toml"\n+++\ntext').title == "Toml"
    assert extract(b"text\n\n# Head\n").title == "Head"
    assert extract(b"## Second\n").title is None
    assert extract(b"---\ntitle: x\nnever closed").title is None
    assert extract(b"x", name="a.md").mime == "text/markdown"


def test_a_page_is_what_is_seen_of_it() -> None:
    found = extract(PAGE.encode(), name="x")
    assert (found.title, found.mime, found.literal) == ("Guide & more", "text/html", False)
    for there in ("# Main", "**bold** wörld", "- one", "deep", "| A | B |", '    return "<x>"', "```python"):
        assert there in found.text, there
    for gone in ("script", "unseen", "p{x}", "base64", "Home"):
        assert gone not in found.text, gone
    latin = PAGE.replace("<head>", '<head><meta charset="iso-8859-1">').encode("iso-8859-1")
    assert "wörld" in extract(latin).text


def test_pages_of_a_pdf() -> None:
    found = extract(pdf("First page", "", "Third page", title="A title"))
    assert found.mime == "application/pdf"
    assert [found.text[start:].split("\n")[0] for start in found.pages] == ["First page", "", "Third page"]
    assert found.title == "A title"
    assert found.warnings == ("content: no text on page 2; scanned pages need OCR first",)
    with pytest.raises(InvalidInput, match="damaged PDF"):
        extract(b"%PDF-1.7 nothing", name="x.pdf")
    with pytest.raises(InvalidInput, match="encrypted"):
        extract(pdf("secret", encrypted=True), name="x.pdf")


def test_office_files() -> None:
    found = extract(docx())
    assert found.text == "# Heading one\n\nHello world\n\n- an item\n\n| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert (found.title, found.mime.rpartition(".")[2]) == ("Title of it", "document")
    assert extract(xlsx()).text == "## Sheet A\n\n| name | year |  |\n| --- | --- | --- |\n| Ann | 2020 | TRUE |"
    assert extract(pptx()).text == "## First slide\n\npoint one\npoint two\n\nsaid in the notes"
    assert extract(odt()).text == "## Head\n\nA  paragraph\n\n- item\n  - inner"
    book = extract(epub())
    assert "# One" in book.text
    assert "chapter text" in book.text
    assert book.title == "The book"


def test_office_files_that_cannot_be_read() -> None:
    for data, why in (
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "old binary kind"),
        (zipped({"a.txt": "x"}), "no kind that can be read"),
        (docx()[:-40], "damaged"),
        (zipped({"word/document.xml": "<not xml"}), "damaged"),
        (zipped({"word/document.xml": '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'}), "entities"),
    ):
        with pytest.raises(InvalidInput, match=why):
            extract(data, name="x.docx")


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MAX_UNPACKED", 100_000)
    bomb = zipped({"word/document.xml": "<x>" + " " * 1_000_000 + "</x>"})
    assert len(bomb) < 5_000
    with pytest.raises(InvalidInput, match="unpacks to more"):
        extract(bomb)


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, data in (("html_to_markdown", b"<html>x"), ("pypdfium2", b"%PDF-1.7")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(InvalidInput, match=r"pip install 'threefold\[documents\]'"):
            extract(data)


SEEDS = [
    PAGE.encode(),
    pdf("First page", "Second"),
    docx(),
    xlsx(),
    pptx(),
    odt(),
    epub(),
    b"---\ntitle: x\n---\n# A\n",
]


@pytest.mark.parametrize("seed", range(len(SEEDS)))
def test_broken_files_raise_what_is_ours(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(150):
        data = bytearray(SEEDS[seed])
        for _ in range(rng.randint(1, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        cut = bytes(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data)
        with suppress(InvalidInput):
            extract(cut, name="x")


@pytest.mark.parametrize("seed", [2, 3, 4, 5, 6])
def test_broken_parts_of_office_files_raise_what_is_ours(seed: int) -> None:
    """As above, but inside the zip file, where its checks of sums do not look."""
    rng = random.Random(seed)
    with zipfile.ZipFile(io.BytesIO(SEEDS[seed])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for _ in range(150):
        broken = dict(members)
        name = rng.choice(list(broken))
        data = bytearray(broken[name])
        for _ in range(rng.randint(1, 5)):
            data[rng.randrange(len(data))] = rng.choice(b"<>&\"'0123456789azA \x00\xff")
        broken[name] = bytes(data)
        if rng.random() < 0.2:
            del broken[rng.choice(list(broken))]
        with suppress(InvalidInput):
            extract(zipped(broken), name="x")


@given(st.binary(max_size=300), st.sampled_from(["", "x.html", "x.pdf", "x.docx", "x.txt"]))
def test_any_bytes_are_text_or_refused(data: bytes, name: str) -> None:
    for head in (b"", b"%PDF-1.4\n", b"PK\x03\x04", b"<html>"):
        with suppress(InvalidInput):
            extract(head + data, name=name)
