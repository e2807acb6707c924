"""Which notes would be merged: precision and recall of `same` over labelled pairs, one JSON line for each group.

    python benchmarks/reconcile.py [--pairs FOLDER | --development | --embedder NAME] [--relations]
    python benchmarks/reconcile.py --chat ADDRESS --chat-model MODEL [--pairs FOLDER]

By default the pairs of `data/pairs/judged`, of which nothing was made; with `--pairs` those of any folder. With
`--development` the pairs that all was made with, each by weights that were learned without its language, then without
its half. With `--embedder` it prints instead what the vectors of an embedder would add (`_vectors.added`), over the
pairs that all was made with and tuned on: the decision itself looks at none. With `--chat` a chat model is the judge,
as it is in `memories reconcile`, asked about so many pairs `--at-once`. `--relations` prints, for each relation,
how often each was told instead.
"""

from __future__ import annotations

import argparse
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from _pairs import JUDGED, TUNED, Pair, crossed, pairs, seen
from _vectors import added
from tqdm import tqdm

from threefold.embedders.opening import NAMED, open_embedder
from threefold.models.judging import model_judge
from threefold.models.opening import open_chat
from threefold.ports import ChatModel
from threefold.realms.mem.judging import MOST_ASKED, judged
from threefold.realms.mem.likeness import Likeness, compare, note_of

# A judge may take its time here; each answer is waited for so many seconds.
PATIENCE = 3600.0
RELATIONS = ("same", "refines", "contradicts", "different")
Told = Sequence[tuple[Pair, str]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    options = _options(arguments)
    if options.embedder is not None:
        told, embedder = [*pairs(), *pairs(TUNED)], open_embedder(options.embedder)
        line = {"embedder": embedder.name, "n": len(told), "metrics": added(told, seen(told), embedder)}
        print(json.dumps(line), flush=True)
        return 0
    for how, told in _told(options):
        for line in _relations(told) if options.relations else _merged(told):
            print(json.dumps({**how, **line}, ensure_ascii=False), flush=True)
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--pairs", type=Path, default=JUDGED, help="a folder of pairs (those that judge are the default)"
    )
    which.add_argument("--development", action="store_true", help="the pairs it was made with, cross-validated")
    which.add_argument("--embedder", choices=NAMED, help="print what its vectors would add")
    parser.add_argument("--chat", metavar="NAME", help="a chat model judges: 'anthropic' or the address of a server")
    parser.add_argument("--chat-model", metavar="MODEL", help="which of its models; its key is in THREEFOLD_CHAT_KEY")
    parser.add_argument("--at-once", type=int, default=MOST_ASKED, metavar="N", help="pairs that it is asked at once")
    parser.add_argument("--relations", action="store_true", help="print how relations are confused")
    options = parser.parse_args(arguments)
    if not 1 <= options.at_once <= MOST_ASKED:
        parser.error(f"--at-once must be from 1 to {MOST_ASKED}, as many as are asked about at all")
    if not options.development and not any(options.pairs.glob("*.jsonl")):
        parser.error(f"{options.pairs} has no pairs: name a folder with --pairs, or measure with --development")
    return options


def _told(options: argparse.Namespace) -> Iterator[tuple[dict[str, str], Told]]:
    """How it was measured, and each pair with the relation it was told to have."""
    if not options.development:
        told = pairs(options.pairs)
        model = open_chat(options.chat, options.chat_model, os.environ.get("THREEFOLD_CHAT_KEY"))
        found = [compare(note_of(pair.first), note_of(pair.second)) for pair in told]
        if model is not None:
            found = _judged(told, found, model, options.at_once)
        how = {} if model is None else {"judge": model.name}
        yield how, [(pair, like.relation) for pair, like in zip(told, found, strict=True)]
        return
    told = pairs()
    facts = seen(told)
    for by in ("language", "half"):
        yield {"learned": f"without its {by}"}, list(zip(told, crossed(told, facts, by), strict=True))


def _judged(told: Sequence[Pair], found: Sequence[Likeness], model: ChatModel, at_once: int) -> list[Likeness]:
    """What rules and model say together. Pairs are shuffled: one of a kind beside another would tell too much."""
    judge, after = model_judge(model, PATIENCE, known=()), list(found)
    order = random.Random(1).sample(range(len(told)), len(told))
    for start in tqdm(range(0, len(order), at_once), desc="asking", unit="question"):
        some = order[start : start + at_once]
        notes = [(f"{at} {side}", getattr(told[at], side)) for at in some for side in ("first", "second")]
        given, _ = judged(notes, {(2 * i, 2 * i + 1): found[at] for i, at in enumerate(some)}, {}, judge)
        for i, at in enumerate(some):
            after[at] = given[2 * i, 2 * i + 1]
    return after


def _merged(told: Told) -> Iterator[dict[str, Any]]:
    for group in ("all", *sorted({pair.language for pair, _ in told})):
        own = [(pair.relation, relation) for pair, relation in told if group in ("all", pair.language)]
        merged = sum(relation == "same" for _, relation in own)
        right = sum(pair == relation == "same" for pair, relation in own)
        metrics = {
            "precision": right / merged if merged else 1.0,
            "recall": right / max(sum(was == "same" for was, _ in own), 1),
        }
        yield {"unit": "pair", "group": group, "n": len(own), "metrics": metrics}


def _relations(told: Told) -> Iterator[dict[str, Any]]:
    for was in RELATIONS:
        counts = Counter(relation for pair, relation in told if pair.relation == was)
        yield {"relation": was, "n": counts.total(), "told": {relation: counts[relation] for relation in RELATIONS}}


if __name__ == "__main__":
    raise SystemExit(main())
