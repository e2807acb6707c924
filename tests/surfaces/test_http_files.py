"""References and files over HTTP: exact bytes in parts, names in every script, uploads, imports, exports."""

from __future__ import annotations

import gc
import hashlib
import io
import json
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from http_server import Server, problem, served

import threefold
from threefold.surfaces.http.refs import INLINE, disposition

MARK = {"X-Threefold-Request": "1"}
DATA = bytes(range(256)) * 40


@pytest.fixture
def server(db: threefold.Threefold) -> Iterator[Server]:
    with served(db) as found:
        yield found


def published(server: Server, name: str, data: bytes = DATA, mime: str | None = None) -> str:
    """The address of a file of the record."""
    with server.db.user("ann").turn("trip") as turn:
        turn.publish(name, data, mime)
    assert turn.ref is not None
    ref = server.db.user("ann").conv.turn(turn.ref).files[0].ref
    return f"/v1/refs/{quote(ref, safe='')}"


def test_a_reference_is_shown_as_json_or_read_as_bytes(server: Server) -> None:
    address = published(server, "out/a.bin")
    with server.client() as http:
        seen = http.get(address).json()
        assert (seen["kind"], seen["file"]["size"]) == ("file", len(DATA))
        assert seen["file"]["sha256"] == hashlib.sha256(DATA).hexdigest()
        for answered in (
            http.get(address, params={"raw": 1}), http.get(address, headers={"Accept": "application/octet-stream"}),
            http.get(address, headers={"Accept": "image/png, */*"}),
        ):  # fmt: skip
            assert answered.content == DATA
            assert answered.headers["etag"] == f'"{hashlib.sha256(DATA).hexdigest()}"'
            assert answered.headers["x-content-type-options"] == "nosniff"
            assert answered.headers["content-type"] == "application/octet-stream"
            assert answered.headers["content-disposition"].startswith("attachment;")
            assert "sandbox" in answered.headers["content-security-policy"]
            assert "private" in answered.headers["cache-control"]
        for accept in ("application/json", "*/*", "application/*", "text/html,application/xhtml+xml,*/*;q=0.8"):
            assert http.get(address, headers={"Accept": accept}).headers["content-type"] == "application/json"
        assert http.get(f"{address}?size=5").status_code == 200
        for query in ("raw=2", "size=0", "size=x", "size=9999999", "size=٣"):
            if query != "size=٣":
                problem(http.get(f"{address}?{query}"), 422)


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1), ("bytes=0-99", 0, 100), ("bytes=100-", 100, None), ("bytes=-10", -10, None),
        ("bytes=10239-", 10239, None), ("bytes=0-99999", 0, None), ("bytes=-99999", 0, None), (" bytes=5-7 ", 5, 8),
    ],
)  # fmt: skip
def test_a_part_of_the_bytes(server: Server, asked: str, start: int, end: int | None) -> None:
    address = published(server, "a.bin")
    with server.client() as http:
        answered = http.get(f"{address}?raw=1", headers={"Range": asked.strip()})
        assert answered.status_code == 206
        assert answered.content == DATA[start:end]
        first = start % len(DATA)
        assert answered.headers["content-range"] == f"bytes {first}-{first + len(answered.content) - 1}/{len(DATA)}"


def test_parts_that_are_none_and_what_is_known_already(server: Server) -> None:
    address = published(server, "a.bin") + "?raw=1"
    etag = f'"{hashlib.sha256(DATA).hexdigest()}"'
    with server.client() as http:
        for asked in ("bytes=10240-", "bytes=99999-100000", "bytes=-0"):
            answered = http.get(address, headers={"Range": asked})
            problem(answered, 416)
            assert answered.headers["content-range"] == "bytes */10240"
        for asked in (
            "bytes=5-4",
            "bytes=a-b",
            "bytes=0-1,5-6",
            "lines=0-1",
            "bytes",
            "bytes=-",
            "bytes=" + "9" * 40 + "-",
        ):
            assert http.get(address, headers={"Range": asked}).status_code == 200
        assert http.get(address, headers={"Range": "bytes=0-1", "If-Range": etag}).status_code == 206
        assert http.get(address, headers={"Range": "bytes=0-1", "If-Range": '"other"'}).status_code == 200
        for known in (etag, f'"x", W/{etag}', "*"):
            answered = http.get(address, headers={"If-None-Match": known})
            assert (answered.status_code, answered.content) == (304, b"")
        assert http.get(address, headers={"If-None-Match": '"x"'}).status_code == 200
        head = http.head(address)
        assert (head.headers["content-length"], head.content) == (str(len(DATA)), b"")


