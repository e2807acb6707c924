"""Small files of every kind that is read, made here so that what is in them can be seen."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_CORE = (
    '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Title of it</dc:title></cp:coreProperties>'
)
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_RELS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return out.getvalue()


def pdf(*pages: str, title: str = "", encrypted: bool = False) -> bytes:
    """A PDF with a line of text on each page; `encrypted` with a dictionary that no password fits."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for text in pages:
        stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET" if text else ""
        number = len(objects) + 1
        kids.append(f"{number} 0 R")
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {number + 1} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(pages)} >>"
    objects.append(f"<< /Title ({title}) >>")
    info = len(objects)
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    more = f"/Info {info} 0 R"
    if encrypted:
        zeros = "0" * 64
        more += f" /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <{zeros}> /U <{zeros}> >> /ID [<00> <00>]"
    count = len(places) + 1
    tail = f"xref\n0 {count}\n0000000000 65535 f \n{table}trailer\n<< /Size {count} /Root 1 0 R {more} >>"
    return out + f"{tail}\nstartxref\n{len(out)}\n%%EOF\n".encode()


def docx() -> bytes:
    paragraph = "<w:p>{about}<w:r><w:t>{text}</w:t></w:r></w:p>"
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    body = (
        paragraph.format(about='<w:pPr><w:pStyle w:val="berschrift1"/></w:pPr>', text="Heading one")
        + '<w:p><w:r><w:t xml:space="preserve">Hello </w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>'
        "<w:r><w:t>world</w:t></w:r></w:p>"
        + paragraph.format(about='<w:pPr><w:numPr><w:ilvl w:val="0"/></w:numPr></w:pPr>', text="an item")
        + "<w:tbl>"
        + "".join("<w:tr>" + "".join(map(cell.format, row)) + "</w:tr>" for row in ("ab", "12"))
        + "</w:tbl>"
    )
    styles = f'<w:styles {_W}><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style></w:styles>'
    return zipped({
        "word/document.xml": f"<w:document {_W}><w:body>{body}</w:body></w:document>",
        "word/styles.xml": styles, "docProps/core.xml": _CORE,
    })  # fmt: skip


def xlsx() -> bytes:
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    rows = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="inlineStr"><is><t>year</t></is></c></row><row r="2"/>'
        '<row r="3"><c r="A3" t="s"><v>1</v></c><c r="B3"><f>2000+20</f><v>2020</v></c>'
        '<c r="C3" t="b"><v>1</v></c></row>'
    )
    return zipped({
        "xl/workbook.xml": f'<workbook {main} {_R}><sheets><sheet name="Sheet A" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships {_RELS}><Relationship Id="rId1" Target="worksheets/sheet1.xml"/>'
        "</Relationships>",
        "xl/sharedStrings.xml": f"<sst {main}><si><t>name</t></si><si><r><t>A</t></r><r><t>nn</t></r></si></sst>",
        "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{rows}</sheetData></worksheet>",
    })  # fmt: skip


def pptx() -> bytes:
    spaces = (
        'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
        f'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" {_R}'
    )

    def shape(*lines: str, kind: str = "") -> str:
        holder = f'<p:nvSpPr><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr>' if kind else ""
        said = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
        return f"<p:sp>{holder}<p:txBody>{said}</p:txBody></p:sp>"

    relation = '<Relationship Id="{}" Target="{}"/>'
    return zipped({
        "ppt/presentation.xml": f'<p:presentation {spaces}><p:sldIdLst><p:sldId r:id="rId7"/></p:sldIdLst>'
        "</p:presentation>",
        "ppt/_rels/presentation.xml.rels": f"<Relationships {_RELS}>{relation.format('rId7', 'slides/slide1.xml')}"
        "</Relationships>",
        "ppt/slides/slide1.xml": f"<p:sld {spaces}>{shape('First slide', kind='title')}"
        f"{shape('point one', 'point two')}</p:sld>",
        "ppt/slides/_rels/slide1.xml.rels": f"<Relationships {_RELS}>"
        f"{relation.format('rId1', '../notesSlides/notesSlide1.xml')}</Relationships>",
        "ppt/notesSlides/notesSlide1.xml": f"<p:notes {spaces}>{shape('said in the notes')}</p:notes>",
    })  # fmt: skip


def odt() -> bytes:
    names = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
    )
    body = (
        '<text:h text:outline-level="2">Head</text:h><text:p>A <text:s/>paragraph</text:p><text:list><text:list-item>'
        "<text:p>item</text:p><text:list><text:list-item><text:p>inner</text:p></text:list-item></text:list>"
        "</text:list-item></text:list>"
    )
    return zipped({
        "mimetype": "application/vnd.oasis.opendocument.text",
        "content.xml": f"<office:document-content {names}><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>",
    })  # fmt: skip


def epub() -> bytes:
    return zipped({
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>',
        "OEBPS/content.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        '<metadata><dc:title>The book</dc:title></metadata><manifest><item id="a" href="one.xhtml"/></manifest>'
        '<spine><itemref idref="a"/></spine></package>',
        "OEBPS/one.xhtml": "<html><body><h1>One</h1><p>chapter text</p></body></html>",
    })  # fmt: skip
