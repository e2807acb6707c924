"""The words of `words.toml` and `alike.toml`, folded as those of notes are, read when they are first needed."""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from threefold.text.dates.words import table
from threefold.text.fold import compatible, fold
from threefold.text.stem import stem

FILE: Final = Path(__file__).with_name("words.toml")
ALIKE: Final = Path(__file__).with_name("alike.toml")
# Characters of scripts without spaces; Hangul has spaces, but particles are written onto its words.
RUN: Final = "\u0e00-\u0e4f\u0e5a-\u0edf\u1000-\u109f\u1780-\u17ff\u3005\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
HANGUL: Final = "\uac00-\ud7a3"
# Stands in a run for a light word that is left out, so that nothing else seems to begin there.
LEFT_OUT: Final = "\uf8ff"
# The key of words that say that something is wanted.
ASKING: Final = "=asking"
_STOPS: Final = r"[!?;،؛、。；|()–—]|[.,:，：](?!\d)"
# Stands in the tables for the space between words that say as much as one.
_SPACE: Final = "_"
# So many letters more the last of several words has, of those that are written with * after them.
_ENDING: Final = 5
_SEVERAL = re.compile("[_'’/-]")
# Languages whose words are written together, or with their endings, and a letter by which a text is held to be of one.
_TOGETHER: Final = {
    "ko": re.compile(f"[{HANGUL}]"),
    "ja": re.compile("[\u3041-\u30ff]"),
    "th": re.compile("[\u0e01-\u0e4e]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
}
_HANGUL = re.compile(f"[{HANGUL}]")
_RUN = re.compile(f"[{RUN}]")
_WRITTEN_TOGETHER = re.compile(f"[{RUN}{HANGUL}]")


class Words(NamedTuple):
    """What words mean; `words.toml` says it of each table.

    `spoken` are words of each language, those of all its tables; `known` are the languages that have most of the
    tables, `dates` names of months and days, by stem. `alike` gives the groups that a word is in, which may stand for
    the others of each. `instead` is what is read for words that are written together, by language, and, under no
    language's name, for several words that say as much as one.
    """

    light: Mapping[str, frozenset[str]]
    spoken: Mapping[str, frozenset[str]]
    known: frozenset[str]
    turning: frozenset[str]
    relating: frozenset[str]
    asking: frozenset[str]
    helping: frozenset[str]
    joining: frozenset[str]
    agents: frozenset[str]
    receivers: frozenset[str]
    doers: frozenset[str]
    done_to: frozenset[str]
    denials: frozenset[str]
    endings: re.Pattern[str]
    inside: re.Pattern[str]
    affirming: re.Pattern[str]
    was: frozenset[str]
    is_: frozenset[str]
    tenses: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...]
    when: frozenset[str]
    clause: re.Pattern[str]
    classes: tuple[tuple[re.Pattern[str], ...], ...]
    telling: frozenset[str]
    comparing: re.Pattern[str]
    changing: re.Pattern[str]
    numbers: Mapping[str, str]
    halves: Mapping[str, str]
    dates: Mapping[str, str]
    alike: Mapping[str, frozenset[int]]
    instead: Mapping[str, Mapping[str, str]]


@cache
def words() -> Words:
    """The tables."""
    data = tomllib.loads(FILE.read_text("utf-8"))
    tables = tomllib.loads(ALIKE.read_text("utf-8"))
    alike, instead = _alike({name: known for name, known in tables.items() if name not in _TOGETHER})
    return Words(
        {language: _folded([known]) for language, known in data["light"].items()},
        _spoken(data, tables),
        frozenset(data["helping"]),
        _folded(data["turning"].values()),
        _folded(data["relating"].values()),
        frozenset(map(stem, _folded(data["asking"].values()))),
        frozenset(map(stem, _folded(data["helping"].values()))),
        _folded(data["joining"].values()),
        _folded(data["agent"].values()),
        _folded(data["receiver"].values()),
        _folded(data["doer"].values()),
        _folded(data["done_to"].values()),
        _folded(data["negation"].values()),
        re.compile(f"[a-z]{{2,30}}(?:{'|'.join(data['endings'].values())})"),
        re.compile("|".join(data["inside"].values())),
        re.compile("|".join(data["affirming"].values())),
        _folded(data["was"].values()),
        _folded(data["is"].values()),
        tuple((re.compile(was), re.compile(now)) for was, now in data["tenses"].values()),
        _folded(data["when"].values()),
        re.compile(rf"{_STOPS}|{_pattern(_split(data['clause'].values())).pattern}", re.IGNORECASE),
        tuple(tuple(_pattern(_folded([known])) for known in groups.values()) for groups in data["apart"].values()),
        _folded(data["telling"].values()),
        _pattern(_folded(data["comparing"].values())),
        _pattern(_folded(data["changing"].values())),
        {word: value for value, known in data["numbers"].items() for word in _folded([known])},
        {word: value for value, known in data["halves"].items() for word in _folded([known])},
        {
            stem(name): f"{kind}{value}"
            for name, (kind, value) in table().phrases.items()
            if kind in "mw" and " " not in name
        },
        alike,
        {"": instead, **{name: _together(tables.get(name, ""), data["light"][name]) for name in _TOGETHER}},
    )


