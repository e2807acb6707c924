"""Engines that packages offer, and the gate before a context."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import numpy as np
import pytest

import threefold
from threefold.context import Contexts
from threefold.context.manager import GROUP
from threefold.search.embedding import UNRELATED, Background
from threefold.search.relevance import GATE
from threefold.testing.fakes import HashEmbedder


def offered(*values: str) -> list[EntryPoint]:
    return [EntryPoint(f"engine{number}", value, GROUP) for number, value in enumerate(values)]


def test_a_package_offers_engines_and_one_that_cannot_be_loaded_hides_no_other() -> None:
    points = offered("threefold.context:DefaultEngine", "nowhere:Engine", "threefold.context:EngineInfo")
    contexts = Contexts(lambda: points)
    assert [info.id for info in contexts.list()] == ["default"]
    taken, missing, wrong = contexts.problems
    assert "'default' is registered already" in taken
    assert "No module named 'nowhere'" in missing
    assert "engine2" in wrong


class Shifted:
    """An embedder that calls nothing unrelated: every cosine is at least 0.7."""

    name, dimensions, ready = "shifted", 4, True

    def embed(self, texts):
        rows = np.random.default_rng(1).normal(size=(len(texts), 4)).astype(np.float32) * 0.3
        rows[:, 0] = 1.0
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_what_is_unrelated_is_measured_once_for_each_embedder() -> None:
    assert Background(None)() == 0.0
    assert 0.6 < Background(Shifted())() < 0.99
    counting = HashEmbedder()
    calls = []
    embed = counting.embed
    counting.embed = lambda texts: calls.append(len(texts)) or embed(texts)  # type: ignore[method-assign]
    background = Background(counting)
    assert background() == background()
    assert len(calls) == 1


@pytest.mark.parametrize("embedder", ["bundled", None])
def test_the_gate_tells_what_is_to_the_point(embedder: str | None) -> None:
    notes = (
        "the build broke with ERR_4521 again", "invoice INV-2026-0042 was paid", "妈妈的生日是五月三日",
        "We took the ferry from Funchal to Porto Santo at eight", "Встреча с Ольгой перенесена на четверг",
        *(f"hello, this is note number {number} of the day" for number in range(20)),
    )  # fmt: skip
    with threefold.open(":memory:", embedder=embedder, background=False) as db:
        alice = db.user("alice")
        assert alice.conv.search("anything").relevance == 0.0
        for number, note in enumerate(notes):
            with alice.turn(f"c{number}") as turn:
                turn.prompt(note)
        db.embed_pending()
        related = (
            "what happened with ERR_4521?",
            "INV-2026-0042",
            "妈妈的生日",
            "ferry to Porto Santo",
            "встреча с Ольгой",
        )
        for question in related:
            assert alice.conv.search(question).relevance > GATE, question
        for question in ("Explain the Pythagorean theorem", "光合作用如何进行", "qwertz"):
            assert alice.conv.search(question).relevance < GATE / 2, question
        plain = alice.conv.search("qwertz ferry", ranking=threefold.Ranking(learned=False))
        assert plain.relevance == 1.0


def test_a_context_asks_the_embedder_once() -> None:
    counting, asked = HashEmbedder(), list[list[str]]()
    embed = counting.embed
    counting.embed = lambda texts: asked.append(list(texts)) or embed(texts)  # type: ignore[method-assign]
    with threefold.open(":memory:", embedder=counting, background=False) as db:
        alice = db.user("alice")
        alice.mem.remember("likes ferries")
        db.organization().doc.ingest("ferries leave at eight", source="times.md")
        with alice.turn("old") as turn:
            turn.prompt("which ferries leave?")
        db.embed_pending()
        asked.clear()
        for _ in range(3):
            assert alice.context("which ferries leave at eight?").text
        assert [texts for texts in asked if texts != list(UNRELATED)] == [["which ferries leave at eight?"]]
        for number in range(40):
            alice.conv.search(f"question {number}")
        assert alice.conv.search("which ferries leave at eight?").mode == "hybrid"
        assert asked[-1] == ["which ferries leave at eight?"]
