"""A purge leaves nothing of what it removed in any file of the store, as raw bytes or inside packed logs."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest
from conftest import FAST_FOLDER

import threefold
from threefold.backends.opening import open_backend
from threefold.backends.packing import unpack
from threefold.model.commit import RecordTurn
from threefold.testing.contract.desk import Desk, make_turn
from threefold.testing.fakes import Clock, HashEmbedder

DAY = timedelta(days=1)
PLAIN = ["river", "boat", "bridge", "lisbon", "paper", "morning", "yellow", "market", "ticket", "harbour", "window"]


def unique(rng: random.Random, style: int) -> str:
    """A word that is nowhere else: random, or one of a family whose members differ at the end, as numbers do."""
    letters = "abcdefghijklmnop"
    if style == 0:
        return "qz" + "".join(rng.choices(letters, k=16)) + "zq"
    return "qzaccountaccount" + "".join(rng.choices(letters, k=6))


def record(handle: threefold.Handle, conversation: str, name: str, word: str, rng: random.Random) -> None:
    """A turn that has `word` in every place a turn has, ids and labels included."""
    filler = lambda: " ".join(rng.choices(PLAIN, k=rng.choice([0, 3, 40, 900])))  # noqa: E731
    with handle.turn(f"{conversation} {word}" if rng.random() < 0.2 else conversation, turn=name + word) as turn:
        turn.title = f"title {word}" if rng.random() < 0.5 else None
        turn.prompt(f"{filler()} asked {word} {filler()}", author=f"author {word}", batch=f"batch {word}")
        turn.attach((f"in {word}.txt", f"bytes {word}".encode() * rng.choice([1, 5000])), text=f"{word} {filler()}")
        turn.context("page", {"url": f"https://x/{word}", word: filler()})
        turn.step(f"step {word}", {"q": word}, result=[f"found {word}", filler()])
        turn.publish(f"out/{word}.md", f"published {word}")
        turn.source(f"https://source/{word}", f"title {word}", filler())
        turn.note(f"noted {word}", tag=f"tag {word}")
        turn.summary(f"summed {word}", anchors=[f"anchored {word}"])
        turn.event("chat.step", {"shown": word})
        turn.stream("canvas", f"drawn {word} {filler()}")
        turn.answer(f"{filler()} answered {word}", author=f"assistant {word}")
    handle.conv.feedback(turn.ref, "not_ok", f"because {word}")


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of the store, and every packed log and replay as what it holds."""
    for path in sorted(folder.rglob("*")):
        yield f"the name {path.name}", str(path.relative_to(folder)).encode()
        if path.is_file():
            yield path.name, path.read_bytes()
    db = apsw.Connection(str(folder / "record.db"), flags=apsw.SQLITE_OPEN_READONLY)
    for log, replay in db.execute("SELECT log, replay FROM turns"):
        for packed in (log, replay):
            if packed is not None:
                yield "a packed log", repr(unpack(packed)).encode()
    db.close()


def left(folder: Path, words: set[str]) -> list[str]:
    """Where a word is still to be found, whole or the greater part of it."""
    found = []
    for place, data in files(folder):
        wide = data.count(b"q\x00z\x00")
        for word in words:
            seen = word.encode() in data or (wide and word.encode("utf-16-le") in data)
            if seen or (word.endswith("zq") and word[6:].encode() in data):
                found.append(f"{word} in {place}")
    return found


