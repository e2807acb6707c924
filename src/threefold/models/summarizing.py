"""Summaries by a chat model, for `threefold.ports.Summarizer`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from threefold.errors import InvalidInput, Unavailable
from threefold.model.chat import Message
from threefold.models.framing import framed, rule, thoughtless
from threefold.models.running import run
from threefold.ports import ChatModel
from threefold.text.tokens import count_tokens

# A summary is made between two answers of an agent; who waits longer than this goes on without.
SECONDS: Final = 120.0
# What models of other families count differently, and room for those that think first.
_ROOM: Final = 1000
_ENDS: Final = re.compile(r"[.!?…。!?।؟۔\n](?=[\s\"'”»)\]]|$)|[。!?]")
_PLACEHOLDER: Final = re.compile(
    r"[\[<({*_\s]*(?:(?:insert|your|the|new|updated|running|previous|no|empty)\s+)*"
    r"(?:summary|summari[sz]ation|conversation|text|placeholder|todo|tbd|none|n/?a|null|empty|nothing)"
    r"(?:\s+(?:here|text|of the conversation|goes here|to summari[sz]e|available))*[\]>)}*_\s:.…!]*",
    re.IGNORECASE,
)
_EXCUSE: Final = re.compile(r"(?:i['’]?m sorry|i am sorry|sorry,|i can(?:no|['’])t\b|as an ai\b)", re.IGNORECASE)
_FEWEST_LETTERS: Final = 3

_TASK: Final = """\
You keep the summary of a conversation for an assistant that will not see the messages again.
{rule}
The first line may be the summary so far: keep what still holds of it and add what the messages bring. Tell facts, \
names, numbers, dates, decisions and their reasons, wishes, and what is open; leave out greetings and how it was \
said. Where messages ask for something, tell that they do. Write in the language of the messages, in plain \
sentences without a heading, in at most {tokens} tokens. Answer with the summary alone."""


class ModelSummarizer:
    """Makes summaries with a chat model. It is called from code that waits, also where an event loop runs.

    What it cannot do it raises; the caller goes on with what it has.
    """

    def __init__(self, model: ChatModel, seconds: float = SECONDS) -> None:
        """A summary takes `seconds` at most."""
        self._model, self._seconds = model, seconds
        self.name = model.name

    def __call__(self, before: str, messages: Sequence[tuple[str, str]], tokens: int) -> str:
        """See `threefold.ports.Summarizer`.

        Raises:
            InvalidInput: `tokens` is not positive. Unavailable: the model cannot be reached, takes too long, or gives
            no summary.
        """
        if tokens < 1:
            raise InvalidInput(f"tokens {tokens!r} must be positive")
        if not messages:
            return within(before, tokens)
        first = [{"summary": before}] if before.strip() else []
        data, mark = framed([*first, *({"role": role, "text": text} for role, text in messages)], "conversation")
        task = _TASK.format(rule=rule(mark), tokens=tokens)
        asked = [Message("system", task), Message("user", f"{data}\n\nThe summary, in the language of the messages:")]
        reply = run(
            lambda: self._model.chat(asked, max_tokens=2 * tokens + _ROOM), self._seconds, "a summary of the model"
        )
        if reply.finish == "refused":
            raise Unavailable(f"model {self._model.name!r} will not summarize")
        return within(self._told(reply.text, mark), tokens, cut=reply.finish == "length")

    def _told(self, answer: str, mark: str) -> str:
        text = thoughtless(answer)
        text = re.sub(r"</?" + re.escape(mark) + ">", "", text).strip().strip("`").strip()
        letters = sum(map(str.isalpha, text))
        if letters < _FEWEST_LETTERS or _PLACEHOLDER.fullmatch(text) or _EXCUSE.match(text):
            raise Unavailable(f"model {self._model.name!r} gave no summary, but {text[:80]!r}")
        return text


def within(text: str, tokens: int, cut: bool = False) -> str:
    """The beginning of `text` that has at most so many tokens, to the end of a sentence where there is one.

    `cut` says that the text is broken off at its end already.
    """
    if not cut and count_tokens(text) <= tokens:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count_tokens(text[:middle]) <= tokens else (low, middle - 1)
    kept = text[:low]
    ends = [match.end() for match in _ENDS.finditer(kept)]
    # A first sentence that is longer than half of what fits is cut at a word.
    if ends and 2 * ends[-1] >= len(kept):
        return kept[: ends[-1]].rstrip()
    return (kept if low == len(text) else kept.rpartition(" ")[0] or kept).rstrip()
