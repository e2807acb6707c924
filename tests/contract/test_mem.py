"""Curated memory through the public door, on each back end."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import timedelta

import pytest

import threefold
from threefold.errors import Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from threefold.model.memory import Memory
from threefold.realms.mem import keeping
from threefold.testing.fakes import Clock, HashEmbedder

Open = Callable[..., threefold.Threefold]
NOTES = (
    "我喜欢吃辣的火锅", "我对花生过敏", "Я люблю короткие ответы", "У меня аллергия на арахис", "يحب القطارات",
    "日本語で答えてください", "तीखा खाना पसंद है", "ชอบกินผัดไทย", "🕯️ evenings", "likes C++",
    "likes C#", "−5 °C is fine", "5 °C is fine",
)  # fmt: skip


def notes(found) -> list[str]:
    return [each.record.memory for each in found]


@pytest.mark.capability("mem.records")
def test_a_memory_keeps_the_note_apart_from_why_it_is_there(db: threefold.Threefold) -> None:
    mem = db.user("alice").mem
    made = mem.remember(
        "prefers trains", context="said when planning Lisbon", kind="preference", tags=["travel", "travel", "旅"],
        owner="Alice", importance=0.9, source="conv:ar:conv_trip.turn_1.user.prompt", metadata={"n": [1, "é"]},
    )  # fmt: skip
    read = mem.get(made.id)
    assert read == made
    assert (read.memory, read.context, read.kind) == ("prefers trains", "said when planning Lisbon", "preference")
    assert (read.tags, read.owner, read.importance) == (("travel", "旅"), "Alice", 0.9)
    assert (read.layer, read.status, read.revision, read.metadata) == ("longterm", "active", 1, {"n": [1, "é"]})
    assert read.ref == f"mem:record:{made.id}"
    (evidence,) = read.evidence
    assert (evidence.signal, evidence.by, evidence.source) == ("stated", "user", "conv:ar:conv_trip.turn_1.user.prompt")


@pytest.mark.capability("mem.records")
def test_different_notes_are_different_records_in_every_script(db: threefold.Threefold) -> None:
    mem = db.user("alice").mem
    assert len({mem.remember(note).id for note in NOTES}) == len(NOTES)
    assert {each.memory for each in mem.list(limit=100)} == set(NOTES)
    for note in NOTES[:9]:
        assert notes(mem.recall(note, limit=1)) == [note]


@pytest.mark.capability("mem.again")
def test_the_same_content_again_confirms_what_is_there(open_db: Open) -> None:
    clock = Clock()
    db = open_db(clock=clock)
    mem = db.user("alice").mem
    first = mem.remember("prefers trains", tags=["travel"])
    clock.advance(timedelta(days=3))
    assert db.decay()
    assert mem.scores(first.id).relevance == pytest.approx(0.95)
    again = mem.remember("  Prefers\ttrains ", context="she said so in Porto", tags=["rail"])
    assert again.id == first.id
    assert (again.memory, again.context, again.tags) == ("prefers trains", "she said so in Porto", ("travel", "rail"))
    assert (len(again.evidence), again.touched) == (2, clock())
    assert mem.scores(first.id).relevance == 1.0
    assert mem.scores(first.id).confidence > mem.scores(first.id).because["for"] / 10
    assert len(mem.list()) == 1
    # The person's own word counts each time, what one source says again does not.
    bot = db.user("alice", agent="planner").mem
    for _ in range(10):
        bot.remember("prefers trains", source="mail 7")
    assert mem.scores(first.id).because["evidence"] == {"stated": 2, "observed": 1}


STOPPED = (
    ("prefers coffee", "Prefers coffee. "), ("likes J.R.R. Tolkien", "likes J.R.R. Tolkien."),
    ("喜欢咖啡", "喜欢咖啡。"), ("喜欢咖啡。也喜欢茶", "喜欢咖啡。也喜欢茶。"), ("喜歡茶", "喜歡茶．"),
    ("मुझे चाय पसंद है", "मुझे चाय पसंद है ।"),
    ("مجھے چائے پسند ہے", "مجھے چائے پسند ہے۔"), ("Любит чай", "Любит чай."), ("ชอบชา", "ชอบชา."),
)  # fmt: skip
UNSTOPPED = (
    "coffee", "coffee!", "coffee?", "coffee…", "coffee...", "e.g", "e.g.", "lives in the U.S", "lives in the U.S.",
    "runs git add", "runs git add .", "removes *", "removes *.", "咖啡……", "咖啡。。", ".", "..", "。",
)  # fmt: skip


@pytest.mark.capability("mem.again")
def test_a_full_stop_at_the_end_makes_no_other_content(db: threefold.Threefold) -> None:
    for user, turned in (("alice", 1), ("bob", -1)):
        mem = db.user(user).mem
        for pair in STOPPED:
            first, again = (mem.remember(note) for note in pair[::turned])
            assert (again.id, again.memory) == (first.id, pair[::turned][0].strip())
        assert len({mem.remember(note).id for note in UNSTOPPED}) == len(UNSTOPPED)


@pytest.mark.capability("mem.again")
def test_a_note_from_when_a_full_stop_still_counted_is_found_as_it_stands(
    db: threefold.Threefold, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem = db.user("alice").mem
    with monkeypatch.context() as then:
        then.setattr(keeping, "_FULL_STOP", re.compile(r"(?!)()()"))
        stopped, plain = mem.remember("prefers coffee."), mem.remember("likes tea")
        assert mem.remember("prefers coffee").id != stopped.id
        mem.delete(mem.remember("prefers coffee").id)
    assert mem.remember("Prefers coffee.").id == stopped.id
    # From then on it is found by the key of today.
    assert mem.remember("prefers coffee").id == stopped.id
    assert mem.remember("likes tea.").id == plain.id
    assert len(mem.list()) == 2


@pytest.mark.capability("mem.layers")
def test_layers_live_as_long_as_they_should(open_db: Open) -> None:
    clock = Clock()
    db = open_db(clock=clock)
    mem = db.user("alice").mem
    for layer in ("working", "session", "longterm"):
        mem.remember(f"note of {layer}", layer=layer)
    mem.remember("note for a minute", ttl=timedelta(minutes=1))

    def there() -> set[str]:
        listed, recalled = {each.memory for each in mem.list()}, set(notes(mem.recall("note")))
        assert listed == recalled
        return {memory.removeprefix("note ") for memory in listed}

    assert there() == {"of working", "of session", "of longterm", "for a minute"}
    clock.advance(timedelta(seconds=299))
    assert there() == {"of working", "of session", "of longterm"}
    mem.remember("note of working", layer="working")  # stored again, it lives on
    clock.advance(timedelta(seconds=299))
    assert there() == {"of working", "of session", "of longterm"}
    clock.advance(timedelta(seconds=1))
    assert there() == {"of session", "of longterm"}
    clock.advance(timedelta(hours=1))
    assert there() == {"of longterm"}
    assert db.expire() == 3
    for layer, expected in (("working", 0), ("longterm", 1)):
        assert len(mem.list(layers=[layer])) == expected


@pytest.mark.capability("mem.recall")
def test_every_filter_of_recall_holds_before_the_cut(open_db: Open) -> None:
    clock, model = Clock(), HashEmbedder()
    db = open_db(clock=clock, embedder=model)
    mem = db.user("alice").mem
    for i in range(60):
        mem.remember(f"river walk river number {i}", kind="fact")
    clock.advance(timedelta(days=2))
    wanted = mem.remember("river cruise", kind="decision", tags=["travel", "x:%"], owner="Bob", layer="session")
    weak = mem.remember("river of doubt", kind="decision", tags=["travel"])
    mem.contradict(weak.id)
    mem.contradict(weak.id)
    db.decay()
    clock.advance(timedelta(minutes=5))
    db.embed_pending()
    for mode in ("hybrid", "fulltext", "semantic"):
        for where, expected in (
            ({"tags": ["travel", "x:%"]}, [wanted]),
            ({"owner": "Bob"}, [wanted]),
            ({"layers": ["session"]}, [wanted]),
            ({"kinds": ["decision"], "min_confidence": 0.7}, [wanted]),
            ({"kinds": ["decision"], "min_relevance": 0.99}, [wanted, weak]),
            ({"kinds": ["decision"], "statuses": ["weakened"]}, [weak]),
            ({"tags": ["x:_"]}, []),
            ({"layers": ["working"]}, []),
        ):
            found = mem.recall("river", mode=mode, limit=5, **where)
            assert {each.record.id for each in found} == {each.id for each in expected}, (mode, where)
        assert len(mem.recall("river", mode=mode, limit=50)) == 50
        assert not [
            x for x in mem.recall("river", mode=mode, min_relevance=0.99, limit=50) if "walk" in x.record.memory
        ]
    assert mem.recall("river").mode == "hybrid"
    assert mem.recall("river", mode="fulltext").mode == "lexical"


@pytest.mark.capability("mem.recall")
def test_recall_without_an_embedder_goes_by_words_and_says_so(open_db: Open) -> None:
    mem = open_db(embedder=None).user("alice").mem
    mem.remember("prefers trains")
    found = mem.recall("trains")
    assert (notes(found), found.mode) == (["prefers trains"], "lexical")
    assert any("without an embedder" in warning for warning in found.warnings)
    assert notes(mem.recall("trains", explain=True)) == ["prefers trains"]
    assert found[0].record.memory[slice(*found[0].matches[0])] == "trains"


@pytest.mark.capability("mem.proposals")
def test_what_an_agent_says_waits_for_the_person(db: threefold.Threefold) -> None:
    mem, bot = db.user("alice").mem, db.user("alice", agent="planner").mem
    made = bot.remember("likes window seats", kind="preference", pinned=True)
    assert (made.status, made.evidence[0].by, made.evidence[0].agent) == ("proposed", "agent", "planner")
    assert [each.id for each in mem.proposals()] == [made.id]
    assert notes(mem.recall("window")) == []
    assert mem.hotset() == ()
    for forbidden in (bot.confirm, bot.reject, bot.pin, bot.retire, bot.delete, bot.undo, bot.contradict):
        with pytest.raises(Forbidden):
            forbidden(made.id)
    with pytest.raises(Forbidden):
        bot.update(made.id, memory="likes aisle seats")
    with pytest.raises(Forbidden):
        bot.allow("auto", ["preference"])
    assert mem.confirm(made.id, "asked her").status == "active"
    assert notes(mem.recall("window")) == ["likes window seats"]
    assert [hot.record.id for hot in mem.hotset()] == [made.id]
    assert [(r.act, r.by, r.agent, r.why) for r in mem.history(made.id)] == [
        ("proposed", "agent", "planner", None), ("confirmed", "user", None, "asked her"),
    ]  # fmt: skip
    other = bot.propose("likes aisle seats")
    mem.reject(other.id, "no")
    assert bot.propose("likes aisle seats").status == "rejected"
    assert mem.proposals() == ()
    assert mem.remember("likes aisle seats").status == "active"


@pytest.mark.capability("mem.policy")
def test_the_person_says_what_agents_may_do(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    planner, coder = (db.user("alice", agent=name).mem for name in ("planner", "coder"))
    assert alice.mem.policy().rule == "propose"
    alice.mem.allow("off")
    alice.mem.allow("auto", ["preference"], agent="planner")
    assert planner.remember("likes tea", kind="preference").status == "active"
    assert planner.remember("lives in Porto", kind="fact").status == "proposed"
    assert planner.propose("likes milk", kind="preference").status == "proposed"
    for write in (coder.remember, coder.propose):
        with pytest.raises(Forbidden, match=r"mem\.allow"):
            write("likes vim", kind="preference")
    assert alice.mem.hotset() == ()  # no person stands behind it yet
    assert (coder.policy().rule, planner.policy().kinds) == ("off", ("preference",))
    assert db.user("bob", agent="planner").mem.remember("likes tea", kind="preference").status == "proposed"
    for rule, kinds in (("auto", ()), ("propose", ("fact",)), ("always", ())):
        with pytest.raises(InvalidInput):
            alice.mem.allow(rule, kinds)


@pytest.mark.capability("mem.changing")
def test_a_memory_is_changed_with_its_history(open_db: Open) -> None:
    clock = Clock()
    mem = open_db(clock=clock).user("alice").mem
    made = mem.remember("lives in Berlin", tags=["home"])
    clock.advance(timedelta(days=1))
    moved = mem.update(
        made.id, memory="lives in Hamburg", tags={"add": ["north"], "remove": ["home"]}, revision=1, why="moved"
    )
    assert (moved.memory, moved.tags, moved.revision) == ("lives in Hamburg", ("north",), 2)
    assert notes(mem.recall("Berlin", mode="fulltext")) == []
    assert notes(mem.recall("Hamburg", mode="fulltext")) == ["lives in Hamburg"]
    with pytest.raises(Conflict, match="revision 2, not 1"):
        mem.update(made.id, memory="lives in Bremen", revision=1)
    assert mem.get(made.id, as_of=clock() - timedelta(hours=1)).memory == "lives in Berlin"
    with pytest.raises(NotFound):
        mem.get(made.id, as_of=clock() - timedelta(days=2))
    clock.advance(timedelta(days=1))
    back = mem.undo(made.id)
    assert (back.memory, back.tags, back.revision) == ("lives in Berlin", ("home",), 3)
    assert [r.act for r in mem.history(made.id)] == ["remembered", "updated", "undone"]
    assert mem.retire(made.id, "old").status == "retired"
    assert notes(mem.recall("Berlin")) == []
    assert [each.id for each in mem.list(statuses=["retired"])] == [made.id]
    # What took this id's text once is no hindrance for the text to be said anew.
    mem.update(made.id, memory="lived in Berlin")
    again = mem.remember("lives in Berlin")
    assert (again.id != made.id, again.revision) == (True, 1)
    for changes in ({"memory": ""}, {"id": "x"}, {"layer": "organizational"}, {"importance": 2}, {"tags": {"ad": []}}):
        with pytest.raises(InvalidInput):
            mem.update(made.id, **changes)


@pytest.mark.capability("mem.deletion")
def test_what_is_deleted_is_gone_with_its_history(db: threefold.Threefold) -> None:
    mem = db.user("alice").mem
    made = mem.remember("secret word xylophone")
    kept = mem.remember("other word")
    mem.update(made.id, memory="secret word marimba")
    db.embed_pending()
    receipt = mem.delete(made.id)
    assert receipt.stores["turns"] == 1
    for gone in (mem.get, mem.history, mem.delete, mem.scores):
        with pytest.raises(NotFound):
            gone(made.id)
    assert notes(mem.recall("xylophone marimba", mode="fulltext")) == []
    assert [each.id for each in mem.list()] == [kept.id]
    db.user("alice").forget()
    assert mem.list() == ()


@pytest.mark.capability("mem.hotset")
def test_the_hotset_is_pinned_first_then_by_salience(open_db: Open) -> None:
    clock = Clock()
    db = open_db(clock=clock)
    mem = db.user("alice").mem
    old = mem.remember("pinned long ago", importance=0.0)
    mem.pin(old.id)
    clock.advance(timedelta(days=700))
    made = [mem.remember(f"note {i} about boats", importance=i / 20) for i in range(20)]
    hot = mem.hotset()
    assert [each.record.id for each in hot] == [old.id, *(each.id for each in reversed(made[-7:]))]
    assert hot == mem.hotset()
    assert hot[0].because["pinned"]
    assert hot[1].because["salience"] == pytest.approx(mem.scores(made[-1].id).salience)
    goal = mem.remember("allergic to peanuts", importance=0.0)
    assert goal.id not in [each.record.id for each in mem.hotset()]
    db.embed_pending()
    first, second, *_ = mem.hotset("is anything allergic to peanuts?")
    assert (first.record.id, second.record.id) == (old.id, goal.id)
    assert second.because["answers_goal"] > 0.1
    assert goal.id not in [each.record.id for each in mem.hotset("zebra crossing")]
    mem.retire(old.id)
    assert old.id not in [each.record.id for each in mem.hotset()]
    assert len(mem.hotset(limit=3)) == 3
    with pytest.raises(InvalidInput):
        mem.hotset(limit=9)


@pytest.mark.capability("mem.shared")
def test_shared_layers_are_read_by_all_and_curated_by_the_operator(db: threefold.Threefold) -> None:
    company = db.organization("acme").mem.remember("the company uses PostgreSQL")
    world = db.everyone().mem.remember("the API lives at example.org")
    alice, bob = db.user("alice", tenant="acme").mem, db.user("bob", tenant="other").mem
    assert set(notes(alice.recall("PostgreSQL API company"))) == {company.memory, world.memory}
    assert notes(bob.recall("PostgreSQL API company")) == [world.memory]
    assert [each.id for each in alice.list(layers=["organizational"])] == [company.id]
    wish = alice.remember("the company uses Terraform", layer="organizational", tags=["infra"])
    assert wish.status == "proposed"
    assert "Terraform" not in str(notes(alice.recall("Terraform")))
    assert [each.id for each in db.organization("acme").mem.proposals()] == [wish.id]
    assert db.organization("other").mem.proposals() == ()
    with pytest.raises(Forbidden):
        alice.confirm(wish.id)
    db.organization("acme").mem.confirm(wish.id)
    assert notes(alice.recall("Terraform", tags=["infra"])) == [wish.memory]
    with pytest.raises(Forbidden):
        alice.remember("everyone knows", layer="global")
    with pytest.raises(Forbidden):
        db.organization("acme").mem.remember("mine", layer="longterm")
    # A user of the same name as the shared place is nobody special.
    db.user("organization", tenant="acme").mem.remember("private to this user")
    assert db.organization("acme").mem.recall("private").hits == ()
    assert {each.memory for each in db.organization("acme").mem.list()} == {
        company.memory, wish.memory, world.memory,
    }  # fmt: skip


@pytest.mark.capability("mem.isolation")
def test_nobody_sees_anothers_memory(db: threefold.Threefold) -> None:
    made: dict[str, Memory] = {}
    for name in ("a", "ab", "a%", "_", "🕯️", "🕯"):
        made[name] = db.user(name).mem.remember("the common word", context=f"of {name}")
    assert len({each.id for each in made.values()}) == 1  # ids tell nothing of whose they are
    for name, own in made.items():
        mem = db.user(name).mem
        assert [each.record.context for each in mem.recall("common")] == [f"of {name}"]
        assert mem.get(own.id).context == f"of {name}"
    db.user("a").mem.delete(made["a"].id)
    assert db.user("ab").mem.get(made["ab"].id).context == "of ab"
    # An app sees what it recorded; the whole user sees all.
    one, two = (db.user("carol", app=app).mem for app in ("one", "two"))
    one.remember("from one")
    two.remember("from two")
    assert notes(one.recall("from")) == ["from one"]
    assert {each.memory for each in db.user("carol").mem.list()} == {"from one", "from two"}
    assert two.remember("from one").id != one.remember("from one").id
    assert (len(one.list()), len(two.list()), len(db.user("carol").mem.list())) == (1, 2, 3)


@pytest.mark.capability("mem.visibility")
def test_some_memories_are_for_the_person_or_for_agents_alone(db: threefold.Threefold) -> None:
    mem, bot = db.user("alice").mem, db.user("alice", agent="planner").mem
    own = mem.remember("diary word", visibility="user")
    inner = mem.remember("prompt word", visibility="agent")
    both = mem.remember("plain word")
    assert {each.id for each in mem.list()} == {own.id, both.id}
    assert {each.id for each in bot.list()} == {inner.id, both.id}
    assert set(notes(bot.recall("word"))) == {"prompt word", "plain word"}
    assert {hot.record.id for hot in bot.hotset()} == {inner.id, both.id}
    again = bot.remember("diary word", context="guessed")
    assert (again.id != own.id, again.context, again.status) == (True, "guessed", "proposed")
    assert mem.get(own.id).evidence[0].by == "user"
    mem.reject(again.id)
    with pytest.raises(NotFound):
        bot.get(own.id)
    with pytest.raises(NotFound):
        mem.history(inner.id)


@pytest.mark.capability("mem.decay")
def test_decay_runs_once_a_cycle_down_to_its_floor(open_db: Open) -> None:
    clock = Clock()
    db = open_db(clock=clock)
    old = db.user("alice").mem.remember("old note")
    clock.advance(timedelta(hours=25))
    new = db.user("alice").mem.remember("new note")
    assert db.decay() is True
    assert db.decay() is False
    assert db.decay(cycle="by hand") is True
    relevance = lambda made: db.user("alice").mem.scores(made.id).relevance  # noqa: E731
    assert relevance(old) == pytest.approx(0.95**2)
    assert relevance(new) == 1.0
    for _ in range(100):
        clock.advance(timedelta(days=1))
        db.decay(factor=0.9, floor=0.3)
    assert (relevance(old), relevance(new)) == (pytest.approx(0.3), pytest.approx(0.3))
    assert len(db.user("alice").mem.recall("note", min_relevance=0.3)) == 2
    assert len(db.user("alice").mem.recall("note", min_relevance=0.31)) == 0
    for arguments in ({"factor": 2}, {"floor": -1}, {"older_than": -1}, {"factor": "x"}):
        with pytest.raises(InvalidInput):
            db.decay(**arguments)


@pytest.mark.capability("mem.input")
def test_bad_input_names_the_argument_and_leaves_nothing(db: threefold.Threefold) -> None:
    mem = db.user("alice").mem
    for arguments, named in (
        ({"memory": ""}, "memory"), ({"memory": " \n"}, "memory"), ({"memory": 5}, "memory"),
        ({"memory": "x" * 4001}, "memory"), ({"context": None}, "context"), ({"kind": ""}, "kind"),
        ({"layer": "forever"}, "layer"), ({"tags": "travel"}, "tags"), ({"tags": [""]}, "tags"),
        ({"importance": 1.5}, "importance"), ({"visibility": "all"}, "visibility"), ({"ttl": 5}, "ttl"),
        ({"metadata": []}, "metadata"), ({"metadata": {"x": object()}}, "metadata"), ({"owner": ""}, "owner"),
    ):  # fmt: skip
        with pytest.raises(InvalidInput, match=named):
            mem.remember(**({"memory": "fine"} | arguments))
    for call in (
        lambda: mem.recall(5), lambda: mem.recall(""), lambda: mem.recall("x", limit=0),
        lambda: mem.recall("x", mode="best"),
        lambda: mem.recall("x", layers=["x"]), lambda: mem.recall("x", layers=[]),
        lambda: mem.recall("x", statuses=["x"]), lambda: mem.recall("x", min_confidence=2),
        lambda: mem.list(limit=True),
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            call()
    with pytest.raises(InvalidInput, match=r"^query is empty; ask"):
        mem.recall(" \n　")
    assert mem.recall("?!").hits == ()
    for missing in ("mem_none", "nothing", "org_none", ""):
        with pytest.raises(NotFound):
            mem.get(missing)
    assert mem.list() == ()
    mem.remember("user_id stays", metadata={"user_id": "bob", "tenant": "x"})
    assert db.user("bob").mem.list() == ()


@pytest.mark.capability("mem.portable")
def test_memories_go_with_an_export_and_come_back(open_db: Open, tmp_path) -> None:
    db = open_db()
    alice = db.user("alice")
    with alice.turn("trip") as turn:
        turn.prompt("river boat")
    made = alice.mem.remember("prefers trains", tags=["旅"], pinned=True)
    alice.mem.update(made.id, memory="prefers night trains")
    proposed = db.user("alice", agent="planner").mem.remember("likes tea")
    alice.mem.allow("auto", ["fact"], agent="coder")
    assert alice.export(tmp_path / "alice.zip").turns == 4
    alice.forget()
    assert alice.mem.list() == ()
    restored = threefold.restore(tmp_path / "alice.zip", into=db)
    assert (restored.created, threefold.restore(tmp_path / "alice.zip", into=db).unchanged) == (4, 4)
    assert [each.act for each in alice.mem.history(made.id)] == ["remembered", "updated"]
    assert [each.id for each in alice.mem.proposals()] == [proposed.id]
    assert alice.mem.policy("coder").kinds == ("fact",)
    assert [hot.record.memory for hot in alice.mem.hotset()] == ["prefers night trains"]
    threefold.restore(tmp_path / "alice.zip", into=db, user="bob")
    assert notes(db.user("bob").mem.recall("trains", tags=["旅"])) == ["prefers night trains"]


@pytest.mark.capability("mem.decay")
def test_background_work_runs_the_cycle_of_the_day(open_db: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threefold.jobs.worker.SWEEP_SECONDS", 0.0)
    monkeypatch.setattr("threefold.jobs.worker.COLLECT_SECONDS", 0.0)
    clock = Clock()
    db = open_db(clock=clock, background=True)
    mem = db.user("alice").mem
    old = mem.remember("old note")
    clock.advance(timedelta(days=2))
    for turn in range(200):
        mem.remember(f"note {turn}")  # wakes it
        if mem.scores(old.id).relevance < 1.0:
            break
        time.sleep(0.05)
    assert mem.scores(old.id).relevance == pytest.approx(0.95)
    assert db.decay() is False


MEM0 = {"results": [
    {"id": "a1", "memory": "Dev works at TechCorp", "created_at": "2025-03-01T10:00:00-08:00", "user_id": "dev",
     "updated_at": "2025-06-01T10:00:00-07:00", "metadata": {"type": "work"}, "categories": ["career"]},
    {"id": "a2", "memory": "喜欢喝茶", "created_at": "2025-03-02T10:00:00Z", "metadata": None, "categories": None},
    {"id": "a3", "memory": ""},
    {"id": "a4", "memory": "bad time", "created_at": "sometime"},
]}  # fmt: skip
CHATGPT = [
    {"content": "Prefers metric units", "enabled": True, "created_at": 1709654400.5},
    {"content": "Is training for a marathon", "enabled": False, "created_at": 1709654401},
    "A plain line", 5,
]  # fmt: skip


@pytest.mark.capability("mem.import")
def test_memories_of_other_systems_come_in_with_their_times(db: threefold.Threefold, tmp_path) -> None:
    mem = db.user("alice").mem
    for name, value, counts in (("mem0.json", MEM0, (2, 2)), ("memory.json", CHATGPT, (3, 1))):
        (tmp_path / name).write_text(json.dumps(value, ensure_ascii=False), "utf-8-sig")
        done = mem.import_memories(tmp_path / name)
        assert (done.imported, len(done.skipped)) == counts, done
        again = mem.import_memories(tmp_path / name)
        assert (again.imported, again.unchanged) == (0, counts[0])
    (work,) = mem.list(tags=["career"])
    assert (work.memory, work.metadata) == ("Dev works at TechCorp", {"type": "work"})
    assert (work.created.isoformat(), work.touched.isoformat()) == (
        "2025-03-01T18:00:00+00:00", "2025-06-01T17:00:00+00:00",
    )  # fmt: skip
    assert (work.evidence[0].signal, work.evidence[0].by, work.evidence[0].source) == ("imported", "import", "a1")
    assert {each.memory for each in mem.list()} == {
        "Dev works at TechCorp", "喜欢喝茶", "Prefers metric units", "A plain line",
    }  # fmt: skip
    assert [each.memory for each in mem.list(statuses=["retired"])] == ["Is training for a marathon"]
    assert db.user("dev").mem.list() == ()  # whose it was there says nothing here
    (tmp_path / "none.json").write_text("{}")
    (tmp_path / "broken.json").write_text("{")
    for name, error in (("none.json", InvalidInput), ("broken.json", InvalidInput), ("missing.json", NotFound)):
        with pytest.raises(error):
            mem.import_memories(tmp_path / name)


@pytest.mark.capability("mem.mirror")
def test_memories_can_be_read_and_edited_as_files(db: threefold.Threefold, tmp_path) -> None:
    mem, folder = db.user("alice").mem, tmp_path / "notes"
    trains = mem.remember("prefers trains", context='said "so"\nin Lisbon', kind="preference", tags=["旅", 'a"b'])
    tea = mem.remember("喜欢喝茶 🍵", pinned=True)
    gone = mem.remember("to be deleted \x7f\x00 +++ ## Context", importance=0.25)
    assert sorted(mem.sync(folder).written) == sorted((trains.id, tea.id, gone.id))
    assert (folder / f"prefers-trains.{trains.id}.md").is_file()
    idle = mem.sync(folder)
    assert idle == type(idle)()

    def file_of(record: Memory):
        (file,) = folder.glob(f"*{record.id}.md")
        return file

    text = file_of(trains).read_text("utf-8")
    file_of(trains).write_text(text.replace("prefers trains", "prefers night trains").replace('"旅", ', ""), "utf-8")
    file_of(gone).unlink()
    (folder / "new.md").write_text("allergic to peanuts\n\n## Context\n\ntold the doctor\n", "utf-8")
    (folder / "bad.md").write_text("+++\nkind = \n+++\nx", "utf-8")
    mem.update(tea.id, memory="喜欢喝绿茶")
    done = mem.sync(folder)
    assert (done.updated, done.retired, done.written) == ([trains.id], [gone.id], [tea.id])
    assert [name for name, _ in done.skipped] == ["bad.md"]
    (new,) = (mem.get(id_) for id_ in done.created)
    assert (new.memory, new.context) == ("allergic to peanuts", "told the doctor")
    after = mem.get(trains.id)
    assert (after.memory, after.tags, after.context) == ("prefers night trains", ('a"b',), 'said "so"\nin Lisbon')
    assert mem.history(trains.id)[-1].why == "edited in its file"
    assert mem.get(gone.id).status == "retired"
    assert "喜欢喝绿茶" in file_of(tea).read_text("utf-8")
    # Both sides changed: nobody's change is lost.
    file_of(tea).write_text(file_of(tea).read_text("utf-8").replace("绿茶", "红茶"), "utf-8")
    mem.update(tea.id, memory="喜欢喝白茶")
    conflict = mem.sync(folder)
    assert [name for name, _ in conflict.conflicts] == [file_of(tea).name]
    assert "白茶" in conflict.conflicts[0][1]
    assert ("红茶" in file_of(tea).read_text("utf-8"), mem.get(tea.id).memory) == (True, "喜欢喝白茶")
    assert len(mem.sync(folder).conflicts) == 1


@pytest.mark.capability("mem.reconcile")
def test_the_reconciler_proposes_and_applies_in_one_transaction(open_db: Open) -> None:
    clock = Clock()
    mem = open_db(clock=clock, embedder="bundled").user("alice").mem
    first = mem.remember("The user prefers trains", tags=["travel"])
    clock.advance(timedelta(days=1))
    again = mem.remember("user prefers trains.", tags=["rail"], context="said in Porto")
    berlin = mem.remember("lives in Berlin")
    clock.advance(timedelta(days=1))
    moved = mem.remember("does not live in Berlin")
    bus, tea = mem.remember("takes bus 14 to work"), mem.remember("喜欢喝茶")
    other, coffee = mem.remember("takes bus 41 to work"), mem.remember("喜欢喝咖啡")
    proposal = mem.reconcile()
    assert {(step.act, step.give, step.keep) for step in proposal.steps} >= {
        ("merge", again.id, first.id), ("supersede", berlin.id, moved.id),
    }  # fmt: skip
    merged = {step.give for step in proposal.steps if step.act in ("merge", "refine")}
    assert not merged & {bus.id, other.id, tea.id, coffee.id}
    assert mem.get(again.id).status == "active"  # nothing was changed yet
    done = mem.apply_proposal(proposal)
    assert done.applied == clock()
    kept, gave = mem.get(first.id), mem.get(again.id)
    assert (gave.status, gave.superseded_by) == ("merged", first.id)
    assert (kept.supersedes, kept.tags, kept.context) == ((again.id,), ("travel", "rail"), "said in Porto")
    assert mem.scores(first.id).because["evidence"] == {"stated": 1, "merged": 1}
    old = mem.get(berlin.id)
    assert (old.status, old.superseded_by, mem.get(moved.id).supersedes) == ("superseded", moved.id, (berlin.id,))
    assert [(r.act, r.by) for r in mem.history(berlin.id)] == [("remembered", "user"), ("superseded", "reconciler")]
    assert not any(step.give in (again.id, berlin.id) for step in mem.reconcile().steps)
    with pytest.raises(Conflict, match="changed since"):
        mem.apply_proposal(proposal)
    assert set(mem.undo_proposal(done.id)) == set(proposal.seen)
    assert (mem.get(again.id).status, mem.get(berlin.id).status) == ("active", "active")
    assert mem.get(first.id).tags == ("travel",)
    assert mem.scores(first.id).because["evidence"] == {"stated": 1}
    with pytest.raises(NotFound):
        mem.undo_proposal(done.id)
    for call in (mem.reconcile, lambda: mem.undo_proposal("x")):
        with pytest.raises((Forbidden, NotFound)):
            open_db().user("alice", agent="planner").mem.reconcile() if call == mem.reconcile else call()


@pytest.mark.capability("mem.reconcile")
def test_an_agents_word_does_not_displace_a_persons(open_db: Open) -> None:
    clock = Clock()
    db = open_db(clock=clock)
    mem, bot = db.user("alice").mem, db.user("alice", agent="reader").mem
    mem.allow("auto", ["fact"])
    said = mem.remember("eats meat")
    pinned = mem.remember("drinks coffee", pinned=True)
    clock.advance(timedelta(days=1))
    heard = bot.remember("does not eat meat")
    newer = mem.remember("does not drink coffee")
    steps = {step.give: step for step in mem.reconcile(apply=True).steps}
    assert (steps[heard.id].act, steps[heard.id].keep) == ("weaken", said.id)
    assert (mem.get(said.id).status, mem.get(heard.id).status) == ("active", "weakened")
    assert (steps[pinned.id].act, mem.get(pinned.id).pinned, mem.get(newer.id).status) == ("weaken", True, "active")


@pytest.mark.capability("mem.reconcile")
def test_without_vectors_it_says_what_was_compared(open_db: Open) -> None:
    mem = open_db(embedder=None).user("alice").mem
    for text in ("purchased a kayak", "bought a kayak"):
        mem.remember(text)
    proposal = mem.reconcile()
    assert [step.act for step in proposal.steps] == ["merge"]
    assert "share a word" in proposal.warnings[0]


@pytest.mark.capability("mem.reconcile")
def test_nothing_private_is_merged_into_what_is_shared(open_db: Open) -> None:
    clock = Clock()
    db = open_db(clock=clock)
    mem = db.user("alice").mem
    for more in ({"visibility": "user"}, {}, {"owner": "Bob"}, {"layer": "session"}):
        mem.remember(f"likes green tea{'.' * len(more)}{'!' if 'owner' in more else ''}", **more)
    assert mem.reconcile().steps == ()
    clock.advance(timedelta(days=400))
    bot = db.user("alice", agent="reader").mem
    mem.allow("auto", ["fact"])
    stale = bot.remember("once said something", importance=0.0)
    clock.advance(timedelta(days=400))
    (step,) = mem.reconcile(apply=True).steps
    assert (step.act, step.give, mem.get(stale.id).status) == ("retire", stale.id, "retired")


@pytest.mark.capability("mem.reconcile")
def test_a_judge_is_asked_checked_and_never_alone(open_db: Open) -> None:
    mem = open_db(embedder="bundled").user("alice").mem
    rail = mem.remember("loves going by rail")
    trains = mem.remember("is fond of trains")
    bus, other = mem.remember("takes bus 14 to work"), mem.remember("takes bus 41 to work")
    asked: list[frozenset[str]] = []

    def judge(pairs):
        for pair in pairs:
            names = pair["first"]["id"], pair["second"]["id"]
            asked.append(frozenset(names))
            yield {"first": names[1], "second": names[0], "relation": "same"}
        yield {"first": rail.id, "second": "mem_invented", "relation": "same"}
        yield {"first": rail.id, "second": trains.id, "relation": "identical"}

    assert mem.reconcile().steps == ()
    proposal = mem.reconcile(judge=judge)
    assert frozenset((rail.id, trains.id)) in asked
    assert frozenset((bus.id, other.id)) in asked
    acts = {(step.act, frozenset((step.give, step.keep))) for step in proposal.steps}
    assert ("merge", frozenset((rail.id, trains.id))) in acts
    assert not any({bus.id, other.id} <= names for _, names in acts)
    assert len([w for w in proposal.warnings if "names no pair" in w]) == 2
    assert any("would merge notes that differ" in warning for warning in proposal.warnings)

    def down(pairs):
        raise Unavailable("the model is down")

    failed = mem.reconcile(judge=down)
    assert (failed.steps, "rules decided alone" in failed.warnings[0]) == ((), True)