def _spoken(data: Mapping[str, Mapping[str, str]], tables: Mapping[str, str]) -> Mapping[str, frozenset[str]]:
    names = ("light", "turning", "asking", "helping", "relating", "negation", "when")
    return {
        language: _folded([*(data[name].get(language, "") for name in names), tables.get(language, "")])
        for language in data["light"]
    }


def _alike(tables: Mapping[str, str]) -> tuple[Mapping[str, frozenset[int]], Mapping[str, str]]:
    """The groups of each word, and what is read for several words, and for one that says as much as several."""
    alike: defaultdict[str, set[int]] = defaultdict(set)
    instead: dict[str, str] = {}
    for number, group in enumerate(_groups("\n".join(tables.values()))):
        for word in group:
            if _SEVERAL.search(word) or _SPACE in group[0]:
                instead.setdefault(word.replace(_SPACE, " "), group[0].replace(_SPACE, " ").removesuffix("*"))
            else:
                alike[fold(word)].add(number)
                alike[stem(fold(word))].add(number)
    return {word: frozenset(numbers) for word, numbers in alike.items()}, instead


def _together(table: str, light: str) -> Mapping[str, str]:
    """What is read for words that are written together: the first of the group, nothing for light ones."""
    instead: dict[str, str] = {}
    for group in _groups(table):
        one = next((instead[word] for word in group if word in instead), group[0])
        instead |= {word: one for word in group if word not in instead}
    return instead | {word.lower(): LEFT_OUT for word in light.split() if len(word) > 1 and _RUN.match(word)}


def _groups(table: str) -> list[list[str]]:
    return [compatible(line).lower().split() for line in table.splitlines() if line.strip()]


def read_as(text: str) -> str:
    """A plain text with one word where several are read as one: in runs anywhere, of Korean where a word begins."""
    script = next((name for name, letter in _TOGETHER.items() if letter.search(text)), "")
    known, lower = words().instead[script], text.lower()
    if len(lower) != len(text):  # İ is two characters then
        lower = text

    def other(match: re.Match[str]) -> str:
        word = match[0].replace("’", "'")
        bare = (f"{word[:end]}*" for end in range(len(word), len(word) - _ENDING - 1, -1))
        return known.get(word) or next((known[form] for form in bare if form in known), match[0])

    parts: list[str] = []
    end = 0
    for match in _finding(script).finditer(lower):
        parts += text[end : match.start()], other(match)
        end = match.end()
    return "".join((*parts, text[end:]))


@cache
def _finding(script: str) -> re.Pattern[str]:
    """Finds what another word is read for, the longest first."""
    known = sorted(words().instead[script], key=lambda word: (-len(word), word))
    if script:
        begins = f"(?<![{HANGUL}])" if script == "ko" else ""
        return re.compile(f"{begins}(?:{'|'.join(map(re.escape, known))})")
    found = [re.escape(word).replace("'", "['’]").replace(r"\*", rf"\w{{0,{_ENDING}}}") for word in known]
    return re.compile(rf"(?<!\w)(?:{'|'.join(found)})(?!\w)")


def languages_among(forms: Iterable[str]) -> tuple[str, ...]:
    """The languages that most of `forms` are light words of."""
    return _most(_languages(form) for form in forms)


def languages_spoken(forms: Iterable[str]) -> tuple[str, ...]:
    """The languages that most of `forms` are words of any table of; none if there are no such words."""
    known = [found for form in forms if (found := _spoken_in(form))]
    return _most(known) if known else ()


def _most(found: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    counts = Counter(language for languages in found for language in languages)
    most = max(counts.values(), default=0)
    return tuple(language for language in words().light if counts[language] == most)


@lru_cache(maxsize=1 << 8)
def light_of(languages: tuple[str, ...]) -> frozenset[str]:
    """The light words of any of some languages: `son` is a child where others are English, and his where French."""
    return frozenset().union(*(words().light[language] for language in languages))


@lru_cache(maxsize=1 << 14)
def _languages(form: str) -> tuple[str, ...]:
    return tuple(language for language, known in words().light.items() if form in known)


@lru_cache(maxsize=1 << 14)
def _spoken_in(form: str) -> tuple[str, ...]:
    return tuple(language for language, known in words().spoken.items() if form in known)


def _split(known: Iterable[str]) -> frozenset[str]:
    return frozenset(word for words_ in known for word in words_.split())


def _folded(known: Iterable[str]) -> frozenset[str]:
    return frozenset(map(fold, _split(known)))


def _pattern(known: Iterable[str]) -> re.Pattern[str]:
    """Finds any of the words in folded text; inside of runs too, where they are written together."""
    together = [word for word in sorted(known) if _WRITTEN_TOGETHER.search(word)]
    apart = sorted(set(known).difference(together))
    whole = f"(?<!\\w)(?:{'|'.join(apart)})(?!\\w)"
    return re.compile("|".join([*together, whole] if apart else together))
