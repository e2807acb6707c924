"""The chat where things go otherwise than planned: hidden, slow, broken, left, or with somebody else in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from http_server import Server
from playwright.sync_api import Page, Request, Route, expect
from waiting import wait_until

from pages.conftest import Open
from pages.talking import Slow, send
from threefold.host.run import Run

HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  Object.defineProperty(document, "visibilityState", { configurable: true, get: () => hidden ? "hidden" : "visible" });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def streams(request: Request) -> bool:
    """Whether it follows a conversation."""
    return request.url.partition("?")[0].endswith("/events")


def recorded(server: Server, conversation: str) -> list[str]:
    """How the turns of a conversation begin."""
    conv = server.db.user("ann").conv
    refs = [f"conv:ar:conv_{conversation}.turn_{each.turn}.turn.log" for each in conv.turns(conversation)]
    return [conv.turn(ref).messages[0].text for ref in refs]


class Held:
    """What is sent to conversations waits here on its way to the server."""

    def __init__(self, page: Page, url: str = "**/v1/lanes/*") -> None:
        self._page, self._routes = page, list[Route]()
        page.route(
            url, lambda route: self._routes.append(route) if route.request.method == "POST" else route.continue_()
        )

    def next(self) -> Route:
        """The first that waits."""
        while not self._routes:
            self._page.wait_for_timeout(20)
        return self._routes.pop(0)

    @property
    def none(self) -> bool:
        """Whether nothing waits."""
        return not self._routes


def test_a_hidden_window_lets_its_connection_go_and_catches_up_when_it_is_seen(
    new_window: Open, server: Server, slow: Slow
) -> None:
    page = new_window("/")
    asked = list[Request]()
    page.on("request", lambda request: asked.append(request) if streams(request) else None)
    # To a new conversation nothing was sent: nothing is to be heard of it.
    expect(page.get_by_role("link", name="今天玩成语接龙游戏")).to_be_visible()
    assert not asked
    send(page, "When does it leave?")
    runs = page.get_by_role("article", name="The turn that runs")
    expect(runs.get_by_text("First this.")).to_be_visible()
    assert len(asked) == 1
    conversation = page.url.rpartition("/")[2]
    with page.expect_event("requestfailed", streams):
        page.evaluate(HIDE, True)
    with server.client() as client:
        client.post(f"/v1/lanes/{conversation}", json={"text": "And on Sunday?"}).raise_for_status()
    slow.go_on.set()
    assert wait_until(lambda: len(recorded(server, conversation)) == 2)
    expect(runs.get_by_text("First this.")).to_be_visible()
    with page.expect_request(streams) as again:
        page.evaluate(HIDE, False)
    assert again.value.headers["last-event-id"]
    for number, text in ((1, "When does it leave?"), (2, "And on Sunday?")):
        turn = page.get_by_role("article", name=f"Turn {number}")
        expect(turn.get_by_text(text, exact=True)).to_be_visible()
    expect(page.get_by_role("article")).to_have_count(2)


def test_what_is_written_while_something_is_sent_stays(new_window: Open, server: Server, tmp_path: Path) -> None:
    file = tmp_path / "times.txt"
    file.write_text("19:40", "utf-8")
    page = new_window("/")
    held = Held(page)
    field = page.get_by_label("Message")
    send(page, "When does it leave?")
    sent = held.next()
    expect(field).to_have_value("")
    field.fill("And on Sunday?")
    page.get_by_label("Files to attach").set_input_files(file)
    sent.abort()
    # What failed comes before what was written since.
    expect(page.get_by_text("The server does not answer")).to_be_visible()
    expect(field).to_have_value("When does it leave?\nAnd on Sunday?")
    field.press("Enter")
    sent = held.next()
    field.fill("And by train?")
    sent.continue_()
    turn = page.get_by_role("article", name="Turn 1")
    expect(turn.get_by_role("link", name="times.txt")).to_be_visible()
    expect(field).to_have_value("And by train?")
    conversation = page.url.rpartition("/")[2]
    page.reload()
    expect(field).to_have_value("And by train?")
    said = ["When does it leave?", "And on Sunday?"]
    assert [each.splitlines() for each in recorded(server, conversation)] == [said]


def test_a_new_conversation_is_begun_once_though_the_page_is_loaded_anew(new_window: Open, server: Server) -> None:
    page = new_window("/")
    before = len(server.db.user("ann").conv.conversations())
    held = Held(page)
    field = page.get_by_label("Message")
    send(page, "When does it leave?")
    lost = held.next()
    lost.fetch()
    lost.abort()
    expect(page.get_by_text("The server does not answer")).to_be_visible()
    page.reload()
    expect(field).to_have_value("When does it leave?")
    field.press("Enter")
    # Once more the answer does not come: the page is left before.
    held.next().fetch()
    page.reload()
    expect(field).to_have_value("When does it leave?")
    field.press("Enter")
    held.next().continue_()
    expect(page.get_by_role("article", name="Turn 1")).to_be_visible()
    expect(field).to_have_value("")
    assert recorded(server, page.url.rpartition("/")[2]) == ["When does it leave?"]
    assert len(server.db.user("ann").conv.conversations()) == before + 1


def test_one_who_goes_elsewhere_is_left_there_and_finds_all_again(
    new_window: Open, server: Server, tmp_path: Path
) -> None:
    file = tmp_path / "times.txt"
    file.write_text("19:40", "utf-8")
    page = new_window("/")
    rail = page.get_by_role("navigation", name="Pages")
    held = Held(page)
    field = page.get_by_label("Message")
    send(page, "When does it leave?")
    sent = held.next()
    rail.get_by_role("link", name="Memories").click()
    memories = page.get_by_role("heading", name="Memories", level=1)
    expect(memories).to_be_visible()
    before = len(server.db.user("ann").conv.conversations())
    with page.expect_response("**/v1/lanes/*"):
        sent.continue_()
    assert wait_until(lambda: len(server.db.user("ann").conv.conversations()) > before)
    expect(memories).to_be_visible()
    rail.get_by_role("link", name="Chat").click()
    expect(page.get_by_role("link", name="When does it leave?")).to_be_visible()
    expect(field).to_have_value("")
    # It fails while one is elsewhere: that is told there, and what was said is where it was.
    send(page, "And on Sunday?")
    sent = held.next()
    rail.get_by_role("link", name="Memories").click()
    expect(memories).to_be_visible()
    sent.abort()
    expect(page.get_by_text("The server does not answer").first).to_be_visible()
    rail.get_by_role("link", name="Chat").click()
    expect(field).to_have_value("And on Sunday?")
    # Files stay with it, but not over a reload; that is said.
    page.get_by_label("Files to attach").set_input_files(file)
    rail.get_by_role("link", name="Memories").click()
    expect(memories).to_be_visible()
    rail.get_by_role("link", name="Chat").click()
    expect(page.get_by_role("button", name="Remove times.txt")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Not attached any more")).to_contain_text("times.txt")
    expect(field).to_have_value("And on Sunday?")


def test_what_is_loaded_late_takes_nothing_away(new_window: Open, server: Server) -> None:
    page = new_window("/#/settings")
    late = list[Route]()
    page.route("**/v1/conv/catalog", lambda route: late.extend([route]), times=1)
    with page.expect_request("**/v1/conv/catalog"):
        page.goto("/#/chat/lisbon")
    expect(page.get_by_label("Message")).to_be_visible()
    # It tells of what was recorded when it was asked.
    answer = late[0].fetch()
    send(page, "And on Sunday?")
    expect(page.get_by_role("article", name="Turn 2")).to_be_visible()
    late[0].fulfill(response=answer)
    expect(page.locator(".turns .loading")).to_have_count(0)
    for number in (1, 2):
        expect(page.get_by_role("article", name=f"Turn {number}")).to_be_visible()


def test_what_is_said_from_within_a_long_conversation_is_seen_at_its_end(new_window: Open, server: Server) -> None:
    ann = server.db.user("ann")
    for number in range(1, 31):
        at = f"2026-06-01T10:{number:02}:00Z"
        with ann.turn("long", turn=f"t{number}", started=at) as turn:
            turn.prompt(f"question {number}", at=at)
    page = new_window("/#/chat/long?turn=conv:ar:conv_long.turn_t4.turn.log")
    expect(page.get_by_text("question 4", exact=True)).to_be_in_viewport()
    send(page, "question 31")
    expect(page.get_by_role("article", name="Turn 31").get_by_text("question 31", exact=True)).to_be_in_viewport()
    expect(page.get_by_text("question 4", exact=True)).to_have_count(0)
    numbers = page.get_by_role("article").evaluate_all("all => all.map((each) => each.ariaLabel)")
    assert numbers[-5:] == [f"Turn {number}" for number in range(27, 32)]
    assert "turn=" not in page.url


def test_what_a_chosen_agent_does_is_seen_in_other_windows_and_its_links_keep_it(
    new_window: Open, server: Server, slow: Slow
) -> None:
    def brief(run: Run) -> str:
        """Answers in a word."""
        return "Briefly."

    server.live.kernel.agents.register(brief)
    other = new_window("/#/chat/lisbon")
    expect(other.get_by_role("article", name="Turn 1")).to_be_visible()
    page = new_window("/#/chat/lisbon?agent=brief")
    send(page, "When does it leave?")
    for each in (page, other):
        expect(each.get_by_role("article", name="Turn 2").get_by_text("Briefly.")).to_be_visible()
    link = page.get_by_role("complementary", name="Conversations").get_by_role("link", name="We are two people")
    page.get_by_role("link", name="今天玩成语接龙游戏").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("成语")
    expect(page.get_by_label("Agent")).to_have_value("")
    link.click()
    expect(page.get_by_label("Agent")).to_have_value("brief")


def test_the_end_of_an_answer_is_heard_and_what_was_said_long_ago_is_not(new_window: Open, slow: Slow) -> None:
    page = new_window("/#/chat/lisbon")
    heard = page.locator(".talk > [aria-live=polite]")
    send(page, "When does it leave?")
    expect(heard.locator("p")).to_have_text(["First this."])
    heard.evaluate("region => { window.region = region; }")
    slow.go_on.set()
    expect(page.get_by_role("article", name="Turn 2")).to_be_visible()
    expect(page.get_by_role("article")).to_have_count(2)
    # What was heard is not said again, and it stays where it was said.
    expect(heard.locator("p")).to_have_text(["First this.", "Then that, for 'When does it leave?'."])
    assert heard.evaluate("region => region === window.region")


def test_what_is_polled_is_polled_once_however_often_the_window_is_looked_at(new_window: Open) -> None:
    page = new_window("/#/settings")
    most: Any = page.evaluate("""async () => {
      const { html, render, usePolling } = await import("/js/dom.js");
      let [ticks, running, most] = [0, 0, 0];
      const later = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
      const Polling = () => usePolling(async () => {
        ticks += 1;
        running += 1;
        most = Math.max(most, running);
        await later(30);
        running -= 1;
      }, 10);
      render(html`<${Polling} />`, document.createElement("div"));
      while (ticks < 12) {
        document.dispatchEvent(new Event("visibilitychange"));
        await later(5);
      }
      return most;
    }""")
    assert most == 1


def test_more_conversations_come_once_or_it_is_said_why_not(new_window: Open, server: Server) -> None:
    ann = server.db.user("ann")
    for number in range(33):
        with ann.turn(f"talk-{number}", turn="t") as turn:
            turn.prompt(f"question {number}")
    page = new_window("/#/chat/lisbon")
    more = page.get_by_role("button", name="Show more")
    expect(more).to_be_visible()
    lists = Held(page, "**/v1/conv/list")
    more.click()
    lists.next().abort()
    expect(page.get_by_text("The server does not answer").first).to_be_visible()
    # Clicked twice before anything can be drawn.
    more.evaluate("button => { button.click(); button.click(); }")
    lists.next().continue_()
    expect(page.get_by_role("link", name="question")).to_have_count(33)
    expect(more).to_have_count(0)
    assert lists.none
