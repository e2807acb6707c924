"""Server-sent events: however the bytes are cut and the lines end, the events are the same."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from threefold.models.sse import Event, EventParser

# No line ends within a line of data, and no lone surrogates, which are no UTF-8.
LINES = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(["", "ping", "content_block_delta"])
ENDS = st.sampled_from(["\n", "\r", "\r\n"])


def parsed(data: bytes, *cuts: int) -> list[Event]:
    parser, found, places = EventParser(), [], [0, *sorted(cuts), len(data)]
    for start, end in pairwise(places):
        found += parser.feed(data[start:end])
    return found


@given(st.lists(st.tuples(NAMES, st.lists(LINES, min_size=1, max_size=3))), st.data())
def test_any_cut_and_any_line_end_give_the_same_events(
    events: list[tuple[str, list[str]]], data: st.DataObject
) -> None:
    raw, wanted, noise = "", [], st.sampled_from([": a comment", "id: 7", "retry: 10", "unknown", ":"])
    for name, lines in events:
        wanted.append(Event(name or "message", "\n".join(lines)))
        fields = [f"data: {line}" for line in lines] + ([f"event: {name}"] if name else [])
        for line in [*data.draw(st.lists(noise, max_size=2)), *fields, ""]:
            # After a CR an LF alone would not be a line end of its own.
            raw += line + data.draw(ENDS.filter(lambda end, raw=raw + line: not (raw.endswith("\r") and end == "\n")))
    cuts = data.draw(st.lists(st.integers(0, len(raw.encode())), max_size=8))
    assert parsed(raw.encode(), *cuts) == wanted
    assert parsed(raw.encode(), *range(1, len(raw.encode()))) == wanted


@given(st.lists(st.tuples(NAMES, st.lists(LINES, min_size=1, max_size=3))), ENDS)
def test_what_is_written_is_read(events: list[tuple[str, list[str]]], end: str) -> None:
    raw = "".join(
        "".join(f"{field}{end}" for field in [f"event:{name}", *(f"data: {line}" for line in lines), ""])
        for name, lines in events
    ).encode()
    assert parsed(raw) == [Event(name or "message", "\n".join(lines)) for name, lines in events]
    assert parsed(b"\xef\xbb\xbf" + raw, 1, 2) == parsed(raw)


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=5))
def test_any_bytes_are_taken(raw: bytes, cuts: list[int]) -> None:
    assert parsed(raw, *(min(cut, len(raw)) for cut in cuts)) == parsed(raw)


def test_the_standard_in_its_corners() -> None:
    assert parsed(b"data") == []  # unfinished
    assert parsed(b"data: x\n") == []  # no empty line ends it
    assert parsed(b"data\n\n") == [Event("message", "")]
    assert parsed(b"event: a\n\ndata: b\n\n") == [Event("message", "b")]  # a name without data is forgotten
    assert parsed(b"data:  two spaces\n\n") == [Event("message", " two spaces")]
    assert parsed(b"data: a:b\ndata:c\r\n\r\n") == [Event("message", "a:b\nc")]
    assert parsed(b"Data: other case\nd\xc3\xa4ta: x\n\n") == []
    assert parsed("data: ⛴️\n\n".encode(), 7, 8, 9) == [Event("message", "⛴️")]
    assert parsed("data: a\u2028b\x85c\n\n".encode()) == [Event("message", "a\u2028b\x85c")]  # those end no lines