class Corpus:
    """A store of many turns, and which words are in which."""

    def __init__(self, folder: Path, rng: random.Random, style: int) -> None:
        self.folder, self.rng, self.style, self.clock = folder / "store", rng, style, Clock()
        self.db = threefold.open(
            self.folder, embedder=HashEmbedder(8), background=False, clock=self.clock, durable=False, ttl=DAY
        )
        self.count = itertools.count()
        self.words: dict[tuple[str, str, str, str], str] = {}

    def fill(self, turns: int) -> None:
        for n in range(turns):
            tenant, user = self.rng.choice(["t1", "t2"]), self.rng.choice(["u1", "u2", "u1%"])
            conversation, name = f"c{self.rng.randrange(4)}", f"{next(self.count)}-"
            word = unique(self.rng, self.style)
            record(self.db.user(user, tenant), conversation, name, word, self.rng)
            self.words[tenant, user, conversation, name] = word
            if n % 40 == 0:
                self.db.embed_pending()

    def conversation(self, key: tuple[str, str, str, str]) -> str:
        """The id under which a turn's conversation was recorded: with the word or without."""
        tenant, user, conversation, _ = key
        named = f"{conversation} {self.words[key]}"
        handle = self.db.user(user, tenant)
        return named if handle.conv.turns(named, limit=1) else conversation

    def purge(self, kind: str) -> set[str]:
        """Purge something; returns the words that must be gone."""
        key = self.rng.choice(sorted(self.words))
        tenant, user, _, name = key
        handle, conversation = self.db.user(user, tenant), self.conversation(key)
        if kind == "tenant":
            receipt, gone = self.db.forget_tenant(tenant), [k for k in self.words if k[0] == tenant]
        elif kind == "user":
            receipt, gone = handle.forget(), [k for k in self.words if k[:2] == (tenant, user)]
        elif kind == "conversation":
            gone = [k for k in self.words if k[:2] == (tenant, user) and self.conversation(k) == conversation]
            receipt = handle.forget(conversation=conversation)
        else:
            receipt, gone = handle.forget(conversation=conversation, turn=name + self.words[key]), [key]
        assert receipt.leftovers == ()
        assert receipt.stores["turns"] == len(gone), (kind, receipt, gone)
        return {self.words.pop(k) for k in gone}

    def expire(self) -> set[str]:
        """Let the time to live of everything pass."""
        self.clock.advance(2 * DAY)
        assert self.db.expire() == len(self.words)
        gone = set(self.words.values())
        self.words.clear()
        return gone

    def replace(self) -> set[str]:
        """Record a turn again, fuller, without its old answer, title and note; then let maintenance do its work."""
        old, handle = unique(self.rng, self.style), self.db.user("u1", "t1")
        for answer, later in ((f"partial {old}", 0), ("complete", 60)):
            with handle.turn("grown", turn=old[:3], started=self.clock.at) as turn:
                turn.title = f"title {answer}"
                turn.prompt("same")
                turn.note(f"noted {answer}" * (1 + later))
                turn.attach(("same.txt", b"same"))
                turn.answer(answer, at=self.clock.at + timedelta(seconds=later))
        assert turn.outcome == "replaced"
        self.db.embed_pending()
        self.db.expire()
        assert left(self.folder, {old}) == []
        assert handle.read(handle.conv.turn(turn.ref).attachments[0].ref) == b"same"
        handle.forget(conversation="grown")
        return {old}

    def check(self, gone: set[str]) -> None:
        assert left(self.folder, gone) == []
        state = self.db.state(check=True)
        assert state.problems == ()
        assert state.counts["turns"] == len(self.words)
        for key in self.rng.sample(sorted(self.words), min(3, len(self.words))):
            hits = self.db.user(key[1], key[0]).conv.search(self.words[key], lists=["lexical"])
            assert [hit.turn for hit in hits] == [key[3] + self.words[key]]


@pytest.fixture
def corpus() -> Iterator[Callable[[int, int], Corpus]]:
    made = []
    with TemporaryDirectory(dir=FAST_FOLDER) as folder:

        def make(seed: int, style: int) -> Corpus:
            made.append(Corpus(Path(folder) / str(len(made)), random.Random(seed), style))
            return made[-1]

        yield make
        for each in made:
            each.db.close()


@pytest.mark.parametrize("style", [0, 1])
@pytest.mark.parametrize("seed", range(int(os.environ.get("THREEFOLD_PURGE_SEEDS", "12"))))
def test_nothing_is_left_of_what_was_purged(corpus: Callable[[int, int], Corpus], seed: int, style: int) -> None:
    store = corpus(seed, style)
    store.fill(store.rng.choice([1, 8, 60]))
    gone: set[str] = set()
    for kind in ("turn", "turn", "turn", "replace", "conversation", "turn", "user", "turn", "tenant", "expire"):
        if kind == "replace":
            gone |= store.replace()
        elif kind == "expire":
            gone |= store.expire()
        elif store.words:
            gone |= store.purge(kind)
        store.check(gone)
        store.fill(store.rng.choice([0, 1, 10]))
    store.db.close()
    assert left(store.folder, gone) == []


