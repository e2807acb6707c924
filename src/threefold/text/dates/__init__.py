"""Dates that a text names, in the words of many languages: `periods` reads them, `nearness` compares a time with them.

The words are data (`date_words.json`): names and relative expressions of the CLDR, and a small table by hand, both put
together by `scripts/make_date_words.py`. `numeric` reads dates in figures and those of Chinese, Japanese and Korean;
`reading` reads words. Precision comes first: a word that is often no date (`may`, `hier`) needs others beside it.
"""

from threefold.text.dates.period import Period, nearness, nearness_of
from threefold.text.dates.reading import periods

__all__ = ["Period", "nearness", "nearness_of", "periods"]
