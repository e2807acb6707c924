"""Redacting a turn before it is folded, so that rows, blocks, digests and references all follow from what is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from threefold.errors import InvalidInput
from threefold.model.ref import ConvRef, parse_ref
from threefold.model.turn import Replay, Turn
from threefold.ports import Redactor
from threefold.realms.conv.limits import MAX_ANCHOR, MAX_SUMMARY
from threefold.realms.redacting import Pass, distinct

# A title may grow by the marks in it, up to this.
_LONGEST_TITLE = 120


def redact(turn: Turn, rule: Redactor | None) -> Turn:
    """The turn with every text redacted that a person or a model wrote, and in `redacted` what was taken out.

    Ids, labels that are asked for, references to other objects, and the bytes of files stay as they are.
    """
    if rule is None:
        return turn
    done = Pass(rule)
    names = _names(turn, done)
    redacted = replace(
        turn,
        title=_title(turn, done),
        submissions=tuple(replace(s, text=done.text(s.text), author=done.optional(s.author)) for s in turn.submissions),
        context=tuple(replace(c, payload=done.json(c.payload)) for c in turn.context),
        attachments=tuple(replace(a, name=done.path(a.name), text=done.optional(a.text)) for a in turn.attachments),
        steps=tuple(
            replace(s, name=done.text(s.name), arguments=done.json(s.arguments), result=done.json(s.result))
            for s in turn.steps
        ),
        files=tuple(replace(f, path=names[f.path]) for f in turn.files),
        sources=tuple(
            replace(s, url=done.text(s.url), title=done.optional(s.title), text=done.optional(s.text))
            for s in turn.sources
        ),
        notes=tuple(replace(n, text=done.text(n.text), tag=done.optional(n.tag)) for n in turn.notes),
        summary=turn.summary
        and replace(
            turn.summary,
            text=_within(MAX_SUMMARY, turn.summary.text, done),
            refs=tuple(_ref(ref, turn, names, done) for ref in turn.summary.refs),
            anchors=tuple(_within(MAX_ANCHOR, anchor, done) for anchor in turn.summary.anchors),
        ),
        partials=tuple(replace(p, text=done.text(p.text), author=done.optional(p.author)) for p in turn.partials),
        completion=turn.completion
        and replace(
            turn.completion,
            text=done.text(turn.completion.text),
            author=done.optional(turn.completion.author),
        ),
        error=done.optional(turn.error),
        replay=Replay(*(tuple(done.json(list(part))) for part in (turn.replay.events, turn.replay.streams))),
        origin=done.json(turn.origin),
    )
    return replace(redacted, redacted=Counter(turn.redacted) + done.counts) if done.counts else redacted


def _names(turn: Turn, done: Pass) -> Mapping[str, str]:
    """What the published files are called: two that had different names have them still."""
    paths = list(dict.fromkeys(file.path for file in turn.files))
    return dict(zip(paths, distinct([done.path(path) for path in paths]), strict=True))


def _title(turn: Turn, done: Pass) -> str | None:
    """The title. One that is the beginning of a text is cut anew: half a secret is not known as one."""
    if turn.title is None:
        return None
    begun = turn.title.removesuffix("…")
    for submission in turn.submissions:
        if _first_line(submission.text).startswith(begun):
            left = _first_line(done.peek(submission.text))
            if not left.startswith(begun):
                return left[: max(len(turn.title), _LONGEST_TITLE)]
    return done.text(turn.title)


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _ref(ref: str, turn: Turn, names: Mapping[str, str], done: Pass) -> str:
    """A reference; one to a file follows its name."""
    try:
        parsed: Any = parse_ref(ref, turn.conversation)
    except InvalidInput:
        return done.text(ref)
    if not isinstance(parsed, ConvRef) or parsed.family != "fi":
        return ref
    root, _, path = parsed.body.partition("/")
    name = names.get(path) if root == "files" and parsed.turn == turn.id else None
    kept = done.path(path) if name is None else name
    return ref if kept == path else str(replace(parsed, body=f"{root}/{kept}"))


def _within(most: int, text: str, done: Pass) -> str:
    """A text that is not refused for the length of the marks in it."""
    return done.text(text)[: max(most, len(text))]
