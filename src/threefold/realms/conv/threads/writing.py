"""Extending the summary of a thread: each part that left the window is written once, by a model or without one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from threefold.errors import ThreefoldError, Unavailable
from threefold.model.clean import storable
from threefold.ports import Summarizer
from threefold.realms.conv.threads.keeping import Mark, Summary
from threefold.realms.conv.threads.reading import Said
from threefold.realms.conv.view import Message
from threefold.text.summary import extract
from threefold.text.tokens import count_tokens

# Tokens of a summary, whatever it covers.
BUDGET: Final = 600
# Messages that leave the window before the summary is extended.
STEP: Final = 20
# Parts at most that a model is asked for at once: what is before them, such as an imported history, is extracted.
AT_ONCE: Final = 5
EXTRACT: Final = "extract"


def on_the_fly(covered: Summary | None, behind: Sequence[Message]) -> str:
    """A summary of what a kept one covers and of the messages behind it, made without a model and not kept."""
    before = "" if covered is None else covered.text
    return extract(before, _told(behind), BUDGET) if behind else before


def extended(
    covered: Summary | None,
    part: Sequence[Said],
    ends: Sequence[datetime | None],
    summarizer: Summarizer | None,
) -> tuple[Summary, str | None]:
    """The summary with one more part, and a warning where the model failed and the part was extracted.

    `ends` are the ends of the turns' times to live: the summary lives no longer than the first of them.
    """
    before = "" if covered is None else covered.text
    told = _told([message for said in part for message in said.messages])
    text, by, warning = _summarised(summarizer, before, told)
    lives = [end for end in (*ends, None if covered is None else covered.expires) if end is not None]
    parts = {} if covered is None else dict(covered.parts)
    parts[by] = parts.get(by, 0) + 1
    made = Summary(
        text=text,
        mark=Mark.of(part[-1].entry),
        messages=len(told) + (0 if covered is None else covered.messages),
        by=by,
        parts=parts,
        expires=min(lives, default=None),
    )
    return (made if covered is None else replace(made, digest=covered.digest)), warning


def _told(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def _summarised(
    summarizer: Summarizer | None, before: str, told: Sequence[tuple[str, str]]
) -> tuple[str, str, str | None]:
    """The text, who wrote it, and a warning where it was not who should have."""
    warning = None
    if summarizer is not None:
        name = str(getattr(summarizer, "name", None) or "model")
        try:
            text = _written(summarizer, before, told)
        except ThreefoldError as error:
            warning = f"a part of the summary was extracted, since {name!r} failed: {error}"
        else:
            if text:
                # A model that says more than it may is cut by its sentences.
                return (text if count_tokens(text) <= BUDGET else extract(text, (), BUDGET)), name, None
            warning = f"a part of the summary was extracted, since {name!r} said nothing"
    return extract(before, told, BUDGET), EXTRACT, warning


def _written(summarizer: Summarizer, before: str, told: Sequence[tuple[str, str]]) -> str:
    """What the summarizer says, whatever goes wrong in it becomes one of our errors.

    Raises:
        ThreefoldError: it failed, or gave something else than text.
    """
    try:
        text: object = summarizer(before, told, BUDGET)
    except ThreefoldError:
        raise
    except Exception as error:
        # A summarizer is foreign code and may raise anything; nothing is swallowed, it becomes an error of our tree.
        raise Unavailable(f"{type(error).__name__}: {error}") from error
    if not isinstance(text, str):
        raise ThreefoldError(f"it gave {type(text).__name__} instead of text")
    return storable(text).strip()