def editions(desk: Desk, rng: random.Random, style: int) -> Iterator[tuple[set[str], list[str]]]:
    """Editions of a turn of many rows that stay, go, come and move: what was said and is not any more, what is said.

    Each row has a word of its own, and the vector of a row that stays is not made again.
    """
    model, gone, words = HashEmbedder(8), set[str](), list[str]()
    said: dict[str, str] = {}
    for count in (120, 5, 30, 0, 60):
        gone |= {word for word in words if rng.random() < 0.3}
        new = [unique(rng, style) for _ in range(count)]
        said |= {word: f"{word} {' '.join(rng.choices(PLAIN, k=rng.choice([3, 40, 300])))}" for word in new}
        words = [word for word in words if word not in gone]
        for word in new:
            words.insert(rng.randrange(len(words) + 1), word)
        if rng.random() < 0.5:
            rng.shuffle(words)
        turn = make_turn("doc", "1", [said[word] for word in words])
        stored = desk.turn("doc", "1")
        desk.commit(RecordTurn(desk.fold(turn), replaces=stored.record.digest if stored else ""))
        assert desk.embed(model) == count
        yield gone, words


@pytest.mark.parametrize("style", [0, 1])
def test_nothing_is_left_of_what_an_edition_does_not_say(style: int) -> None:
    with TemporaryDirectory(dir=FAST_FOLDER) as folder:
        desk = Desk(*open_backend(folder, durable=False))
        for gone, words in editions(desk, random.Random(style), style):
            desk.backend.expire(desk.now)
            assert left(Path(folder), gone) == []
            for seq, word in enumerate(words):
                assert desk.find(word) == [("doc", "1", seq)]
            assert desk.backend.state(desk.now, check=True).problems == ()
        desk.close()
        assert left(Path(folder), gone) == []


def test_nothing_is_left_in_files_too_large_to_be_read_page_by_page(
    corpus: Callable[[int, int], Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threefold.backends.sqlite.scrubbing._TOO_MANY_PAGES", 1)
    store = corpus(3, 1)
    store.fill(60)
    gone: set[str] = set()
    for kind in ("turn", "turn", "conversation", "user"):
        gone |= store.purge(kind)
        store.check(gone)
    store.db.close()
    assert left(store.folder, gone) == []


@pytest.mark.parametrize("style", [0, 1])
def test_nothing_is_left_in_a_store_of_thousands_of_rows(corpus: Callable[[int, int], Corpus], style: int) -> None:
    # Large enough for pages of every b-tree to have been split, and for the index to have been merged.
    store, rng = corpus(99, style), random.Random(7)
    words: dict[str, str] = {}
    handle = store.db.user("u1", "t1")
    for n in range(1500):
        words[f"{n}"] = unique(rng, style)
        with handle.turn(f"c{n % 5}", turn=f"{n}") as turn:
            turn.prompt(f"asked {words[f'{n}']} " + " ".join(rng.choices(PLAIN, k=n % 30)) + f" w{rng.randrange(999)}")
            turn.answer(f"answered {words[f'{n}']}")
    gone = set()
    for name in rng.sample(sorted(words), 60):
        handle.forget(conversation=f"c{int(name) % 5}", turn=name)
        gone.add(words[name])
    assert left(store.folder, gone) == []
    assert store.db.state(check=True).problems == ()
    handle.forget(conversation="c1")
    gone |= {words[f"{n}"] for n in range(1, 1500, 5)}
    assert left(store.folder, gone) == []
    assert len(handle.conv.turns(limit=10_000)) == sum(word not in gone for word in words.values())


def test_a_reader_that_stays_delays_the_end_of_a_purge_and_maintenance_finishes_it(
    corpus: Callable[[int, int], Corpus], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threefold.backends.sqlite.store._SCRUB_PAUSE", 0.001)
    store = corpus(5, 0)
    store.fill(5)
    reader = apsw.Connection(str(store.folder / "record.db"))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM rows").fetchall()
    key = min(store.words)
    handle = store.db.user(key[1], key[0])
    receipt = handle.forget(conversation=store.conversation(key), turn=key[3] + store.words[key])
    assert len(receipt.leftovers) == 1
    assert store.db.expire() == 0
    reader.execute("COMMIT")
    reader.close()
    store.db.expire()
    assert left(store.folder, {store.words.pop(key)}) == []


def test_the_helper_finds_what_is_there(corpus: Callable[[int, int], Corpus]) -> None:
    store = corpus(1, 0)
    store.fill(3)
    words = set(store.words.values())
    store.db.close()
    for word in words:
        places = {line.partition(" in ")[2] for line in left(store.folder, {word})}
        assert {"record.db", "a packed log"} <= places
        assert len(places) >= 4
