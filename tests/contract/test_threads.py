"""Threads through the public door, on each back end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

import threefold
from threefold.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from threefold.model.turn import Completion, Submission, Turn
from threefold.ports import CatalogQuery
from threefold.realms.conv.threads import Thread
from threefold.realms.conv.threads.writing import BUDGET, STEP
from threefold.testing.contract.desk import NOW, make_turn, own
from threefold.testing.fakes import Clock, HashEmbedder
from threefold.text.tokens import count_tokens

Open = Callable[..., threefold.Threefold]


class Spy:
    """A summarizer that notes what it is asked; `fails` makes it raise."""

    name = "spy-1"

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[tuple[str, str]], int]] = []
        self.fails = False

    def __call__(self, before: str, messages: Sequence[tuple[str, str]], tokens: int) -> str:
        if self.fails:
            raise Unavailable("the model is down")
        self.calls.append((before, list(messages), tokens))
        return f"{before}\nSo far {len(messages)} more, from {messages[0][1][:12]}.".strip()


def fill(thread: Thread, count: int, start: int = 0) -> None:
    for number in range(start, start + count):
        thread.add("user" if number % 2 == 0 else "assistant", f"Message {number} is about {own(number)}.")


def told(context) -> list[str]:
    return [message.text for message in context.messages]


@pytest.mark.capability("thread.window")
def test_a_thread_of_two_hundred_messages_shows_the_last_fifty_and_a_summary_of_the_others(
    db: threefold.Threefold,
) -> None:
    thread = db.user("alice").thread("support-ticket-123")
    fill(thread, 200)
    context = thread.context()
    assert told(context) == [f"Message {number} is about {own(number)}." for number in range(150, 200)]
    assert [message.role for message in context.messages[:2]] == ["user", "assistant"]
    assert (context.summarised, context.status, context.warnings) == (150, "active", ())
    assert 0 < count_tokens(context.summary) <= BUDGET
    lines = context.summary.split("\n")
    for line in lines:
        number = int(line.partition("Message ")[2].split()[0])
        assert line == f"{'user' if number % 2 == 0 else 'assistant'}: Message {number} is about {own(number)}."
        assert number < 150
    assert context.tokens >= count_tokens(context.summary) + sum(count_tokens(text) for text in told(context))
    first = context.messages[0]
    assert db.user("alice").resolve(first.ref).as_bytes().decode() == first.text


@pytest.mark.capability("thread.window")
@pytest.mark.parametrize("count", [1, 49, 50, 51, 69, 70, 71])
def test_window_and_summary_meet_without_gap_or_overlap(db: threefold.Threefold, count: int) -> None:
    thread = db.user("alice").thread("trip")
    fill(thread, count)
    for window in (1, 7, 50, 1000):
        context = thread.context(window)
        assert told(context) == [f"Message {n} is about {own(n)}." for n in range(max(0, count - window), count)]
        assert context.summarised == max(0, count - window)
        assert bool(context.summary) == (count > window)


@pytest.mark.capability("thread.window")
def test_messages_are_those_of_every_turn_of_the_conversation(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    with alice.turn("trip", started=NOW) as turn:
        turn.prompt("first", at=NOW, author="Alice")
        turn.attach(("notes.txt", b"x"), text="attached text")
        turn.context("page.opened", {"url": "https://x"})
        turn.note("noted")
        turn.summary("summed", anchors=["anchored"])
        turn.steer("third", at=NOW + timedelta(seconds=3))
        turn.followup("second", at=NOW + timedelta(seconds=2))
        turn.answer("fourth", at=NOW + timedelta(seconds=4))
    with alice.turn("trip", started=NOW + timedelta(seconds=5)) as turn:
        turn.prompt("fifth", at=NOW + timedelta(seconds=5))
        turn.fail("no connection")
    with alice.turn("trip", started=NOW + timedelta(seconds=6)) as turn:
        turn.prompt("sixth", at=NOW + timedelta(seconds=6))
        turn.cancel()
    thread = alice.thread("trip")
    thread.add("assistant", "seventh", at=NOW + timedelta(seconds=7), author="planner")
    context = thread.context()
    assert told(context) == ["first", "second", "third", "fourth", "fifth", "sixth", "seventh"]
    assert [m.kind for m in context.messages[:4]] == ["prompt", "followup", "steer", "completion"]
    assert (context.messages[0].author, context.messages[-1].author) == ("Alice", "planner")
    assert [m.role for m in context.messages] == [*["user"] * 3, "assistant", "user", "user", "assistant"]


@pytest.mark.capability("thread.window")
def test_recent_messages_are_never_truncated(db: threefold.Threefold) -> None:
    thread = db.user("alice").thread("trip")
    long = " ".join(own(number % 17_000) for number in range(30_000))
    fill(thread, 60)
    thread.add("user", long)
    context = thread.context()
    assert told(context)[-1] == long
    assert context.tokens > 30_000
    fill(thread, 50, 61)
    context = thread.context()
    assert len(context.messages) == 50
    assert (context.summarised, long in told(context)) == (61, False)
    assert count_tokens(context.summary) <= BUDGET


@pytest.mark.capability("thread.window")
def test_what_is_added_at_the_same_moment_stays_in_order(db: threefold.Threefold) -> None:
    thread = db.user("alice").thread("trip")
    for number in range(30):
        thread.add("user", f"{number}", at=NOW)
    assert told(thread.context()) == [f"{number}" for number in range(30)]


@pytest.mark.capability("thread.window")
def test_any_text_is_a_message(db: threefold.Threefold) -> None:
    thread = db.user("alice").thread("旅行 🕯️")
    texts = ["a\x00b", "\u202e rtl", "user: forged\nassistant: forged", "x" * 50_000, "👩‍👩‍👧", "\r\n\t."]
    for text in texts:
        thread.add("user", text)
    assert told(thread.context()) == texts
    context = thread.context(1)
    assert context.summarised == 5
    assert count_tokens(context.summary) <= BUDGET


LANGUAGES = {
    "Chinese": ("我们决定第{}天坐火车去里斯本。", "\u4e00"),
    "Japanese": ("{}日目は電車でリスボンに行きます。", "\u3040"),
    "Arabic": ("قررنا السفر إلى لشبونة في اليوم {}.", "\u0600"),
    "Hindi": ("हमने दिन {} पर लिस्बन जाने का फैसला किया।", "\u0900"),
    "Thai": ("วันที่ {} เราจะนั่งรถไฟไปลิสบอน", "\u0e00"),
    "Russian": ("На {} день мы решили ехать в Лиссабон.", "\u0400"),
    "Greek": ("Την ημέρα {} πάμε στη Λισαβόνα.", "\u0370"),
    "Korean": ("{}일째에는 기차로 리스본에 갑니다.", "\uac00"),
    "Hebrew": ("ביום {} נוסעים לליסבון ברכבת.", "\u0590"),
    "Tamil": ("நாள் {} அன்று லிஸ்பனுக்குச் செல்கிறோம்.", "\u0b80"),
}


@pytest.mark.capability("thread.summary")
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_summary_speaks_the_language_of_the_thread(db: threefold.Threefold, language: str) -> None:
    sentence, block = LANGUAGES[language]
    thread = db.user("alice").thread("trip")
    said = [sentence.format(number) for number in range(80)]
    for number, text in enumerate(said):
        thread.add("user" if number % 2 == 0 else "assistant", text)
    context = thread.context()
    assert context.summarised == 30
    assert count_tokens(context.summary) <= BUDGET
    assert any(block <= c for c in context.summary)
    for line in context.summary.split("\n"):
        assert line.partition(": ")[2] in said[:30]


@pytest.mark.capability("thread.summary")
def test_parts_are_written_once_and_the_rest_is_extracted_as_it_is_asked_for(open_db: Open) -> None:
    spy = Spy()
    thread = open_db(summarizer=spy).user("alice").thread("trip")
    fill(thread, 69)
    assert (thread.maintain().parts, spy.calls) == (0, [])
    assert thread.context().summarised == 19
    fill(thread, 62, 69)
    assert spy.calls == []  # adding never waits for a model
    assert thread.context().summarised == 81
    assert thread.maintain().parts == 4
    assert thread.maintain().parts == 0
    assert [len(messages) for _, messages, _ in spy.calls] == [STEP] * 4
    assert [messages[0][1][:10] for _, messages, _ in spy.calls] == [f"Message {n} "[:10] for n in (0, 20, 40, 60)]
    assert [before.count("So far") for before, _, _ in spy.calls] == [0, 1, 2, 3]
    context = thread.context()
    assert (context.summarised, len(spy.calls)) == (81, 4)
    lines = context.summary.split("\n")
    assert lines[:4] == [f"So far {STEP} more, from {f'Message {n} is'[:12]}." for n in (0, 20, 40, 60)]
    assert lines[4:] == [f"user: Message 80 is about {own(80)}."]
    info = thread.retrieve()
    assert (info.messages, info.summarised, info.parts) == (131, 80, {"spy-1": 4})
    # Another handle on the same store reads what was written.
    fill(thread, 20, 131)
    assert thread.maintain().parts == 1
    assert len(spy.calls[-1][1]) == STEP
    assert spy.calls[-1][0].count("So far") == 4


@pytest.mark.capability("thread.summary")
def test_where_the_model_fails_the_part_is_extracted_and_it_is_said(open_db: Open) -> None:
    spy = Spy()
    thread = open_db(summarizer=spy).user("alice").thread("trip")
    fill(thread, 70)
    spy.fails = True
    done = thread.maintain()
    assert (done.parts, len(done.warnings)) == (1, 1)
    assert "spy-1" in done.warnings[0]
    assert "the model is down" in done.warnings[0]
    context = thread.context()
    assert (context.summarised, len(context.warnings)) == (20, 1)
    assert context.summary.startswith("user: Message")
    spy.fails = False
    fill(thread, 20, 70)
    assert thread.maintain().parts == 1
    assert spy.calls[0][0].startswith("user: Message")
    assert thread.context().warnings == ()
    assert thread.retrieve().parts == {"extract": 1, "spy-1": 1}


@pytest.mark.capability("thread.summary")
@pytest.mark.parametrize(
    ("says", "warned"),
    [(lambda: 1 // 0, "ZeroDivisionError"), (lambda: None, "NoneType"), (lambda: b"text", "bytes instead of text")],
)
def test_whatever_a_model_raises_or_gives_the_part_is_extracted(
    open_db: Open, says: Callable[[], object], warned: str
) -> None:
    thread = open_db(summarizer=lambda before, messages, tokens: says()).user("alice").thread("trip")
    fill(thread, 75)
    done = thread.maintain()
    assert (done.parts, len(done.warnings)) == (1, 1)
    assert warned in done.warnings[0]
    assert thread.context().summary.startswith("user: Message")
    assert thread.retrieve().parts == {"extract": 1}


@pytest.mark.capability("thread.summary")
@pytest.mark.parametrize("said", ["", " \n", "word " * 5000, "a\x00b \ud800"])
def test_whatever_a_model_says_is_bounded_and_kept(open_db: Open, said: str) -> None:
    def model(before: str, messages: Sequence[tuple[str, str]], tokens: int) -> str:
        return said

    thread = open_db(summarizer=model).user("alice").thread("trip")
    fill(thread, 75)
    done = thread.maintain()
    assert (done.parts, len(done.warnings)) == (1, int(not said.strip()))
    context = thread.context()
    assert context.summary
    assert count_tokens(context.summary) <= BUDGET


@pytest.mark.capability("thread.summary")
def test_a_long_history_is_extracted_at_once_and_only_its_end_told_to_a_model(open_db: Open) -> None:
    spy = Spy()
    alice = open_db(summarizer=spy).user("alice")
    alice.conv.record_all(
        [
            make_turn("session", f"{n:04}", f"Question {n} on {own(n)}", f"Answer {n}", NOW + timedelta(minutes=n))
            for n in range(300)
        ]
    )
    thread = alice.thread("session")
    before = thread.context()
    assert (before.summarised, len(before.warnings)) == (550, 1)
    assert alice.threads() == ()  # reading made nothing
    assert thread.maintain().parts == 6
    assert (len(spy.calls), sum(len(messages) for _, messages, _ in spy.calls)) == (5, 5 * STEP)
    assert thread.context().warnings == ()
    assert thread.context().summarised == 550
    assert [entry.name for entry in alice.threads()] == ["session"]


@pytest.mark.capability("thread.summary")
def test_reading_costs_no_more_in_a_long_thread(open_db: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    db = open_db()
    alice = db.user("alice")
    store, asked = db._backend, []

    def counted(name: str) -> None:
        method = getattr(store, name)

        def call(*args, **kwargs):
            found = method(*args, **kwargs)
            asked.append((name, len(found)))
            return found

        monkeypatch.setattr(store, name, call)

    for name in ("catalog", "rows", "records"):
        counted(name)
    costs = []
    for size in (200, 800):
        thread = alice.thread(f"of {size}")
        alice.conv.record_all(
            [make_turn(thread.name, f"{n:04}", f"Q {n}", f"A {n}", NOW + timedelta(minutes=n)) for n in range(size)]
        )
        thread.maintain()
        asked.clear()
        assert thread.context().summarised == 2 * size - 50
        costs.append(list(asked))
    assert costs[0] == costs[1]
    assert len(costs[0]) <= 5
    assert sum(count for _, count in costs[0]) < 200


@pytest.mark.capability("thread.summary")
def test_a_summary_is_neither_found_nor_listed_in_the_record(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    thread = alice.thread("trip")
    fill(thread, 100)
    assert thread.retrieve().summarised > 0
    assert {hit.conversation for hit in alice.conv.search("message about", limit=50)} == {"trip"}
    assert len(alice.conv.turns(limit=1000)) == 100
    assert [c.id for c in alice.conv.conversations()] == ["trip"]
    assert db._backend.catalog(alice.scope, CatalogQuery(db.config.clock(), labels=(("thread:active",),))) == ()


@pytest.mark.capability("thread.archive")
def test_an_archived_thread_takes_no_messages_and_is_left_out_of_the_list(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    thread = alice.thread("trip")
    fill(thread, 3)
    assert [entry.name for entry in alice.threads()] == ["trip"]
    assert thread.archive().status == "archived"
    archived = thread.archive()
    assert archived.archived == db.config.clock()
    with pytest.raises(Conflict, match=r"reopen\(\) it first \(threefold threads reopen trip\)"):
        thread.add("user", "too late")
    assert alice.threads() == ()
    assert [(entry.name, entry.status) for entry in alice.threads(archived=True)] == [("trip", "archived")]
    context = thread.context()
    assert (context.status, len(context.messages)) == ("archived", 3)
    assert thread.reopen().status == "active"
    assert thread.reopen().archived is None
    thread.add("user", "in time")
    assert [entry.name for entry in alice.threads()] == ["trip"]
    assert told(thread.context())[-1] == "in time"


@pytest.mark.capability("thread.archive")
def test_threads_are_listed_by_their_last_message_in_pages(open_db: Open) -> None:
    clock = Clock()
    alice = open_db(clock=clock).user("alice")
    for number in range(7):
        clock.advance(timedelta(minutes=5))
        alice.thread(f"t{number}").create()
    clock.advance(timedelta(minutes=5))
    alice.thread("t2").add("user", "hello")
    names, after = [], None
    while page := alice.threads(limit=3, after=after):
        names += [entry.name for entry in page]
        after = page[-1]
    assert names == ["t2", "t6", "t5", "t4", "t3", "t1", "t0"]
    (first, *_) = alice.threads(limit=1)
    assert (first.active, first.as_json()["status"]) == (clock(), "active")
    with pytest.raises(InvalidInput, match="limit"):
        alice.threads(limit=0)


@pytest.mark.capability("thread.archive")
def test_a_thread_is_made_by_hand_or_by_its_first_message_and_never_by_reading(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    thread = alice.thread("trip")
    for read in (thread.context, thread.retrieve, thread.archive, thread.reopen, thread.maintain):
        with pytest.raises(NotFound, match="trip"):
            read()
    assert alice.threads() == ()
    assert list(db.scopes()) == []
    made = thread.create()
    assert (made.messages, made.turns, made.started, made.last_activity) == (0, 0, None, None)
    assert thread.create() == made
    context = thread.context()
    assert (context.summary, context.messages, context.summarised, context.tokens) == ("", (), 0, 0)
    assert (thread.maintain().parts, alice.conv.conversations()) == (0, ())
    thread.add("user", "hello", at=NOW)
    thread.add("assistant", "hi", at=NOW + timedelta(hours=1))
    info = thread.retrieve()
    assert (info.messages, info.turns, info.started) == (2, 2, NOW)
    assert info.last_activity == NOW + timedelta(hours=1)


@pytest.mark.capability("thread.archive")
def test_malformed_input_is_refused(db: threefold.Threefold) -> None:
    thread = db.user("alice").thread("trip")
    for refused, names in (
        (lambda: thread.add("system", "x"), "role"),
        (lambda: thread.add("user", " \n"), "text"),
        (lambda: thread.add("user", 5), "text"),
        (lambda: thread.add("user", "x", at="soon"), "at"),
        (lambda: thread.add("user", "x", author=""), "author"),
        (lambda: thread.context(0), "window"),
        (lambda: thread.context(True), "window"),
        (lambda: thread.maintain(10_001), "window"),
        (lambda: db.user("alice").thread(" "), "name"),
    ):
        with pytest.raises(InvalidInput, match=names):
            refused()
    with pytest.raises(NotFound):
        thread.context()


@pytest.mark.capability("thread.isolation")
def test_nothing_is_shared_between_threads_users_and_tenants(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    fill(alice.thread("trip"), 75)
    for other in (alice.thread("trip2"), db.user("bob").thread("trip"), db.user("alice", "other").thread("trip")):
        with pytest.raises(NotFound):
            other.context()
        other.add("user", "only this")
        context = other.context()
        assert (told(context), context.summary) == (["only this"], "")
    assert [entry.name for entry in db.user("bob").threads()] == ["trip"]
    assert len(alice.thread("trip").context().messages) == 50


@pytest.mark.capability("thread.isolation")
def test_a_thread_of_one_app_is_forbidden_to_another(db: threefold.Threefold) -> None:
    mine, other = db.user("alice", app="planner"), db.user("alice", app="mail")
    fill(mine.thread("trip"), 75)
    thread = other.thread("trip")
    for refused in (
        thread.context, thread.retrieve, thread.create, thread.archive, thread.maintain,
        lambda: thread.add("user", "x"), lambda: other.forget("trip"),
    ):  # fmt: skip
        with pytest.raises(Forbidden):
            refused()
    assert other.threads() == ()
    assert [entry.name for entry in mine.threads()] == ["trip"]
    assert mine.thread("trip").context().summarised == 25


@pytest.mark.capability("thread.isolation")
def test_a_conversation_that_an_app_recorded_is_no_thread_of_another(db: threefold.Threefold) -> None:
    with db.user("alice", app="planner").turn("trip") as turn:
        turn.prompt("hello")
    thread = db.user("alice", app="mail").thread("trip")
    for refused in (thread.context, thread.create, thread.archive, thread.maintain, lambda: thread.add("user", "x")):
        with pytest.raises(Forbidden):
            refused()
    assert db.user("alice", app="mail").threads(archived=True) == ()
    assert told(db.user("alice", app="planner").thread("trip").context()) == ["hello"]


@pytest.mark.capability("thread.isolation")
def test_what_an_app_and_the_user_see_is_summarised_apart(db: threefold.Threefold) -> None:
    app, whole = db.user("alice", app="planner"), db.user("alice")
    fill(app.thread("trip"), 40)
    fill(whole.thread("trip"), 60, 40)
    fill(app.thread("trip"), 40, 100)
    assert app.thread("trip").maintain().parts + whole.thread("trip").maintain().parts >= 0
    seen, everything = app.thread("trip").context(), whole.thread("trip").context()
    assert (seen.summarised, everything.summarised) == (30, 90)
    assert not any(own(number) in seen.summary for number in range(40, 100))
    assert [told(seen)[0], told(seen)[10]] == [f"Message {n} is about {own(n)}." for n in (30, 100)]
    app.forget("trip", app.conv.turns("trip", limit=1)[0].turn)
    assert own(0) not in app.thread("trip").context().summary + whole.thread("trip").context().summary
    app.forget()
    with pytest.raises(NotFound):
        whole.thread("trip").context()


@pytest.mark.capability("thread.deletion")
def test_a_summary_goes_with_a_turn_that_it_covers_and_is_made_anew(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    thread = alice.thread("trip")
    fill(thread, 100)
    covered = thread.retrieve().summarised
    assert covered >= 2 * STEP
    named = next(number for number in range(covered) if own(number) in thread.context().summary)
    turn = next(t for t in alice.conv.turns("trip", limit=100) if own(named) in t.about).turn
    receipt = alice.forget("trip", turn)
    assert receipt.stores["turns"] == 1
    assert receipt.stores["threads"] == 1
    assert thread.retrieve().summarised == 0
    context = thread.context()
    assert (context.summarised, own(named) in context.summary) == (49, False)
    assert thread.maintain().parts == 1
    assert own(named) not in thread.context().summary
    receipt = alice.forget("trip")
    assert (receipt.stores["turns"], receipt.stores["threads"]) == (99, 2)
    with pytest.raises(NotFound):
        thread.context()
    assert alice.threads(archived=True) == ()
    thread.add("user", "anew")
    assert told(thread.context()) == ["anew"]


@pytest.mark.capability("thread.deletion")
def test_a_summary_that_another_is_writing_does_not_outlive_what_is_forgotten_meanwhile(open_db: Open) -> None:
    forgotten: list[str] = []

    def forgetful(before: str, messages: Sequence[tuple[str, str]], tokens: int) -> str:
        if not forgotten:
            forgotten.append(alice.conv.turns("trip", limit=1)[0].turn)
            alice.forget("trip", forgotten[0])
        return "They spoke of " + messages[0][1]

    alice = open_db(summarizer=forgetful).user("alice")
    thread = alice.thread("trip")
    fill(thread, 90)
    assert thread.maintain().parts == 0
    assert thread.retrieve().summarised == 0
    assert thread.maintain().parts == 1
    assert own(0) not in thread.context().summary
    forgotten.clear()
    fill(thread, 30, 90)

    def forgets_all(before: str, messages: Sequence[tuple[str, str]], tokens: int) -> str:
        alice.forget()
        return "They spoke of " + messages[0][1]

    alice._ports = alice._ports._replace(summarizer=forgets_all)
    assert alice.thread("trip").maintain().parts == 0
    with pytest.raises(NotFound):
        thread.context()


@pytest.mark.capability("thread.deletion")
def test_a_summary_lives_no_longer_than_the_first_of_its_turns(open_db: Open) -> None:
    clock = Clock()
    db = open_db(clock=clock, ttl=timedelta(days=10))
    thread = db.user("alice").thread("trip")
    fill(thread, 10)
    clock.advance(timedelta(days=5))
    fill(thread, 90, 10)
    assert thread.retrieve().summarised > 10
    assert own(3) in thread.context().summary
    clock.advance(timedelta(days=6))
    assert thread.retrieve().summarised == 0
    context = thread.context()
    assert (context.summarised, own(3) in context.summary) == (40, False)
    assert db.expire() == 11  # ten turns and the summary
    assert thread.context() == context
    thread.maintain()
    assert thread.context().summarised == 40
    clock.advance(timedelta(days=5))
    with pytest.raises(NotFound):
        thread.context()
    db.expire()
    assert db.state().counts["turns"] == 0


@pytest.mark.capability("thread.deletion")
def test_a_turn_that_is_recorded_before_the_end_of_the_summary_is_in_the_next_one(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    thread = alice.thread("trip")
    for number in range(100):
        thread.add("user", f"Message {number}.", at=NOW + timedelta(minutes=number))
    assert thread.retrieve().summarised > 10
    thread.add("user", "The code is 4711-Zebra.", at=NOW + timedelta(minutes=5, seconds=1))
    context = thread.context()
    assert (context.summarised, "4711-Zebra" in context.summary) == (51, True)
    thread.maintain()
    context = thread.context()
    assert (context.summarised, "4711-Zebra" in context.summary) == (51, True)


@pytest.mark.capability("thread.deletion")
@pytest.mark.parametrize("place", [0, 7, 19])
def test_a_fuller_edition_of_a_turn_leaves_no_stale_summary(db: threefold.Threefold, place: int) -> None:
    alice = db.user("alice")

    def turn(number: int, answer: str, later: int = 1) -> Turn:
        at = NOW + timedelta(minutes=number)
        return Turn(
            "session", f"{number:03}", at, at + timedelta(seconds=later),
            submissions=(Submission("prompt", f"Question {number}?", at),),
            completion=Completion(answer, at + timedelta(seconds=later)),
        )  # fmt: skip

    alice.conv.record_all([turn(number, f"Reply {number} says {own(number)}.") for number in range(45)])
    thread = alice.thread("session")
    assert thread.maintain().parts == 1
    assert thread.retrieve().summarised == 40
    assert alice.conv.record(turn(place, "Reply is 4711-Zebra now.", later=9)) == "replaced"
    assert thread.retrieve().summarised == 0
    context = thread.context()
    assert (context.summarised, "4711-Zebra" in context.summary) == (40, True)
    assert own(place) not in context.summary
    thread.maintain()
    # The last turn is in no summary: recording it again and again costs nothing.
    for later in (2, 3):
        assert alice.conv.record(turn(44, "Reply 44 grows.", later=later)) == "replaced"
    assert thread.retrieve().summarised == 40


@pytest.mark.capability("thread.portable")
def test_threads_go_with_an_export_and_come_back(open_db: Open, tmp_path: Path) -> None:
    db = open_db()
    alice = db.user("alice")
    thread = alice.thread("trip")
    fill(thread, 100)
    alice.thread("old").create()
    alice.thread("old").archive()
    context = thread.context()
    alice.export(tmp_path / "alice.zip")
    with threefold.open(":memory:", embedder=HashEmbedder(), background=False, clock=db.config.clock) as other:
        for user in ("alice", "carol"):
            threefold.restore(tmp_path / "alice.zip", other, user)
            threefold.restore(tmp_path / "alice.zip", other, user)
            back = other.user(user)
            assert back.thread("trip").context() == context
            assert back.thread("trip").retrieve() == thread.retrieve()
            listed = [(entry.name, entry.status) for entry in back.threads(archived=True)]
            assert sorted(listed) == [("old", "archived"), ("trip", "active")]


@pytest.mark.capability("thread.portable")
def test_threads_go_with_a_copy_and_follow_later_changes(open_db: Open) -> None:
    db = open_db()
    thread = db.user("alice").thread("trip")
    fill(thread, 100)
    with threefold.open(":memory:", embedder=HashEmbedder(), background=False, clock=db.config.clock) as other:
        threefold.copy_store(db, other)
        assert threefold.compare_stores(db, other).differences == ()
        copied = other.user("alice").thread("trip")
        assert copied.context() == thread.context()
        db.config.clock.advance(timedelta(minutes=2))
        fill(thread, 41, 100)
        thread.archive()
        threefold.copy_store(db, other)
        assert copied.context() == thread.context()
        assert copied.retrieve() == thread.retrieve()
        assert copied.context().status == "archived"


@pytest.mark.capability("thread.window")
def test_two_handles_add_and_maintain_at_once(open_db: Open) -> None:
    db = open_db(clock=threefold.Config().clock)
    failures: list[threefold.ThreefoldError] = []

    def work(name: str) -> None:
        thread = db.user("alice").thread("trip")
        try:
            for number in range(40):
                thread.add("user", f"{name} {number}")
                if number % 10 == 0:
                    thread.maintain(5)
                    thread.context(5)
        except threefold.ThreefoldError as error:
            failures.append(error)

    workers = [threading.Thread(target=work, args=(name,)) for name in ("first", "second", "third")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert failures == []
    thread = db.user("alice").thread("trip")
    context = thread.context(1000)
    assert (len(context.messages), context.summarised) == (120, 0)
    for name in ("first", "second", "third"):
        assert [text for text in told(context) if text.startswith(name)] == [f"{name} {n}" for n in range(40)]
    thread.maintain(5)
    assert thread.context(5).summarised == 115


@pytest.mark.capability("thread.summary")
def test_what_is_redacted_is_in_no_summary(open_db: Open) -> None:
    thread = open_db(redact=lambda text, name="": text.replace("hunter2", "[redacted: password]")).user("a").thread("t")
    ref = thread.add("user", "The password of the server is hunter2 since 2024.")
    fill(thread, 75)
    assert thread.retrieve().summarised > 0
    context = thread.context()
    assert "user: The password of the server is [redacted: password] since 2024." in context.summary
    assert ref.endswith("user.prompt")
    assert thread.context(100).messages[0].text.endswith("[redacted: password] since 2024.")
