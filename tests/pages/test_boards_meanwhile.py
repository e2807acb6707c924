"""Boards where something happens meanwhile: to what is being written, to the window, to the board, to the server."""

from __future__ import annotations

from http_server import Server
from playwright.sync_api import Locator, Page, Route, expect
from waiting import wait_until

from pages.browsing import WIDE
from pages.conftest import Open
from pages.test_boards import card_of

NARROW = {"width": 500, "height": 800}


def noting(page: Page, card: str, text: str) -> Locator:
    """The dialog in which a note is being written."""
    page.locator(f"[data-card='{card}']").focus()
    page.keyboard.press("n")
    page.get_by_label("Why it is here").fill(text)
    return page.get_by_role("dialog", name="Note")


def test_what_is_written_of_a_card_outlasts_it(new_window: Open, server: Server) -> None:
    page, board = new_window("/#/boards/trip"), server.db.user("ann").cnv.board("trip")
    card = card_of(server)
    note = noting(page, card.id, "for Monday")
    field = note.get_by_label("Why it is here")
    # The board becomes a list, and a board again.
    for size, list_ in ((NARROW, "true"), (WIDE, "false")):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        expect(page.locator(f".board-head button[aria-pressed={list_}]")).to_be_attached()
        expect(field).to_have_value("for Monday")

    board.bin(card)
    expect(note.get_by_text("This card is in the bin by now")).to_be_visible()
    note.get_by_role("button", name="Save").click()
    expect(note).to_have_count(0)
    # Where it was opened is gone; one is not at the beginning of the page again.
    expect(page.locator("main")).to_be_focused()
    assert next(each for each in board.cards(binned=True) if each.id == card.id).note == "for Monday"

    board.restore(card)
    note = noting(page, card.id, "for Tuesday")
    board.remove(card)
    expect(note.get_by_text("This card was removed for good meanwhile")).to_be_visible()
    expect(note.get_by_role("button", name="Save")).to_be_disabled()
    expect(note.get_by_label("Why it is here")).to_have_value("for Tuesday")
    page.keyboard.press("Escape")
    expect(note).to_have_count(0)


def test_a_stray_click_closes_no_dialog_in_which_something_was_typed(new_window: Open, server: Server) -> None:
    page = new_window("/#/boards/trip", viewport={"width": 1020, "height": 520})
    expect(page.get_by_text("for Friday")).to_be_visible()
    note = noting(page, card_of(server).id, "for Monday")
    page.mouse.click(5, 5)
    expect(note.get_by_label("Why it is here")).to_have_value("for Monday")
    page.keyboard.press("Escape")
    expect(note).to_have_count(0)
    # Nothing was typed.
    page.get_by_role("button", name="Change the note").click()
    expect(note).to_be_visible()
    page.mouse.click(5, 5)
    expect(note).to_have_count(0)

    page.goto("/#/memories")
    page.get_by_role("button", name="Remember something").first.click()
    dialog = page.get_by_role("dialog", name="Remember something")
    box = dialog.bounding_box()
    assert box is not None
    assert dialog.evaluate("each => each.scrollHeight > each.clientHeight")
    # Its scrollbar, which headless browsers do not draw, is the dialog's own.
    inside = {"clientX": box["x"] + box["width"] - 3, "clientY": box["y"] + 30}
    dialog.dispatch_event("mousedown", inside)
    expect(dialog).to_be_visible()
    dialog.dispatch_event("mousedown", {**inside, "clientX": box["x"] - 3})
    expect(dialog).to_have_count(0)


def test_writes_that_follow_each_other_are_no_conflict(new_window: Open, server: Server) -> None:
    page = new_window("/#/boards/trip")
    card = card_of(server)
    held: list[Route] = []
    place = page.locator(f"[data-card='{card.id}']")
    place.focus()
    page.route("**/v1/cnv/edit", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/v1/cnv/edit"):
        page.keyboard.press("ArrowRight")
    where = place.bounding_box()
    assert where is not None
    page.mouse.move(where["x"] + 120, where["y"] + 10)
    page.mouse.down()
    page.mouse.move(where["x"] + 180, where["y"] + 10, steps=3)
    page.mouse.up()
    # Neither this move nor a note is sent before there is an answer to the first.
    note = noting(page, card.id, "for Monday")
    note.get_by_role("button", name="Save").click()
    held[0].continue_()
    expect(note).to_have_count(0)
    page.unroute("**/v1/cnv/edit")
    assert wait_until(lambda: card_of(server).rect.x == card.rect.x + 80)
    assert card_of(server).note == "for Monday"
    expect(page.get_by_text("Somebody else")).to_have_count(0)
    page.wait_for_function(
        "([id, x]) => document.querySelector(`[data-card='${id}']`).getBoundingClientRect().x === x",
        arg=[card.id, where["x"] + 60],
    )
    # What somebody else did is none of these.
    page.route("**/v1/cnv/get", lambda route: route.abort())
    server.db.user("ann").cnv.board("trip").move(card, 400, 300)
    place.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("button", name="Keep mine")).to_be_visible()


def test_a_board_says_that_it_is_out_of_date_and_is_shown_anew(new_window: Open, server: Server) -> None:
    page, boards = new_window("/#/boards/trip"), server.db.user("ann").cnv
    expect(page.get_by_text("for Friday")).to_be_visible()
    page.context.set_offline(True)
    told = page.get_by_text("The server does not answer; trying again")
    expect(told).to_be_visible()
    expect(page.get_by_text("for Friday")).to_be_visible()
    page.context.set_offline(False)
    expect(told).to_have_count(0)

    note = noting(page, card_of(server).id, "for Monday")
    boards.board("trip").delete()
    expect(note.get_by_text("The board was removed meanwhile")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_text("board 'trip' does not exist")).to_be_visible()
    boards.create("trip", title="Another trip")
    expect(page.get_by_role("heading", name="Another trip")).to_be_visible()
    expect(page.get_by_text("Nothing lies here yet")).to_be_visible()
    boards.board("trip").pin("conv:conversation:lisbon", note="by train")
    expect(page.get_by_text("by train")).to_be_visible()


def test_a_text_that_is_mostly_spaces_holds_up_nothing(new_window: Open, server: Server) -> None:
    with server.db.user("ann").turn("table", turn="t1") as turn:
        turn.prompt("a table:\n" + " " * 20_000 + "end")
        turn.answer("There is none.")
    page = new_window("/#/chat/table")
    expect(page.get_by_text("There is none.")).to_be_visible()
