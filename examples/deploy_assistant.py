"""Documents, memory of a company and of a person, a thread, one request: all in one place, with or without a model.

    python examples/deploy_assistant.py
    python examples/deploy_assistant.py --chat http://localhost:11434/v1 --model llama3.2

Without a model the kernel quotes what it found. With one (any server that speaks OpenAI's wire, or `anthropic` with
THREEFOLD_CHAT_KEY set) the model answers from the same context.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from pathlib import Path

import threefold
from threefold import Agent, Capability, Kernel

HERE = Path(__file__).parent


async def main(chat: str | None, model: str | None) -> None:
    """Set the scene, ask, and show where the answer came from."""
    settings = (
        {} if chat is None else {"chat": chat, "chat_model": model, "chat_key": os.environ.get("THREEFOLD_CHAT_KEY")}
    )
    with threefold.open(":memory:", background=False, **settings) as db:
        # What everybody in the company may know, and a document for all of them.
        company = db.organization()
        company.mem.remember("The company runs its services on AWS ECS", tags=["infra"])
        company.doc.ingest(HERE / "deployment.md", metadata={"category": "docs"})
        # What Alice said about herself, and what was said before.
        alice = db.user("alice")
        alice.mem.remember("prefers short answers with the command to type", kind="preference", context="said in May")
        thread = alice.thread("alice-deploy")
        thread.add("user", "Help me deploy the billing service")
        thread.add("assistant", "Gladly. Where does it run?")
        db.embed_pending()

        async with Kernel(db) as kernel:
            if chat is not None:
                kernel.agents.register(Agent(
                    "deploy-assistant",
                    "helps engineers deploy",
                    (Capability("deploy", "deployment of services", 0.95),),
                    instructions="You help engineers deploy. Be concise.",
                ))  # fmt: skip
            goal = "How do I configure the ECS task definition?"
            print(f"alice: {goal}\n")
            async for event in kernel.stream(goal, owner="alice", thread="alice-deploy"):
                if event.kind == "delta":
                    print(event.text, end="", flush=True)
            outcome = event.outcome

        assert outcome is not None
        if outcome.error:
            raise SystemExit(f"\n{outcome.error}")
        print(f"\n\nby {outcome.agent}, from {outcome.context.estimated_tokens} tokens of context:")
        for entry in outcome.context.entries:
            print(f"  {entry.label}  {entry.section}, {entry.because}: {' '.join(entry.text.split())[:60]}…")
        print(f"  the thread: {len(outcome.context.thread.messages)} messages before this one")
        print(f"cited: {', '.join(f'{label} = {ref}' for label, ref in outcome.citations.items()) or 'nothing'}")
        print(f"recorded: {alice.conv.turn(outcome.ref).messages[0].text!r} and its answer, as turn 3 of the thread")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--chat", help="a server's address, or anthropic")
    parser.add_argument("--model", help="the model's name")
    options = parser.parse_args()
    asyncio.run(main(options.chat, options.model))
