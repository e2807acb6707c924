"""Pictures of the pages over real data, for the docs: python scripts/make_screenshots.py [FOLDER]

FOLDER has histories of other tools, such as ../shared/data/transcripts; the sample of the demo unless given. What is
remembered and set aside is said below. Needs the system's Chromium.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from pages.browsing import PHONE, WIDE, chromium, start, window  # noqa: E402 - from the tests

import threefold  # noqa: E402 - this tree's

IMAGES = ROOT / "docs" / "images"
SAMPLE = ROOT / "src" / "threefold" / "surfaces" / "cli" / "sample.jsonl"
LARGEST = 200_000
USER = "ann"
SMALLER = """async (picture) => {
    const image = new Image();
    image.src = `data:image/png;base64,${picture}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", 0.9);
}"""


class Shot(NamedTuple):
    """A picture: its name, where it is taken, in which window and theme, and what is done before."""

    name: str
    path: str
    window: Any = WIDE
    theme: str = "light"
    before: Callable[[Page], object] = Page.title


def fill(store: Path, data: Path) -> None:
    """What a person has after some weeks."""
    with threefold.open(store, background=False) as db:
        ann, planner = db.user(USER), db.user(USER, agent="planner")
        ann.import_history([SAMPLE, data] if data != SAMPLE else [SAMPLE])
        db.embed_pending()
        fish = ann.conv.search("Ponto Final grills", roles=["assistant"], limit=1)[0]
        export = ann.conv.search("IllegalCharacterError in the nightly export", limit=1)[0]
        fact = ann.mem.remember(
            "eats fish, no shellfish", kind="preference", tags=["food"], context="said when planning Lisbon"
        )
        ann.mem.remember("never flies within Europe", kind="constraint", tags=["travel"], source=fish.ref)
        ann.mem.remember(
            "the nightly export strips control characters", kind="decision", tags=["q2"], source=export.ref
        )
        ann.mem.remember("孩子在学成语", kind="fact", tags=["学校"])
        ann.mem.pin(fact.id)
        planner.mem.propose(
            "likes late dinners", kind="preference", context="asked for a table at 20:30 twice", source=fish.ref
        )
        for name in ("privacy.md", "scale.md", "models.md"):
            ann.doc.ingest(ROOT / "docs" / name, source=name)
        ann.cnv.create("lisbon", title="Lisbon in May")
        board = ann.cnv.board("lisbon")
        board.pin(fish.ref, note="book for Friday")
        board.pin(fact.ref)
        board.pin(ann.doc.list()[0].ref)
        board.pin("conv:conversation:lisbon", note="all of it")
        board.resize(fish.ref, 500, 230)
        board.move(fact.ref, 520, 0)
        board.move(ann.doc.list()[0].ref, 520, 180)
        board.move("conv:conversation:lisbon", 0, 250)
        board.comment(fish.ref, "They take no cards.")
        planner.cnv.board("lisbon").suggest(export.ref, why="the deadline is in the same week")
        db.embed_pending()


@contextmanager
def serving(store: Path) -> Iterator[str]:
    """The store, served; gives the address."""
    command = [sys.executable, "-m", "threefold", "--db", str(store), "--user", USER, "--json", "serve", "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT / "src")},
    ) as server:
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["url"]
        finally:
            server.terminate()


def asked(page: Page) -> None:
    """A question, answered, and what the agent was given."""
    page.get_by_label("Message").fill("Where can we eat fish in Lisbon?")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="What the agent was given").wait_for(timeout=30_000)


def explained(page: Page) -> None:
    """Why the first hit has its place."""
    page.get_by_text("Why this hit").first.click()


def found(page: Page) -> None:
    """The palette with something in it."""
    page.locator("body").press("/")
    page.keyboard.type("fish")
    page.get_by_role("option").nth(3).wait_for()


SHOTS = (
    Shot("pages-chat", "#/chat", before=asked),
    Shot("pages-search", "#/search?q=control+characters+at+export", before=explained),
    Shot("pages-memories", "#/memories", theme="dark"),
    Shot("pages-board", "#/boards/lisbon?as=board"),
    Shot("pages-context", "#/context?goal=Where+can+we+eat+fish+in+Lisbon%3F&thread=lisbon&budget=1500"),
    Shot("pages-palette", "#/documents", theme="dark", before=found),
    Shot("pages-phone", "#/chat/lisbon", PHONE),
)


def as_webp(browser: Browser, picture: bytes) -> bytes:
    """A PNG, smaller; the browser can do it."""
    page = browser.new_page()
    made: str = page.evaluate(SMALLER, b64encode(picture).decode())
    page.close()
    return b64decode(made.partition(",")[2])


def taken(browser: Browser, url: str, shot: Shot) -> None:
    """Take a picture, once everything is there."""
    with window(browser, url, viewport=shot.window, color_scheme=shot.theme) as page:
        page.goto(f"/{shot.path}")
        page.locator("main :is(h1, h2)").locator("visible=true").first.wait_for()
        page.wait_for_selector(".loading", state="detached")
        shot.before(page)
        page.wait_for_timeout(400)  # for what is drawn, which nothing tells
        picture = page.screenshot()
    file = IMAGES / f"{shot.name}.webp"
    size = file.write_bytes(as_webp(browser, picture))
    print(f"{file.relative_to(ROOT)}: {size / 1000:.0f} kB")
    assert size < LARGEST, "make it smaller"


def main() -> int:
    """Take them all."""
    data = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    path = chromium()
    if path is None:
        print("no Chromium was found: apt-get install chromium")
        return 1
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = Path(folder) / "store"
        fill(store, data)
        browser = start(playwright, path)
        with serving(store) as url:
            for shot in SHOTS:
                taken(browser, url, shot)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