@pytest.mark.parametrize(
    "name",
    ["plan.md", "план.md", "計画 2026.pdf", "خطة.txt", "תוכנית.txt", "योजना.txt", "แผน.txt", "a'b.txt", "a b;c=d.txt",
     "50%.txt",
     "👩‍👩‍👧.png", "e\u0301.txt", "x" * 120 + ".txt", "می\u200cخواهم.txt", "a#b?c&d.txt", "a,b.txt", "editions"],
)  # fmt: skip
def test_a_file_keeps_its_name_in_every_script(server: Server, name: str) -> None:
    address = published(server, f"out/{name}")
    with server.client() as http:
        answered = http.get(f"{address}?raw=1")
        assert answered.content == DATA
        given = answered.headers["content-disposition"]
        assert unquote(given.partition("filename*=UTF-8''")[2]) == name
        given.encode("ascii")
        assert http.get(f"{address}/editions").json()["refs"] == [unquote(address.removeprefix("/v1/refs/"))]
        if name == "editions":  # in a folder it is the editions of that, unless its slashes are escaped
            return
        plain = f"/v1/refs/{quote(unquote(address.removeprefix('/v1/refs/')), safe='/:')}"
        assert http.get(f"{plain}?raw=1").content == DATA


@pytest.mark.parametrize(
    "name", ['a"b.txt', "a\r\nX: y.txt", "a\x00", "\u202egpj.exe", "/etc/passwd", "..", "", "a\\b", "\ud800"]
)
def test_a_name_breaks_out_of_no_header(name: str) -> None:
    given = disposition(name, inline=False)
    given.encode("ascii")
    assert given.count('"') == 2
    assert not set(given) & set("\r\n\x00\\")
    assert "%E2%80%AE" not in given
    assert given.startswith("attachment; filename=")


@pytest.mark.parametrize(
    ("mime", "sent", "inline"),
    [
        ("image/png", "image/png", True), ("text/plain", "text/plain; charset=utf-8", True),
        ("text/plain; charset=latin-1", "text/plain; charset=utf-8", True),
        ("text/html", "text/html; charset=utf-8", False),
        ("image/svg+xml", "image/svg+xml", False), ("application/pdf", "application/pdf", False),
        ("text/html\r\nX-Evil: 1", "application/octet-stream", False), ("nonsense", "application/octet-stream", False),
        ("IMAGE/PNG", "image/png", True), ("", None, False),
        ("text/javascript", "text/javascript; charset=utf-8", False),
    ],
)  # fmt: skip
def test_nothing_but_pictures_and_plain_text_is_shown_inline(
    server: Server, mime: str, sent: str | None, inline: bool
) -> None:
    address = published(server, "page.bin", b"<script>alert(1)</script>", mime)
    with server.client() as http:
        answered = http.get(f"{address}?raw=1")
    assert answered.headers["content-type"] == (sent or "application/octet-stream")
    assert answered.headers["content-disposition"].startswith("inline" if inline else "attachment")
    assert "x-evil" not in answered.headers
    assert len(INLINE) == 5


def test_every_kind_of_reference_is_read(server: Server) -> None:
    ann = server.db.user("ann")
    with ann.turn("trip", turn="1") as turn:
        turn.prompt("Where is the 駅?")
    memory = ann.mem.remember("likes tea")
    document = ann.doc.ingest("# Visa\n\n60 €", "visa.md")
    ann.cnv.board("plans").pin(memory.ref)
    with server.client() as http:
        for ref in (
            "conv:ar:conv_trip.turn_1.user.prompt", "conv:ar:conv_trip.turn_1.turn.log", "conv:conversation:trip",
            memory.ref, document.ref, ann.doc.chunks(document.id)[0].ref, "cnv:plans", "cnv:plans@1",
        ):  # fmt: skip
            address = f"/v1/refs/{quote(ref, safe='')}"
            assert http.get(address).json()["ref"] == ref
            assert http.get(f"{address}?raw=1").content == ann.read(ref)
            assert http.get(f"{address}/editions").json() == {"refs": [*ann.editions(ref)]}
        assert http.get(f"/v1/refs/{document.ref}?raw=1").headers["content-disposition"].endswith("visa.md")
        for ref in ("", "x", "conv:", "conv:fi:conv_a.turn_b.files/../x", "mem:record:mem_0", "task:issue:7", "%ff",
                    "a%00",
                    "conv:ar:conv_trip.turn_9.user.prompt", "conv:ar:conv_%20.turn_1.user.prompt",
                    "/etc/passwd"):  # fmt: skip
            for tail in ("", "?raw=1", "/editions"):
                answered = http.get(f"/v1/refs/{ref}{tail}")
                problem(answered, 404 if answered.status_code == 404 else 422)


