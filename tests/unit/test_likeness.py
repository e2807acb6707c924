"""Likeness: what is never merged, in every script; that it is symmetric; and that spelling does not matter."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from itertools import combinations, pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threefold.realms.mem.likeness import FILE, Likeness, compare, note_of
from threefold.realms.mem.senses import same_sense
from threefold.realms.mem.words import words

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import reconcile
from _pairs import FOLDER, crossed, learned, pairs, seen

NEVER_MERGED = [
    # who does it to whom
    ("Anna calls Ben every Sunday", "Ben calls Anna every Sunday"),
    ("Anna was hired by Ben", "Anna hired Ben"),
    ("Игорь звонит Олегу", "Олег звонит Игорю"),
    ("Selin Okan'ı aradı", "Okan Selin'i aradı"),
    ("राम श्याम को फ़ोन करता है।", "श्याम राम को फ़ोन करता है।"),
    ("花子が太郎に電話した。", "太郎が花子に電話した。"),
    ("서울에서 부산으로 간다.", "부산에서 서울로 간다."),
    ("安娜打电话给本。", "本打电话给安娜。"),
    ("Viaja de Lima a Quito", "Viaja de Quito a Lima"),
    ("Owes money to his cousin", "His cousin owes him money"),
    ("Llama a Eva los lunes", "Eva lo llama los lunes"),
    ("Flies to Oslo on Monday", "Flies from Oslo on Monday"),
    # whether it is so
    ("Eats fish", "Does not eat fish"),
    ("Le gusta el mar", "No le gusta el mar"),
    ("Et yiyor", "Et yemiyor"),
    ("Пьёт чай с сахаром", "Пьёт чай без сахара"),
    ("肉を食べる。", "肉を食べない。"),
    ("고기를 먹는다.", "고기를 안 먹는다."),
    ("用户会游泳。", "用户不会游泳。"),
    ("يأكل السمك", "لا يأكل السمك"),
    ("वह मांस खाता है।", "वह मांस नहीं खाता है।"),
    ("Is a nurse at the clinic", "Was a nurse at the clinic"),
    ("Works at the harbour", "Worked at the harbour"),
    ("Wohnt in Jena", "Wohnte in Jena"),
    ("Trabaja en el puerto", "Trabajaba en el puerto"),
    ("Работает в порту", "Работал в порту"),
    ("Limanda çalışıyor", "Limanda çalıştı"),
    ("港で働いている。", "港で働いていた。"),
    ("항구에서 일한다.", "항구에서 일했다."),
    ("वह पुणे में रहता है।", "वह पुणे में रहता था।"),
    # numbers, dates, signs
    ("The freezer is at −5 degrees", "The freezer is at 5 degrees"),
    ("The freezer is at -5 degrees", "The freezer is at 5 degrees"),
    ("Needs Python 3.1", "Needs Python 3.10"),
    ("Uses C++ at work", "Uses C# at work"),
    ("Uses C at work", "Uses C++ at work"),
    ("Writes to a.b@mail.example", "Writes to a_b@mail.example"),
    ("Meets Sam at 3 am", "Meets Sam at 3 pm"),
    ("Meets Sam on Tuesday", "Meets Sam on Wednesday"),
    ("Rent is due on 5 March", "Rent is due on 5 May"),
    ("Hat eine Katze", "Hat zwei Katzen"),
    ("用户有一只猫。", "用户有两只猫。"),
    ("会议在周二。", "会议在周三。"),
    ("लंबाई ५ मीटर है", "लंबाई ६ मीटर है"),
    ("لديه ٣ أطفال", "لديه ٤ أطفال"),
    # names and things
    ("Julia cumple años hoy", "Julio cumple años hoy"),
    ("Su hijo estudia derecho", "Su hija estudia derecho"),
    ("उसका बेटा डॉक्टर है।", "उसकी बेटी डॉक्टर है।"),
    ("用户住在上海。", "用户住在海上。"),
    ("用户对花生过敏。", "用户对花粉过敏。"),
    ("そばアレルギーがある。", "さばアレルギーがある。"),
    ("仕事でJavaを使っている。", "仕事でJavaScriptを使っている。"),
    ("Takes the pill before breakfast", "Takes the pill after breakfast"),
    ("Likes tea", "Likes green tea with mint"),
]
MERGED = [
    ("Has 2 indoor cats.", "has two indoor cats"),
    ("Ben was hired by Anna", "Anna hired Ben"),
    ("Anna gave the book to Ben", "Anna gave Ben the book"),
    ("Speaks Danish and a little Welsh", "Speaks a little Welsh and Danish"),
    ("Fährt bei jedem Wetter mit dem Rad zur Arbeit", "Zur Arbeit fährt er bei jedem Wetter mit dem Rad"),
    ("Su perro se llama Bruno", "El usuario tiene un perro que se llama Bruno"),
    ("По пятницам работает из дома", "Пользователь работает из дома по пятницам"),
    ("Yer fıstığına alerjisi var", "Kullanıcının yer fıstığı alerjisi bulunuyor"),
    ("厨房上周被奥尔加刷了。", "奥尔加上周把厨房刷了。"),
    ("女儿的生日：3月14日", "女儿的生日是三月十四日。"),
    ("子どもが三人いる。", "子どもが3人います。"),
    ("편집기에서 다크 모드를 선호한다.", "다크 모드를 편집기에서 선호한다."),
    ("المستخدم لديه ثلاثة أطفال.", "المستخدم لديه 3 أطفال"),
    ("यूज़र के दो बेटे हैं।", "यूज़र के 2 बेटे हैं"),
]
SENTENCE = "Ünal's Café №2 öffnet um 9:30; C++ & ﬁsh, Живёт ёж, 東京ガス１２, 서울에서, काम, مَدرسة"
texts = st.text(max_size=60) | st.lists(st.sampled_from(" ".join(map(" ".join, NEVER_MERGED)).split())).map(" ".join)


def likeness(first: str, second: str) -> Likeness:
    return compare(note_of(first), note_of(second))


def written(name: str) -> list[tuple[str, str]]:
    """The pairs of a file of this folder: language, first and second, with tabs between."""
    lines = Path(__file__).with_name(name).read_text("utf-8").splitlines()
    return [(first, second) for _, first, second in (line.split("\t") for line in lines)]


@pytest.mark.parametrize(("first", "second"), [*NEVER_MERGED, *written("notes_apart.tsv")])
def test_different_facts_are_never_one(first: str, second: str) -> None:
    assert likeness(first, second).relation != "same"


@pytest.mark.parametrize(("first", "second"), [*MERGED, *written("notes_alike.tsv")])
def test_one_fact_said_twice_is_one(first: str, second: str) -> None:
    assert likeness(first, second).relation == "same"


def test_a_note_that_says_more_refines() -> None:
    short, long = "Prefers aisle seats", "Prefers aisle seats, as close to the front as possible"
    assert (likeness(short, long).relation, likeness(short, long).finer) == ("refines", "second")
    assert (likeness(long, short).relation, likeness(long, short).finer) == ("refines", "first")


def test_a_value_that_changed_contradicts() -> None:
    assert likeness("Monthly budget is $400", "Monthly budget is $550").relation == "contradicts"
    assert likeness("Blog has ads", "Blog has no ads").relation == "contradicts"
    assert likeness("Bus 14 stops at the office", "Bus 41 stops at the office").relation == "different"


def test_a_word_more_in_a_language_that_is_not_known_may_deny() -> None:
    assert likeness("Kumain siya kanina nang isda", "Hindi kumain siya kanina nang isda").relation != "same"


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Lubi koty i psy", "lubi  KOTY i psy.", True),
        ("Lubi koty i psy", "Lubi psy i koty", False),
        ("Anapenda chai asubuhi", "Anapenda chai jioni", False),
        ("Valgo žuvį ir mėsą", "Valgo mėsą", False),
        ("Ол ет жейді", "Ол ет жемейді", False),
        ("Він любить чай", "він любить чай!", True),
    ],
)
def test_a_language_without_tables_is_merged_word_for_word(first: str, second: str, same: bool) -> None:
    assert (likeness(first, second).relation == "same") == same


def test_a_judge_may_merge_what_a_language_without_tables_says() -> None:
    found = likeness("Użytkownik lubi koty", "Lubi koty")
    assert found.relation != "same"
    assert found.likelihood > 0.0


def test_it_says_what_decided() -> None:
    found = likeness("Meets Sam at 3 pm on Tuesday", "Does not meet Sam at 4 pm on Tuesday")
    assert found.because["number"] == 2.0
    assert found.because["denial"] == 1.0
    assert found.likelihood == 0.0


def test_ten_copies_are_one() -> None:
    notes = [note_of(f"{' ' * i}The user's cat is called Milo{'.' * (i % 2)}") for i in range(10)]
    assert {compare(one, other).relation for one in notes for other in notes} == {"same"}


def test_a_transcript_is_not_the_fact_in_it() -> None:
    talk = "We talked about her cat Milo, who hides under the sofa whenever somebody rings the bell. " * 20
    found = likeness("Has a cat called Milo", talk)
    assert found.relation == "different"
    assert found.likelihood < 0.4


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_spelling_does_not_matter(form: str) -> None:
    written = [unicodedata.normalize(form, SENTENCE), SENTENCE.upper(), f"  {SENTENCE}…!", SENTENCE.replace("'", "’")]
    for other in written:
        assert likeness(SENTENCE, other).relation == "same", other


@pytest.mark.parametrize(("first", "second"), [("", "x"), ("", "the"), ("!", "не"), ("he has it", "she is")])
def test_texts_that_say_nothing_are_like_none(first: str, second: str) -> None:
    assert likeness(first, second).relation == "different"


@given(texts)
def test_a_text_is_the_same_as_itself(text: str) -> None:
    found = compare(note_of(text), note_of(text))
    assert (found.relation, found.finer) == ("same", None)


@given(texts, texts)
def test_it_is_symmetric(first: str, second: str) -> None:
    one, other = likeness(first, second), likeness(second, first)
    turned = {"first": "second", "second": "first", None: None}
    assert (one.relation, one.likelihood, turned[one.finer]) == (other.relation, other.likelihood, other.finer)
    assert 0.0 <= one.likelihood <= 1.0


@given(st.permutations(list("天地玄黄宇宙洪荒日月盈昃")))
def test_characters_in_another_order_are_another_sentence(order: list[str]) -> None:
    text, other = "天地玄黄宇宙洪荒日月盈昃", "".join(order)
    if sum(other.find(pair) < 0 for pair in map("".join, pairwise(text))) > 7:
        assert likeness(text, other).relation != "same"


def test_every_table_is_read() -> None:
    assert all(words())
    assert len(frozenset().union(*words().alike.values())) > 2_000
    assert all(len(words().instead[name]) > 500 for name in ("zh", "ja", "ko"))


LIKES = {
    "en": "Likes {} very much", "de": "Mag {} sehr", "es": "Le gusta {}", "ru": "Любит {}", "tr": "{} seviyor",
    "ar": "يحب {}", "hi": "उसे {} पसंद है", "ja": "{}が好きだ", "ko": "{} 하나를 좋아한다", "zh": "用户喜欢{}",
}  # fmt: skip
KINDS = [line.split("\t") for line in Path(__file__).with_name("kinds_apart.tsv").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("language", "kind"), KINDS)
def test_things_of_one_kind_are_not_each_other(language: str, kind: str) -> None:
    things = [LIKES[language].format(thing.replace("_", " ")) for thing in kind.split(" ")]
    assert [pair for pair in combinations(things, 2) if likeness(*pair).relation == "same"] == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Purchased a pre-owned couch", "Bought a second-hand sofa"),  # words, several that say as much as one
        ("Onu anneannesi büyüttü", "Anneannesi onu yetiştirdi"),  # in another form than in the table
        ("Diş doktorunda randevusu var", "Dişçide randevusu var"),  # several with an ending
        ("Can't stand olives", "Hates olives"),
        ("洗濯機を修理した。", "洗濯機を直した。"),
        ("월급의 10%를 저축한다.", "급여의 10%를 저금한다."),
    ],
)
def test_what_stands_for_another_is_read_as_it(first: str, second: str) -> None:
    assert likeness(first, second).relation == "same"


def test_words_of_two_groups_do_not_make_them_one() -> None:
    assert same_sense("run", "manage", ("en",))
    assert same_sense("run", "jog", ("en",))
    assert not same_sense("jog", "manage", ("en",))


def test_stems_are_of_the_languages_of_the_notes() -> None:
    assert likeness("Plays the violin in an orchestra", "Plays the viola in an orchestra").relation != "same"
    assert note_of("Plays the violin in an orchestra").languages == ("en",)


def test_importing_it_loads_no_numpy() -> None:
    code = "import sys, threefold.realms.mem.likeness; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_weights_are_learned_without_what_they_are_measured_by() -> None:
    told = pairs()
    found = seen(told)
    assert len(told) == 720
    assert learned(told, found).threshold == pytest.approx(json.loads(FILE.read_text("utf-8"))["threshold"])
    merged = [
        pair.relation for pair, relation in zip(told, crossed(told, found, "half"), strict=True) if relation == "same"
    ]
    assert merged.count("same") > 0.98 * len(merged) > 100


def test_the_benchmark_prints_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert reconcile.main(["--pairs", str(FOLDER)]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["unit"] == "pair"
    assert lines[0]["group"] == "all"
    assert lines[0]["n"] == 720
    assert len(lines) == 11
    assert reconcile.main(["--development", "--relations"]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["n"] for line in told] == [260, 120, 140, 200] * 2


def test_the_benchmark_says_what_vectors_would_add(capsys: pytest.CaptureFixture[str]) -> None:
    assert reconcile.main(["--embedder", "bundled"]) == 0
    line = json.loads(capsys.readouterr().out)
    assert line["embedder"].startswith("threefold-static-")
    assert abs(line["metrics"]["both"] - line["metrics"]["words"]) < 0.05


def test_a_folder_without_pairs_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        reconcile.main(["--pairs", str(tmp_path)])
    assert "has no pairs" in capsys.readouterr().err
