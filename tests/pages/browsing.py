"""A browser as people have one: where it is, how it is started, and what is held against every page it shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect

# It works alone: without a sandbox of its own, as the tests may run as root, and without asking anybody anything.
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 360, "height": 740}
# Milliseconds until what does not appear is held not to come: a machine that does much else may be slow.
PATIENCE = 30_000
expect.set_options(timeout=PATIENCE)
# WCAG 2, levels A and AA.
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}}


def chromium() -> str | None:
    """Where the system's Chromium is."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def start(playwright: Playwright, path: str) -> Browser:
    """Start it."""
    return playwright.chromium.launch(executable_path=path, args=FLAGS)


@contextmanager
def window(browser: Browser, url: str, **settings: Any) -> Iterator[Page]:
    """A window of its own, with nothing remembered; it saw no error, and asked nobody but the server."""
    given = {"viewport": WIDE, "locale": "en-GB", "timezone_id": "UTC", "reduced_motion": "reduce", **settings}
    context: BrowserContext = browser.new_context(base_url=url, **given)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    errors: list[str] = []
    asked: set[str] = set()
    page.on("pageerror", lambda error: errors.append(f"raised: {error}"))
    page.on("console", lambda told: errors.append(f"said: {told.text}") if _is_wrong(told) else None)
    page.on("dialog", lambda dialog: errors.append(f"a script ran: {dialog.message}"))
    page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    try:
        yield page
    finally:
        context.close()
    assert not errors, errors
    assert asked <= {urlsplit(url).netloc, ""}, asked


def _is_wrong(told: Any) -> bool:
    # What the server refuses, Chromium tells by itself; the pages say it in their own words.
    refused = "Failed to load resource" in told.text
    return told.type in ("error", "warning") and not refused


def audit(page: Page) -> list[str]:
    """What an accessibility checker has against the page as it is."""
    script = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    page.evaluate(script)
    found = page.evaluate("rules => axe.run(document, rules)", RULES)
    return [
        f"{each['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for each in found["violations"]
        for node in each["nodes"]
    ]
