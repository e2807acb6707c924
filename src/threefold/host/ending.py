"""How a request ends: its turn is recorded whatever happened, and the outcome says what came of it."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import Executor
from typing import Any, Final

from threefold.errors import ThreefoldError, Unavailable
from threefold.host.events import Outcome
from threefold.host.pools import within
from threefold.host.run import Run
from threefold.model.clean import storable
from threefold.model.context import ComputedContext
from threefold.model.kinds import Status
from threefold.realms.conv.recorder import TurnHandle
from threefold.text.tokens import count_tokens

_LABEL: Final = re.compile(r"\[([a-z][0-9]{1,4})\]")
# Seconds between the tries of recording in a store that is busy.
PAUSES: Final = (0.2, 1.0, 3.0)


async def finished(
    run: Run, turn: TurnHandle, agent: str, owner: str, ended: tuple[Status, str, str | None], store: Executor
) -> Outcome:
    """Record a turn that ended with this status, answer and error."""
    run.end()
    status, answer, error = ended
    answer = storable(answer)
    for number, step in enumerate(run.steps, 1):
        turn.step(step.name, step.arguments, step.result, step.status)
        turn.event("chat.step", {"step": f"step_{number}", "name": step.name, "status": step.status})
    for file in run.files:
        turn.publish(file.name, file.data, file.mime)
    for piece in run.panels:
        turn.stream(piece.marker, piece.text, piece.name)
    refs = run.context.refs
    citations = {label: refs[label] for label in dict.fromkeys(_LABEL.findall(answer)) if label in refs}
    for label, ref in citations.items():
        turn.source(ref, title=label)
    if citations:
        turn.event("chat.citations", citations)
    if answer:
        turn.answer(answer)
    turn.tokens(**run.tokens)
    mark(turn, status, error)
    ref, problem = await recorded(turn, store)
    if problem is not None:
        lost = f"the turn was not recorded: {problem}"
        status, error = "failed", lost if error is None else f"{error}; {lost}"
    return Outcome(run.intent.id, run.goal, owner, agent, status, answer, ref, run.context, citations,
                   tuple(run.steps), dict(run.tokens), error, run.intent.thread, tuple(run.warnings))  # fmt: skip


def mark(turn: TurnHandle, status: Status, error: str | None) -> None:
    """Say in the turn how it ended."""
    if status == "failed":
        turn.fail(storable(error or ""))
    elif status == "cancelled":
        turn.cancel(error)


async def recorded(turn: TurnHandle, store: Executor) -> tuple[str, str | None]:
    """The reference of a turn that is recorded now; or, after some tries where the store is busy, why it could not."""
    problem = ""
    for pause in (0.0, *PAUSES):
        await asyncio.sleep(pause)
        try:
            return await within(store, turn.record), None
        except Unavailable as error:
            problem = str(error)
        except ThreefoldError as error:
            return "", str(error)
    return "", problem


def given(context: ComputedContext) -> dict[str, Any]:
    """What an agent was given to see, by reference: the things themselves stay where they are.

    `tokens` of a thing are those of its text as it was shown, `thread_tokens` those of all that was said.
    """
    said = () if context.thread is None else context.thread.messages
    return {
        "engine": context.engine, "tokens": context.estimated_tokens, "budget": context.budget,
        "given": [{"label": each.label, "ref": each.ref, "section": each.section, "because": each.because,
                   "score": each.score, "whole": each.whole, "tokens": count_tokens(each.text)}
                  for each in context.entries],
        "thread": None if context.thread is None else [each.ref for each in said],
        "thread_tokens": sum(count_tokens(each.text) for each in said),
        "dropped": [{"section": each.section, "ref": each.ref, "why": each.why, "tokens": each.tokens,
                     "score": each.score} for each in context.dropped],
        "warnings": list(context.warnings),
    }  # fmt: skip
