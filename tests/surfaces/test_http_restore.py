"""Exports that are brought back over HTTP: into the scope of who asks, whatever stands in them."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import random
import struct
import threading
import zipfile
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from http_server import Server, problem, served
from waiting import wait_until

import threefold
from threefold.archive import Bounds
from threefold.errors import InvalidInput
from threefold.model.codec import digest_of
from threefold.testing.fakes import Clock

Open = Callable[..., threefold.Threefold]
MARK = {"X-Threefold-Request": "1"}
SEND = "/v1/restore"
# What curl says of a body that it was told no type of.
CURL = {"Content-Type": "application/x-www-form-urlencoded"}


def fill(db: threefold.Threefold, user: str) -> None:
    """Something in every realm."""
    handle = db.user(user)
    with handle.turn("trip", turn="1") as turn:
        turn.prompt(f"where does {user} eat?")
        turn.attach(("map.txt", f"the map of {user}".encode()))
        turn.step("look", {"for": user}, "found")
        turn.answer("at the harbour")
    handle.conv.feedback(turn.ref, "ok")
    handle.mem.remember(f"{user} prefers trains")
    handle.mem.allow("auto", kinds=["preference"])
    handle.doc.ingest(f"# Visa\n\nfor {user}", "visa.md")
    handle.cnv.board("plans").pin("conv:conversation:trip", note=f"for {user}")


@pytest.fixture
def server(db: threefold.Threefold) -> Iterator[Server]:
    fill(db, "ann")
    with served(db) as found:
        yield found


def everything(db: threefold.Threefold, user: str) -> list[Any]:
    handle = db.user(user)
    return [
        [(turn.conversation, turn.turn, turn.status) for turn in handle.conv.turns(limit=100)],
        [each.memory for each in handle.mem.list()],
        [(each.source, each.title) for each in handle.doc.list()],
        [[card.note for card in each.cards] for each in handle.cnv.boards()],
    ]


def parts_of(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as whole:
        return {name: whole.read(name) for name in whole.namelist()}


def packed(parts: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return made.getvalue()


def test_what_was_exported_is_taken_in_again_once(server: Server) -> None:
    before = everything(server.db, "ann")
    with server.client(**MARK) as http:
        content = http.get("/v1/export").content
        assert server.db.user("ann").forget()
        assert everything(server.db, "ann") == [[], [], [], []]
        key = {"Idempotency-Key": "r-1"}
        done = http.post(SEND, content=content, headers=key)
        assert done.json() == {
            "user": "ann", "tenant": "default", "from": {"user": "ann", "tenant": "default"},
            "created": 5, "replaced": 0, "unchanged": 0, "files": 2,
        }  # fmt: skip
        assert everything(server.db, "ann") == before
        again = http.post(SEND, content=content, headers=key)
        assert (again.headers["idempotency-replayed"], again.content) == ("true", done.content)
        form = http.post("/v1/restore", files={"file": ("export.zip", content)})
        assert (form.json()["created"], form.json()["unchanged"]) == (0, 5)
    assert everything(server.db, "ann") == before
    assert server.db.user("ann").read("conv:fi:conv_trip.turn_1.user.attachments/map.txt") == b"the map of ann"


@pytest.mark.parametrize("form", [False, True])
def test_one_that_takes_too_long_goes_on_by_itself(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch, form: bool
) -> None:
    fill(db, "ann")
    with served(db) as server, server.client(**MARK) as http:
        content = http.get("/v1/export").content
    assert db.user("ann").forget()
    told, done, restore = threading.Event(), [], threefold.restore

    def slowly(*given: Any, **named: Any) -> Any:
        assert told.wait(60)
        done.append(restore(*given, **named))
        return done[0]

    monkeypatch.setattr(threefold, "restore", slowly)
    with served(db, long_seconds=1) as server, server.client(**MARK) as http:
        sent = {"files": {"file": ("export.zip", content)}} if form else {"content": content}
        problem(http.post(SEND, **sent), 504)
        told.set()
        assert wait_until(lambda: done)
    assert done[0].created == 5


def test_it_goes_into_the_scope_of_who_asks_and_no_other(server: Server) -> None:
    fill(server.db, "bob")
    bobs = everything(server.db, "bob")
    with server.client(server.token("bob"), **MARK) as bob, server.client(server.token("eve"), **MARK) as eve:
        content = bob.get("/v1/export").content
        said = problem(eve.post(SEND, content=content), 409)["detail"]
        assert "an export of user 'bob'" in said
        assert "foreign=1" in said
        assert everything(server.db, "eve") == [[], [], [], []]
        taken = eve.post("/v1/restore?foreign=1", content=content, headers=CURL).json()
        assert (taken["user"], taken["from"], taken["created"]) == ("eve", {"user": "bob", "tenant": "default"}, 5)
        assert everything(server.db, "eve") == bobs
        # Whosever it says that it is.
        parts = parts_of(content)
        claims = {**json.loads(parts["manifest.json"]), "user": "eve", "tenant": "default"}
        lines = parts["turns.jsonl"].replace(b'"conversation": "trip"', b'"conversation": "other"')
        forged = packed({**parts, "manifest.json": json.dumps(claims).encode(), "turns.jsonl": lines})
        for name in ("user", "tenant", "scope"):
            problem(eve.post(f"{SEND}?{name}=bob", content=forged), 422)
        eve.post(SEND, content=forged)
        eve.delete("/v1/conv/conversations/trip")
    assert everything(server.db, "bob") == bobs
    assert server.db.user("bob").read("conv:fi:conv_trip.turn_1.user.attachments/map.txt") == b"the map of bob"


def test_it_needs_every_grant_to_write_and_no_narrower_scope(server: Server) -> None:
    writes = ["conv:write", "mem:write", "doc:write", "cnv:write"]
    with server.client(**MARK) as http:
        content = http.get("/v1/export").content
    for lacking in writes:
        token = server.token(grants=[each for each in writes if each != lacking] + ["*:read"])
        with server.client(token, **MARK) as http:
            assert lacking in problem(http.post(SEND, content=content), 403)["detail"]
    for narrower in ({"app": "crm"}, {"agent": "planner"}):
        with server.client(server.token(**narrower), **MARK) as http:
            problem(http.post(SEND, content=content), 403)
    with server.client(server.token(grants=writes), **MARK) as http:
        assert http.post(SEND, content=content).json()["unchanged"] == 5
    with server.client() as http:
        problem(http.post(SEND, content=content), 403)
        problem(http.post(SEND, content=content, headers={"Content-Type": "text/plain"}), 403)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"nonsense", "the archive is damaged or no zip file"),
        (packed({}), "no export of Threefold"),
        (packed({"manifest.json": b"{}"}), "no export of Threefold"),
        (packed({"manifest.json": b"[" * 100_000}), "no export of Threefold"),
        (packed({"manifest.json": b'{"format": "x"}'}), "has the format 'x'"),
        (packed({"manifest.json": b'{"format": "threefold.export.v1", "user": "ann", "tenant": "default"}'}),
         "is damaged"),
        (packed({"manifest.json": b'{"format": "threefold.export.v1", "user": "", "tenant": "default"}'}),
         "user is empty"),
    ],
)  # fmt: skip
def test_what_is_no_export_is_refused(server: Server, content: bytes, said: str) -> None:
    with server.client(**MARK) as http:
        detail = problem(http.post(SEND, content=content), 422)["detail"]
        assert said in detail
        assert "/tmp" not in detail
        problem(http.post("/v1/restore", content=b""), 422)
        problem(http.post("/v1/restore?foreign=2", content=content), 422)


class Sheet:
    """An export whose lines are changed."""

    def __init__(self, content: bytes) -> None:
        self.parts = parts_of(content)
        self.lines = [json.loads(line) for line in self.parts["turns.jsonl"].splitlines()]

    def made(self, lines: list[Any]) -> bytes:
        """The archive with these lines, each with a digest that fits."""
        return packed({**self.parts, "turns.jsonl": b"\n".join(json.dumps(line).encode() for line in lines)})


def fitting(line: Any) -> Any:
    """The line with the digest of what it has become."""
    try:
        return {**line, "digest": digest_of([line["log"], line["replay"]])}
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError):
        return line


HOSTILE: tuple[Any, ...] = (
    None, "", "x", "\x00", "\ud800", "../../etc/passwd", -1, 2**31, 2**63, 2**70, 1.5, 1e308, [], {}, [None],
    {"a": None}, True, "9" * 5000, [[[[[]]]]], "0001-01-01T00:00:00Z", "9999-12-31T23:59:59+14:00", "a" * 64,
    float("nan"), float("inf"),
)  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where there is something in a value."""
    yield at
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*at, key))


