"""Which language a text may be in, by the words of the tables and by its letters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from threefold.realms.mem.units import Unit
from threefold.realms.mem.words import languages_among, languages_spoken, words

_TELLING = re.compile(r"\bال\w|\wة\b|[а-яё]{3}|\w[iıuü]yor|[ışğİ]")
_TURKISH = re.compile(r"\w[iıuü]yor|[ışğİ]")
_OTHERS = re.compile("[پچگکیٹڈےہەۇіїєґўјљњћђџѓќңқғүұһөәӣӯ]", re.IGNORECASE)


def told(text: str, units: Sequence[Unit]) -> bool:
    """Whether the language of a text is known to be one of those with most of the tables."""
    if _OTHERS.search(text):
        return False
    if _TELLING.search(text) or any(unit.telling for unit in units):
        return True
    return not words().known.isdisjoint(_languages(units))


def languages(text: str, units: Sequence[Unit]) -> tuple[str, ...]:
    """The languages that a text may be in, by its light words, of Turkish by its letters too; none if that is open."""
    if _TURKISH.search(text):
        return ("tr",)
    return languages_spoken(unit.form for unit in units if unit.kind == "word")


def _languages(units: Sequence[Unit]) -> tuple[str, ...]:
    light = [unit.form for unit in units if unit.weight == 0.0]
    return languages_among(light) if light else ()
