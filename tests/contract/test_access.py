"""Tokens, and requests that are done once, on each back end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

import threefold
import threefold.ports
from threefold.errors import Conflict, InvalidInput, NotFound
from threefold.model.scope import Scope
from threefold.testing.fakes import Clock
from threefold.testing.strategies import HOSTILE_IDS

Open = Callable[..., threefold.Threefold]
LEASE = timedelta(seconds=30)
ANN = Scope("ann")


@pytest.mark.capability("access.tokens")
def test_a_token_is_found_by_its_secret_alone(db: threefold.Threefold) -> None:
    made = db.tokens.create("ann", "acme", ["mem:read"], app="crm", agent="bot", name="Кирилл's laptop")
    assert made.secret.startswith("tf_")
    assert len(made.secret) == 46
    found = db.tokens.find(made.secret)
    assert found == made.token
    assert found is not None
    assert found.scope == Scope("ann", "acme", "crm", "bot")
    assert (found.grants, found.name, found.expires) == (frozenset({"mem:read"}), "Кирилл's laptop", None)
    for wrong in (
        "",
        "tf_",
        made.secret[:-1],
        made.secret + "x",
        made.secret.swapcase(),
        made.token.id,
        "tf_" + "x" * 43,
    ):
        assert db.tokens.find(wrong) is None


@pytest.mark.capability("access.tokens")
def test_the_list_has_no_secrets_and_the_last_made_first(db: threefold.Threefold, clock: Clock) -> None:
    made = []
    for user, tenant in [("ann", "default"), ("bob", "default"), ("ann", "acme")]:
        made.append(db.tokens.create(user, tenant, None))
        clock.advance(timedelta(seconds=1))
    assert db.tokens.list() == tuple(each.token for each in reversed(made))
    assert [each.id for each in db.tokens.list("ann")] == [made[2].token.id, made[0].token.id]
    assert [each.id for each in db.tokens.list(tenant="acme")] == [made[2].token.id]
    assert not any(each.secret in repr(db.tokens.list()) for each in made)
    assert made[0].token.as_json()["grants"] is None


@pytest.mark.capability("access.tokens")
def test_one_that_is_revoked_holds_no_more_wherever_it_is_asked(open_db: Open) -> None:
    here, there = open_db(), open_db()
    made = here.tokens.create("ann")
    kept = here.tokens.create("ann")
    other = there if there.tokens.find(made.secret) else here  # a store in memory is one process's own
    other.tokens.revoke(made.token.id)
    assert here.tokens.find(made.secret) is None
    assert here.tokens.find(kept.secret) == kept.token
    with pytest.raises(NotFound, match="does not exist"):
        here.tokens.revoke(made.token.id)


@pytest.mark.capability("access.tokens")
def test_one_holds_until_it_expires(db: threefold.Threefold, clock: Clock) -> None:
    made = db.tokens.create("ann", expires=timedelta(hours=1))
    clock.advance(timedelta(minutes=59))
    assert db.tokens.find(made.secret) == made.token
    clock.advance(timedelta(minutes=1))
    assert db.tokens.find(made.secret) is None
    assert db.tokens.list() == ()
    db.expire()
    assert db.tokens.find(made.secret) is None


@pytest.mark.capability("access.tokens")
def test_tokens_are_nobodys_data(db: threefold.Threefold) -> None:
    made = db.tokens.create("operator", "operator")
    handle = db.user("operator", "operator")
    assert handle.conv.conversations() == ()
    with pytest.raises(NotFound):
        handle.resolve(f"conv:conversation:{made.token.id}")
    handle.forget()
    assert db.tokens.find(made.secret) is None  # the one user whose purge reaches them; it lets nobody in
    made = db.tokens.create("ann", "acme")
    kept = db.tokens.create("ann", "other")
    db.user("ann", "acme").forget()
    assert db.tokens.find(made.secret) is not None
    db.forget_tenant("acme")
    assert db.tokens.find(made.secret) is None
    assert db.tokens.find(kept.secret) is not None


@pytest.mark.capability("access.tokens")
def test_any_name_is_a_users(db: threefold.Threefold) -> None:
    for name in filter(str.strip, HOSTILE_IDS):
        made = db.tokens.create(name, name, ["*:read"], app=name, agent=name)
        found = db.tokens.find(made.secret)
        assert found is not None
        assert found.scope == Scope(name, name, name, name)


@pytest.mark.capability("access.tokens")
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"user": ""}, "user is empty"),
        ({"grants": []}, "grants must be a list"),
        ({"grants": "mem:read"}, "grants must be a list"),
        ({"grants": ["mem"]}, "'mem' is none; write NAMESPACE:read"),
        ({"grants": ["mem:read\n"]}, "is none"),
        ({"grants": ["mem:admin"]}, "is none"),
        ({"expires": timedelta(0)}, "expires must be a positive timedelta"),
        ({"expires": timedelta.max}, "expires is too far away"),
        ({"rate": 0}, "rate 0 must be a whole number from 1"),
        ({"rate": True}, "rate True must be a whole number"),
        ({"name": "x" * 201}, "name must be text of at most 200"),
    ],
)
def test_what_is_off_is_said(db: threefold.Threefold, given: dict, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        db.tokens.create(**{"user": "ann", **given})
    for id_ in ("", "tok_", "tok_0000000000000000", "x\x00", 7):
        with pytest.raises(NotFound):
            db.tokens.revoke(id_)


def once(db: threefold.Threefold, key: str, request: str, work, who: str = "token", scope: Scope = ANN):
    return db.requests.once(scope, who, key, request, work, LEASE)


@pytest.mark.capability("access.requests")
def test_a_request_with_a_key_is_done_once(db: threefold.Threefold, clock: Clock) -> None:
    ran: list[bytes] = []

    def work(text: str = "one ü") -> bytes:
        ran.append(text.encode())
        return text.encode()

    assert once(db, "k", "a", work) == (b"one \xc3\xbc", False)
    clock.advance(timedelta(hours=23))
    assert once(db, "k", "a", work) == (b"one \xc3\xbc", True)
    with pytest.raises(Conflict, match="used for another request"):
        once(db, "k", "b", work)
    assert len(ran) == 1
    assert not once(db, "k2", "a", work).again
    assert not once(db, "k", "a", work, who="another token").again
    assert not once(db, "k", "a", work, scope=Scope("bob")).again
    assert not once(db, "k", "a", work, scope=Scope("ann", "acme")).again
    clock.advance(timedelta(hours=2))
    assert not once(db, "k", "b", work).again
    assert once(db, "k", "b", work).again
    assert once(db, "empty", "a", lambda: b"") == (b"", False)
    assert once(db, "empty", "a", work) == (b"", True)


@pytest.mark.capability("access.requests")
def test_one_that_failed_is_done_again(db: threefold.Threefold) -> None:
    def broken() -> bytes:
        raise KeyError("x")

    with pytest.raises(KeyError):
        once(db, "k", "a", broken)
    assert once(db, "k", "b", lambda: b"mended") == (b"mended", False)


@pytest.mark.capability("access.requests")
def test_one_that_is_being_done_is_not_done_twice(db: threefold.Threefold, clock: Clock) -> None:
    def outer() -> bytes:
        with pytest.raises(Conflict, match="is being done"):
            once(db, "k", "a", lambda: b"inner")
        with pytest.raises(Conflict, match="another request"):
            once(db, "k", "b", lambda: b"inner")
        return b"outer"

    assert once(db, "k", "a", outer) == (b"outer", False)

    def slow() -> bytes:
        clock.advance(timedelta(seconds=31))
        assert once(db, "late", "a", lambda: b"second") == (b"second", False)
        return b"first"

    assert once(db, "late", "a", slow) == (b"first", False)
    assert once(db, "late", "a", slow) == (b"second", True)


@pytest.mark.capability("access.requests")
def test_nothing_of_an_answer_can_be_read_in_the_store_and_a_purge_takes_it(db: threefold.Threefold) -> None:
    once(db, "0f8fad5b-d9cb-469f", "a", lambda: b"the secret word is Zinnoberrot")
    place = Scope("ann", realm="access.requests")
    (entry,) = db._backend.catalog(place, threefold.ports.CatalogQuery(db.config.clock()))
    kept = repr(db._backend.turn(place, entry.conversation, entry.turn, db.config.clock()))
    assert "Zinnoberrot" not in kept
    assert "0f8fad5b" not in kept
    db.user("ann").forget()
    assert once(db, "0f8fad5b-d9cb-469f", "a", lambda: b"anew") == (b"anew", False)
