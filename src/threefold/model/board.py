"""Boards: cards that stand for objects which stay with their owners, where they lie, and what people say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal, get_args

from threefold.model.paging import Cursor
from threefold.model.ref import ObjectRef
from threefold.model.resolved import Shown
from threefold.model.times import iso

# Who wrote: the host says so, by the handle that it gives out.
By = Literal["user", "agent"]
CardState = Literal["placed", "suggested", "binned", "declined"]
"""It lies on the board; an agent would have it there; it is in the bin; the person does not want it."""
CARD_STATES: Final[tuple[CardState, ...]] = get_args(CardState)
SHOWN_STATES: Final[frozenset[CardState]] = frozenset({"placed", "suggested"})
"""What is not in the bin."""


@dataclass(frozen=True, slots=True)
class Rect:
    """Where a card lies, in units of the board: its left upper corner, y downwards, and its size."""

    x: float
    y: float
    w: float
    h: float

    def as_json(self) -> dict[str, float]:
        """The place as plain JSON values."""
        return {"x": self.x, "y": self.y, "w": self.w, "h": self.h}


@dataclass(frozen=True, slots=True)
class Comment:
    """What somebody said of a card."""

    id: str
    text: str
    by: By
    at: datetime
    agent: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The comment as plain JSON values."""
        return {"id": self.id, "text": self.text, "by": self.by, "at": iso(self.at), "agent": self.agent}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What somebody would have done with a card, pin it or bin it, and why. It waits for the person's word."""

    act: Literal["pin", "bin"]
    why: str
    by: By
    at: datetime
    agent: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The suggestion as plain JSON values."""
        return {"act": self.act, "why": self.why, "by": self.by, "at": iso(self.at), "agent": self.agent}


@dataclass(frozen=True, slots=True)
class Card:
    """A card stands for the object that `ref` names, and has nothing of it. `id` follows from the reference.

    `by`, `agent`, `at` say who brought it and when, `source` is a reference to what it was found in. `revision` is that
    of the board that the card was read from; it is what a write names as seen.
    """

    id: str
    ref: str
    rect: Rect
    state: CardState
    by: By
    at: datetime
    agent: str | None = None
    source: str | None = None
    note: str = ""
    comments: tuple[Comment, ...] = ()
    suggestion: Suggestion | None = None
    revision: int = field(default=0, compare=False)

    def as_json(self) -> dict[str, Any]:
        """The card as plain JSON values."""
        return {
            "id": self.id, "ref": self.ref, "rect": self.rect.as_json(), "state": self.state, "by": self.by,
            "at": iso(self.at), "agent": self.agent, "source": self.source, "note": self.note,
            "comments": [each.as_json() for each in self.comments],
            "suggestion": None if self.suggestion is None else self.suggestion.as_json(), "revision": self.revision,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Board:
    """A board at one of its revisions. `name` is its address and never changes; `title` is what people call it.

    `cards` are all of them in the order in which they came, those in the bin too. `attached` are conversations.
    """

    name: str
    title: str
    created: datetime
    updated: datetime
    revision: int = 1
    archived: bool = False
    attached: tuple[str, ...] = ()
    cards: tuple[Card, ...] = ()
    app: str | None = None

    @property
    def cursor(self) -> Cursor:
        """Where a page that ends with it ended."""
        return Cursor(self.updated, self.name)

    @property
    def ref(self) -> str:
        """The board's reference, whatever its revision."""
        return str(ObjectRef("cnv", self.name))

    @property
    def ref_at(self) -> str:
        """The reference of this revision."""
        return str(ObjectRef("cnv", self.name, revision=self.revision))

    def find(self, card: str) -> Card | None:
        """The card with this id, where there is one."""
        return next((each for each in self.cards if each.id == card), None)

    def chosen(self, binned: bool = False, suggested: bool = True) -> tuple[Card, ...]:
        """The cards that lie there; with those in the bin, without those that are only suggested."""
        states = {"placed", *(("suggested",) if suggested else ()), *(("binned", "declined") if binned else ())}
        return tuple(card for card in self.cards if card.state in states)

    def as_json(self) -> dict[str, Any]:
        """The board as plain JSON values."""
        return {
            "ref": self.ref, "name": self.name, "title": self.title, "revision": self.revision,
            "created": iso(self.created), "updated": iso(self.updated), "archived": self.archived,
            "attached": list(self.attached), "app": self.app, "cards": [card.as_json() for card in self.cards],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class BoardRevision:
    """A change of a board: who made it, when, by which acts, and which cards and fields it changed."""

    revision: int
    by: By
    at: datetime
    acts: tuple[str, ...]
    agent: str | None = None
    cards: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The revision as plain JSON values."""
        return {
            "revision": self.revision, "by": self.by, "at": iso(self.at), "acts": list(self.acts), "agent": self.agent,
            "cards": list(self.cards), "fields": list(self.fields),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Looked:
    """A card and what the owner of its object shows of it at this moment."""

    card: Card
    shown: Shown

    def as_json(self) -> dict[str, Any]:
        """Both as plain JSON values."""
        return {**self.card.as_json(), "shown": self.shown.as_json()}


@dataclass(frozen=True, slots=True)
class RenderedBoard:
    """A board as text for a model, and how many `tokens` that is.

    The text calls cards by labels: `refs` has the reference behind each, `cards` the id of the card.
    """

    text: str
    tokens: int
    refs: Mapping[str, str] = field(default_factory=dict)
    cards: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The text with its labels as plain JSON values."""
        return {"text": self.text, "tokens": self.tokens, "refs": dict(self.refs), "cards": dict(self.cards)}
