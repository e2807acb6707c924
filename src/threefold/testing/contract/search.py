"""Search: three candidate lists over one owner's rows."""

from __future__ import annotations

from datetime import timedelta
from math import log

import pytest

from threefold.model.query import LISTS, TOLD, Filter, Query
from threefold.model.rows import RowKey
from threefold.model.scope import Scope
from threefold.model.turn import Completion, Note
from threefold.search.spelling import MAX_CORRECTED
from threefold.testing.contract.desk import ALICE, NOW, Desk, full_turn, listed, make_turn, own
from threefold.testing.contract.suite import Contract
from threefold.testing.fakes import HashEmbedder

BOB = Scope("bob")
SCRIPTS = {
    "chinese": ("今天玩成语接龙游戏", ("成语接龙", "成语", "游戏", "今天", "龙")),
    "japanese": ("しりとりで遊ぶ、コンピューターも", ("しりとり", "遊ぶ", "コンピューター")),
    "half-width": ("ｺﾝﾋﾟｭｰﾀｰ", ("コンピューター",)),
    "korean": ("오늘은 끝말잇기를 했다", ("끝말잇기", "끝말", "오늘")),
    "thai": ("วันนี้ไปตลาดน้ำ", ("ตลาด", "ตลาดน้ำ")),
    "arabic": ("زرنا مَدِينَةَ لشبونة", ("مدينة", "لشبونة")),
    "hebrew": ("ביקרנו בְּלִיסְבּוֹן", ("בליסבון",)),
    "hindi": ("हम दिल्ली घूमने गए", ("दिल्ली", "घूमने")),
    "greek": ("Πήγαμε στην Αθήνα", ("αθηνα", "ΑΘΉΝΑ")),
    "cyrillic": ("Мы были в Москве ещё раз", ("москве", "еще", "МОСКВЕ")),
    "turkish": ("İstanbul'da ılık çay", ("istanbul", "ilik", "cay")),
    "german": ("Straßenfest in München", ("strassenfest", "munchen", "MÜNCHEN")),
    "vietnamese": ("Tôi thích phở Hà Nội", ("pho", "ha noi", "thich")),
    "emoji": ("we won 🎉 today", ("🎉",)),
}


