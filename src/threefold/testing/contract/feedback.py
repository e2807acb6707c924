"""Feedback on turns, and apps that share a user without seeing each other's record."""

from __future__ import annotations

import pytest

from threefold.errors import Forbidden, NotFound
from threefold.model.record import StoredTurn
from threefold.model.scope import Scope
from threefold.testing.contract.desk import ALICE, NOW, Desk, make_turn, refused
from threefold.testing.contract.suite import Contract

NOTES, MAIL = Scope("alice", app="notes"), Scope("alice", app="mail")


class FeedbackContract(Contract):
    """`PutFeedback`."""

    @pytest.mark.capability("feedback")
    def test_a_person_has_one_reaction_and_machines_add(self, desk: Desk) -> None:
        """The person's last one counts and can be taken back; machines' stay."""
        desk.say("trip", "1", "first")
        desk.react("trip", "1", "ok", text="nice")
        desk.react("trip", "1", "neutral", origin="machine", text="scored")
        desk.react("trip", "1", "ok", origin="machine")
        desk.react("trip", "1", "not_ok", text="on second thought")
        found = [(f.origin, f.reaction, f.text) for f in desk.stored("trip", "1").feedback]
        assert found == [
            ("machine", "neutral", "scored"),
            ("machine", "ok", None),
            ("user", "not_ok", "on second thought"),
        ]
        desk.react("trip", "1", None)
        desk.react("trip", "1", None)
        assert [f.origin for f in desk.stored("trip", "1").feedback] == ["machine", "machine"]

    @pytest.mark.capability("feedback")
    def test_feedback_on_what_is_not_there_is_refused(self, desk: Desk) -> None:
        """An unknown turn, conversation or user; nothing is made by trying."""
        desk.say("trip", "1", "first")
        for conversation, turn, scope in (
            ("trip", "2", ALICE),
            ("other", "1", ALICE),
            ("trip", "1", Scope("bob")),
            ("trip", "1", Scope("alice", "another")),
        ):
            with refused(NotFound):
                desk.react(conversation, turn, "ok", scope=scope)
        assert desk.stored("trip", "1").feedback == ()
        assert list(desk.backend.scopes()) == [ALICE]


class AppsContract(Contract):
    """A handle that is narrowed to an app."""

    @pytest.fixture
    def two_apps(self, desk: Desk) -> Desk:
        """A store where two apps of one user, and the user without an app, have recorded."""
        desk.say("from-notes", "1", "shared word", NOTES)
        desk.say("from-mail", "1", "shared word", MAIL)
        desk.say("plain", "1", "shared word", ALICE)
        return desk

    @pytest.mark.capability("apps")
    def test_an_app_sees_its_own_record_and_the_user_sees_all(self, two_apps: Desk) -> None:
        """In search, rows, catalog and the list of conversations."""
        desk = two_apps
        everything = {("from-notes", "1"), ("from-mail", "1"), ("plain", "1")}
        for scope, expected in ((NOTES, {("from-notes", "1")}), (MAIL, {("from-mail", "1")}), (ALICE, everything)):
            assert desk.turns("shared", scope=scope) == expected
            assert {(e.conversation, e.turn) for e in desk.catalog(scope=scope)} == expected
            assert set(desk.conversations(scope)) == {conversation for conversation, _ in expected}
            keys = [(conversation, turn, 0) for conversation, turn in everything]
            assert {key[:2] for key in desk.rows(*keys, scope=scope)} == expected

    @pytest.mark.capability("apps")
    def test_an_app_may_not_touch_another_apps_conversation(self, two_apps: Desk) -> None:
        """Reading a turn, recording, feedback and purging are forbidden, and nothing is changed."""
        desk = two_apps
        for conversation in ("from-mail", "plain"):
            with refused(Forbidden):
                desk.turn(conversation, "1", NOTES)
            with refused(Forbidden):
                desk.say(conversation, "2", "intruder", NOTES)
            with refused(Forbidden):
                desk.react(conversation, "1", "ok", NOTES)
            with refused(Forbidden):
                desk.purge(conversation, scope=NOTES)
            with refused(Forbidden):
                desk.purge(conversation, "unknown", scope=NOTES)
            assert desk.stored(conversation, "1").feedback == ()
        assert desk.turns("intruder") == set()

    @pytest.mark.capability("apps")
    def test_the_user_may_write_everywhere(self, two_apps: Desk) -> None:
        """The handle without an app is the user's own."""
        desk = two_apps
        desk.record(make_turn("from-mail", "2", "mine", at=NOW))
        desk.react("from-mail", "1", "ok")
        assert isinstance(desk.turn("from-mail", "2"), StoredTurn)
        assert desk.purge("from-mail", "1").stores["turns"] == 1
