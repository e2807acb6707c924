"""Turns as they happen: asked, followed, stopped, steered; and the same when they are looked at again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from conftest import Address
from http_server import Server
from playwright.sync_api import Browser, Route, expect

from pages.browsing import PHONE, WIDE, audit, window
from pages.conftest import Open
from pages.killed_server import killed
from pages.talking import Slow, send
from threefold.host.run import Run


@pytest.mark.parametrize(
    ("backend", "viewport"),
    [("sqlite", WIDE), ("postgres", WIDE), ("sqlite", PHONE)],
    ids=("sqlite", "postgres", "phone"),
)
def test_a_question_is_answered_from_what_is_kept_with_its_sources(new_window: Open, viewport: dict[str, int]) -> None:
    page = new_window("/", viewport=viewport)
    send(page, "Which ferry goes to Porto Santo?")
    turn = page.get_by_role("article", name="Turn 1")
    expect(turn.get_by_text("No chat model is set up")).to_be_visible()
    expect(turn.get_by_text("Book the ferry to Porto Santo")).to_be_visible()
    turn.get_by_role("button", name="What the agent was given").click()
    expect(turn.get_by_role("heading", name="From documents")).to_be_visible()
    expect(turn.locator(".context-section", has_text="From documents").locator("summary")).to_contain_text("tokens")
    page.reload()
    expect(turn.get_by_text("Book the ferry to Porto Santo")).to_be_visible()
    turn.get_by_role("link", name="source d1").first.click()
    expect(page.get_by_role("heading", name="Ferries", level=1)).to_be_visible()
    expect(page.locator(".chunk.wanted")).to_contain_text("two weeks ahead")


def test_several_viewers_see_the_same_as_it_happens_and_afterwards(new_window: Open, slow: Slow) -> None:
    one = new_window("/#/chat/talk")
    send(one, "When does it leave?")
    expect(one.get_by_text("First this.").first).to_be_visible()
    # Who comes late sees the turn from its beginning.
    late = new_window("/#/chat/talk")
    expect(late.get_by_text("When does it leave?").first).to_be_visible()
    expect(late.get_by_text("First this.").first).to_be_visible()
    slow.go_on.set()
    for page in (one, late):
        turn = page.get_by_role("article", name="Turn 1")
        expect(turn.get_by_text("First this. Then that")).to_be_visible()
        expect(turn.get_by_role("link", name="times.txt")).to_be_visible()
        expect(page.get_by_role("article")).to_have_count(1)
    seen = one.get_by_role("article", name="Turn 1").inner_text()
    one.reload()
    for page in (one, late):
        expect(page.get_by_role("article", name="Turn 1")).to_have_text(seen, use_inner_text=True)


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_what_is_said_meanwhile_waits_or_steers(new_window: Open, server: Server, slow: Slow) -> None:
    page = new_window("/#/chat/talk")
    send(page, "When does it leave?")
    expect(page.get_by_text("First this.").first).to_be_visible()
    send(page, "And on Sunday?")
    waiting = page.get_by_role("region", name="What waits")
    expect(waiting.get_by_text("And on Sunday?")).to_be_visible()
    page.get_by_label("Steer it now").check()
    send(page, "in May")
    # It interrupts: what was said stays, and the agent begins anew.
    answers = page.get_by_role("article", name="The turn that runs").locator(".said.assistant")
    expect(answers).to_have_text(["First this."] * 2)
    slow.go_on.set()
    expect(page.get_by_role("article", name="Turn 1").get_by_text("in May", exact=True)).to_be_visible()
    expect(page.get_by_role("article", name="Turn 2").get_by_text("for 'And on Sunday?'")).to_be_visible()
    expect(waiting).to_have_count(0)
    conv = server.db.user("ann").conv
    first = conv.turn(f"conv:ar:conv_talk.turn_{conv.turns('talk')[0].turn}.turn.log")
    assert [message.kind for message in first.messages] == ["prompt", "partial", "steer", "completion"]
    told = page.get_by_role("article", name="Turn 1").locator(".said .kind")
    expect(told).to_have_text(["interrupted", "steer"])


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_turn_is_stopped_and_is_recorded_as_it_was(new_window: Open, slow: Slow) -> None:
    page = new_window("/#/chat/talk")
    send(page, "When does it leave?")
    expect(page.get_by_text("First this.").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    turn = page.get_by_role("article", name="Turn 1")
    expect(turn.get_by_text("was stopped")).to_be_visible()
    expect(turn.get_by_text("First this.")).to_be_visible()
    expect(page.get_by_role("button", name="Stop")).to_have_count(0)


def test_files_go_with_what_is_said(new_window: Open, tmp_path: Path) -> None:
    file = tmp_path / "Fahrplan für Mai.txt"
    file.write_text("19:40", "utf-8")
    page = new_window("/#/chat/talk")
    page.get_by_label("Files to attach").set_input_files(file)
    send(page, "When does it leave?")
    turn = page.get_by_role("article", name="Turn 1")
    expect(turn.get_by_role("link", name="Fahrplan für Mai.txt")).to_be_visible()
    with page.expect_download() as saved:
        turn.get_by_role("button", name="Save Fahrplan für Mai.txt").click()
    assert Path(saved.value.path()).read_text("utf-8") == "19:40"


def test_what_could_not_be_sent_stays_and_is_sent_once(new_window: Open, server: Server) -> None:
    page = new_window("/#/chat/talk")
    expect(page.get_by_text("Nothing here")).to_be_visible()
    # The server accepts it, but its answer is lost on the way.
    page.route(
        "**/v1/lanes/talk",
        lambda route: (route.fetch(), route.abort()) if route.request.method == "POST" else route.continue_(),
    )
    send(page, "When does it leave?")
    expect(page.get_by_text("The server does not answer")).to_be_visible()
    expect(page.get_by_label("Message")).to_have_value("When does it leave?")
    page.unroute("**/v1/lanes/talk")
    page.get_by_label("Message").press("Enter")
    expect(page.get_by_label("Message")).to_have_value("")
    expect(page.get_by_role("article", name="Turn 1")).to_be_visible()
    assert len(server.db.user("ann").conv.turns("talk")) == 1


def test_what_waits_is_withdrawn_and_the_others_stay(new_window: Open, server: Server, slow: Slow) -> None:
    one = new_window("/#/chat/talk", viewport=PHONE)
    send(one, "When does it leave?")
    expect(one.get_by_text("First this.").first).to_be_visible()
    for text in ("And on Sunday?", "And by train?"):
        send(one, text)
        expect(one.get_by_text(text)).to_be_in_viewport()
    other = new_window("/#/chat/talk")
    waiting = [page.get_by_role("region", name="What waits") for page in (one, other)]
    expect(waiting[1].get_by_text("And on Sunday?")).to_be_visible()
    assert audit(one) == []
    waiting[0].get_by_role("button", name="Withdraw And on Sunday?").press("Enter")
    expect(one.get_by_text("Withdrawn: it is not sent")).to_be_visible()
    # Whoever looks sees it go.
    for each in waiting:
        expect(each.get_by_text("And on Sunday?")).to_have_count(0)
        expect(each.get_by_text("And by train?")).to_be_visible()
    slow.go_on.set()
    expect(one.get_by_role("article", name="Turn 2").get_by_text("for 'And by train?'")).to_be_visible()
    conv = server.db.user("ann").conv
    said = [conv.turn(f"conv:ar:conv_talk.turn_{each.turn}.turn.log").messages[0].text for each in conv.turns("talk")]
    assert said == ["When does it leave?", "And by train?"]


def test_what_runs_already_is_not_withdrawn_and_the_page_says_so(new_window: Open, server: Server, slow: Slow) -> None:
    page = new_window("/#/chat/talk")
    send(page, "When does it leave?")
    expect(page.get_by_text("First this.").first).to_be_visible()
    send(page, "And on Sunday?")
    conv = server.db.user("ann").conv

    def late(route: Route) -> None:
        """The next turn takes it while the wish to withdraw it is on its way."""
        slow.go_on.set()
        while len(conv.turns("talk")) < 2:
            time.sleep(0.01)
        route.continue_()

    page.route("**/submissions/*", late)
    page.get_by_role("button", name="Withdraw And on Sunday?").click()
    # It is recorded; its lane is let go a moment later.
    told = page.get_by_text("is in the turn that runs").or_(page.get_by_text("does not wait in conversation 'talk'"))
    expect(told).to_be_visible()
    expect(page.get_by_role("article", name="Turn 2").get_by_text("And on Sunday?").first).to_be_visible()


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_a_server_is_killed_and_the_page_recovers_by_itself(browser: Browser, backend: str, tmp_path: Path) -> None:
    address = Address(backend, tmp_path)
    with killed(address.name) as server, window(browser, server.url) as page:
        page.goto("/#/chat/trip")
        send(page, "Plan it slowly")
        runs = page.get_by_role("article", name="The turn that runs")
        expect(runs.get_by_text("First this.").first).to_be_visible()
        send(page, "And on Sunday?")
        waiting = page.get_by_role("region", name="What waits")
        expect(waiting.get_by_text("And on Sunday?")).to_be_visible()

        server.kill()
        broken = page.get_by_text("The connection is broken")
        expect(broken).to_be_in_viewport()
        for text in ("Plan it slowly", "First this."):
            expect(runs.get_by_text(text).first).to_be_visible()
        expect(waiting.get_by_text("And on Sunday?")).to_be_visible()

        server.start()
        failed, answered = (page.get_by_role("article", name=f"Turn {number}") for number in (1, 2))
        for _ in range(2):  # as it comes, and once more after a reload
            expect(failed.get_by_text("Plan it slowly")).to_be_visible()
            expect(failed.get_by_text("This turn failed: the process that ran it stopped.")).to_be_visible()
            expect(answered.get_by_text("And on Sunday?", exact=True)).to_be_visible()
            expect(answered.get_by_text("Then that, for 'And on Sunday?'.")).to_be_visible()
            expect(page.get_by_role("article")).to_have_count(2)
            expect(waiting).to_have_count(0)
            expect(broken).to_have_count(0)
            page.reload()
    address.give_back()


def test_where_there_are_several_agents_one_is_chosen(new_window: Open, server: Server, slow: Slow) -> None:
    page = new_window("/#/chat/talk")
    expect(page.get_by_label("Message")).to_be_visible()
    expect(page.get_by_label("Agent")).to_have_count(0)

    def brief(run: Run) -> str:
        """Answers in a word."""
        return "Briefly."

    server.live.kernel.agents.register(brief)
    page.reload()
    chosen = page.get_by_label("Agent")
    expect(chosen.locator("option")).to_have_text(["whichever fits", "slow", "brief"])
    chosen.select_option("brief")
    send(page, "When does it leave?")
    expect(page.get_by_role("article", name="Turn 1").get_by_text("Briefly.")).to_be_visible()
    chosen.select_option("slow")
    send(page, "In full, please")
    expect(page.get_by_text("First this.").first).to_be_visible()
    # While one works it is looked at; reloading, and whoever has the address, sees the same.
    expect(chosen).to_be_disabled()
    assert audit(page) == []
    page.reload()
    expect(chosen).to_have_value("slow")
    other = new_window(f"/#{page.url.partition('#')[2]}")
    for each in (page, other):
        expect(each.get_by_text("First this.").first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    for each in (page, other):
        expect(each.get_by_role("article", name="Turn 2").get_by_text("was stopped")).to_be_visible()
        expect(each.get_by_label("Agent")).to_be_enabled()
    page.get_by_label("New conversation").click()
    expect(page.get_by_label("Agent")).to_have_value("")
