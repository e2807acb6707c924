"""What a person does in the pages, from the first question to what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from http_server import Server
from playwright.sync_api import Page, expect

from pages.browsing import PHONE, WIDE
from pages.conftest import Open


def go(page: Page, name: str) -> None:
    """To a page by its link; on a phone, where it is not at hand, by the palette."""
    links = page.get_by_role("navigation", name="Pages").get_by_role("link")
    expect(links.locator("visible=true").first).to_be_visible()
    link = links.and_(page.get_by_role("link", name=name))
    if link.is_visible():
        link.click()
        return
    page.get_by_role("button", name="More").click()
    page.get_by_label("Find or go to", exact=True).and_(page.get_by_role("combobox")).fill(name)
    page.get_by_role("option", name=f"{name} page").click()


@pytest.mark.parametrize(
    ("backend", "viewport"),
    [("sqlite", WIDE), ("postgres", WIDE), ("sqlite", PHONE)],
    ids=("sqlite", "postgres", "phone"),
)
def test_a_person_finds_an_old_turn_keeps_it_and_teaches(
    new_window: Open, server: Server, tmp_path: Path, viewport: Any
) -> None:
    page = new_window("/", viewport=viewport)
    go(page, "Search")
    page.get_by_label("Search everything").fill("grills in the morning")
    page.keyboard.press("Enter")
    expect(page.locator("mark").first).to_have_text("grills")
    page.get_by_text("Why this hit").first.click()
    expect(page.get_by_role("cell", name="by words").first).to_be_visible()
    page.locator(".hit-head a").first.click()

    turn = page.get_by_role("article", name="Turn 1")
    expect(turn.get_by_text("Ponto Final grills")).to_be_visible()
    expect(turn.get_by_role("link", name="map.txt")).to_be_visible()
    turn.get_by_role("button", name="Pin to board").click()
    page.get_by_label("Note").fill("the fish place")
    page.get_by_role("button", name="Pin", exact=True).click()
    page.get_by_role("button", name="Open the board").click()
    expect(page.get_by_text("the fish place")).to_be_visible()
    assert {card.note for card in server.db.user("ann").cnv.board("trip").cards()} >= {"the fish place", "for Friday"}

    go(page, "Memories")
    page.get_by_role("button", name="Remember something").click()
    page.get_by_label("What is so, in a sentence").fill("eats fish, no shellfish")
    page.get_by_role("button", name="Remember", exact=True).click()
    expect(page.get_by_role("link", name="eats fish, no shellfish")).to_be_visible()

    go(page, "Documents")
    file = tmp_path / "night trains.md"
    file.write_text("# Night trains\n\nThey leave Hendaye at 21:30.\n", "utf-8")
    page.get_by_label("Choose files").and_(page.locator("input")).set_input_files(file)
    page.get_by_role("link", name="created").click()
    expect(page.get_by_text("They leave Hendaye at 21:30.")).to_be_visible()
    page.get_by_label("Search in this document").fill("Hendaye")
    expect(page.locator("mark")).to_have_text("Hendaye")


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_conversation_is_shown_as_it_was(new_window: Open, server: Server) -> None:
    page = new_window("/#/chat/lisbon")
    turn = page.get_by_role("article", name="Turn 1")
    for text in ("We are two people and a dog", "Cacilhas", "attached · 16 bytes", "made · 30 bytes", "1 step"):
        expect(turn.get_by_text(text).first).to_be_visible()
    source = turn.get_by_role("link", name="https://example.org/ferries")
    expect(source).to_have_attribute("rel", "noopener noreferrer")
    turn.get_by_text("1 step").click()
    expect(turn.get_by_text("find_tables")).to_be_visible()
    with page.expect_download() as saved:
        turn.get_by_role("button", name="Save plan.md").click()
    assert Path(saved.value.path()).read_bytes() == b"# Friday\n\nThe ferry at 19:40.\n"

    turn.get_by_role("button", name="Not a good answer").click()
    page.get_by_label("In a few words").fill("too far")
    page.get_by_role("button", name="Say so").click()
    expect(turn.get_by_role("button", name="Not a good answer")).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect(page.get_by_text("“too far”")).to_be_visible()
    assert server.db.user("ann").conv.turn("conv:ar:conv_lisbon.turn_l1.turn.log").feedback[-1].text == "too far"


def test_long_conversations_come_in_pieces(new_window: Open, server: Server) -> None:
    ann = server.db.user("ann")
    for number in range(1, 31):
        at = f"2026-06-01T10:{number:02}:00Z"
        with ann.turn("long", turn=f"t{number}", started=at) as turn:
            turn.prompt(f"question {number}", at=at)
            turn.answer(f"answer {number}", at=at)
    page = new_window("/#/chat/long")
    expect(page.get_by_text("answer 30", exact=True)).to_be_visible()
    expect(page.get_by_text("answer 12", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Earlier turns").click()
    expect(page.get_by_text("answer 12", exact=True)).to_have_count(1)
    # A turn in the middle is opened where it is, and read on from in both directions.
    page.goto("/#/chat/long?turn=conv:ar:conv_long.turn_t9.turn.log")
    page.reload()
    expect(page.get_by_text("question 9", exact=True)).to_be_in_viewport()
    expect(page.get_by_text("answer 30", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Later turns").click()
    expect(page.get_by_text("answer 25", exact=True)).to_have_count(1)


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_histories_are_imported_and_what_was_skipped_is_told(new_window: Open, tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text(
        '{"role": "user", "content": "where is the key?", "at": "2026-01-01T10:00:00Z"}\n{broken\n', "utf-8"
    )
    page = new_window("/#/import")
    page.get_by_label("Choose exports").and_(page.locator("input")).set_input_files(history)
    expect(page.get_by_text("1 turn imported, 0 known already")).to_be_visible()
    page.get_by_text("1 thing skipped, and why").click()
    expect(page.get_by_role("cell", name="history.jsonl")).to_be_visible()


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_what_an_agent_would_see_is_shown_with_what_was_left_out(new_window: Open) -> None:
    page = new_window("/#/context?budget=60")
    page.get_by_label("Goal or question").fill("ferry to Porto Santo, fish in Cacilhas")
    page.get_by_label("Budget in tokens").fill("60")
    page.get_by_role("button", name="Compute").click()
    expect(page.get_by_text("of 60 tokens")).to_be_visible()
    page.get_by_text("Left out").click()
    expect(page.get_by_role("cell", name="no room").first).to_be_visible()
    page.get_by_label("Budget in tokens").fill("2000")
    page.get_by_role("button", name="Compute").click()
    expect(page.get_by_role("heading", name="From documents")).to_be_visible()
    page.get_by_role("link", name="Open the source").first.click()
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Context")


def test_what_is_forgotten_is_said_and_asked_for_twice(new_window: Open, server: Server) -> None:
    page = new_window("/#/settings")
    page.get_by_label("Memories", exact=True).check()
    page.get_by_label("Conversations", exact=True).check()
    page.get_by_role("button", name="Forget…").click()
    dialog = page.get_by_role("dialog")
    for text in ("2 conversations", "2 memories"):
        expect(dialog.get_by_text(text)).to_be_visible()
    expect(dialog.get_by_role("button", name="Forget for good")).to_be_disabled()
    dialog.get_by_label("Type forget").fill("forget")
    dialog.get_by_role("button", name="Forget for good").click()
    expect(page.get_by_text("Forgotten: nothing of it")).to_be_visible()
    ann = server.db.user("ann")
    assert not ann.conv.conversations()
    assert not ann.mem.list(statuses=["active", "proposed"])
    assert ann.doc.list()


def test_everything_can_be_taken_along(new_window: Open) -> None:
    page = new_window("/#/settings")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Export").click()
    assert Path(saved.value.path()).read_bytes().startswith(b"PK")


def test_an_export_is_restored_on_the_same_page(new_window: Open, server: Server, tmp_path: Path) -> None:
    ann, bob = server.db.user("ann"), server.db.user("bob")
    with bob.turn("porto", turn="p1") as turn:
        turn.prompt("Where is the bridge?")
    ann.export(tmp_path / "ann.zip")
    bob.export(tmp_path / "bob.zip")
    ann.forget()
    page = new_window("/#/settings")
    chooser = page.get_by_label("Choose an archive")
    chooser.set_input_files(tmp_path / "ann.zip")
    expect(page.get_by_text("records restored")).to_be_visible()
    assert {each.id for each in ann.conv.conversations()} == {"lisbon", "学校"}
    chooser.set_input_files(tmp_path / "bob.zip")
    expect(page.get_by_text("an export of user 'bob'")).to_be_visible()
    page.get_by_label("Take it in as mine").check()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("1 record restored")).to_be_visible()
    assert "porto" in {each.id for each in ann.conv.conversations()}
