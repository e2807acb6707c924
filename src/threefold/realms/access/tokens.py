"""Tokens: each is one user's way in with some grants. Kept by their hash, as records of the operator's.

The secret is shown once, when the token is made, and is in no file. Whether a token still holds is looked up at each
request, so that one that is revoked in any process is refused in all of them from then on.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from threefold.errors import IntegrityError, InvalidInput, NotFound
from threefold.model.clean import storable
from threefold.model.codec import digest_of, log_to_json
from threefold.model.commit import Commit, RecordTurn
from threefold.model.record import TurnLog, TurnRecord
from threefold.model.retention import Target
from threefold.model.scope import Scope
from threefold.model.times import iso, parse_moment
from threefold.ports import CatalogQuery, Store
from threefold.realms.access.grants import READER, check_grants

_PLACE: Final = Scope("operator", "operator", realm="access.tokens")
_TURN: Final = "token"
_PREFIX: Final = "tf_"
_SECRET: Final = re.compile(r"tf_[A-Za-z0-9_-]{43}")
_ID: Final = re.compile(r"tok_[0-9a-f]{16}")
_MAX_NAME: Final = 200
_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token: whom it speaks for and what it may do (`grants`, None for all); not its secret.

    `name` is for people to know it by. It holds until `expires`, or until it is revoked where that is None. `rate` is
    how many requests in a minute it may make, None for as many as the server lets any.
    """

    id: str
    scope: Scope
    grants: frozenset[str] | None
    name: str
    created: datetime
    expires: datetime | None
    rate: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The token as plain JSON values."""
        return {
            "id": self.id, "name": self.name, "tenant": self.scope.tenant, "user": self.scope.user,
            "app": self.scope.app, "agent": self.scope.agent,
            "grants": None if self.grants is None else sorted(self.grants), "created": iso(self.created),
            "expires": None if self.expires is None else iso(self.expires), "rate": self.rate,
        }  # fmt: skip


class Made(NamedTuple):
    """A new token, and its secret, which nobody can find out later."""

    secret: str
    token: Token


class Tokens:
    """The tokens of a store, for the operator."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock

    def create(
        self,
        user: str,
        tenant: str = "default",
        grants: Collection[str] | None = READER,
        app: str | None = None,
        agent: str | None = None,
        expires: timedelta | None = None,
        name: str = "",
        rate: int | None = None,
    ) -> Made:
        """Make a token for one user. `grants` are such as `mem:read` or `*:read`, or None for all of them.

        With `agent` whoever has it writes as that agent: memories are only proposed. With `app` it sees only what that
        app recorded. `expires` is how long it holds, None for until it is revoked. `rate` is how many requests in a
        minute it may make, None for as many as the server lets any.

        Raises:
            InvalidInput: an argument is malformed.
        """
        given = None if grants is None else check_grants(grants)
        if expires is not None and not (isinstance(expires, timedelta) and expires > timedelta(0)):
            raise InvalidInput("expires must be a positive timedelta, or None for no end")
        if not isinstance(name, str) or len(name) > _MAX_NAME:
            raise InvalidInput(f"name must be text of at most {_MAX_NAME} characters")
        if rate is not None and (not isinstance(rate, int) or isinstance(rate, bool) or rate < 1):
            raise InvalidInput(f"rate {rate!r} must be a whole number from 1, or None for the server's")
        scope, now = Scope(user, tenant, app, agent), self._clock()
        try:
            until = None if expires is None else now + expires
        except OverflowError:
            raise InvalidInput("expires is too far away; leave it out for no end") from None
        secret = _PREFIX + secrets.token_urlsafe(32)
        hashed = _hash(secret)
        token = Token(_id_of(hashed), scope, given, storable(name), now, until, rate)
        self._store.commit(Commit(_PLACE, (RecordTurn(_to_record(token, hashed), replaces=""),)))
        return Made(secret, token)

    def find(self, secret: str) -> Token | None:
        """The token with this secret, if it holds."""
        if not isinstance(secret, str) or not _SECRET.fullmatch(secret):
            return None
        hashed = _hash(secret)
        found = self._store.replays(_PLACE, [(_id_of(hashed), _TURN)], self._clock())
        for (id_, _), replay in found.items():
            if hmac.compare_digest(str(replay.get("sha256", "")), hashed):
                return _from_replay(id_, replay)
        return None

    def list(self, user: str | None = None, tenant: str | None = None) -> tuple[Token, ...]:
        """All tokens that hold, the last made first; with `user` or `tenant` theirs only."""
        wanted = (token for token in self._all() if tenant in (None, token.scope.tenant))
        return tuple(token for token in wanted if user in (None, token.scope.user))

    def revoke(self, id: str) -> None:  # noqa: A002 - the interface's name
        """Let a token, by its id, hold no more, in any process.

        Raises:
            NotFound: there is none. Unavailable: the store is busy, and the token still holds.
        """
        known = isinstance(id, str) and _ID.fullmatch(id)
        if not known or not self._store.replays(_PLACE, [(id, _TURN)], self._clock()):
            raise NotFound(f"token {str(id)[:40]!r} does not exist (any more); `threefold tokens list` has their ids")
        self._store.purge(_PLACE, Target(conversation=id))

    def _all(self) -> Iterator[Token]:
        after = None
        while page := self._page(after):
            keys = [(entry.conversation, entry.turn) for entry in page]
            for (id_, _), replay in self._store.replays(_PLACE, keys, self._clock()).items():
                yield _from_replay(id_, replay)
            after = (page[-1].started, page[-1].conversation, page[-1].turn)

    def _page(self, after: tuple[datetime, str, str] | None) -> tuple[Any, ...]:
        query = CatalogQuery(self._clock(), newest_first=True, limit=_PAGE, after=after, bare=True)
        return self._store.catalog(_PLACE, query)


def _hash(secret: str) -> str:
    # Not slow, as for passwords: of 32 random bytes none can be guessed.
    return hashlib.sha256(secret.encode()).hexdigest()


def _id_of(hashed: str) -> str:
    return f"tok_{hashed[:16]}"


def _to_record(token: Token, hashed: str) -> TurnRecord:
    log = TurnLog(_TURN, token.created, token.created, "completed", ())
    value = token.as_json()
    body = {"sha256": hashed, **{key: each for key, each in value.items() if key != "id"}}
    digest = digest_of([log_to_json(log), body])
    return TurnRecord(token.id, _TURN, "minimal", log, (), (), body, digest, "", expires=token.expires)


def _from_replay(id_: str, replay: Mapping[str, Any]) -> Token:
    try:
        return Token(
            id_,
            Scope(replay["user"], replay["tenant"], replay["app"], replay["agent"]),
            None if replay["grants"] is None else frozenset(replay["grants"]),
            replay["name"],
            parse_moment(replay["created"], "created"),
            None if replay["expires"] is None else parse_moment(replay["expires"], "expires"),
            replay.get("rate"),
        )
    except (KeyError, TypeError, InvalidInput) as error:
        raise IntegrityError(f"the token {id_!r} is damaged, revoke it: {error!r}") from None
