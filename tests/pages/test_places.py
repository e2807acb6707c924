"""An address leads to what it names, whatever was shown before."""

from __future__ import annotations

import re

import pytest
from http_server import Server
from playwright.sync_api import Page, expect

from pages.conftest import Open


def visit(page: Page, path: str) -> None:
    """To another address without loading the page anew."""
    page.evaluate("path => { location.hash = path; }", f"#/{path}")


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_passage_far_within_a_document_is_shown_where_it_stands(new_window: Open, server: Server) -> None:
    doc = server.db.user("ann").doc
    text = "\n\n".join(f"Passage {n} tells of ferries." for n in range(260))
    made = doc.ingest(text, source="long.md", strategy="paragraph", chunk_tokens=16, overlap=0)
    chunks = doc.chunks(made.id)
    assert len(chunks) == 260
    page = new_window(f"/#/documents/{made.id}?chunk={chunks[250].ref.partition('#')[2]}")
    wanted = page.locator(".chunk.wanted")
    expect(wanted).to_contain_text("Passage 250 tells")
    expect(wanted).to_be_in_viewport()
    page.get_by_role("button", name="Show earlier ones").click()
    expect(page.get_by_text("Passage 150 tells")).to_have_count(1)
    expect(page.locator(".chunk")).to_have_count(113)
    # Another one of the same document, while one searches in it; then one that is not there any more.
    page.get_by_label("Search in this document").fill("Passage 7")
    expect(page.locator("mark").first).to_be_visible()
    visit(page, f"documents/{made.id}?chunk={chunks[120].ref.partition('#')[2]}")
    expect(wanted).to_contain_text("Passage 120 tells")
    expect(wanted).to_be_in_viewport()
    visit(page, f"documents/{made.id}?chunk=gone")
    expect(page.get_by_text("Passage 0 tells")).to_be_visible()


def test_from_one_object_straight_to_another(new_window: Open, server: Server) -> None:
    with server.db.user("ann").turn("files", turn="f1") as turn:
        turn.attach(("map.txt", b"Alfama, Cacilhas"))
        turn.attach(("blob.bin", bytes(range(256))))
        turn.prompt("two files")
    page = new_window("/#/chat/files")
    page.get_by_role("link", name="map.txt").click()
    expect(page.get_by_text("Alfama, Cacilhas")).to_be_visible()
    visit(page, page.url.partition("#/")[2].replace("map.txt", "blob.bin"))
    expect(page.get_by_role("heading", name="blob.bin")).to_be_visible()
    expect(page.get_by_text("Alfama, Cacilhas")).to_have_count(0)


def test_enter_takes_what_was_found_for_the_words_that_stand_there(new_window: Open) -> None:
    page = new_window("/#/memories")
    page.get_by_role("button", name="Find or go to").click()
    field = page.get_by_role("combobox", name="Find or go to")
    field.fill("fish Lisbon")
    expect(page.get_by_role("option").first).not_to_contain_text("Search everything")
    # Enter confirms a word that is being put together.
    field.dispatch_event("keydown", {"key": "Enter", "isComposing": True, "bubbles": True, "cancelable": True})
    expect(field).to_be_visible()
    page.route("**/v1/search", lambda route: None)
    field.fill("boards")
    field.press("Enter")
    expect(page).to_have_url(re.compile("#/search[?]q=boards$"))
    expect(page.get_by_role("heading", name="Search")).to_be_visible()


def test_a_label_leads_to_its_source_in_the_web(new_window: Open, server: Server) -> None:
    with server.db.user("ann").turn("web", turn="w1") as turn:
        turn.prompt("When does it leave?")
        turn.answer("At 19:40 [t1], from Cacilhas [t2].")
        turn.source("https://example.org/ferries", "t1")
        turn.source("conv:ar:conv_lisbon.turn_l1.turn.log", "t2")
    page = new_window("/#/chat/web")
    label = page.get_by_role("link", name="source t1")
    expect(label).to_have_attribute("href", "https://example.org/ferries")
    expect(label).to_have_attribute("rel", "noopener noreferrer")
    expect(page.get_by_role("link", name="source t2")).to_have_attribute("href", re.compile("^#/chat/lisbon"))
