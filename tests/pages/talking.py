"""What is needed to talk in the pages: an agent that takes its time, and a person who says something."""

from __future__ import annotations

import threading

from playwright.sync_api import Page

from threefold.host.run import Run


class Slow:
    """An agent that says something, waits to be let go on, does a step, and says the rest."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def __call__(self, run: Run) -> str:
        """Takes its time."""
        run.say("First this. ")
        while not self.go_on.wait(0.01):
            run.say("")  # whether it is stopped, or steered
        run.step("look up", {"what": "ferries"}, "two a day")
        run.publish("times.txt", b"19:40")
        run.say(f"Then that, for {run.goal.splitlines()[-1]!r}.")
        return "".join(run.pieces)


def send(page: Page, text: str) -> None:
    """Say something."""
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")
