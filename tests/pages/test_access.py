"""Everyone can use the pages: accessibility on each, in both themes, at each width, in every script."""

from __future__ import annotations

from typing import Any

import pytest
from http_server import Server
from playwright.sync_api import Page, expect

from pages.browsing import PHONE, WIDE, audit
from pages.conftest import Open

# Every page, and what is on it once it is there.
PAGES = {
    "chat": "What is on your mind?",
    "chat/lisbon": "Ponto Final grills",
    "search": "Search what was said",
    "search?q=ferry": "Why this hit",
    "memories": "never flies within Europe",
    "memories?view=proposals": "likes window seats",
    "memories?view=hotset": "salience 8",
    "memories?view=reconcile": "Nothing to tidy up",
    "boards": "The trip",
    "boards/trip": "for Friday",
    "boards/trip?as=list": "for Friday",
    "documents": "ferries.md",
    "context?goal=ferry&budget=500": "of 500 tokens",
    "import": "From where",
    "settings": "What agents may remember",
    "object/conv%3Afi%3Aconv_lisbon.turn_l1.files%2Fplan.md": "Save the file",
}


def each_page(page: Page, server: Server) -> Any:
    """Every page, one after the other; those of one memory and one document too."""
    ann = server.db.user("ann")
    more = {f"memories/{ann.mem.list()[0].id}": "Evidence", f"documents/{ann.doc.list()[0].id}": "Book the ferry"}
    for path, told in {**PAGES, **more}.items():
        page.evaluate("path => { location.hash = path; }", f"#/{path}")
        expect(page.get_by_text(told).first).to_be_attached()
        yield path


@pytest.mark.parametrize(("theme", "viewport"), [("light", WIDE), ("dark", PHONE)], ids=("light", "dark phone"))
def test_a_checker_finds_nothing(new_window: Open, server: Server, theme: Any, viewport: Any) -> None:
    page = new_window("/", color_scheme=theme, viewport=viewport)
    found = {path: wrong for path in each_page(page, server) if (wrong := audit(page))}
    assert not found, "\n".join(f"{path}: {line}" for path, lines in found.items() for line in lines)


@pytest.mark.parametrize("viewport", [PHONE, WIDE], ids=("phone", "wide"))
def test_no_page_is_wider_than_its_window(new_window: Open, server: Server, viewport: Any) -> None:
    page = new_window("/", viewport=viewport)
    for path in each_page(page, server):
        wide = page.evaluate(
            "Math.max(document.documentElement.scrollWidth, document.querySelector('main').scrollWidth)"
        )
        assert wide <= viewport["width"], path


def test_dialogs_hold_the_focus_and_give_it_back(new_window: Open) -> None:
    page = new_window("/#/memories")
    expect(page.get_by_role("link", name="never flies within Europe")).to_be_visible()
    button = page.get_by_role("button", name="Remember something")
    button.press("Enter")
    dialog = page.get_by_role("dialog", name="Remember something")
    expect(dialog.get_by_label("What is so, in a sentence")).to_be_focused()
    assert audit(page) == []
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(button).to_be_focused()
    page.locator("body").press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert audit(page) == []


def test_the_palette_finds_by_keyboard(new_window: Open) -> None:
    page = new_window("/#/settings")
    expect(page.get_by_text("What agents may remember")).to_be_visible()
    page.locator("body").press("/")
    expect(page.get_by_role("combobox", name="Find or go to")).to_be_focused()
    page.keyboard.type("Porto Santo")
    expect(page.get_by_role("option", name="Ferries").first).to_be_visible()
    assert audit(page) == []
    page.get_by_role("option", name="passage").first.click()
    expect(page.get_by_text("Book the ferry to Porto Santo")).to_be_visible()


def test_every_script_has_its_direction(new_window: Open) -> None:
    page = new_window("/#/chat/%E5%AD%A6%E6%A0%A1")
    expect(page.get_by_text("今天玩成语接龙游戏").last).to_be_visible()
    answer = page.locator(".prose p")
    assert answer.get_attribute("dir") == "auto"
    assert answer.evaluate("each => getComputedStyle(each).direction") == "rtl"
    page.goto("/#/search?q=%E6%8E%A5%E9%BE%99")
    expect(page.locator("mark").first).to_have_text("接龙")


def test_the_theme_is_chosen_and_kept(new_window: Open) -> None:
    page = new_window("/#/settings", color_scheme="light")
    page.get_by_label("Dark").check()
    page.reload()
    expect(page.get_by_label("Dark")).to_be_checked()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
