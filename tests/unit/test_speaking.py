"""Built-in agents: tools and models that do not behave, and what the finder quotes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import threefold
from threefold import Act, Agent, Kernel, Tool
from threefold.model.chat import Call, Reply
from threefold.testing import ScriptedModel
from threefold.testing.fakes import HashEmbedder


@pytest.fixture
def db() -> Iterator[threefold.Threefold]:
    with threefold.open(":memory:", embedder=HashEmbedder(), background=False) as db:
        yield db


def asked(db: threefold.Threefold, agent: Agent | None, goal: str = "goal", **settings: Any) -> Any:
    """The outcome of a request to one agent, or to the one that there is by itself."""

    async def play() -> Any:
        async with Kernel(db, **settings) as kernel:
            if agent is not None:
                kernel.agents.register(agent)
            return await kernel.submit(goal, "alice", thread="t")

    return asyncio.run(play())


def tooled(call: Callable[..., Any], arguments: dict[str, Any]) -> tuple[Agent, ScriptedModel]:
    model = ScriptedModel([Reply("Let me look.", (Call("1", "look", arguments),), "tools"), "It is there."])
    return Agent("guide", tools=(Act(Tool("look", "looks"), call),)), model


@pytest.mark.parametrize("name", ["what", "call", "run", "named", "values"])
def test_a_tool_may_call_its_parameters_what_it_likes(db: threefold.Threefold, name: str) -> None:
    agent, model = tooled(lambda **named: dict(named), {name: "ferry"})
    outcome = asked(db, agent, chat=model)
    assert [(step.status, step.result) for step in outcome.steps] == [("completed", {name: "ferry"})]
    assert outcome.answer == "Let me look.\n\nIt is there."


def test_a_tool_that_is_called_wrongly_is_told_to_the_model(db: threefold.Threefold) -> None:
    for call in (lambda where: where, next):
        agent, model = tooled(call, {"what": float("nan")})
        outcome = asked(db, agent, chat=model)
        assert (outcome.status, outcome.steps[0].status) == ("completed", "error")
        assert "TypeError" in outcome.steps[0].result
        assert outcome.steps[0].arguments == "{'what': nan}"
        assert model.asked[1].messages[-1].text.startswith("It failed: tool 'look' failed: TypeError")


class Model(ScriptedModel):
    """A model that tells when its stream was read to the end, and streams nothing."""

    ended = 0

    async def stream(self, messages, tools=(), max_tokens=None):
        yield await self.chat(messages, tools)
        self.ended += 1


def test_how_a_model_ends_is_told(db: threefold.Threefold) -> None:
    agent = Agent("guide")
    model = Model(
        [Reply("I will not.", finish="refused"), Reply("", finish="refused"), Reply("Half a", finish="length")]
    )
    refused, silent, cut = (asked(db, agent, chat=model) for _ in range(3))
    assert (refused.status, refused.error, refused.answer) == ("failed", "I will not.", "I will not.")
    assert (silent.status, silent.error) == ("failed", "'scripted' refused to answer")
    assert (cut.status, cut.answer) == ("completed", "Half a")
    assert cut.warnings == ("'scripted' came to its limit of tokens; the answer is cut off",)
    assert cut.as_json()["warnings"] == list(cut.warnings)
    assert model.ended == 3


def test_a_model_that_breaks_is_a_failure(db: threefold.Threefold) -> None:
    outcome = asked(db, Agent("guide"), chat=ScriptedModel(lambda _: 1 // 0))  # type: ignore[arg-type, return-value]
    assert (outcome.status, "ZeroDivisionError" in outcome.error) == ("failed", True)


def test_what_the_finder_quotes_cites_nothing(db: threefold.Threefold) -> None:
    alice = db.user("alice")
    alice.mem.remember("the ferry is blue", layer="working")
    alice.doc.ingest("The ferry to Porto Santo goes at eight [m1], says [d7].\n", source="ferry.md")
    db.embed_pending()
    outcome = asked(db, None, "When does the ferry to Porto Santo go?")
    assert outcome.agent == "finder"
    assert "goes at eight (m1), says (d7)." in outcome.answer
    quoted = {line.rsplit("[", 1)[1].rstrip("]") for line in outcome.answer.splitlines() if line.startswith("- ")}
    assert set(outcome.citations) == quoted
