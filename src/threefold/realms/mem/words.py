"""The words of `words.toml`, folded as those of notes are, read when they are first needed."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from threefold.text.dates.words import table
from threefold.text.fold import fold
from threefold.text.stem import stem

FILE: Final = Path(__file__).with_name("words.toml")
# Characters of scripts without spaces; Hangul has spaces, but particles are written onto its words.
RUN: Final = "\u0e00-\u0e4f\u0e5a-\u0edf\u1000-\u109f\u1780-\u17ff\u3005\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
HANGUL: Final = "\uac00-\ud7a3"
# Stands in a run for a light word that is left out, so that nothing else seems to begin there.
LEFT_OUT: Final = "\uf8ff"
# Begins the key of a group of words.
GROUP: Final = "="
# The key of words that say that something is wanted.
ASKING: Final = "=asking"
_STOPS: Final = r"[!?;،؛、。；|()–—]|[.,:，：](?!\d)"
_HANGUL = re.compile(f"[{HANGUL}]")
_WRITTEN_TOGETHER = re.compile(f"[{RUN}{HANGUL}]")


class Words(NamedTuple):
    """What words mean; `words.toml` says it of each table.

    `known` are the languages that have most of the tables, `dates` names of months and days, by stem. Words of `alike`
    are one word: by stem, those of `runs` as they are written; `run` finds the latter.
    """

    light: Mapping[str, frozenset[str]]
    known: frozenset[str]
    turning: frozenset[str]
    relating: frozenset[str]
    helping: frozenset[str]
    joining: frozenset[str]
    agents: frozenset[str]
    receivers: frozenset[str]
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
    comparing: re.Pattern[str]
    changing: re.Pattern[str]
    numbers: Mapping[str, str]
    halves: Mapping[str, str]
    dates: Mapping[str, str]
    alike: Mapping[str, str]
    runs: Mapping[str, str]
    run: re.Pattern[str]


@cache
def words() -> Words:
    """The tables."""
    data = tomllib.loads(FILE.read_text("utf-8"))
    groups = [group.split() for groups in data["alike"].values() for group in groups.splitlines() if group.strip()]
    alike: dict[str, str] = {}
    runs: dict[str, str] = {}
    for group in groups:
        apart = not _WRITTEN_TOGETHER.match(group[0])
        known, keys = (alike, [stem(fold(word)) for word in group]) if apart else (runs, group)
        one = next((known[key] for key in keys if key in known), GROUP + group[0] if apart else group[0])
        known.update({key: one for key in keys if key not in known})
    alike |= {stem(word): ASKING for word in _folded(data["asking"].values())}
    light = " ".join(data["light"].values()).split()
    runs |= {word: LEFT_OUT for word in light if len(word) > 1 and re.match(f"[{RUN}]", word)}
    longest = sorted(runs, key=lambda word: (-len(word), word))
    return Words(
        {language: _folded([known]) for language, known in data["light"].items()},
        frozenset(data["helping"]),
        _folded(data["turning"].values()),
        _folded(data["relating"].values()),
        frozenset(map(stem, _folded(data["helping"].values()))),
        _folded(data["joining"].values()),
        _folded(data["agent"].values()),
        _folded(data["receiver"].values()),
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
        runs,
        re.compile("|".join(f"(?<![{HANGUL}]){word}" if _HANGUL.match(word) else word for word in longest)),
    )


def languages_among(forms: Iterable[str]) -> tuple[str, ...]:
    """The languages that most of `forms` are light words of."""
    counts = Counter(language for form in forms for language in _languages(form))
    most = max(counts.values(), default=0)
    return tuple(language for language in words().light if counts[language] == most)


@lru_cache(maxsize=1 << 8)
def light_of(languages: tuple[str, ...]) -> frozenset[str]:
    """The light words of any of some languages: `son` is a child where others are English, and his where French."""
    return frozenset().union(*(words().light[language] for language in languages))


@lru_cache(maxsize=1 << 14)
def _languages(form: str) -> tuple[str, ...]:
    return tuple(language for language, known in words().light.items() if form in known)


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
