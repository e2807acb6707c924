"""The answer stands first where only one row can be it; times that a question names; over each back end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import threefold
from threefold.search.rank import Ranking

Open = Callable[..., threefold.Threefold]

# A question, the row that has its words, rows that have none of them.
TINY = {
    "english": ("Where did we park the bicycle?", "The bicycle is parked behind the bakery.",
                ["I like green tea.", "Shall we call Peter?", "The meeting was long.", "It rained all day."]),
    "german": ("Wann fährt die Fähre nach Helgoland?", "Die Fähre nach Helgoland fährt um neun.",
               ["Ich mag grünen Tee.", "Rufen wir Peter an?", "Das Treffen war lang.", "Es regnete."]),
    "chinese": ("钥匙放在哪里？", "钥匙放在厨房的抽屉里。",
                ["我喜欢绿茶。", "要给彼得打电话吗？", "会议很长。", "整天下雨。"]),
    "japanese": ("鍵はどこにありますか", "鍵は台所の引き出しにあります。",
                 ["緑茶が好き。", "ピーターに電話する？", "雨でした。"]),
    "russian": ("Где лежит запасной ключ?", "Запасной ключ лежит под ковриком.",
                ["Я люблю чай.", "Позвоним Петру?", "Весь день шёл дождь."]),
    "arabic": ("أين وضعنا المفتاح؟", "وضعنا المفتاح تحت السجادة.",
               ["أحب الشاي الأخضر.", "هل نتصل بسامي؟", "أمطرت طوال اليوم."]),
    "korean": ("열쇠는 어디에 있어?", "열쇠는 서랍 안에 있어.", ["녹차를 좋아해.", "전화할까?", "비가 왔다."]),
    "hindi": ("चाबी कहाँ रखी है?", "चाबी दराज में रखी है।", ["मुझे चाय पसंद है।", "क्या हम फोन करें?", "बारिश हुई।"]),
    "misspelt": ("where is the bicylce", "The bicycle is behind the bakery.", ["I like green tea.", "Shall we call?"]),
}  # fmt: skip
FEW = [0, 1, 2, 9]


def fill(handle: threefold.Handle, answer: str, others: list[str], at: int) -> None:
    """The answer in the midst of the others, each a turn; every other one of the same conversation."""
    texts = [*others[:at], answer, *others[at:]]
    for i, text in enumerate(texts):
        with handle.turn(f"c{i % 2}", turn=f"{i}") as turn:
            turn.prompt(text)


def padded(others: list[str], size: int) -> list[str]:
    return [f"{others[i % len(others)]}{' …' * (i // len(others))}" for i in range(size)]


@pytest.mark.parametrize("language", TINY)
@pytest.mark.parametrize("model", [True, False], ids=["embedder", "words alone"])
def test_the_only_row_with_the_words_is_first(open_db: Open, language: str, model: bool) -> None:
    question, answer, others = TINY[language]
    db = open_db() if model else open_db(embedder=None)
    for size in FEW:
        for at in {0, size // 2, size}:
            alice = db.user(f"alice{size}-{at}")
            fill(alice, answer, padded(others, size), at)
            if model:
                db.embed_pending()
            for more in ({}, {"group": "conversation"}):
                found = alice.conv.search(question, **more)
                assert found[0].text == answer, (size, at, more)
                assert found[0].score > 0
            assert 0 < alice.conv.search(question, ranking=Ranking(recency=0))[0].score < 1


@pytest.mark.parametrize("lists", [["semantic"], ["trigram"], ["lexical"], ["lexical", "semantic"]], ids=",".join)
@pytest.mark.parametrize("language", ["english", "german", "russian"])
def test_each_list_alone_has_the_only_row_with_the_words_first(
    db: threefold.Threefold, language: str, lists: list[str]
) -> None:
    question, answer, others = TINY[language]
    for size in FEW:
        alice = db.user(f"alice{size}")
        fill(alice, answer, padded(others, size), size // 2)
        db.embed_pending()
        found = alice.conv.search(question, lists=lists)  # type: ignore[arg-type]
        assert found[0].text == answer, size
        assert all(0 < hit.score < 1 for hit in found)


def test_scores_are_likelihoods_and_those_of_another_matter_are_low(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    fill(alice, "The bicycle is parked behind the bakery.", TINY["english"][2], 2)
    db.embed_pending()
    good = alice.conv.search("Where is the bicycle parked, behind the bakery?", explain=True)
    poor = alice.conv.search("When was the long treaty of Westphalia signed?", explain=True)
    for found in (good, poor):
        for hit in found:
            assert hit.explain is not None
            assert 0 < hit.explain["learned"] < 1
            assert 0 < hit.score < 1
    assert good[0].score > max((hit.score for hit in poor), default=0.0)


MONTHS = {
    "english": ("What did we say about the ferry in March 2026?", "We spoke about the ferry."),
    "german": ("Was haben wir im März 2026 über die Fähre gesagt?", "Wir sprachen über die Fähre."),
    "chinese": ("2026年3月我们说了渡轮什么", "我们谈到了渡轮。"),
    "russian": ("Что мы говорили о пароме в марте 2026 года?", "Мы говорили о пароме."),
    "arabic": ("ماذا قلنا عن العبارة في مارس 2026؟", "تحدثنا عن العبارة."),
}


@pytest.mark.parametrize("language", MONTHS)
@pytest.mark.parametrize("month", [1, 3, 5])
def test_a_month_that_the_question_names_is_preferred(db: threefold.Threefold, language: str, month: int) -> None:
    """Each of the others is as good, and some are newer."""
    question, text = MONTHS[language]
    other = {1: ("January", "Januar", "1月", "январе", "يناير"), 5: ("May", "Mai", "5月", "мае", "مايو")}
    if month in other:
        for named, instead in zip(("March", "März", "3月", "марте", "مارس"), other[month], strict=True):
            question = question.replace(named, instead)
    alice = db.user("alice")
    for each in range(1, 7):
        at = datetime(2026, each, 14, 12, tzinfo=UTC)
        with alice.turn(f"c{each}", started=at) as turn:
            turn.prompt(text, at=at)
    db.embed_pending()
    assert alice.conv.search(question)[0].at.month == month


def test_a_row_of_the_named_month_without_the_words_does_not_displace_the_answer(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    for month, text in ((3, "It rained all day."), (6, "The ferry leaves the harbour at nine.")):
        at = datetime(2026, month, 14, tzinfo=UTC)
        with alice.turn(f"c{month}", started=at) as turn:
            turn.prompt(text, at=at)
    found: Any = alice.conv.search("which ferry leaves the harbour at nine in March?")
    assert found[0].at.month == 6
