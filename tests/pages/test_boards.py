"""Boards in the pages: with a mouse, with the keyboard alone, and two people at once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from http_server import Server
from playwright.sync_api import Page, expect
from waiting import wait_until

from pages.browsing import PHONE
from pages.conftest import Open
from threefold.model.board import Card


def card_of(server: Server) -> Card:
    """The one that the person pinned."""
    return next(card for card in server.db.user("ann").cnv.board("trip").cards() if card.state == "placed")


def shown(page: Page, card: Card) -> dict[str, float]:
    """Where a card is seen."""
    box = page.locator(f"[data-card='{card.id}']").bounding_box()
    assert box is not None
    return dict(box)


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_two_people_move_and_see(new_window: Open, server: Server) -> None:
    one, other = new_window("/#/boards/trip"), new_window("/#/boards/trip")
    card = card_of(server)
    expect(other.get_by_text("for Friday")).to_be_visible()
    before = shown(other, card)
    head = one.locator(f"[data-card='{card.id}'] .card-head")
    head.hover(position={"x": 120, "y": 10})
    one.mouse.down()
    one.mouse.move(600, 400, steps=4)
    with one.expect_response("**/v1/cnv/edit"):
        one.mouse.up()
    moved = card_of(server)
    assert moved.rect.x > card.rect.x
    assert moved.rect.y > card.rect.y
    # The other one sees it without asking.
    other.wait_for_function(
        "([id, x]) => document.querySelector(`[data-card='${id}']`).getBoundingClientRect().x !== x",
        arg=[card.id, before["x"]],
    )
    assert shown(other, card)["x"] == shown(one, card)["x"]

    corner = one.locator(f"[data-card='{card.id}'] .card-corner").bounding_box()
    assert corner is not None
    one.mouse.move(corner["x"] + 10, corner["y"] + 10)
    one.mouse.down()
    one.mouse.move(corner["x"] + 70, corner["y"] + 50, steps=3)
    with one.expect_response("**/v1/cnv/edit"):
        one.mouse.up()
    assert (card_of(server).rect.w, card_of(server).rect.h) == (card.rect.w + 60, card.rect.h + 40)


def test_a_conflict_is_told_kindly_and_nothing_is_lost(new_window: Open, server: Server) -> None:
    page = new_window("/#/boards/trip")
    card, board = card_of(server), server.db.user("ann").cnv.board("trip")
    expect(page.get_by_text("for Friday")).to_be_visible()
    # This window does not look while somebody else writes.
    page.route("**/v1/cnv/get", lambda route: route.abort())
    board.move(card, 400, 300)
    board.annotate(card, "for Saturday")
    page.locator(f"[data-card='{card.id}']").focus()
    page.keyboard.press("ArrowRight")
    keep = page.get_by_role("button", name="Keep mine")
    expect(keep).to_be_visible()
    assert (card_of(server).rect.x, card_of(server).rect.y) == (400, 300)
    page.unroute("**/v1/cnv/get")
    with page.expect_response("**/v1/cnv/edit"):
        keep.click()
    # Their note is another respect of the card, and stays.
    assert (card_of(server).rect.x, card_of(server).note) == (card.rect.x + 20, "for Saturday")
    expect(page.get_by_text("for Saturday")).to_be_visible()


def test_a_board_by_the_keyboard_alone(new_window: Open, server: Server) -> None:
    page = new_window("/")
    expect(page.get_by_role("heading", name="Conversations")).to_be_visible()
    page.locator("body").press("g")
    page.keyboard.press("b")
    page.get_by_role("link", name="The trip").press("Enter")
    card = card_of(server)
    place = page.locator(f"[data-card='{card.id}']")
    place.focus()
    for key in ("ArrowRight", "ArrowDown", "Shift+ArrowRight"):
        page.keyboard.press(key)
    # Keys that follow each other are one change; on a slow machine they may be several.
    moved = replace(card.rect, x=card.rect.x + 20, y=card.rect.y + 20, w=card.rect.w + 20)
    assert wait_until(lambda: card_of(server).rect == moved)

    page.keyboard.press("n")
    page.get_by_label("Why it is here").fill("for Sunday")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(place).to_be_focused()
    expect(place.get_by_text("for Sunday")).to_be_visible()
    page.keyboard.press("c")
    expect(page.get_by_label("Say something of it")).to_be_focused()
    page.keyboard.type("booked")
    page.get_by_role("button", name="Say it").press("Enter")
    expect(page.get_by_role("dialog").get_by_text("booked")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Delete")
    expect(place).to_have_count(0)
    page.get_by_role("button", name="Bin 1").press("Enter")
    page.get_by_role("button", name="Restore").press("Enter")
    page.keyboard.press("Escape")
    expect(place).to_be_visible()
    assert [each.text for each in card_of(server).comments] == ["booked"]


def test_what_an_agent_suggests_is_decided_by_the_person(new_window: Open, server: Server) -> None:
    page = new_window("/#/boards/trip")
    expect(page.get_by_text("she likes trams")).to_be_visible()
    page.get_by_role("button", name="Accept").click()
    expect(page.get_by_text("she likes trams")).to_have_count(0)
    assert {card.state for card in server.db.user("ann").cnv.board("trip").cards()} == {"placed"}
    # What nobody publishes any more stays a card that says so.
    expect(page.get_by_text("nobody publishes 'task' here")).to_be_visible()


class Finger:
    """A finger on the screen of a page."""

    def __init__(self, page: Page) -> None:
        self._page, self._wire = page, page.context.new_cdp_session(page)

    def drag(self, x: float, y: float, dx: float, dy: float, steps: int = 8) -> None:
        """Put it down, move it, lift it."""
        self._touch("touchStart", x, y)
        for step in range(1, steps + 1):
            self._touch("touchMove", x + dx * step / steps, y + dy * step / steps)
        self._touch("touchEnd")

    def _touch(self, what: str, *at: float) -> None:
        points = [{"x": at[0], "y": at[1]}] if at else []
        self._wire.send("Input.dispatchTouchEvent", {"type": what, "touchPoints": points})


def test_a_finger_moves_resizes_and_scrolls(new_window: Open, server: Server) -> None:
    card, board = card_of(server), server.db.user("ann").cnv.board("trip")
    board.move(card, 20, 20)
    board.resize(card, 240, 160)
    board.pin("conv:conversation:lisbon", x=900, y=1200)
    page = new_window("/#/boards/trip?as=board", viewport=PHONE, has_touch=True, is_mobile=True)
    expect(page.get_by_text("for Friday")).to_be_visible()
    finger, before = Finger(page), shown(page, card)

    with page.expect_response("**/v1/cnv/edit"):
        finger.drag(before["x"] + 40, before["y"] + 16, 60, 80)
    rect = card_of(server).rect
    assert (rect.x, rect.y) == (80, 100)
    after = shown(page, card)
    assert (after["x"] - before["x"], after["y"] - before["y"]) == (60, 80)

    with page.expect_response("**/v1/cnv/edit"):
        finger.drag(after["x"] + after["width"] - 12, after["y"] + after["height"] - 12, -30, 50)
    rect = card_of(server).rect
    assert (rect.w, rect.h) == (210, 210)

    # Elsewhere on the board a finger scrolls it, in both directions, and moves nothing.
    place = page.locator(".board-scroll")
    box = place.bounding_box()
    assert box is not None
    for way, dx, dy in (("scrollTop", 0, -200), ("scrollLeft", -200, 0)):
        finger.drag(box["x"] + box["width"] - 20, box["y"] + box["height"] - 20, dx, dy)
        page.wait_for_function("([each, way]) => each[way] > 100", arg=[place.element_handle(), way])
    assert card_of(server).rect == rect
    # A tap on a button of the card is that button's.
    place.evaluate("each => each.scrollTo(0, 0)")
    page.locator(f"[data-card='{card.id}']").get_by_role("button", name="Comments: 0").tap()
    expect(page.get_by_role("dialog", name="Comments")).to_be_visible()


def test_a_board_that_is_not_there_says_so_and_is_made(new_window: Open, server: Server) -> None:
    page = new_window("/#/boards/porto")
    expect(page.get_by_text("There is no board of this name")).to_be_visible()
    page.get_by_role("button", name="Make it").click()
    expect(page.get_by_text("Nothing lies here yet")).to_be_visible()
    assert server.db.user("ann").cnv.board("porto").get().title == "porto"
