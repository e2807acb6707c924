"""What a rule takes out of a turn or a memory is in no file of the store, raw or packed, and in no log."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from secrets_of_tests import PEM, PERSONAL, SECRETS
from test_purge_leaves_nothing import files

import threefold
from threefold.testing.fakes import Clock, FailingEmbedder

TOLD = {**SECRETS, **PERSONAL, "private": "what nobody is to know", "secret": "kX93jfLw02Qz"}
AROUND = ("use {} please", "凭证为{}，谢谢", "({}).", 'k = "{}"')


def written(kind: str, value: str) -> str:
    return {"private": "<private>{}</private>", "secret": "password: {}"}.get(kind, "{}").format(value)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[threefold.Threefold]:
    pytest.importorskip("kingfisher_sdk", reason="the extra `redact` is not installed")
    embedder = FailingEmbedder(poison="poisoned")
    with threefold.open(
        tmp_path / "store", redact="secrets+personal", embedder=embedder, background=False, clock=Clock()
    ) as opened:
        yield opened


def record(handle: threefold.Handle, name: str, text: str) -> None:
    with handle.turn("c", turn=name, title=text) as turn:
        turn.prompt(f"{text} poisoned", author=text[:200])
        turn.attach(("plain.txt" if "/" in text else text[:200], b"its bytes"), text=text)
        turn.context("page", {"said": text, text: 1})
        turn.step(text, {"q": text}, [text])
        turn.publish("out/plain.md", "its bytes")
        turn.source(text, text, text)
        turn.note(text, tag=text)
        turn.summary(text, refs=[text], anchors=[text[:256].replace("\n", " ")])
        turn.event("chat.step", {"shown": text})
        turn.stream("tool", text)
        turn.answer(text, author=text[:200])
        turn.fail(text)
    handle.conv.feedback(turn.ref, "not_ok", text)
    made = handle.mem.remember(f"{name} {text}", context=text, metadata={"m": text}, source=text[:200])
    handle.mem.update(made.id, context=f"once more {text}", why=text)


def left(folder: Path) -> list[str]:
    """Where a value is still to be found, or its greater part; also as JSON and the index write it."""
    found = []
    for place, data in files(folder):
        low = data.lower()
        for kind, value in {**TOLD, "private key": PEM.split("\n")[3]}.items():
            parts = {value, value[len(value) // 3 :], json.dumps(value)[1:-1], value.replace(" ", "")}
            if any(part.lower().encode() in low or part.encode("utf-16-le") in data for part in parts):
                found.append(f"{kind} in {place}")
    return found


def test_nothing_is_left_of_what_was_redacted(
    db: threefold.Threefold, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    alice = db.user("alice")
    for number, ((kind, value), around) in enumerate(itertools.product(TOLD.items(), AROUND)):
        record(alice, f"t{number}", around.format(written(kind, value)))
    record(alice, "pem", f"here it is\n{PEM}\nkeep it")
    assert db.embed_pending().failed
    assert db.state(check=True).problems == ()
    assert left(tmp_path / "store") == []
    db.close()
    assert left(tmp_path / "store") == []
    assert [value for value in TOLD.values() if value in caplog.text] == []


def test_the_helper_finds_what_is_there(tmp_path: Path) -> None:
    with threefold.open(tmp_path / "store", embedder=None, background=False) as db:
        record(db.user("alice"), "t", " ".join([*TOLD.values(), PEM]))
    kinds = {line.partition(" in ")[0] for line in left(tmp_path / "store")}
    assert kinds == {*TOLD, "private key"}
