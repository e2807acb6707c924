"""Retrieval from documents through the product's own code path: take a set in, embed it, ask, compare with gold.

One JSON line for each group on standard output; progress on standard error. For `chunking` the gold are character
spans: `recall` is the share of their characters that the retrieved chunks have, `precision` the share of the retrieved
characters that are gold, `iou` both over their union, each the mean over questions.

    python benchmarks/documents.py --set chunking --data FOLDER --strategy recursive
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _dataset import lines_of
from _metrics import distinct, mean, measure
from _store import embed, open_store, progress

import threefold
from threefold.model.document import STRATEGIES

Span = tuple[int, int]


class Asked(NamedTuple):
    """A question with its gold, whose documents it is asked of, and the groups that it counts for."""

    user: str
    text: str
    gold: Any
    groups: tuple[str, ...]


class Texts(NamedTuple):
    """A set: documents by user as (source, title, text), questions, and what an item is called."""

    unit: str
    documents: Mapping[str, Sequence[tuple[str, str | None, str]]]
    questions: Sequence[Asked]


def chunking(folder: Path) -> Texts:
    """Five long documents of one user, and questions whose answers are spans of one of them."""
    documents = [
        (path.name, None, path.read_bytes().decode().replace("\r\n", "\n")) for path in sorted(folder.glob("*.md"))
    ]
    csv.field_size_limit(10**9)
    with (folder / "questions.csv").open(encoding="utf-8", newline="") as file:
        questions = [
            Asked("all", line["question"], (f"{line['corpus_id']}.md", _spans(line["references"])),
                  ("all", line["corpus_id"]))
            for line in csv.DictReader(file)
        ]  # fmt: skip
    return Texts("character", {"all": documents}, questions)


def _spans(references: str) -> list[Span]:
    return union((each["start_index"], each["end_index"]) for each in json.loads(references))


def xquad(folder: Path) -> Texts:
    """A language is a user, a paragraph a document; without the variants of questions."""
    documents: dict[str, list[tuple[str, str | None, str]]] = defaultdict(list)
    for line in lines_of(folder / "documents.jsonl"):
        documents[line["lang"]].append((line["id"], None, line["text"]))
    questions = [
        Asked(line["lang"], line["text"], {line["gold"]}, ("all", line["lang"]))
        for line in lines_of(folder / "queries.jsonl")
    ]
    return Texts("paragraph", documents, questions)


def scifact(folder: Path) -> Texts:
    """Abstracts with their titles."""
    with gzip.open(folder / "documents.jsonl.gz", "rt", encoding="utf-8") as file:
        found = [(line["id"], line["title"], line["text"]) for line in map(json.loads, file)]
    questions = [Asked("all", line["text"], set(line["gold"]), ("all",)) for line in lines_of(folder / "queries.jsonl")]
    return Texts("document", {"all": found}, questions)


LOADERS: Mapping[str, Callable[[Path], Texts]] = {"chunking": chunking, "xquad": xquad, "scifact": scifact}


def union(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that touch as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def overlap(retrieved: Mapping[str, Sequence[Span]], gold: tuple[str, Sequence[Span]]) -> dict[str, float]:
    """Recall, precision and IoU of retrieved spans by document; characters count once."""
    spans = {document: union(found) for document, found in retrieved.items()}
    document, wanted = gold
    both = sum(
        max(0, min(end, last) - max(start, first)) for start, end in spans.get(document, ()) for first, last in wanted
    )
    given = sum(end - start for found in spans.values() for start, end in found)
    asked = sum(end - start for start, end in wanted)
    return {"recall": both / asked, "precision": both / given if given else 0.0, "iou": both / (given + asked - both)}


def ingest(db: threefold.Threefold, texts: Texts, settings: Mapping[str, Any]) -> int:
    """Take all documents in and embed them; returns how many chunks there are."""
    chunks = 0
    with progress(total=sum(map(len, texts.documents.values())), desc="ingesting", unit="doc") as bar:
        for user, documents in texts.documents.items():
            for source, title, text in documents:
                chunks += db.user(user).doc.ingest(text, source=source, title=title, **settings).chunks
                bar.update()
    embed(db)
    return chunks


def ask(db: threefold.Threefold, texts: Texts, limit: int) -> Iterator[tuple[Asked, dict[str, float]]]:
    """Each question with what its answer is worth."""
    for question in progress(texts.questions, desc="asking", unit="question"):
        doc = db.user(question.user).doc
        if texts.unit == "character":
            spans: dict[str, list[Span]] = defaultdict(list)
            for hit in doc.retrieve(question.text, limit):
                spans[hit.source].append((hit.start, hit.end))
            yield question, overlap(spans, question.gold)
        else:
            found = doc.retrieve(question.text, max(limit, 30))
            yield question, measure(distinct(hit.source for hit in found), question.gold)


def run(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The lines of one measurement."""
    texts = LOADERS[options.set](Path(options.data))
    settings = {"strategy": options.strategy, "chunk_tokens": options.chunk_tokens, "overlap": options.overlap}
    with tempfile.TemporaryDirectory() as folder, open_store(folder, options.embedder) as db:
        chunks = ingest(db, texts, settings)
        groups: dict[str, list[dict[str, float]]] = defaultdict(list)
        for question, measured in ask(db, texts, options.limit):
            for group in question.groups:
                groups[group].append(measured)
    facts = {"limit": options.limit, **settings, "chunks": chunks, "embedder": options.embedder}
    for group, measured in groups.items():
        yield {
            "set": options.set, "unit": texts.unit, "group": group, "n": len(measured), "metrics": mean(measured),
            **facts,
        }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--set", required=True, choices=LOADERS)
    parser.add_argument("--data", required=True, metavar="FOLDER", help="the folder of the set")
    parser.add_argument("--strategy", choices=STRATEGIES, default="recursive")
    parser.add_argument("--chunk-tokens", type=int, default=512)
    parser.add_argument("--overlap", type=int, default=50)
    parser.add_argument("--limit", type=int, default=5, help="how many chunks are retrieved (default: 5)")
    parser.add_argument("--embedder", default="bundled", help="bundled, none, … or module:factory (default: bundled)")
    for line in run(parser.parse_args(argv)):
        print(json.dumps(line, ensure_ascii=False), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
