"""Senses: what a word may say, as the numbers of the groups of `alike.toml` that it or another form of it is in.

A word may be in several groups, and stands for those of each, but these not for one another: who runs a shop manages
it, and who runs in the park jogs.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final

from threefold.realms.mem import forms
from threefold.realms.mem.words import words
from threefold.text.stem import stem

# How surely a word stands for another of its group.
SAME_SENSE: Final = 0.9
# So many letters all forms of a word begin with.
_HEAD: Final = 2
_ARTICLE: Final = "ال"


def same_sense(first: str, second: str, languages: tuple[str, ...]) -> bool:
    """Whether two folded words, or words that they are forms of, are two of one group."""
    one, other = _senses(first, languages), _senses(second, languages)
    return any(word != theirs for group, word in one for its, theirs in other if group == its)


@lru_cache(maxsize=1 << 14)
def _senses(form: str, languages: tuple[str, ...]) -> frozenset[tuple[int, str]]:
    """The groups that a word is in, as it stands or by its kin; and that word."""
    known = words().alike
    own = known.get(form) or known.get(stem(form))
    if own is not None:
        return frozenset((group, form) for group in own)
    near = {form[:_HEAD], form.removeprefix(_ARTICLE)[:_HEAD]}
    kin = [word for head in near for word in _heads().get(head, ()) if _of_one(form, word, languages)]
    return frozenset((group, word) for word in kin for group in known[word])


@cache
def _heads() -> Mapping[str, tuple[str, ...]]:
    """The words of all groups, by how they begin."""
    heads: dict[str, list[str]] = {}
    for word in words().alike:
        heads.setdefault(word[:_HEAD], []).append(word)
    return {head: tuple(found) for head, found in heads.items()}


def _of_one(form: str, word: str, languages: tuple[str, ...]) -> bool:
    return forms.akin(form, word, False, languages) > 0.0 and (languages == ("tr",) or not forms.apart(form, word))