class SearchContract(Contract):
    """`Store.candidates` and `Store.rows`."""

    @pytest.mark.capability("search.lexical")
    def test_words_find_rows_whatever_their_form(self, desk: Desk) -> None:
        """Case, accents, endings; the better match first; what matches nothing is not there."""
        desk.say("trip", "1", "We booked Café Alfama near the river")
        desk.say("trip", "2", "Bookings and a booking of something else entirely, in a longer text about other things")
        desk.say("trip", "3", "Nothing of the kind")
        assert desk.find("CAFE alfama") == [("trip", "1", 0)]
        assert desk.turns("book") == {("trip", "1"), ("trip", "2")}
        assert desk.find("alfama booking")[0] == ("trip", "1", 0)
        assert desk.find("absentword") == []
        found = desk.ask("alfama")
        assert [(row.role, row.at, row.words > 3) for row in found.rows] == [("user", NOW, True)]
        assert all(score > 0 for hits in found.lists.values() for _, score in hits)

    @pytest.mark.capability("search.lexical")
    def test_the_speakers_name_and_every_kind_of_row_are_searched(self, desk: Desk) -> None:
        """User, attachment, note, summary, anchors, assistant."""
        desk.record(full_turn("trip", "1", "zanzibar"))
        desk.record(make_turn("trip", "2", "hello", author="Merrivale"))
        assert len(desk.find("zanzibar")) == 6
        assert desk.turns("merrivale") == {("trip", "2")}

    @pytest.mark.capability("search.misspelt")
    def test_a_misspelt_or_partial_word_finds_what_was_meant(self, desk: Desk) -> None:
        """As a list of its own, which says what it corrected; a word that is known is not corrected."""
        desk.say("trip", "1", "from Alfama in Lisbon to the supercasinoroyale")
        for word, meant in (("alfamma", "alfama"), ("lisobn", "lisbon"), ("casinoroyale", "supercasinoroyal")):
            found = desk.ask(word, *LISTS)
            assert listed(found, "trigram") == [("trip", "1", 0)], word
            assert any(term.startswith(meant) for v in found.corrections.values() for term, _ in v), found.corrections
        plain = desk.ask("lisbon", *LISTS)
        assert not plain.corrections
        assert not plain.lists["trigram"]
        assert desk.find("zzzzzz", "trigram") == []

    @pytest.mark.capability("search.semantic")
    def test_vectors_find_rows_by_nearness(self, desk: Desk) -> None:
        """Only rows that have a vector, the nearest first, scores from 0 to 1."""
        model = HashEmbedder()
        desk.say("trip", "1", "river boat bridge")
        desk.say("trip", "2", "river boat")
        assert desk.find("river boat", "semantic", embedder=model) == []
        assert desk.embed(model) == 2
        desk.say("trip", "3", "river boat")
        found = desk.ask("river boat", "semantic", embedder=model)
        assert listed(found, "semantic") == [("trip", "2", 0), ("trip", "1", 0)]
        assert round(found.lists["semantic"].scores[0], 2) == 1.0
        assert desk.find("river boat", "semantic") == []

    @pytest.mark.capability("search.filters")
    @pytest.mark.parametrize("name", ["lexical", "trigram", "semantic"])
    def test_every_filter_holds_in_every_list(self, desk: Desk, name: str) -> None:
        """Roles, conversation, agent, window (start inclusive, end exclusive), all ANDed."""
        model = HashEmbedder()
        asked = "needle" if name != "trigram" else "needlle"
        hour = timedelta(hours=1)
        desk.record(make_turn("a", "1", "needle", "needle", NOW - hour, notes=(Note("needle", NOW),)), ALICE)
        desk.record(make_turn("b", "1", "needle", at=NOW), Scope("alice", agent="planner"))
        desk.embed(model)

        def found(**where: object) -> set[tuple[str, str, int]]:
            return set(desk.find(asked, name, embedder=model, **where))  # type: ignore[arg-type]

        everything = {("a", "1", 0), ("a", "1", 1), ("a", "1", 2), ("b", "1", 0)}
        assert found() == everything
        assert found(roles=("user",)) == {("a", "1", 0), ("b", "1", 0)}
        assert found(roles=("note", "assistant")) == {("a", "1", 1), ("a", "1", 2)}
        assert found(conversation="a") == everything - {("b", "1", 0)}
        assert found(conversation="unknown") == set()
        assert found(agent="planner") == {("b", "1", 0)}
        assert found(since=NOW) == {("a", "1", 1), ("b", "1", 0)}
        assert found(until=NOW) == {("a", "1", 0), ("a", "1", 2)}
        assert found(since=NOW - hour, until=NOW, roles=("user",), conversation="a") == {("a", "1", 0)}
        assert found(conversation="a", agent="planner") == set()
        assert found(since=NOW, until=NOW) == set()

    @pytest.mark.capability("search.filters-before-cut")
    @pytest.mark.parametrize("name", ["lexical", "trigram", "semantic"])
    def test_filters_come_before_the_cut(self, desk: Desk, name: str) -> None:
        """Five rows of mine are found behind hundreds of better ones of others, of another role or time."""
        model = HashEmbedder()
        asked = "needle" if name != "trigram" else "needlle"
        crowd = [Completion("needle", NOW)]
        for i in range(150):
            desk.record(make_turn("crowd", f"{i}", "needle", completion=crowd[0]), BOB)
            desk.record(make_turn("crowd", f"{i}", "needle", completion=crowd[0]))
        for i in range(5):
            desk.say("mine", f"{i}", "a needle in a much longer text of many other words", at=NOW - timedelta(days=9))
        while desk.embed(model):
            pass
        mine = {("mine", f"{i}") for i in range(5)}
        for where in ({"conversation": "mine"}, {"until": NOW - timedelta(days=1)}):
            assert desk.turns(asked, name, depth=5, embedder=model, **where) == mine, where  # type: ignore[arg-type]
        in_role = desk.ask(asked, name, depth=5, embedder=model, roles=("assistant",))  # type: ignore[arg-type]
        assert [row.role for row in in_role.rows] == ["assistant"] * 5

    @pytest.mark.capability("search.literal")
    @pytest.mark.parametrize(
        "asked",
        ["needle' OR 1=1 --", 'needle" OR "x', "needle NOT needle", "@needle:{*}", "needle*", "(needle",
         "needle NEAR/3",
         "{$gt: needle}", "scope : needle", "^needle", "needle \\", "-needle", "needle AND"],
    )  # fmt: skip
    def test_what_looks_like_syntax_is_literal(self, desk: Desk, asked: str) -> None:
        """Questions are words, never expressions; nor are the values of filters."""
        desk.say("trip", "1", "a needle")
        desk.say("trip", "2", "other words")
        assert ("trip", "1") in desk.turns(asked)
        assert ("trip", "2") not in desk.turns(asked)
        for value in ("*", "%", "' OR 1=1 --", '" OR "x', 'user" OR terms : "needle', ""):
            assert desk.turns("needle", roles=(value,)) == set()
            assert desk.turns("needle", conversation=value) == set()
            assert desk.turns("needle", agent=value) == set()
        where = Filter(NOW)
        terms = ('x" OR "needl', "", '"', "needl OR anything else")
        assert not desk.backend.candidates(Query(ALICE, where, terms, LISTS)).rows

    @pytest.mark.capability("search.scripts")
    @pytest.mark.parametrize("script", SCRIPTS)
    def test_every_script_is_found(self, desk: Desk, script: str) -> None:
        """Whether or not it puts spaces between words."""
        text, questions = SCRIPTS[script]
        desk.say("trip", "1", text)
        desk.say("trip", "2", "something in other words")
        for asked in questions:
            assert desk.turns(asked) == {("trip", "1")}, asked

    @pytest.mark.capability("search.cjk-two-chars")
    def test_two_characters_and_one_are_enough(self, desk: Desk) -> None:
        """And a question of which one word is missing still finds the other."""
        desk.say("trip", "1", "今天玩成语接龙游戏")
        desk.say("trip", "2", "我的猫很好")
        assert desk.turns("成语") == desk.turns("接龙") == {("trip", "1")}
        assert desk.turns("猫") == {("trip", "2")}
        assert desk.turns("成语 消失") == {("trip", "1")}
        assert desk.turns("狗") == set()

    @pytest.mark.capability("search.depth")
    def test_a_list_is_as_deep_as_asked(self, desk: Desk) -> None:
        """500 of 600 matches where 500 were asked for, in every list; no row twice."""
        model = HashEmbedder()
        for i in range(60):
            desk.record(make_turn("trip", f"{i}", [f"needle {i} {j}" for j in range(10)]))
        while desk.embed(model):
            pass
        for name in ("lexical", "semantic"):
            found = desk.find("needle", name, depth=500, embedder=model)
            assert len(found) == len(set(found)) == 500

    @pytest.mark.capability("search.told")
    def test_candidates_tell_who_speaks_and_whether_they_ask(self, desk: Desk) -> None:
        """In every list; whatever script the question mark is of, and whatever stands in the text."""
        model = HashEmbedder()
        asking = ("where is the needle?", "needle どこ？", "needle أين؟", 'he said "why needle?"', "a\x00 needle?")
        telling = ("a needle. Why? Because", "needle", "needle? \x00", "why needle?\x00 and then")
        for i, text in enumerate((*asking, *telling)):
            desk.record(make_turn("trip", f"{i}", text, author=None if i % 2 else "张伟"))
        desk.embed(model)
        for name, asked in (("lexical", "needle"), ("trigram", "needlle"), ("semantic", "needle")):
            found = {row.key.turn: row for row in desk.ask(asked, name, embedder=model).rows}  # type: ignore[arg-type]
            assert {turn for turn, row in found.items() if row.asks} == {f"{i}" for i in range(len(asking))}, name
            assert {turn for turn, row in found.items() if row.author == "张伟"} == set("02468"), name
            assert {row.having for row in found.values()} == {0 if name == "semantic" else 1}

    @pytest.mark.capability("search.told")
    def test_candidates_tell_which_words_they_have_and_how_rare_these_are(self, desk: Desk) -> None:
        """Counted among all rows of the owner, whatever is filtered; a word that no row has is 0; variants count."""
        for i, text in enumerate(("river boat", "river", "a lisbon river", "lisboa bridge", "hut")):
            desk.say("trip" if i else "other", f"{i}", text)
        desk.say("theirs", "1", "river boat absent", BOB)

        def rare(rows: int) -> float:
            return log(1 + (5 - rows + 0.5) / (rows + 0.5))

        asked = "absent boat river lisbom hut"  # lisbom may be lisbon or lisboa: the commonest tells its rarity
        for where in ({}, {"conversation": "trip"}):
            found = desk.ask(asked, "lexical", **where)  # type: ignore[arg-type]
            assert [round(r, 6) for r in found.rarity] == [
                round(r, 6) for r in (0.0, rare(1), rare(3), 0.0, rare(1))
            ], where
            told = {"0": 0b110, "1": 0b100, "2": 0b100, "4": 0b10000}
            if where:
                del told["0"]
            assert {row.key.turn: row.having for row in found.rows} == told
        found = desk.ask(asked, *LISTS)
        assert set(dict(found.corrections)) == {"lisbom"}
        assert [round(r, 6) for r in found.rarity] == [round(r, 6) for r in (0.0, rare(1), rare(3), rare(1), rare(1))]
        having = {row.key.turn: row.having for row in found.rows}
        assert having == {"0": 0b110, "1": 0b100, "2": 0b1100, "3": 0b1000, "4": 0b10000}
        assert [row.having for row in desk.ask("hut", "lexical", scope=BOB).rows] == []

    @pytest.mark.capability("search.told")
    def test_one_stored_word_may_stand_for_two_of_the_question(self, desk: Desk) -> None:
        """And for one that was written right beside a misspelt one."""
        desk.say("trip", "1", "from alfama")
        desk.say("trip", "2", "elsewhere")
        for asked, bits in (("alfamma allfama", 0b11), ("alfama alfamma", 0b11), ("alfamma absent", 0b01)):
            found = desk.ask(asked, *LISTS)
            assert [row.having for row in found.rows] == [bits], asked
            assert [r > 0 for r in found.rarity] == [bool(bits & 1), bool(bits & 2)]

    @pytest.mark.capability("search.told")
    def test_of_a_question_of_many_words_the_first_are_told(self, desk: Desk) -> None:
        """Beginnings of words stand for themselves, whatever their place; all the words are searched for."""
        words = [own(i) for i in range(90)]
        desk.say("trip", "1", " ".join(words))
        desk.say("trip", "2", words[-1])
        found = desk.ask(" ".join(words))
        assert {row.key.turn: row.having for row in found.rows} == {"1": 2**TOLD - 1, "2": 0}
        assert len(found.rarity) == TOLD
        assert all(rarity > 0 for rarity in found.rarity)
        desk.say("trip", "3", "猫咪 river")
        found = desk.ask("猫 river")
        assert [(row.key.turn, row.having) for row in found.rows] == [("3", 0b11)]
        assert len(found.rarity) == 2

    @pytest.mark.capability("search.misspelt")
    def test_a_question_of_hundreds_of_misspelt_words_is_answered(self, desk: Desk) -> None:
        """The first of them are corrected, each to several variants; that may be looked up among all words."""
        words = [f"{c}{own(i)[3:6]}{c}zzkk" for i, c in enumerate("abcdefgh" * 32)]
        for n, letter in enumerate("vwxyq"):
            desk.say("trip", f"{n}", " ".join(word[:5] + letter + word[6:] for word in words))
        found = desk.ask(" ".join(words), *LISTS)
        assert set(found.corrections) == set(words[:MAX_CORRECTED])
        assert {row.key.turn for row in found.rows} == set("01234")

    @pytest.mark.capability("search.prefixes-of-lists")
    def test_a_longer_list_begins_with_the_shorter_one(self, desk: Desk) -> None:
        """Equal scores included: pages fit together."""
        model = HashEmbedder()
        for i in range(45):
            desk.say("trip", f"{i}", "needle" if i % 3 else "needle and thread")
        desk.embed(model)
        for name, asked in (("lexical", "needle"), ("trigram", "needlle"), ("semantic", "needle")):
            whole = desk.find(asked, name, embedder=model)  # type: ignore[arg-type]
            assert len(whole) == 45
            for depth in (1, 5, 10, 20, 40):
                assert desk.find(asked, name, depth=depth, embedder=model) == whole[:depth], (name, depth)  # type: ignore[arg-type]

    @pytest.mark.capability("search.rows")
    def test_rows_come_with_their_turn_and_its_neighbours(self, desk: Desk) -> None:
        """All rows of the named turns, in order of conversation and position; unknown keys are left out."""
        for i in range(5):
            desk.record(make_turn("trip", f"{i}", f"prompt {i}", f"answer {i}", NOW + timedelta(minutes=i)))
        desk.say("other", "x", "prompt")
        two = [("trip", "2", 0), ("trip", "2", 1)]
        assert desk.rows(("trip", "2", 1)) == two
        around = [("trip", f"{i}", s) for i in (1, 2, 3) for s in (0, 1)]
        assert desk.rows(("trip", "2", 0), around=1) == around
        assert desk.rows(("trip", "0", 0), ("other", "x", 7), around=1) == [
            ("other", "x", 0), ("trip", "0", 0), ("trip", "0", 1), ("trip", "1", 0), ("trip", "1", 1),
        ]  # fmt: skip
        assert desk.rows(("trip", "9", 0), ("nowhere", "2", 0)) == []
        assert desk.rows() == []

    @pytest.mark.capability("search.rows")
    def test_rows_come_alone_where_their_turn_is_not_asked_for(self, desk: Desk) -> None:
        """Each once, in order of conversation and position, as they come with their turn; none that are over."""
        for i in range(3):
            desk.record(full_turn("trip", f"{i}", f"mark{i}", NOW + timedelta(minutes=i)))
        desk.say("other", "x", "prompt", ttl=timedelta(hours=1))
        desk.say("apps", "x", "prompt", Scope("alice", app="one"))
        wanted = [("trip", "1", 2), ("other", "x", 0), ("trip", "0", 1), ("trip", "1", 0), ("trip", "1", 2)]
        found = [("other", "x", 0), ("trip", "0", 1), ("trip", "1", 0), ("trip", "1", 2)]
        assert desk.rows(*wanted, ("trip", "1", 99), ("trip", "9", 0), ("nowhere", "1", 0), whole=False) == found
        keys = [RowKey(*key) for key in found]
        whole = {row.key: row for row in desk.backend.rows(ALICE, keys, NOW)}
        assert desk.backend.rows(ALICE, keys, NOW, whole=False) == tuple(whole[key] for key in keys)
        desk.now += timedelta(hours=2)
        assert desk.rows(*wanted, whole=False) == found[1:]
        assert desk.rows(whole=False) == []
        assert desk.rows(*wanted, scope=BOB, whole=False) == []
        for app, seen in (("one", [("apps", "x", 0)]), ("two", []), (None, [("apps", "x", 0)])):
            assert desk.rows(("apps", "x", 0), scope=Scope("alice", app=app), whole=False) == seen
