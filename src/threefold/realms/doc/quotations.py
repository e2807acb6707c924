"""Chunks as one text for a prompt: quoted, with where they are from, within a budget. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from threefold.realms.doc.retrieving import DocHit
from threefold.text.chunking import chunk
from threefold.text.quoting import named, quoted
from threefold.text.tokens import count_tokens

_PARTED = "\n\n"


def context_of(hits: Sequence[DocHit], max_tokens: int | None = None) -> str:
    """The hits, joined where they touch, each quoted under a line of ours; at most so many tokens."""
    passages = joined(hits)
    if max_tokens is None:
        return _PARTED.join(framed(each) for each in passages)
    said = ""
    for hit in passages:
        more = said + _PARTED + framed(hit) if said else framed(hit)
        if count_tokens(more) > max_tokens:
            shorter = _shortened(hit, max_tokens - count_tokens(said + _PARTED))
            more = said + _PARTED + shorter if said and shorter else shorter
            return more if more and count_tokens(more) <= max_tokens else said
        said = more
    return said


def framed(hit: DocHit) -> str:
    """A passage as a quotation, under a line that says where it is from."""
    where = [f'"{named(hit.title)}"']
    if hit.headings:
        where.append("under " + named(" › ".join(hit.headings)))
    if hit.page is not None:
        where.append(f"page {hit.page}")
    where += [f"source {named(hit.source)}", hit.ref]
    return f"From {', '.join(where)}:\n{quoted(hit.text)}"


def joined(hits: Sequence[DocHit]) -> list[DocHit]:
    """The hits, best first, where those that follow one another in a document are one, as good as the best of them."""
    by_place = sorted(hits, key=lambda hit: (hit.document, hit.start))
    runs: list[DocHit] = []
    for hit in by_place:
        last = runs[-1] if runs else None
        if last is None or last.document != hit.document or hit.number > last.number + 1:
            runs.append(hit)
            continue
        gap = hit.start - last.end
        text = last.text + (_PARTED + hit.text if gap > 0 else hit.text[-gap:] if gap else hit.text)
        common = tuple(a for a, b in zip(last.headings, hit.headings, strict=False) if a == b)
        runs[-1] = replace(
            last, text=text, end=hit.end, number=hit.number, score=max(last.score, hit.score), headings=common
        )
    return sorted(runs, key=lambda hit: (-hit.score, hit.document, hit.start))


def _shortened(hit: DocHit, tokens: int) -> str:
    """The beginning of a passage that fits, whole sentences if it can be; empty where nothing does."""
    frame = count_tokens(framed(replace(hit, text="")))
    # The mark of each line costs, and the frame's end and the text's beginning are counted as one.
    for share in (0.9, 0.6, 0.3):
        room = int((tokens - frame) * share)
        if room < 1:
            return ""
        said = framed(replace(hit, text=_first(hit.text, room)))
        if count_tokens(said) <= tokens:
            return said
    return ""


def _first(text: str, tokens: int) -> str:
    first = chunk(text, tokens=tokens, overlap=0)[0]
    return text[first.start : first.end] + (" …" if first.end < len(text) else "")