def put(value: Any, at: tuple[Any, ...], new: Any) -> Any:
    if not at:
        return new
    changed = copy.deepcopy(value)
    inner = changed
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = new
    return changed


def test_nothing_that_stands_in_it_breaks_anything(server: Server) -> None:
    chance = random.Random(7)
    with server.client(**MARK) as http:
        sheet = Sheet(http.get("/v1/export").content)
        statuses = set()
        for number in range(70):
            line = chance.choice(sheet.lines)
            forged = put(line, chance.choice(list(places(line))), chance.choice(HOSTILE))
            content = sheet.made([fitting(forged)])
            user = f"user {number}"
            with server.client(server.token(user), **MARK) as own:
                answered = own.post("/v1/restore?foreign=1", content=content)
                statuses.add(answered.status_code)
                assert answered.status_code in (200, 409, 422), (answered.text, forged)
                # What was taken in can be read by its own routes.
                for path in ("/v1/mem/list", "/v1/conv/turns", "/v1/doc/list", "/v1/cnv/list", "/v1/conv/list",
                             "/v1/conv/search?query=harbour", "/v1/mem/hotset", "/v1/export"):  # fmt: skip
                    read = own.get(path)
                    assert read.status_code == 200, (path, read.text, forged)
        assert statuses >= {200, 422}
    assert server.db.state(check=True).problems == ()


