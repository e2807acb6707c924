"""Chunks of documents for a context."""

from __future__ import annotations

from threefold.context.gathering import Gathered, Limits, forms
from threefold.context.packing import Item
from threefold.context.sources import Sources
from threefold.model.context import Intent
from threefold.realms.doc.retrieving import DocHit

# A chunk is shown whole or as its best part; shorter than that it says little.
_SIZES = (120,)


def gather_documents(
    gathered: Gathered, intent: Intent, sources: Sources, limits: Limits, terms: tuple[str, ...]
) -> None:
    """Add chunks that answer the goal."""
    if not intent.goal.strip():
        return
    found = sources.doc.retrieve(intent.goal, limit=limits.documents)
    gathered.add((_item(hit, terms) for hit in found), gathered.least(found, limits))


def _item(hit: DocHit, terms: tuple[str, ...]) -> Item:
    page = "" if hit.page is None else f"page {hit.page}"
    head = (" › ".join((hit.title or hit.source, *hit.headings)), page)
    about = {"source": hit.source, "start": hit.start, "end": hit.end, "metadata": dict(hit.metadata or {})}
    shown = forms(hit.text, terms, _SIZES)
    return Item("document", hit.ref, head, shown, hit.text, "answers the goal", hit.score, about=about)
