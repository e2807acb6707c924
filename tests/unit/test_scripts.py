"""Every script: spellings that are one word to a reader meet, and what matched is shown as it was written."""

from __future__ import annotations

import unicodedata

import pytest

from threefold.text.excerpt import excerpt
from threefold.text.fold import fold
from threefold.text.tables import FOLDER, han, one_script
from threefold.text.terms import WILDCARD, index_terms, query_terms

# Two spellings of the same, in either order.
SAME = {
    "full-width": [("Ｆｏｒｅｃａｓｔ", "forecast"), ("Ｃ＋＋", "C++"), ("ｅ－ｍａｉｌ", "e-mail"), ("３Ｄ", "3D")],
    "compatibility": [("ﬁnds", "finds"), ("x²", "x2"), ("①", "1"), ("㍿", "株式会社"), ("5㎏", "5 kg"), ("ﷺ", "ﷺ")],
    "invisible": [("co\u00adop", "coop"), ("word\u200b", "word"), ("\u200eשלום\u200f", "שלום"), ("a\u2060b", "ab")],
    "hyphens": [("e‑mail", "e-mail"), ("תל־אביב", "תל-אביב"), ("п’ять", "пʼять"), ("п'ять", "п‘ять")],
    "case": [("STRASSE", "straße"), ("İSTANBUL", "istanbul"), ("ILIK", "ılık"), ("ΌΣΟΣ", "όσος"), ("Ⅷ", "viii")],
    "latin": [("naïve", "naive"), ("Łódź", "lodz"), ("Ærø", "aero"), ("Điện", "dien"), ("phở", "pho"),
              ("ţară", "țară")],
    "greek": [("Αθήνα", "ΑΘΗΝΑ"), ("λόγος", "λογοσ"), ("μαΐου", "μαιου"), ("αθήνες", "αθηνα")],
    "cyrillic": [("ёлка", "елка"), ("Москве", "МОСКВЫ"), ("предыдущий", "предыдущие"), ("за́мок", "замок")],
    "look-alikes": [("Скoлькo", "сколько"), ("MОСКВА", "москва"), ("pаypal", "paypal"), ("Αθήνa", "αθηνα")],
    "arabic": [("مَدِينَة", "مدينه"), ("أهداف", "اهداف"), ("إلى", "الي"), ("عـــدد", "عدد"),
               ("ٱلكتاب", "الكتاب"), ("٢٠١٥", "2015")],
    "persian": [("کتاب", "كتاب"), ("فارسی", "فارسي"), ("۱۴۰۳", "1403"), ("می\u200cروم", "میروم")],
    "hebrew": [("בְּלִיסְבּוֹן", "בליסבון"), ("שלום", "שלומ"), ("ﬡ", "א")],
    "indic": [
        ("ख़बर", "खबर"), ("\u0958", "\u0915"), ("ल्\u200dयूक", "ल्यूक"), ("पहुँचाया", "पहुंचाया"), ("२०१५", "2015"),
        ("খোঁজ", "খোংজ"), ("ড়", "ড"), ("ന്\u200d", "ൻ"), ("ত্\u200d", "ৎ"),
    ],
    "thai": [("น้ำ", "น้ํา"), ("น้ำ", "นํ้า"), ("๒๐๑๕", "2015"), ("ภา\u200bษา", "ภาษา")],
    "chinese": [("賈裏德", "贾里德"), ("圖書館", "图书馆"), ("驚訝", "惊讶"), ("２０１５", "2015"), ("貓", "猫"),
                ("⼈", "人")],
    "japanese": [("ｺﾝﾋﾟｭｰﾀｰ", "コンピューター"), ("ねこ", "ネコ"), ("図書館", "圖書館"),
                 ("葛\U000e0100", "葛"), ("ガ", "カ\u3099")],
    "korean": [("한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"), ("ﾡ", "ㄱ")],
    "emoji": [("🕯️", "🕯"), ("👍🏽", "👍"), ("1️⃣", "1")],
}  # fmt: skip


def meets(asked: str, stored: str) -> bool:
    """Whether all that is asked for is stored."""
    terms = index_terms(stored)
    return bool(terms) and all(
        term in terms or (term.endswith(WILDCARD) and any(t.startswith(term[:-1]) for t in terms))
        for term in query_terms(asked)
    )


@pytest.mark.parametrize(("one", "other"), [pair for pairs in SAME.values() for pair in pairs])
def test_spellings_of_one_word_meet_in_either_order(one: str, other: str) -> None:
    for form in ("NFC", "NFD"):
        for a, b in ((one, other), (other, one)):
            assert meets(unicodedata.normalize(form, a), b), (a, query_terms(a), index_terms(b))