def test_a_document_is_taken_in_as_a_body_or_a_form(server: Server) -> None:
    ann = server.db.user("ann")
    with server.client(**MARK) as http:
        made = http.post("/v1/doc/files?name=指南.md&title=Guide", content="# 指南\n\n六十欧元".encode()).json()
        assert (made["source"], made["outcome"]) == ("指南.md", "created")
        assert ann.doc.get(made["id"]).title == "Guide"
        assert (
            http.post("/v1/doc/files?name=指南.md&title=Guide", content="# 指南\n\n六十欧元".encode()).json()["outcome"]
            == "unchanged"
        )
        fields = {
            "source": "https://example.org/v",
            "metadata": '{"年": 1}',
            "strategy": "sentence",
            "chunk_tokens": "64",
            "overlap": "8",
        }
        made = http.post(
            "/v1/doc/files", files={"file": ("v.html", b"<h1>Visa</h1><p>60</p>", "text/html")}, data=fields
        ).json()
        found = ann.doc.get(made["id"])
        assert (found.source, found.mime, found.metadata, found.strategy) == (
            "https://example.org/v",
            "text/html",
            {"年": 1},
            "sentence",
        )
        assert ann.read(made["ref"]) == b"<h1>Visa</h1><p>60</p>"
        for path, said in [
            ("/v1/doc/files", "name is missing"), ("/v1/doc/files?name=..", "name is missing"),
            ("/v1/doc/files?name=a.md&metadata=[]", "metadata: '[]' is no JSON object"),
            ("/v1/doc/files?name=a.md&user=bob", "user is unknown here"),
            ("/v1/doc/files?name=a.md&overlap=x", "overlap 'x'"),
            ("/v1/doc/files?name=a.md&strategy=x", "strategy 'x' must be one of"),
        ]:  # fmt: skip
            assert said in problem(http.post(path, content=b"# A"), 422)["detail"]
        assert "the body is empty" in problem(http.post("/v1/doc/files?name=a.md"), 422)["detail"]
        assert (
            "neither text nor"
            in problem(http.post("/v1/doc/files?name=a.bin", content=b"\x00\x01\xfe" * 99), 422)["detail"]
        )
        assert "no file" in problem(http.post("/v1/doc/files", files={"x": (None, b"text")}), 422)["detail"]
        two = [("file", ("a.md", b"a")), ("file", ("b.md", b"b"))]
        problem(http.post("/v1/doc/files", files=two), 400)
        broken = {"Content-Type": "multipart/form-data; boundary=x"}
        problem(http.post("/v1/doc/files", content=b"nonsense", headers=broken), 400)
        problem(
            http.post("/v1/doc/files", content=b"a=b", headers={"Content-Type": "application/x-www-form-urlencoded"}),
            415,
        )
        for charset, text in (("undefined", b"x"), ("utf-7", b"+2AA-")):
            form = b'--X\r\nContent-Disposition: form-data; name="turn"\r\n\r\n' + text + b"\r\n--X--\r\n"
            odd = {"Content-Type": f"multipart/form-data; boundary=X; charset={charset}"}
            assert "UTF-8" in problem(http.post("/v1/turns", content=form, headers=odd), 400)["detail"]
        curl = {"Content-Type": "application/x-www-form-urlencoded"}
        sent = http.post("/v1/doc/files?name=curl.md", content=b"# A=b&c", headers=curl)
        assert (sent.status_code, sent.json()["source"]) == (200, "curl.md")
        places = http.post("/v1/doc/files?name=../../etc/passwd.md", content=b"# A").json()
        assert places["source"] == "passwd.md"
        assert http.post("/v1/doc/files?name=C:%5Cx%5Cb.md", content=b"# B").json()["source"] == "b.md"


def test_a_file_with_a_key_is_taken_in_once(server: Server) -> None:
    with server.client(**MARK, **{"Idempotency-Key": "k-1"}) as http:
        first = http.post("/v1/doc/files?name=a.md", content=b"# A")
        assert http.post("/v1/doc/files?name=a.md", content=b"# A").content == first.content
        problem(http.post("/v1/doc/files?name=a.md", content=b"# B"), 409)
        problem(http.post("/v1/doc/files?name=b.md", content=b"# A"), 409)


def test_uploads_are_bounded(server: Server) -> None:
    with served(server.db, file_bytes=2_000_000, import_bytes=1000) as small, small.client(**MARK) as http:
        assert http.post("/v1/doc/files?name=a.txt", content=b"word " * 390_000).status_code == 200
        large = b"word " * 410_000
        assert "2,000,000 bytes" in problem(http.post("/v1/doc/files?name=a.txt", content=large), 413)["detail"]
        problem(http.post("/v1/doc/files", files={"file": ("a.txt", large)}), 413)
        problem(http.post("/v1/doc/files?name=a.txt", content=iter([b"word " * 10_000] * 99)), 413)
        problem(http.post("/v1/import?name=a.jsonl", content=b"x" * 1001), 413)
        problem(http.post("/v1/turns", files={"turn": (None, b"{}"), "file": ("x", large * 2)}), 413)
    assert len(server.db.user("ann").doc.list()) == 1


