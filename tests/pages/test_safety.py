"""What others wrote is shown, and does nothing; who may not, sees nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest
from http_server import Server, served
from playwright.sync_api import Browser, expect

import threefold
from pages.browsing import window
from pages.conftest import Open

# What is told where there is nothing.
EMPTY = {
    "chat": "Nothing recorded yet", "boards": "No board yet", "documents": "No document yet",
    "memories": "Nothing is held yet", "search?q=Cacilhas": "Nothing found",
}  # fmt: skip
HOSTILE = (
    '<script>window.taken = 1</script><img src=x onerror="window.taken = 1"><svg onload="window.taken = 1">'
    '<a href="javascript:window.taken=1">here</a> [there](javascript:window.taken=1) [data](data:text/html,x)'
    '<iframe srcdoc="<script>top.taken=1</script>"></iframe><style>body{display:none}</style>'
    '<form action="http://example.org"><input name=q></form> ![eye](http://example.org/eye.png)'
    '<b style="position:fixed">b</b>'
)


# What would do something, or lead elsewhere, among what is shown.
HARM = """() => {
    const bad = "script, iframe, style, [onerror], [onload], [onclick], .prose :is(img, input, form, [style])";
    const links = [...document.querySelectorAll("a")].filter((each) => !/^(https?:|mailto:|blob:)/.test(each.href));
    return [...document.querySelectorAll(`main :is(${bad})`), ...links].map((each) => each.outerHTML);
}"""


@pytest.fixture
def hostile(server: Server) -> threefold.Threefold:
    """All that can be said, said by somebody who would like to take over."""
    ann = server.db.user("ann")
    with ann.turn("hostile", turn="h1") as turn:
        turn.prompt(HOSTILE)
        turn.attach((f"{HOSTILE[:40].replace('/', '_')}.txt", b"x"))
        turn.step(HOSTILE[:60], {HOSTILE: HOSTILE}, result=HOSTILE)
        turn.note(HOSTILE, tag=HOSTILE[:40])
        turn.summary(HOSTILE)
        turn.source("javascript:window.taken=1", HOSTILE)
        turn.answer(HOSTILE)
    memory = ann.mem.remember(
        HOSTILE, context=HOSTILE, kind=HOSTILE[:40], tags=["<b>tag</b>"], source="javascript:alert(1)"
    )
    ann.doc.ingest(f"# {HOSTILE[:60]}\n\n{HOSTILE}\n", source="<img src=x onerror=alert(1)>.md", title=HOSTILE[:80])
    board = ann.cnv.board("<b>hostile</b>")
    board.pin(memory.ref, note=HOSTILE)
    board.comment(memory.ref, HOSTILE)
    return server.db


def test_hostile_content_stays_text(new_window: Open, hostile: threefold.Threefold) -> None:
    ann = hostile.user("ann")
    (document, *_), (memory, *_) = ann.doc.list(), ann.mem.list()
    page = new_window("/")
    for path in (
        "chat/hostile", "search?q=taken", "memories", f"memories/{memory.id}", "memories?view=hotset", "documents",
        f"documents/{document.id}", "boards", "boards/%3Cb%3Ehostile%3C%2Fb%3E", "context?goal=taken&budget=4000",
    ):  # fmt: skip
        page.evaluate("path => { location.hash = path; }", f"#/{path}")
        told = page.locator("main").get_by_text(re.compile("window.taken|hostile"))
        expect(told.locator("visible=true").first).to_be_visible()
        assert page.evaluate("window.taken") is None
        found = page.evaluate(HARM)
        assert found == [], path
    expect(page.locator("main")).to_be_visible()


def test_a_text_that_is_nested_too_deep_is_shown_as_it_is(new_window: Open, server: Server) -> None:
    with server.db.user("ann").turn("deep", turn="1") as turn:
        turn.prompt("deep")
        turn.answer("- " * 400 + "bottom")
    with server.db.user("ann").turn("deep", turn="2") as turn:
        turn.prompt("deeper")
        turn.answer("*a **b " * 400 + "bottom")
    page = new_window("/#/chat/deep")
    for number in (1, 2):
        expect(page.get_by_role("article", name=f"Turn {number}").locator(".prose")).to_contain_text("bottom")


def test_links_of_others_lead_to_the_web_alone(new_window: Open, server: Server) -> None:
    with server.db.user("ann").turn("links", turn="1") as turn:
        turn.prompt("links")
        turn.answer(
            "[web](https://example.org) [mail](mailto:a@example.org) [code](javascript:alert(1)) [//x](//example.org)"
        )
    page = new_window("/#/chat/links")
    links = page.locator(".prose a")
    expect(links).to_have_count(2)
    assert [each.get_attribute("rel") for each in links.all()] == ["noopener noreferrer"] * 2
    expect(page.locator(".prose")).to_contain_text("code")


def test_the_policy_of_the_server_lets_nothing_else_in(server: Server) -> None:
    with server.client() as client:
        policy = client.get("/").headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy


def test_a_server_that_wants_a_token_is_given_one(browser: Browser, db: threefold.Threefold) -> None:
    secret = db.tokens.create("ann").secret
    with served(db, local=None) as running, window(browser, running.url) as page:
        page.goto("/#/boards")
        page.get_by_role("link", name="Paste one").click()
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Use it").click()
        expect(page.get_by_text("Curated memory")).to_be_visible()
        page.goto("/#/boards")
        expect(page.get_by_role("link", name="The trip")).to_be_visible()
        kept: Any = page.evaluate("[JSON.stringify(localStorage), document.cookie]")
        assert secret not in "".join(kept)
        assert secret not in page.url


@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_another_user_sees_nothing_of_it(browser: Browser, db: threefold.Threefold) -> None:
    secret = db.tokens.create("bob").secret
    with served(db, local=None) as running, window(browser, running.url) as page:
        page.goto("/#/settings")
        page.get_by_label("Token").fill(secret)
        page.get_by_role("button", name="Use it").click()
        for path, told in EMPTY.items():
            page.goto(f"/#/{path}")
            expect(page.get_by_text(told)).to_be_visible()
        page.goto("/#/object/conv%3Afi%3Aconv_lisbon.turn_l1.files%2Fplan.md")
        expect(page.get_by_role("heading", name="Not to be seen")).to_be_visible()