@pytest.mark.parametrize(
    ("one", "other"),
    [("猫", "狗"), ("🇩🇪", "🇪🇸"), ("TNFα", "TNFa"), ("µs", "ms"), ("ใกล้", "ไกล"), ("दिन", "दीन"), ("C++", "C")],
)  # fmt: skip
def test_different_words_stay_apart(one: str, other: str) -> None:
    assert not meets(one, other)


def test_umlauts_are_found_dropped_or_written_out() -> None:
    for asked in ("München", "MÜNCHEN", "Munchen", "Muenchen", "mu\u0308nchen"):
        assert meets(asked, "in München"), asked
        assert meets(asked, "in Mu\u0308nchen"), asked
    assert index_terms("blue poet") == ("blue", "poet")
    assert query_terms("Übung") == ("ubung",)


@pytest.mark.parametrize(
    ("word", "turned"),
    [("нa", "на"), ("cчет", "счет"), ("пaypal", "пaypal"), ("pаypal", "paypal"), ("mеta", "meta"), ("aтaкa", "атака"),
     ("αθηνa", "αθηνα"), ("tnfα", "tnfα"), ("rorγt", "rorγt"), ("μm", "μm"), ("oca", "oca"), ("оса", "оса"),
     ("windowsом", "windowsom"), ("əае", "əае"), ("αаa", "αаa")],
)  # fmt: skip
def test_a_word_of_two_scripts_is_turned_into_the_one_that_all_of_it_can_be(word: str, turned: str) -> None:
    assert one_script(word) == turned
    assert one_script(turned) == turned


def test_long_words_of_an_accented_question_are_asked_for_by_their_beginnings_too() -> None:
    assert query_terms("Übergrößen") == ("ubergrossen", "ubergro*")
    assert query_terms("e\u0301quipements") == ("equip",)
    assert query_terms("missionaries İs") == ("missionari", "mission*")
    assert query_terms("internationalisierung is") == ("internationalisierung",)
    assert index_terms("Übergrößen") == ("ubergrossen", "uebergroessen")


def test_plain_identifiers_are_what_they_were() -> None:
    assert index_terms("x2 C++ naïve") == ("x2", "c++", "naiv")
    assert fold("µs") == "μs"
    assert fold("getUserName") == "getusername"


def test_the_table_of_han_ends_where_it_leads() -> None:
    table = han()
    assert len(table) > 4000
    assert not set(table) & set(table.values())
    assert (FOLDER / "NOTICE").read_text("utf-8").count("Unicode") > 1


@pytest.mark.parametrize(
    ("text", "asked", "written"),
    [
        ("in der Straßenbahn", "STRASSENBAHN", "Straßenbahn"),
        ("nach München fahren", "muenchen", "München"),
        ("der ﬁnale Test", "finale", "ﬁnale"),
        ("新しいｺﾝﾋﾟｭｰﾀｰを買う", "コンピューター", "ｺﾝﾋﾟｭｰﾀｰ"),
        ("赤いガイドブック", "がいど", "ガイド"),
        ("วันนี้ไปตลาดน้ำกับเพื่อน", "น้ํา", "น้ำ"),
        ("我在圖書館看書", "图书馆", "圖書館"),
        ("북 \u1112\u1161\u11ab\u1100\u116e\u11a8", "한국", "\u1112\u1161\u11ab\u1100\u116e\u11a8"),
        ("حصل على مَدِينَةٍ", "مدينه", "مَدِينَةٍ"),
        ("ביקרנו בְּלִיסְבּוֹן", "בליסבון", "בְּלִיסְבּוֹן"),
        ("वह ल्\u200dयूक है", "ल्यूक", "ल्\u200dयूक"),
        ("Сегодня Скoлькo?", "сколько", "Скoлькo"),
        ("ΣΤΗΝ ΑΘΉΝΑ", "αθηνα", "ΑΘΉΝΑ"),
        ("we won 👍🏽 today", "👍", "👍🏽"),
        ("Ｆｕｌｌ width", "full", "Ｆｕｌｌ"),
    ],
)  # fmt: skip
def test_what_matched_is_shown_as_it_was_written(text: str, asked: str, written: str) -> None:
    part = excerpt(text, query_terms(asked))
    assert part.text == text
    assert written in [text[start:end] for start, end in part.matches]
