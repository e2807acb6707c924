"""Events of one turn as values: in order, resumable at any place, redacted when they are whole."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threefold.errors import InvalidInput
from threefold.host.events import Event, Panel, Step
from threefold.host.live import Log, Position, Teller, shown, since
from threefold.host.sending import File
from threefold.testing.contract.desk import NOW

KINDS = st.sampled_from(["a", "b", "tool"])


def teller(rule: Any = None) -> Teller:
    return Teller("trip", "1", lambda: NOW, rule)


def made(*events: Event, rule: Any = None, status: Any = "completed") -> list[dict[str, Any]]:
    telling = teller(rule)
    found = list(telling.opened())
    for event in events:
        found += telling.told(event)
    return [*found, *telling.ended(status, None, {"ref": "r"})]


def piece(message: str, text: str) -> dict[str, Any]:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": message, "delta": text}


@given(st.lists(st.tuples(KINDS, st.text(min_size=1, max_size=5)), max_size=12), st.data())
def test_a_viewer_may_leave_and_come_back_anywhere(events: list[tuple[str, str]], data: st.DataObject) -> None:
    """Whenever it looks, and however long each text is by then, it gets every text once and in order."""
    log, seen, told = Log("1"), Position("1"), list[tuple[str, str]]()
    ids = []
    for kind, text in events:
        log.add([{"type": "CUSTOM", "value": text} if kind == "tool" else piece(kind, text)])
        if data.draw(st.booleans()):
            for place, event in since(log.entries, seen):
                told.append((event.get("messageId", "tool"), event.get("delta", event.get("value"))))
                seen = Position.of(place.id)
                ids.append(place.id)
    for _, event in since(log.entries, seen):
        told.append((event.get("messageId", "tool"), event.get("delta", event.get("value"))))

    def joined(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for kind, text in pairs:
            if found and kind == found[-1][0] != "tool":
                found[-1] = (kind, found[-1][1] + text)
            else:
                found.append((kind, text))
        return found

    assert joined(told) == joined(events)
    assert ids == sorted(ids)


@pytest.mark.parametrize("id_", ["", "x", "a:b:c", "a:1", ":1:2", "a:-1:0", "a:1:2:x", "a:²:0"])
def test_what_is_no_id_is_refused(id_: str) -> None:
    with pytest.raises(InvalidInput, match="is no event's id; give one that was received, or leave it out"):
        Position.of(id_)
    assert Position.of("a:b:000001:000000002") == Position("a:b", 1, 2)


@pytest.mark.parametrize("id_", ["\0:0:0", " :0:0", "y" * 2000 + ":0:0", "t:" + "9" * 5000 + ":0", "t:0:" + "9" * 5000])
def test_an_id_that_cannot_be_one_is_refused(id_: str) -> None:
    with pytest.raises(InvalidInput, match=r"^after "):
        Position.of(id_)


def test_a_log_tells_what_was_shown() -> None:
    events = made(
        Event("delta", text="one "),
        Event("step", step=Step("look", {"a": 1}, {"b": 2})),
        Event("delta", text="two"),
        Event("step", step=Step("wait", status="running")),
        Event("delta", text="three", fresh=True),
    )
    log = Log("1")
    log.add(events)
    assert shown(log.entries).messages == ("one two", "three")
    assert shown(log.entries).steps == (
        ("look", "completed", '{"a":1}', '{"b":2}'),
        ("wait", "running", None, None),
    )


def test_with_a_rule_messages_and_panels_are_told_when_they_are_whole() -> None:
    def rule(text: str, name: str = "") -> str:
        return text.replace("s3cret", "[redacted: word]")

    events = made(
        Event("delta", text="my s3c"),
        Event("panel", panel=Panel("canvas", "s3", "c")),
        Event("step", step=Step("say s3cret", {"s3cret": "s3cret"}, "s3cret")),
        Event("file", file=File("s3cret.txt", b"x")),
        Event("delta", text="ret \ud800"),
        Event("panel", panel=Panel("canvas", "cret", "c")),
        rule=rule,
        status="failed",
    )
    assert "s3c" not in str(events)
    (content,) = [event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert content == "my [redacted: word] \ufffd"
    panels = [event["value"]["delta"] for event in events if event.get("name") == "threefold.panel"]
    assert panels == ["[redacted: word]"]
    assert events[-1]["type"] == "RUN_ERROR"
