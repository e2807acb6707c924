"""Text: what is stored and what is asked meet, whatever the script, and excerpts point at words."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from threefold.embedders.bundled import _ASCII_WORD, _any_word
from threefold.errors import InvalidInput
from threefold.model.clean import storable
from threefold.model.scope import check_id
from threefold.testing.strategies import HOSTILE_IDS, bad_ids, ids, texts
from threefold.text.dates.words import tokens
from threefold.text.excerpt import excerpt
from threefold.text.fold import fold
from threefold.text.patterns import WITHOUT_RUNS
from threefold.text.terms import MAX_TERM, WILDCARD, index_terms, pieces, query_terms

EVERY_CHARACTER = [chr(c) for c in range(1, sys.maxunicode + 1) if not 0xD800 <= c <= 0xDFFF]


def test_folding_twice_is_folding_once_for_every_character() -> None:
    odd = [c for c in EVERY_CHARACTER if fold(fold(c)) != fold(c)]
    assert odd == []


def test_no_term_of_any_character_has_white_space_or_is_empty() -> None:
    # A term with a blank in it would be several terms of the index, one of which could pass for another owner's.
    odd = [c for c in EVERY_CHARACTER for t in index_terms(f"{c}1:a a{c}b {c}") if not t or t.split() != [t]]
    assert odd == []


@given(texts())
def test_folding_is_idempotent(text: str) -> None:
    once = fold(storable(text))
    assert fold(once) == once


ALIKE = str.maketrans("аеорсухікмнтв", "aeopcyxikmhtb")
CYRILLIC = st.text(st.characters(min_codepoint=0x430, max_codepoint=0x44F), min_size=1, max_size=12)


@given(CYRILLIC, st.integers(0, 2**12), st.sampled_from("бджзлфцчшщыэюя"))
def test_however_many_letters_are_typed_in_latin_the_word_is_the_same(word: str, which: int, only: str) -> None:
    mixed = "".join(c.translate(ALIKE) if which >> i & 1 else c for i, c in enumerate(word)) + only
    assert fold(mixed) == fold(word + only)
    assert set(query_terms(mixed)) <= set(index_terms(word + only))


@given(texts(60), st.sampled_from(["NFC", "NFD"]), st.sampled_from([str.lower, str.casefold, str]))
@example("ŞİRKET Straße ｶﾞ น้ำ", "NFD", str.lower)
@example("Übergröße der Donaudampfschifffahrt", "NFD", str.lower)
@example(" ﬀ", "NFC", str.casefold)
def test_forms_of_a_text_have_the_same_terms(text: str, form: str, case: Callable[[str], str]) -> None:
    # Humps of identifiers are told by capitals, so they are left out; so are marks that case moves to another letter.
    # What is folded is a word: without white space.
    text = "".join(storable(text).split())
    changed = unicodedata.normalize(form, case(text))
    assert fold(changed) == fold(text)


@given(st.text(st.characters(max_codepoint=127)))
def test_ascii_is_cut_alike_on_both_paths(text: str) -> None:
    # A word beyond ASCII behind it sends a text the other way.
    beyond = text + " é"
    assert list(pieces(text)) == list(pieces(beyond))[:-1]
    assert index_terms(text) == index_terms(beyond)[:-1]
    assert tokens(text).words == tokens(beyond).words[:-1]
    assert _ASCII_WORD.findall(text.lower()) == _any_word().findall(text.lower())


@given(st.text(st.characters(max_codepoint=0xDFF) | st.sampled_from("—“”’…→👍🏽\u200d")))
def test_text_without_runs_is_cut_alike_on_both_paths(text: str) -> None:
    assert WITHOUT_RUNS.fullmatch(text)
    assert list(pieces(text)) == list(pieces(text + " 字"))[:-1]


@given(texts(120))
def test_terms_are_those_of_the_pieces(text: str) -> None:
    text = storable(text)
    assert sorted(index_terms(text)) == sorted(term for _, _, terms in pieces(text) for term in terms)


@given(texts(120))
@example("a\x00b")
@example("ﷺ and ͺ1:secret")
@example("ｺﾝﾋﾟｭｰﾀｰ ゟﾊﾟ")
@example("x" * 70 + " " + "-".join(["part"] * 2000) + "-tail")
def test_every_word_of_a_text_is_found_in_it(text: str) -> None:
    text = storable(text)
    stored = set(index_terms(text))
    for start, end, terms in pieces(text):
        assert 0 <= start < end <= len(text)
        word = text[start:end]
        if terms:
            asked = query_terms(word)
            assert any(
                term in stored or (term.endswith(WILDCARD) and any(t.startswith(term[:-1]) for t in stored))
                for term in asked
            ), (word, asked)


@given(texts(120))
def test_terms_are_short_and_plain(text: str) -> None:
    for term in index_terms(storable(text)):
        assert 0 < len(term) <= MAX_TERM * 4
        assert term.split() == [term]
        assert "\x00" not in term
        term.encode()


@given(texts(400), texts(20), st.integers(5, 200))
@example("x" * 500 + " needle " + "y" * 500, "needle", 50)
@example("今天玩成语接龙游戏" * 40, "成语", 30)
def test_an_excerpt_is_a_part_of_the_text_and_points_at_words(text: str, question: str, size: int) -> None:
    text = storable(text)
    asked = query_terms(storable(question)) or query_terms(text[:10])
    part = excerpt(text, asked, size)
    body = part.text.removeprefix("…") if not text.startswith(part.text[:1]) or part.text[:1] == "…" else part.text
    assert body.removesuffix("…") in text
    assert len(part.text) <= max(size, 0) + 2
    last = 0
    for start, end in part.matches:
        assert last <= start < end <= len(part.text)
        last = end
        inside = set(index_terms(part.text[start:end]))
        assert any(t in inside or any(i.startswith(t.rstrip(WILDCARD)) for i in inside) for t in asked)


@given(st.text(st.characters(), max_size=40) | texts())
@example("\ud83d\ude00")
@example("a\ud800b")
@example("\ufeff\ud800")
def test_any_text_can_be_stored(text: str) -> None:
    kept = storable(text)
    kept.encode()
    assert storable(kept) == kept
    if not any(0xD800 <= ord(c) <= 0xDFFF for c in text):
        assert kept == text


@given(ids())
def test_hostile_ids_are_kept_as_they_are(name: str) -> None:
    assert check_id(name, "name") == name


@given(bad_ids())
def test_what_is_no_id_is_refused_by_name(name: object) -> None:
    with pytest.raises(InvalidInput, match=r"^conversation "):
        check_id(name, "conversation")


def test_every_hostile_id_gives_terms_that_meet() -> None:
    for name in HOSTILE_IDS:
        stored = index_terms(name)
        assert bool(stored) == bool(query_terms(name))
