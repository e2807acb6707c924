"""As whom one is here: it is shown, and what was not granted is not offered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from http_server import Server, served
from playwright.sync_api import Browser, Page, expect

import threefold
from pages.browsing import PHONE, audit, window
from pages.conftest import Open

HOSTILE = '<img src=x onerror="window.taken = 1">\u202e& ' + "Wolfeschlegelsteinhausen" * 8
AsWhom = Callable[..., Page]
READS = ["*:read"]


@pytest.fixture
def as_whom(browser: Browser, db: threefold.Threefold) -> Iterator[AsWhom]:
    """Opens a window with a token of some grants."""
    with ExitStack() as stack:
        running = stack.enter_context(served(db, local=None))

        def open_(path: str, grants: Any, user: str = "ann", agent: str | None = None, **settings: Any) -> Page:
            secret = running.token(user, grants=grants, agent=agent)
            page = stack.enter_context(window(browser, running.url, **settings))
            page.goto("/#/settings")
            page.get_by_label("Token").fill(secret)
            page.get_by_role("button", name="Use it").click()
            expect(page.get_by_text("You are")).to_be_visible()
            page.goto(f"/#/{path}")
            return page

        yield open_


def test_the_pages_say_as_whom_one_is_here(new_window: Open) -> None:
    page = new_window("/#/settings")
    expect(page.get_by_text("You are ann. You may do everything.")).to_be_visible()
    expect(page.get_by_role("banner").get_by_role("link", name="ann")).to_be_visible()


@pytest.mark.parametrize("viewport", [None, PHONE], ids=("wide", "phone"))
def test_a_hostile_name_stays_text_and_moves_nothing(as_whom: AsWhom, viewport: Any) -> None:
    settings = {} if viewport is None else {"viewport": viewport}
    page = as_whom("settings", ["*:read", "mem:propose"], user=HOSTILE, agent=HOSTILE[:60], **settings)
    told = page.locator("main").get_by_text("You are")
    expect(told).to_contain_text("You were granted *:read, mem:propose.")
    expect(told.locator("bdi").first).to_have_text(HOSTILE)
    if viewport is None:
        expect(page.locator(".who bdi").first).to_have_text(HOSTILE)
    assert page.evaluate("window.taken") is None
    assert page.locator("main img, .who img").count() == 0
    wide = "Math.max(document.documentElement.scrollWidth, document.querySelector('header').scrollWidth)"
    assert page.evaluate(wide) <= page.evaluate("innerWidth")
    assert audit(page) == []


def test_who_may_only_read_is_offered_nothing_else(as_whom: AsWhom) -> None:
    page = as_whom("chat/lisbon", READS)
    main = page.locator("main")
    expect(page.get_by_text("Ponto Final grills")).to_be_visible()
    expect(main.get_by_text("This token may not send anything here. It lacks conv:write")).to_be_visible()
    for name in ("Good answer", "Pin to board", "Remember something of it", "Remove the conversation"):
        expect(main.get_by_role("button", name=name)).to_have_count(0)
    expect(page.get_by_role("navigation", name="Pages").get_by_role("link", name="Import")).to_have_count(0)
    for path, told, hidden in (
        ("memories", "never flies within Europe", ("Remember something", "Change", "Pin")),
        ("memories?view=proposals", "likes window seats", ("Confirm", "Reject")),
        ("memories?view=reconcile", "This token may not tidy up", ()),
        ("boards", "The trip", ("New board",)),
        ("boards/trip", "for Friday", ("Write a note", "Into the bin", "Accept", "Bin", "Board…")),
        ("documents", "This token may not add documents", ("Choose files",)),
        ("import", "This token may not open this page. It lacks conv:write", ()),
        ("settings", "This token may not forget everything", ("Forget…", "Forget everything…")),
    ):
        page.goto(f"/#/{path}")
        expect(main.get_by_text(told).first).to_be_visible()
        for name in hidden:
            expect(main.get_by_role("button", name=name, exact=True)).to_have_count(0)
        assert audit(page) == [], path
    expect(page.get_by_role("radio", name="Propose; I decide")).to_be_disabled()
    expect(page.get_by_role("button", name="Export")).to_be_enabled()


def test_a_board_lies_still_for_who_may_only_read(as_whom: AsWhom, db: threefold.Threefold) -> None:
    before = db.user("ann").cnv.board("trip").get().revision
    page = as_whom("boards/trip", READS)
    card = page.get_by_role("group").filter(has_text="for Friday")
    expect(card).to_be_visible()
    card.focus()
    for key in ("ArrowRight", "n", "Delete"):
        page.keyboard.press(key)
    card.locator(".card-head").hover(position={"x": 20, "y": 10})
    page.mouse.down()
    page.mouse.move(600, 400, steps=3)
    page.mouse.up()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert db.user("ann").cnv.board("trip").get().revision == before


def test_who_may_read_one_realm_sees_that_one(as_whom: AsWhom) -> None:
    page = as_whom("search?q=flies", ["mem:read", "mem:propose"])
    expect(page.locator("mark").first).to_have_text("flies")
    links = page.get_by_role("navigation", name="Pages").get_by_role("link")
    expect(links).to_have_text(["Search", "Memories1", "Settings"])
    page.goto("/#/chat/lisbon")
    expect(page.get_by_text("It lacks conv:read")).to_be_visible()
    # What may not be held may be proposed.
    page.goto("/#/memories")
    page.get_by_role("button", name="Propose something").click()
    page.get_by_label("What is so, in a sentence").fill("likes the harbour")
    page.get_by_role("button", name="Propose", exact=True).click()
    page.goto("/#/memories?view=proposals")
    expect(page.get_by_role("link", name="likes the harbour")).to_be_visible()


def test_an_agent_is_told_what_is_the_persons(as_whom: AsWhom) -> None:
    page = as_whom("settings", None, agent="planner")
    expect(page.get_by_text("You are ann, as the agent planner, which suggests.")).to_be_visible()
    expect(page.get_by_text("Only the person chooses this")).to_be_visible()
    expect(page.get_by_text("Only the person forgets everything")).to_be_visible()
    expect(page.get_by_label("Documents", exact=True)).to_be_visible()
    expect(page.get_by_label("Memories", exact=True)).to_have_count(0)


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_everything_is_forgotten_by_ones_own_name(new_window: Open, server: Server) -> None:
    bob = server.db.user("bob")
    bob.mem.remember("stays")
    page = new_window("/#/settings")
    page.get_by_role("button", name="Forget everything…").click()
    dialog = page.get_by_role("dialog", name="Forget everything?")
    assert audit(page) == []
    do = dialog.get_by_role("button", name="Forget everything for good")
    for typed in ("", "forget", "bob"):
        dialog.get_by_label("Type ann to go on").fill(typed)
        expect(do).to_be_disabled()
    dialog.get_by_label("Type ann to go on").fill("ann")
    do.click()
    expect(page.get_by_text("Everything is forgotten: nothing of it")).to_be_visible()
    expect(page.get_by_text("Nothing recorded yet")).to_be_visible()
    ann = server.db.user("ann")
    left = [ann.conv.conversations(), ann.mem.list(statuses=["active", "proposed"]), ann.doc.list(), ann.cnv.boards()]
    assert [list(each) for each in left] == [[], [], [], []]
    assert [each.memory for each in bob.mem.list()] == ["stays"]
