"""Sentences of every script: where they end, and that nothing of a text is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threefold.text.sentences import LONGEST, sentence_spans


def cut(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "sentences",
    [
        ["We leave on Friday.", "The train is at 7.45 from platform 3!", "Is that fine?", "Yes."],
        ["can you help me?", "i need it by monday.", "thanks a lot!", "it is urgent"],
        ["Dr. Smith met J. R. Tolkien at 5 p.m. in St. Ives.", "They spoke of e.g. tea."],
        ["Version 3.5.1 is out at https://example.org/a.b?c=d.", "Open report.xlsx.", "Take it."],
        ['"Really?" she asked.', '"Yes."', "Nothing more (or less).", "Good."],
        ["Wir treffen uns am 3. Oktober, z. B. in Köln.", "Die Nr. 5 kostet ca. 20 €.", "Gut."],
        ["¿Cuándo salimos?", "¡Mañana!", "La Sra. López viene."],
        ["Встреча в 10 ч. утра на ул. Ленина.", "Приходите все!"],
        ["我们周五出发。", "火车是7点45分！", "可以吗？", "“好的。”", "再见"],
        ["金曜日に出発します。", "電車は7時45分です！", "いいですか？"],
        ["好!", "真的?", "3.5元。"],
        ["금요일에 출발합니다.", "기차는 7시 45분입니다.", "괜찮습니까?"],
        ["हम शुक्रवार को निकलेंगे।", "ट्रेन ७:४५ पर है।", "ठीक है?"],
        ["نغادر يوم الجمعة.", "هل هذا مناسب؟", "نعم!"],
        ["ہم جمعہ کو جائیں گے۔", "ٹھیک ہے؟"],
        ["Πότε φεύγουμε;", "Αύριο."],
        ["Երբ ենք մեկնում։", "Վաղը։"],
        ["መቼ እንሄዳለን፧", "ነገ።"],
        ["យើងចេញដំណើរ។", "បាទ។"],
        ["First line", "Second line", "- a point", "- another point"],
        ["1. Buy milk", "2. Call Anna"],
        ["Well… perhaps not.", "Wait...", "Now."],
    ],
)
def test_sentences_end_where_a_reader_ends_them(sentences: list[str]) -> None:
    joined = {True: "\n", False: " "}[any(s.startswith(("- ", "1. ", "First", "Second")) for s in sentences)]
    assert cut(joined.join(sentences)) == sentences
    assert cut("\n\n".join(sentences)) == sentences


@pytest.mark.parametrize(
    "text", ["我们周五出发。火车是7点45分！可以吗？再见", "出発します。いいですか？はい", "हाँ।नहीं।"]
)
def test_scripts_without_spaces_need_none(text: str) -> None:
    assert len(cut(text)) > 1
    assert "".join(cut(text)) == text


def test_a_line_that_goes_on_is_one_sentence() -> None:
    assert cut("a long sentence that\ngoes on here\nand ends. Next one") == [
        "a long sentence that\ngoes on here\nand ends.",
        "Next one",
    ]
    assert cut("a paragraph\n\nand another") == ["a paragraph", "and another"]


def test_thai_is_cut_at_spaces_once_a_phrase_is_long_enough() -> None:
    phrase = "เราจะออกเดินทางไปเชียงใหม่วันศุกร์หน้าพร้อมกับเพื่อนสามคนจากที่ทำงาน"
    assert cut(f"{phrase} {phrase} {phrase}") == [phrase] * 3
    assert cut("สวัสดี ครับ") == ["สวัสดี ครับ"]


def test_marks_stay_with_their_letters() -> None:
    text = "क\u093f" * 1000 + "e\u0301" * 1000 + "👩\u200d👩\u200d👧" * 300
    for start, _ in sentence_spans(text, 101):
        assert not text[start : start + 1].startswith(("\u093f", "\u0301", "\u200d"))


@given(st.text(st.sampled_from("aB1 .!?…\n\r。؟।\"'()e\u0301ก\x00;α:,"), max_size=300), st.integers(1, 60))
def test_spans_touch_cover_the_text_and_are_bounded(text: str, longest: int) -> None:
    spans = sentence_spans(text, longest)
    assert "".join(text[start:end] for start, end in spans) == text
    assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
    assert all(0 < end - start <= longest for start, end in spans)


@pytest.mark.parametrize("character", ["x", ".", "!", " ", "\n", '"', "。", "ก", "\u0301", "\u200d", ";", "a. "])
def test_a_hundred_thousand_times_the_same_takes_no_time(character: str) -> None:
    text = character * 100_000
    spans = sentence_spans(text)
    assert spans[-1][1] == len(text)
    assert max(end - start for start, end in spans) <= LONGEST


def test_nothing_has_no_sentences() -> None:
    assert sentence_spans("") == []