@pytest.mark.parametrize("form", [False, True])
def test_an_upload_that_is_cut_off_leaves_nothing(server: Server, form: bool) -> None:
    kind = b"multipart/form-data; boundary=x" if form else b"text/markdown"
    begun = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n# A' if form else b"# A"
    for end in (
        b"Content-Length: 5000000\r\n\r\n" + begun,
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(begun), begun),
    ):
        host, port = server.host.split(":")
        with socket.create_connection((host, int(port))) as wire:
            head = b"POST /v1/doc/files?name=a.md HTTP/1.1\r\nHost: localhost\r\nX-Threefold-Request: 1\r\n"
            head += b"Content-Type: %s\r\n"
            wire.sendall(head % kind + end)
            wire.shutdown(socket.SHUT_WR)
            while wire.recv(4096):
                pass
    gc.collect()
    assert server.db.user("ann").doc.list() == ()
    with server.client() as http:
        assert http.get("/health").status_code == 200


def test_a_form_that_ends_too_early_is_no_file(server: Server) -> None:
    begun = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n# A'
    with server.client(**MARK, **{"Content-Type": "multipart/form-data; boundary=x"}) as http:
        answered = http.post("/v1/doc/files", content=begun)
        problem(answered, answered.status_code if answered.status_code in (400, 422) else 422)
    assert server.db.user("ann").doc.list() == ()


def test_a_turn_with_its_files_as_a_form(server: Server) -> None:
    turn = {"conversation": "c", "turn": "1", "submissions": [{"text": "see"}],
            "attachments": [{"name": "图.png", "mime": "image/png"}], "files": [{"name": "out/a.bin"}]}  # fmt: skip
    parts = [("turn", (None, json.dumps(turn))), ("attachment", ("图.png", b"\x89PNG")), ("file", ("out/a.bin", DATA))]
    with server.client(**MARK) as http:
        made = http.post("/v1/turns", files=parts).json()
        seen = server.db.user("ann").conv.turn(made["ref"])
        kept = [server.db.user("ann").read(each.ref) for each in (*seen.attachments, *seen.files)]
        assert kept == [b"\x89PNG", DATA]
        said = problem(http.post("/v1/turns", files=[*parts, ("file", ("other", b"x"))]), 422)["detail"]
        assert "part 'other' is not among the turn's files" in said
        assert "the form has no turn" in problem(http.post("/v1/turns", files=parts[1:]), 422)["detail"]
        assert "unknown" in problem(http.post("/v1/turns", files=[*parts, ("x", ("y", b""))]), 422)["detail"]


def test_histories_are_imported_and_everything_is_exported(server: Server, tmp_path: Path) -> None:
    at = "2026-03-01T09:00:00Z"
    lines = [{"conversation": "c1", "role": "user", "content": "Where is the key?", "at": at},
             {"conversation": "c1", "role": "assistant", "content": "Under the mat.", "at": at}]  # fmt: skip
    body = "\n".join(map(json.dumps, lines)).encode() + b"\nnonsense\n"
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("deep/history.jsonl", body)
    with server.client(**MARK) as http:
        done = http.post("/v1/import?name=history.jsonl", content=body).json()
        assert (done["imported"], done["unchanged"]) == (1, 0)
        assert [each["where"] for each in done["skipped"]] == ["history.jsonl line 3"]
        assert http.post("/v1/import", files={"file": ("export.zip", zipped.getvalue())}).json()["unchanged"] == 1
        assert http.post("/v1/import?name=history.jsonl&kind=jsonl", content=body).json()["unchanged"] == 1
        assert (
            "kind 'x' is unknown" in problem(http.post("/v1/import?name=a.jsonl&kind=x", content=body), 422)["detail"]
        )
        alone = json.dumps({"role": "user", "content": "hi", "at": "2026-03-01T09:00:00Z"}).encode()
        assert http.post("/v1/import?name=mine.jsonl", content=alone).json()["imported"] == 1
        assert "mine" in {each["id"].partition("-")[0] for each in http.get("/v1/conv/list").json()["conversations"]}
        assert http.post("/v1/import?name=" + "é" * 300 + ".jsonl", content=alone).status_code == 422
        exported = http.get("/v1/export")
        assert exported.headers["content-type"] == "application/zip"
        assert exported.headers["content-length"] == str(len(exported.content))
    (tmp_path / "e.zip").write_bytes(exported.content)
    with threefold.open(":memory:", embedder=None, background=False) as other:
        assert threefold.restore(tmp_path / "e.zip", into=other).created == 2
        assert other.user("ann").conv.search("mat")
