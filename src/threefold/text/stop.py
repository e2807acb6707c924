"""English function words, dropped from questions (not from what is stored): they say how a thing is asked, not what.

Compared with terms, so after folding and stemming; hence forms such as `doe` and `ani`.
"""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    a about after again all also am an and ani anyth are as at be been befor being but by can could did do doe
    don dure each even ever few for from get give go had has have he her here him his how i if in into is it
    just let like may me might mine more most much must my near need no nor not now of off on onc one onli or
    other our out over own pleas said same say see shall she should so some someth still such take tell than
    that the their them then there these they thing this those through to too under until up us veri wa want was
    we were what when where which while who whom whose whi will with would yet you your
    """.split()  # noqa: SIM905 - words read best as words
)