def test_a_bomb_is_not_unpacked(server: Server, tmp_path: Path) -> None:
    with served(server.db, import_bytes=1_000_000) as small, small.client(**MARK) as http:
        parts = parts_of(http.get("/v1/export").content)
        bomb = packed({**parts, "turns.jsonl": b" " * 40_000_000})
        assert len(bomb) < 100_000
        assert "has more than" in problem(http.post(SEND, content=bomb), 422)["detail"]
        bomb = packed({**parts, "turns.jsonl": parts["turns.jsonl"] * 5_000})
        assert len(bomb) < 1_000_000
        assert "unpacks to more than 7 MiB" in problem(http.post(SEND, content=bomb), 422)["detail"]
        bomb = packed({**parts, "manifest.json": b" " * 300_000_000})
        assert "300,000,000 bytes" in problem(http.post(SEND, content=bomb), 422)["detail"]
        problem(http.post(SEND, content=b"x" * 1_000_001), 413)


def test_a_list_of_members_that_is_too_long_is_not_read() -> None:
    content = packed({"manifest.json": b"{}"})
    end = content.rindex(b"PK\x05\x06")
    size, offset = struct.unpack("<LL", content[end + 12 : end + 20])
    listed = content[offset : offset + size] * 1000
    ending = content[end : end + 8] + struct.pack("<HHLL", 1000, 1000, len(listed), offset) + b"\0\0"
    made = io.BytesIO(content[:offset] + listed + ending)
    db = threefold.open(":memory:", embedder=None, background=False)
    with db, pytest.raises(InvalidInput, match="lists more members"):
        threefold.restore(made, into=db, bounds=Bounds(directory=10_000))


def test_bytes_that_many_turns_name_are_unpacked_once(server: Server) -> None:
    data = b"x" * 1_000_000
    with server.db.user("ann").turn("big", turn="1") as turn:
        turn.publish("a.bin", data)
    with served(server.db, import_bytes=1_000_000) as small, small.client(**MARK) as http:
        sheet = Sheet(http.get("/v1/export").content)
        line = next(each for each in sheet.lines if each["conversation"] == "big")
        many = [{**line, "conversation": f"c{number}"} for number in range(20)]
        assert http.post(SEND, content=sheet.made(many)).json()["created"] == 20
    assert server.db.user("ann").read("conv:fi:conv_c7.turn_1.files/a.bin") == data


def test_bytes_must_be_those_of_their_name(server: Server) -> None:
    with server.client(**MARK) as http:
        parts = parts_of(http.get("/v1/export").content)
        blob = next(name for name in parts if name.startswith("blobs/"))
        swapped = {**parts, blob: b"other"}
        assert "not those that were exported" in problem(http.post(SEND, content=packed(swapped)), 422)["detail"]
        # A name that is a path leads nowhere.
        path = "../../../../etc/passwd"
        sheet = Sheet(packed({**parts, f"blobs/{path}": b"x"}))
        line = next(each for each in sheet.lines if each["files"])
        line["files"][0]["digest"] = path
        assert "not a turn of an export" in problem(http.post(SEND, content=sheet.made([line])), 422)["detail"]
        assert hashlib.sha256(b"x").hexdigest() not in parts


def test_it_is_kept_no_longer_than_what_is_recorded_now(open_db: Open, clock: Clock) -> None:
    with open_db(ttl=timedelta(days=1)) as db, served(db) as server, server.client(**MARK) as http:
        fill(db, "ann")
        sheet = Sheet(http.get("/v1/export").content)
        lines = [{**line, "expires": None} if "realm" not in line else line for line in sheet.lines]
        db.user("ann").forget()
        assert http.post(SEND, content=sheet.made(lines)).json()["created"] == 5
        assert len(db.user("ann").conv.turns()) == 1
        clock.advance(timedelta(days=1, seconds=1))
        assert db.user("ann").conv.turns() == ()
        assert http.get("/v1/conv/turns").json()["turns"] == []


def test_what_the_store_takes_out_is_not_brought_back(open_db: Open) -> None:
    pytest.importorskip("kingfisher_sdk")
    secret = "the password is hunter2-Zinnober-99"
    with open_db() as plain, served(plain) as server, server.client(**MARK) as http:
        with plain.user("ann").turn("trip", turn="1") as turn:
            turn.prompt(secret)
        told = http.get("/v1/export").content
        plain.user("ann").forget()
    with threefold.open(":memory:", embedder=None, background=False, redact="secrets") as db, served(db) as server:
        fill(db, "ann")
        with server.client(**MARK) as http:
            said = problem(http.post(SEND, content=told), 422)["detail"]
            assert "line 1 has what this store takes out" in said
            assert "Zinnober" not in said
            own = http.get("/v1/export").content
            assert http.post(SEND, content=own).json()["unchanged"] == 5
        assert [turn.conversation for turn in db.user("ann").conv.turns()] == ["trip"]
