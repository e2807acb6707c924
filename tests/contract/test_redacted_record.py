"""What is redacted is redacted before anything is made of it, over each back end: answers, search, references."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from secrets_of_tests import PEM, PERSONAL, SECRETS

import threefold
from threefold.errors import Conflict
from threefold.model.codec import log_to_json
from threefold.testing.fakes import HashEmbedder

Open = Callable[..., threefold.Threefold]
KEY, MAIL, CARD = SECRETS["stripe key"], PERSONAL["email"], PERSONAL["card number"]


class Listening(HashEmbedder):
    """Remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.heard += texts
        return super().embed(texts)


@pytest.fixture
def open_redacting(open_db: Open) -> Open:
    pytest.importorskip("kingfisher_sdk", reason="the extra `redact` is not installed")
    return lambda **settings: open_db(**{"redact": "secrets+personal", **settings})


def everything(handle: threefold.Handle, ref: str) -> str:
    return repr((handle.conv.turn(ref), handle.resolve(ref), handle.conv.conversations(), handle.conv.turns()))


@pytest.mark.capability("redaction")
def test_a_turn_is_redacted_in_all_its_parts(open_redacting: Open) -> None:
    embedder = Listening()
    db = open_redacting(embedder=embedder)
    alice = db.user("alice")
    with alice.turn("c", turn="t", title=f"for {MAIL}") as turn:
        turn.prompt(f"凭证为{KEY}，谢谢", author=MAIL)
        turn.followup(f"pay with {CARD} <private>at home</private>")
        turn.context("page", {"url": f"https://x.example/?key={KEY}", MAIL: [CARD]})
        turn.attach((f"{MAIL}.txt", b"bytes"), text=f"it says {PEM}")
        turn.step(f"mail {MAIL}", {"password": "kX93jfLw02Qz"}, {"sent": [MAIL]})
        turn.publish(f"out/{MAIL}.md", "published")
        turn.source(f"https://x.example/?mail={MAIL}", MAIL, KEY)
        turn.note(f"noted {KEY}", tag=MAIL)
        turn.summary(f"summed {KEY}", refs=[f"fi:t.files/out/{MAIL.replace('@', '%40')}.md"], anchors=[MAIL])
        turn.event("chat.step", {"shown": KEY})
        turn.stream("canvas", f"drawn {KEY}")
        turn.answer(f"charged {CARD} with {KEY}", author=MAIL)
        turn.fail(f"but {KEY} was refused")
    alice.conv.feedback(turn.ref, "not_ok", f"{MAIL} was not told")
    db.embed_pending()
    secrets = (KEY, MAIL, CARD, PEM, "kX93jfLw02Qz", "at home")
    assert [s for s in secrets if s in everything(alice, turn.ref) + repr(embedder.heard)] == []
    view = alice.conv.turn(turn.ref)
    assert [m.text for m in view.messages] == [
        "凭证为[redacted: stripe key]，谢谢",
        "pay with [redacted: card number] [redacted: private]",
        "charged [redacted: card number] with [redacted: stripe key]",
    ]
    assert view.error == "but [redacted: stripe key] was refused"
    assert view.redacted == turn.redacted
    assert {kind: turn.redacted[kind] for kind in ("private", "private key", "secret")} == {
        "private": 1, "private key": 1, "secret": 1,
    }  # fmt: skip
    assert view.attachments[0].name.startswith("[redacted: email]")


@pytest.mark.capability("redaction")
def test_references_and_bytes_lead_to_what_is_kept(open_redacting: Open) -> None:
    alice = open_redacting().user("alice")
    with alice.turn("c", turn="t") as turn:
        turn.prompt("two files")
        turn.publish(f"out/{MAIL}.md", f"to {MAIL}")
        turn.publish("out/other@mailbox.example.org.md", "to another")
        turn.summary("s", refs=[f"conv:fi:conv_c.turn_t.files/out/{MAIL.replace('@', '%40')}.md"])
    view = alice.conv.turn(turn.ref)
    assert [alice.read(card.ref) for card in view.files] == [f"to {MAIL}".encode(), b"to another"]
    assert view.summary is not None
    assert alice.read(view.summary["refs"][0]) == f"to {MAIL}".encode()


