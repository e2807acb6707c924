"""The thread of a request for its context: a summary of what left the window, then the window, whole."""

from __future__ import annotations

from collections.abc import Collection

from threefold.context.gathering import Gathered, Limits
from threefold.context.packing import Item
from threefold.context.sources import Sources
from threefold.errors import NotFound
from threefold.model.context import Intent
from threefold.realms.conv.refs import turn_of
from threefold.realms.conv.threads.values import ThreadContext


def gather_thread(gathered: Gathered, intent: Intent, sources: Sources, limits: Limits) -> Collection[str]:
    """Add the thread's summary and messages, the newest first; returns the references of the turns that they show.

    A thread that is not there yet begins with this request.
    """
    if intent.thread is None:
        return ()
    try:
        thread = sources.thread(intent.thread).context(limits.window)
    except NotFound:
        return ()
    gathered.warnings += thread.warnings
    gathered.archived = thread.status == "archived"
    items = _items(thread)
    gathered.add(items)
    return {item.about["turn"] for item in items if "turn" in item.about}


def _items(thread: ThreadContext) -> list[Item]:
    """Newest message first, since what is older goes first; the summary has its place after the newest one."""
    items = []
    for place, said in enumerate(thread.messages, 1):
        head = (said.role, said.author or "", f"{said.at:%Y-%m-%d %H:%M}")
        about = {"role": said.role, "at": said.at, "author": said.author, "turn": turn_of(said.ref)}
        because = "the thread's window"
        items.append(Item("thread", said.ref, head, (said.text,), said.text, because, None, True, place, about))
    items.reverse()
    if thread.summary:
        told = (f"summary of {thread.summarised} earlier messages",)
        ref = f"thread:{thread.name}"
        items.insert(1, Item("thread", ref, told, (thread.summary,), because="left the window"))
    return items
