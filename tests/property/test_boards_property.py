"""A board against a plain model: two editors, an agent, stale revisions. Nothing that was acknowledged is lost, and
every revision reads as it was."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import threefold
from threefold.errors import Conflict, NotFound
from threefold.model.board import Board
from threefold.realms.cnv import BoardHandle, Cnv
from threefold.testing.fakes import Clock, ShownObjects

REFS = st.sampled_from(["task:issue:1", "task:issue:2", "doc:guide#3", "cnv:旅", "mem:record:mem_1"])
TEXTS = st.sampled_from(["", "a", "好", "نعم", "ไทย", "🕯️"])
SAID = st.sampled_from(["a", "好", "نعم", "ไทย", "🕯️"])
NUMBERS = st.sampled_from([-1.5, 0.0, 7.0, 1e6])
# How many revisions ago an editor read the board; None for one that names no revision.
AGES = st.sampled_from([None, None, 0, 1, 2, 5, 30])
MAX = 12


class Boards(RuleBasedStateMachine):
    """The model: cards by reference as plain fields; of every revision which (card, part) it changed."""

    store = ":memory:"

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.db = threefold.open(self.store, embedder=None, background=False, durable=False, clock=self.clock)
        self.boards = [self.editor(None), self.editor(None), self.editor("planner")]
        self.cards: dict[str, dict[str, Any]] = {}
        self.fields: dict[str, Any] = {"title": "旅", "archived": False, "attached": []}
        self.stood: list[Board] = []
        self.changes: list[set[tuple[str, str]]] = []

    def editor(self, agent: str | None) -> BoardHandle:
        return Cnv(self.db.user("alice", agent=agent).scope, self.db._ports, ShownObjects()).board("旅")

    def write(self, write: Any, age: int | None, after: dict[str, Any], touched: set[tuple[str, str]]) -> None:
        """Do it, and hold it against what the model says: done, refused as stale, or nothing to be done.

        `touched` are the (card, part) that are other than before; `after` is how the cards are then.
        """
        self.clock.advance(timedelta(seconds=1))
        current = len(self.stood)
        seen = None if age is None else max(0, current - age)
        since = set().union(*self.changes[seen:]) if seen is not None else set()
        stale = {what for what in touched if what[1] != "comments"} & since
        removing = {what[0] for what in touched if what[1] == "removed"} & {card for card, _ in since}
        try:
            write(seen)
        except Conflict:
            assert stale or removing
            return
        assert not stale
        assert not removing
        if not touched:
            assert self.boards[0].get().revision == current
            return
        self.cards = after
        self.stood.append(self.boards[0].get())
        self.changes.append(touched)
        for ref in removing | {card for card, part in touched if part == "removed"}:
            # What was removed for good is in no revision any more.
            self.changes = [{what for what in each if what[0] != ref} for each in self.changes]
            self.stood = [
                Board(**{**fields_of(was), "cards": tuple(card for card in was.cards if card.ref != ref)})
                for was in self.stood
            ]

    def changed(self, ref: str, **parts: Any) -> tuple[dict[str, Any], set[tuple[str, str]]]:
        """The cards with some parts of one as given, and which of them are other than they were."""
        card = self.cards[ref]
        touched = {(ref, part) for part, value in parts.items() if card[part] != value}
        return {**self.cards, ref: {**card, **parts}}, touched

    @rule(who=st.integers(0, 1), ref=REFS, note=TEXTS, age=AGES)
    def pin(self, who: int, ref: str, note: str, age: int | None) -> None:
        if not self.stood:
            age = None
        if ref in self.cards:
            card = self.cards[ref]
            after, touched = self.changed(ref, state=("placed", None), note=note or card["note"])
        else:
            new = {"state": ("placed", None), "note": note, "comments": [], "layout": None}
            after, touched = {**self.cards, ref: new}, {(ref, part) for part in new}
            # A card that is new contradicts nothing that is known.
            seen = None if age is None else max(0, len(self.stood) - age)
            assert seen is None or not any(what[0] == ref for each in self.changes[seen:] for what in each)
        self.write(lambda seen: self.boards[who].pin(ref, note=note, revision=seen), age, after, touched)
        if ref in self.cards and self.cards[ref]["layout"] is None:
            rect = next(card.rect for card in self.stood[-1].cards if card.ref == ref)
            self.cards[ref]["layout"] = (rect.x, rect.y, rect.w, rect.h)

    @rule(ref=REFS, note=TEXTS, why=TEXTS)
    def suggest(self, ref: str, note: str, why: str) -> None:
        waits = ("suggested", ("pin", why))
        if ref not in self.cards:
            new = {"state": waits, "note": note, "comments": [], "layout": None}
            after, touched = {**self.cards, ref: new}, {(ref, part) for part in new}
        else:
            state, note_ = self.cards[ref]["state"], self.cards[ref]["note"] or note
            kept = state[0] in ("placed", "declined") or (state[0] == "suggested" and why in ("", state[1][1]))
            after, touched = (self.cards, set()) if kept else self.changed(ref, state=waits, note=note_)
            touched |= set() if kept else {(ref, "state")}  # it has a time of its own
        self.write(lambda seen: self.boards[2].suggest(ref, note=note, why=why, revision=seen), None, after, touched)
        if ref in self.cards and self.cards[ref]["layout"] is None:
            rect = next(card.rect for card in self.stood[-1].cards if card.ref == ref)
            self.cards[ref]["layout"] = (rect.x, rect.y, rect.w, rect.h)

    def act(self, who: int, ref: str, act: str, age: int | None, parts: dict[str, Any], **given: Any) -> None:
        """An act on one card that leaves some parts so."""
        call = getattr(self.boards[who], act)
        if ref not in self.cards:
            try:
                call(ref, **given)
            except NotFound:
                return
            raise AssertionError(f"{act} of a card that is not there")
        after, touched = self.changed(ref, **parts)
        self.write(lambda seen: call(ref, revision=seen, **given), age, after, touched)

    @rule(who=st.integers(0, 1), ref=REFS, x=NUMBERS, y=NUMBERS, age=AGES)
    def move(self, who: int, ref: str, x: float, y: float, age: int | None) -> None:
        parts = {"layout": (x, y, *self.cards[ref]["layout"][2:])} if ref in self.cards else {}
        self.act(who, ref, "move", age, parts, x=x, y=y)

    @rule(who=st.integers(0, 1), ref=REFS, note=TEXTS, age=AGES)
    def annotate(self, who: int, ref: str, note: str, age: int | None) -> None:
        self.act(who, ref, "annotate", age, {"note": note}, note=note)

    @rule(who=st.integers(0, 2), ref=REFS, text=SAID, age=AGES)
    def comment(self, who: int, ref: str, text: str, age: int | None) -> None:
        said = [*self.cards[ref]["comments"], text] if ref in self.cards else []
        self.act(who, ref, "comment", age, {"comments": said}, text=text)

    @rule(who=st.integers(0, 1), ref=REFS, age=AGES, restore=st.booleans())
    def bin_or_restore(self, who: int, ref: str, age: int | None, restore: bool) -> None:
        state = self.cards[ref]["state"] if ref in self.cards else ("", None)
        if restore and state[0] == "suggested":
            return
        after = ("placed", None) if restore else ("binned", None)
        if (restore and state[0] == "placed") or (not restore and state[0] in ("binned", "declined")):
            after = state
        self.act(who, ref, "restore" if restore else "bin", age, {"state": after})

    @rule(who=st.integers(0, 1), ref=REFS, age=AGES, accept=st.booleans())
    def decide(self, who: int, ref: str, age: int | None, accept: bool) -> None:
        state = self.cards[ref]["state"] if ref in self.cards else ("", None)
        if ref in self.cards and state[1] is None:
            return
        self.act(
            who, ref, "accept" if accept else "decline", age, {"state": ("placed" if accept else "declined", None)}
        )

    @rule(who=st.integers(0, 1), ref=REFS, age=AGES)
    def remove(self, who: int, ref: str, age: int | None) -> None:
        if ref not in self.cards:
            return
        after = {other: card for other, card in self.cards.items() if other != ref}
        self.write(lambda seen: self.boards[who].remove(ref, revision=seen), age, after, {(ref, "removed")})

    @rule(who=st.integers(0, 1), title=SAID, age=AGES)
    def rename(self, who: int, title: str, age: int | None) -> None:
        if self.stood:
            touched = {("", "title")} if self.fields["title"] != title else set()
            before = len(self.stood)
            self.write(lambda seen: self.boards[who].rename(title, revision=seen), age, self.cards, touched)
            if len(self.stood) > before:
                self.fields["title"] = title

    @rule(who=st.integers(0, 1), refs=st.lists(REFS, min_size=1, max_size=3, unique=True), x=NUMBERS, age=AGES)
    def move_several(self, who: int, refs: list[str], x: float, age: int | None) -> None:
        """All or none."""
        ops = [{"op": "move", "card": ref, "x": x, "y": 0} for ref in refs]
        if not set(refs) <= self.cards.keys():
            try:
                self.boards[who].edit(ops)
            except NotFound:
                return
            raise AssertionError("a batch with a card that is not there")
        after, touched = dict(self.cards), set[tuple[str, str]]()
        for ref in refs:
            changed, what = self.changed(ref, layout=(x, 0.0, *self.cards[ref]["layout"][2:]))
            after[ref], touched = changed[ref], touched | what
        self.write(lambda seen: self.boards[who].edit(ops, revision=seen), age, after, touched)

    @invariant()
    def the_board_is_as_the_model_says(self) -> None:
        if not self.stood:
            return
        board = self.boards[1].get()
        assert board == self.stood[-1]
        assert (board.revision, board.title) == (len(self.stood), self.fields["title"])
        told = {
            card.ref: {
                "state": (card.state, None if card.suggestion is None else (card.suggestion.act, card.suggestion.why)),
                "note": card.note,
                "comments": [said.text for said in card.comments],
                "layout": (card.rect.x, card.rect.y, card.rect.w, card.rect.h),
            }
            for card in board.cards
        }
        assert told == self.cards

    @invariant()
    def every_revision_reads_as_it_was(self) -> None:
        for was in self.stood[-MAX:]:
            assert self.boards[0].get(was.revision) == was

    def teardown(self) -> None:
        self.db.close()


def fields_of(board: Board) -> dict[str, Any]:
    return {name: getattr(board, name) for name in Board.__slots__}


class BoardsInFiles(Boards):
    """The same over SQLite."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = self.folder.name
        super().__init__()

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestBoards = Boards.TestCase
TestBoards.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestBoardsInFiles = BoardsInFiles.TestCase
TestBoardsInFiles.settings = settings(max_examples=8, stateful_step_count=30, deadline=None)
