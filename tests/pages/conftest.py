"""Pages in a real browser, over a real server and a real store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from conftest import Address
from http_server import Server, served
from playwright.sync_api import Browser, Page, sync_playwright

import threefold
from pages.browsing import chromium, start, window
from pages.talking import Slow
from threefold.testing.fakes import HashEmbedder

Open = Callable[..., Page]
FIRST = "2026-05-04T18:12:00Z"


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for the tests of the pages. Its loop runs in this thread, where other tests begin their own."""
    path = chromium()
    if path is None:
        pytest.skip("no Chromium was found: apt-get install chromium")
    with sync_playwright() as playwright:
        started = start(playwright, path)
        yield started
        started.close()


@pytest.fixture
def backend() -> str:
    """Of a test that does not say which: the one that most people have."""
    return "sqlite"


@pytest.fixture
def db(backend: str, tmp_path: Path) -> Iterator[threefold.Threefold]:
    """A store with something of each kind."""
    address = Address(backend, tmp_path)
    with threefold.open(address.name, embedder=HashEmbedder(), background=False, durable=False) as opened:
        fill(opened)
        yield opened
    address.give_back()


def fill(db: threefold.Threefold) -> None:
    """What a person said, remembers, reads and set aside."""
    ann, planner = db.user("ann"), db.user("ann", agent="planner")
    with ann.turn("lisbon", turn="l1", started=FIRST) as turn:
        turn.prompt("We are two people and a dog. Where can we eat fish in Lisbon without tourist prices?", at=FIRST)
        turn.attach(("map.txt", b"Alfama, Cacilhas"))
        turn.step("find_tables", {"city": "Lisbon"}, result="2 tables")
        turn.publish("plan.md", b"# Friday\n\nThe ferry at 19:40.\n")
        turn.answer("In **Cacilhas**, across the river: Ponto Final grills whatever came in that morning.", at=FIRST)
        turn.source("https://example.org/ferries", "Ferries to Cacilhas")
    with ann.turn("学校", turn="z1") as turn:
        turn.prompt("今天玩成语接龙游戏")
        turn.answer("أين نأكل السمك؟ היכן")
    ann.mem.remember("never flies within Europe", kind="constraint", tags=["travel"], context="said in May")
    planner.mem.propose("likes window seats", kind="preference")
    ann.doc.ingest("# Ferries\n\nBook the ferry to Porto Santo two weeks ahead.\n", source="ferries.md")
    board = ann.cnv.create("trip", title="The trip")
    ann.cnv.board(board.name).pin("conv:ar:conv_lisbon.turn_l1.assistant.completion", note="for Friday")
    planner.cnv.board(board.name).suggest("task:issue:28", why="she likes trams")
    db.embed_pending()


@pytest.fixture
def server(db: threefold.Threefold) -> Iterator[Server]:
    """The store, served with its pages."""
    with served(db) as running:
        yield running


@pytest.fixture
def slow(server: Server) -> Iterator[Slow]:
    """The agent that answers."""
    agent = Slow()
    server.live.kernel.agents.register(agent, name="slow")
    yield agent
    agent.go_on.set()


@pytest.fixture
def new_window(browser: Browser, server: Server) -> Iterator[Callable[..., Page]]:
    """Opens windows; all are closed, and looked over, at the end."""
    with ExitStack() as stack:
        opened: Callable[..., AbstractContextManager[Page]] = partial(window, browser, server.url)

        def open_(path: str = "/", **settings: Any) -> Page:
            page = stack.enter_context(opened(**settings))
            page.goto(path)
            return page

        yield open_