@pytest.mark.capability("redaction")
def test_recording_again_changes_nothing_and_what_grew_replaces(open_redacting: Open) -> None:
    alice = open_redacting().user("alice")

    def record(answer: str, later: int = 0) -> str | None:
        with alice.turn("c", turn="t", started="2026-11-29T10:00:00Z") as turn:
            turn.prompt(f"the key is {KEY}", at="2026-11-29T10:00:00Z")
            turn.answer(answer, at=f"2026-11-29T10:0{later}:00Z")
        assert turn.redacted["stripe key"] >= 1
        return turn.outcome

    assert [record("half"), record("half"), record(f"all of {KEY}", 1)] == ["created", "unchanged", "replaced"]
    (hit,) = alice.conv.search("all of", roles=["assistant"])
    assert hit.text == "all of [redacted: stripe key]"
    assert alice.conv.search(KEY, lists=["lexical"]).hits == ()


@pytest.mark.capability("redaction")
def test_the_record_is_literal_unless_a_rule_is_asked_for(open_db: Open) -> None:
    alice = open_db().user("alice")
    with alice.turn("c") as turn:
        turn.prompt(f"{KEY} <private>{MAIL}</private>")
    assert alice.conv.turn(turn.ref).messages[0].text == f"{KEY} <private>{MAIL}</private>"
    assert turn.redacted == {}
    assert "redacted" not in log_to_json(alice.conv.stored(alice.conv.parse(turn.ref)).record.log)


@pytest.mark.capability("redaction")
def test_a_memory_is_redacted_and_still_the_same_when_said_again(open_redacting: Open) -> None:
    db = open_redacting()
    mem = db.user("alice").mem
    made = mem.remember(f"write to {MAIL}", context=f"said with {KEY}", metadata={"token": KEY})
    assert (made.memory, made.context) == ("write to [redacted: email]", "said with [redacted: stripe key]")
    assert made.redacted == {"email": 1, "stripe key": 2}
    assert mem.remember(f"write to {MAIL}").id == made.id
    mem.contradict(made.id, why=f"{MAIL} bounces", source=MAIL)
    changed = mem.update(made.id, memory=f"call {PERSONAL['phone number']}", metadata={"by": MAIL}, why=MAIL)
    assert changed.memory == "call [redacted: phone number]"
    with pytest.raises(Conflict):
        mem.update(made.id, revision=1, memory=MAIL)
    assert MAIL not in repr((mem.history(made.id), mem.get(made.id), mem.recall("call", limit=3)))


@pytest.mark.capability("redaction")
def test_a_rule_of_the_host_sees_every_text(open_db: Open) -> None:
    alice = open_db(redact=lambda text: text.replace("Codename", "[redacted: project]")).user("alice")
    with alice.turn("c") as turn:
        turn.prompt("about Codename")
        turn.step("find", {"q": "Codename"})
    assert turn.redacted == {"project": 2}
    assert alice.mem.remember("Codename is late").memory == "[redacted: project] is late"


@pytest.mark.capability("redaction")
def test_an_imported_history_is_redacted_also_where_a_title_was_cut(open_redacting: Open, tmp_path: Path) -> None:
    key = SECRETS["anthropic api key"]
    said = {"conversation": "trip", "id": "1", "role": "user", "content": f"please use {key} for {MAIL}"}
    (tmp_path / "history.jsonl").write_text(json.dumps({**said, "at": "2026-05-01T10:00:00Z"}) + "\n", "utf-8")
    alice = open_redacting().user("alice")
    for outcome in ((1, 0), (0, 1)):
        done = alice.import_history([tmp_path])
        assert (done.imported, done.unchanged, done.skipped) == (*outcome, ())
    (conversation,) = alice.conv.conversations()
    assert conversation.title == "please use [redacted: anthropic api key] for [redacted: email]"
    (turn,) = alice.conv.turns()
    assert key[:30] not in everything(alice, f"conv:ar:conv_trip.turn_{turn.turn}.turn.log")
