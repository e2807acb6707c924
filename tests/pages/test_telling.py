"""What is done is told, and what is long or far away finds its place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from http_server import Server
from playwright.sync_api import Page, Route, expect

from pages.browsing import PHONE
from pages.conftest import Open


def leave(page: Page) -> None:
    """To another page, without loading anything anew."""
    page.evaluate("location.hash = '#/memories'")
    expect(page.get_by_role("heading", name="Memories")).to_be_visible()


def test_a_file_whose_page_was_left_is_told_of(new_window: Open, tmp_path: Path) -> None:
    (tmp_path / "trains.md").write_text("# Trains\n\nAt 21:30.\n", "utf-8")
    (tmp_path / "history.jsonl").write_bytes(b"{}")
    page = new_window("/#/documents")
    held: list[Route] = []
    page.route(re.compile("/v1/(doc/files|import)$"), lambda route: held.extend([route]))
    with page.expect_request("**/v1/doc/files"):
        page.get_by_label("Choose files").and_(page.locator("input")).set_input_files(tmp_path / "trains.md")
    leave(page)
    held.pop().continue_()
    expect(page.get_by_text("trains.md: created, 1 chunk")).to_be_visible()
    page.get_by_role("button", name="Open it").click()
    expect(page.get_by_text("At 21:30.")).to_be_visible()

    page.goto("/#/import")
    with page.expect_request("**/v1/import"):
        page.get_by_label("Choose exports").and_(page.locator("input")).set_input_files(tmp_path / "history.jsonl")
    leave(page)
    held.pop().abort()
    expect(page.get_by_role("alert").get_by_text("history.jsonl: The server does not answer")).to_be_visible()


def test_a_reference_is_copied_or_shown(new_window: Open) -> None:
    page = new_window("/#/documents")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    copy = page.get_by_role("button", name="Copy reference")
    copy.click()
    expect(page.get_by_text("Copied")).to_be_visible()
    ref = page.evaluate("navigator.clipboard.readText()")
    assert ref.startswith("doc:doc_")
    # As a page of another machine is without TLS.
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    copy.click()
    expect(page.get_by_role("alert").get_by_text(f"The reference is: {ref}")).to_be_visible()


@pytest.mark.parametrize(("zone", "hour"), [("America/Los_Angeles", "05T01"), ("Asia/Tokyo", "03T16")])
def test_days_are_those_of_the_person(new_window: Open, server: Server, zone: str, hour: str) -> None:
    with server.db.user("ann").turn("late", turn="1", started=f"2026-05-{hour}:12:00Z") as turn:
        turn.prompt("Where does the funicular end?", at=f"2026-05-{hour}:12:00Z")
    page = new_window("/#/search?q=funicular&in=conv&since=2026-05-04&until=2026-05-05", timezone_id=zone)
    expect(page.locator("mark").filter(has_text="funicular")).to_be_visible()


def test_long_names_of_sources_make_nothing_wider(new_window: Open, server: Server) -> None:
    with server.db.user("ann").turn("wide", turn="1") as turn:
        turn.prompt("What is there?")
        turn.note("a note", tag="w" * 100)
        turn.source("https://example.org/ferries", "Ferries_" * 12)
        turn.source("some-app:" + "k" * 90 + ":1", "All the ferries of the river, " * 4)
        turn.answer("Ferries.")
    page = new_window("/#/chat/wide", viewport=PHONE)
    page.get_by_text("Notes of the agent").click()
    for name in ("w" * 100, "Ferries_" * 12, "k" * 90):
        expect(page.get_by_text(name, exact=True)).to_be_visible()
    assert page.evaluate("(at => at.scrollWidth - at.clientWidth)(document.querySelector('.turns'))") == 0
    beside = page.get_by_role("link", name="https://example.org/ferries").bounding_box()
    assert beside is not None
    assert beside["width"] > 60
