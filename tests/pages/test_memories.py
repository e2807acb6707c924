"""Memories in the pages: proposals, edits that meet, the hotset, tidying up."""

from __future__ import annotations

import pytest
from http_server import Server
from playwright.sync_api import Route, expect

from pages.conftest import Open


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_proposal_waits_and_is_confirmed(new_window: Open, server: Server) -> None:
    page = new_window("/#/memories?view=proposals")
    badge = page.get_by_label("1 proposals")
    expect(badge).to_be_visible()
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_text("Nothing waits for you")).to_be_visible()
    expect(badge).to_have_count(0)
    assert "likes window seats" in {each.memory for each in server.db.user("ann").mem.list()}
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("button", name="Confirm")).to_be_visible()


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_two_edits_of_one_memory_meet_and_neither_is_lost(new_window: Open, server: Server) -> None:
    mem = server.db.user("ann").mem
    (memory,) = mem.list()
    page = new_window(f"/#/memories/{memory.id}")
    page.get_by_role("button", name="Change").click()
    page.get_by_label("What is so, in a sentence").fill("flies only to islands")
    mem.update(memory.id, memory="never flies at all")
    page.get_by_role("button", name="Save").click()
    dialog = page.get_by_role("dialog")
    look = dialog.get_by_role("button", name="See how it stands now")
    page.context.set_offline(True)
    look.click()
    expect(dialog.get_by_text("The server does not answer")).to_be_visible()
    page.context.set_offline(False)
    look.click()
    expect(dialog.get_by_text("never flies at all")).to_be_visible()
    expect(dialog.get_by_label("What is so, in a sentence")).to_have_value("flies only to islands")
    dialog.get_by_role("button", name="Write mine over").click()
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("flies only to islands")
    assert [each.record.memory for each in mem.history(memory.id)][1:] == [
        "never flies at all",
        "flies only to islands",
    ]
    page.get_by_role("button", name="Undo the last change").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("never flies at all")


def test_what_was_written_stays_where_the_server_does_not_answer(new_window: Open) -> None:
    page = new_window("/#/memories")
    page.get_by_role("button", name="Remember something").click()
    page.context.set_offline(True)
    page.get_by_label("What is so, in a sentence").fill("prefers trains")
    page.get_by_role("button", name="Remember", exact=True).click()
    expect(page.get_by_role("dialog").get_by_text("The server does not answer")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_label("What is so, in a sentence")).to_have_value("prefers trains")
    page.get_by_role("button", name="Remember", exact=True).click()
    expect(page.get_by_role("link", name="prefers trains")).to_be_visible()


def test_a_long_list_comes_in_pages_and_stays_where_one_is(new_window: Open, server: Server) -> None:
    mem = server.db.user("ann").mem
    for number in range(45):
        mem.remember(f"platform {number} is closed")
    for number in range(35):
        mem.remember(f"coach {number} is full", layer="session")
    page = new_window("/#/memories?layer=longterm")
    rows, more = page.locator(".memory"), page.get_by_role("button", name="Show more")
    expect(rows).to_have_count(30)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if "/mem/list" in request.url else None)
    more.evaluate("each => { each.click(); each.click(); }")
    expect(more).to_have_count(0)
    expect(rows).to_have_count(46)
    assert len(asked) == 1
    # What is changed stays where it was, and so does the focus; after anything else all that was shown is there.
    last = rows.nth(45)
    last.get_by_role("button", name="Pin", exact=True).click()
    expect(last.get_by_role("button", name="Unpin")).to_be_focused()
    expect(rows).to_have_count(46)
    page.get_by_role("button", name="Remember something").click()
    page.get_by_label("What is so, in a sentence").fill("takes the tram")
    page.get_by_role("button", name="Remember", exact=True).click()
    expect(rows.first).to_contain_text("takes the tram")
    expect(rows).to_have_count(47)
    # What was asked of another list does not come into this one.
    page.reload()
    expect(rows).to_have_count(30)
    held: list[Route] = []
    page.route(
        "**/mem/list",
        lambda route: held.append(route) if "cursor" in str(route.request.post_data) else route.continue_(),
    )
    more.click()
    page.get_by_label("Layer").select_option("session")
    expect(rows.first).to_contain_text("coach")
    held.pop().continue_()
    expect(more).to_be_visible()
    expect(rows).to_have_count(30)
    expect(page.get_by_text("platform")).to_have_count(0)


def test_the_hotset_tells_how_each_got_in(new_window: Open) -> None:
    page = new_window("/#/memories?view=hotset")
    expect(page.get_by_text("salience")).to_have_count(2)  # what it is about, and of the one memory
    page.get_by_role("button", name="Pin", exact=True).click()
    expect(page.locator(".in-because").get_by_text("pinned")).to_be_visible()


def test_what_contradicts_is_reviewed_done_and_taken_back(new_window: Open, server: Server) -> None:
    mem = server.db.user("ann").mem
    mem.remember("lives in Berlin")
    mem.remember("does not live in Berlin")
    page = new_window("/#/memories?view=reconcile")
    expect(page.locator("del")).to_have_text("lives in Berlin")
    page.get_by_role("button", name="Do it").click()
    expect(page.get_by_text("Nothing to tidy up")).to_be_visible()
    assert [each.memory for each in mem.list(statuses=["superseded"])] == ["lives in Berlin"]
    page.get_by_role("button", name="Take it back").click()
    expect(page.locator("del")).to_have_text("lives in Berlin")
    # A proposal that was looked at before something changed is not what is done.
    mem.remember("is not in Berlin any more")
    mem.remember("The user is in Rome")
    mem.remember("user is in Rome.")
    page.get_by_role("button", name="Do it").click()
    expect(page.get_by_text("is out of date").or_(page.get_by_text("Nothing to tidy up"))).to_be_visible()
