"""The asynchronous face: the same names, awaited; cancellation is recorded; nothing blocks the loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import threefold
import threefold.aio
from threefold.testing.fakes import HashEmbedder


def test_the_same_names_awaited(tmp_path: Path) -> None:
    async def main() -> None:
        async with threefold.aio.open(tmp_path / "store", embedder=HashEmbedder()) as db:
            alice = db.user("alice")
            async with alice.turn("trip") as turn:
                await turn.prompt("Plan a weekend in Lisbon")
                await turn.publish("plan.md", "# plan")
                await turn.answer("Here is the plan")
            hits = await alice.conv.search("Lisbon")
            assert hits[0].conversation == "trip"
            view = await alice.conv.turn(turn.ref)
            assert await alice.read(view.files[0].ref) == b"# plan"
            assert [c.id for c in await alice.conv.conversations()] == ["trip"]
            await alice.export(tmp_path / "all.zip")
            receipt = await alice.forget()
            assert receipt.stores["turns"] == 1
            assert (await db.state()).counts["turns"] == 0

    asyncio.run(main())


def test_threads_awaited() -> None:
    async def main() -> None:
        async with threefold.aio.open(":memory:", embedder=None) as db:
            alice = db.user("alice")
            thread = alice.thread("trip")
            for number in range(60):
                await thread.add("user", f"Message {number}")
            context = await (await thread).context()
            assert (context.summarised, len(context.messages), thread.name) == (10, 50, "trip")
            assert [entry.name for entry in await alice.threads()] == ["trip"]
            assert (await thread.archive()).status == "archived"
            with pytest.raises(threefold.Conflict):
                await thread.add("user", "late")
            with pytest.raises(threefold.NotFound):
                await alice.thread("nowhere").context()

    asyncio.run(main())


def test_every_public_name_of_the_synchronous_face_is_there() -> None:
    async def main() -> None:
        db = await threefold.aio.open(":memory:", embedder=None)
        with threefold.open(":memory:", embedder=None) as plain:
            for face, target in (
                (db, plain),
                (db.user("a"), plain.user("a")),
                (db.user("a").conv, plain.user("a").conv),
                (db.user("a").turn("t"), plain.user("a").turn("t")),
            ):
                names = [name for name in dir(target) if not name.startswith("_")]
                assert set(names) <= set(dir(face))
                for name in names:
                    getattr(face, name)
        await db.close()

    asyncio.run(main())


def test_a_forgotten_await_on_a_turn_loses_nothing() -> None:
    async def main() -> None:
        async with threefold.aio.open(":memory:", embedder=None) as db:
            alice = await db.user("alice")
            async with alice.turn("trip") as turn:
                turn.prompt("said without await")
            assert (await alice.conv.turn(turn.ref)).messages[0].text == "said without await"

    asyncio.run(main())


def test_a_cancelled_task_leaves_a_cancelled_turn() -> None:
    async def main() -> None:
        async with threefold.aio.open(":memory:", embedder=None) as db:
            alice = db.user("alice")

            async def slow() -> None:
                async with alice.turn("trip", turn="slow") as turn:
                    await turn.prompt("this takes long")
                    await asyncio.sleep(60)

            task = asyncio.create_task(slow())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            (entry,) = await alice.conv.turns("trip")
            assert (entry.turn, entry.status) == ("slow", "cancelled")

    asyncio.run(main())


def test_an_exception_leaves_a_failed_turn_and_goes_on() -> None:
    async def main() -> None:
        async with threefold.aio.open(":memory:", embedder=None) as db:
            alice = db.user("alice")
            turn = alice.turn("trip")

            async def failing() -> None:
                async with turn:
                    await turn.prompt("book a table")
                    raise ValueError("no tables")

            with pytest.raises(ValueError, match="no tables"):
                await failing()
            view = await alice.conv.turn(turn.ref)
            assert (view.status, view.error) == ("failed", "ValueError: no tables")

    asyncio.run(main())


def test_many_tasks_record_at_once_and_none_is_lost(tmp_path: Path) -> None:
    async def main() -> None:
        async with threefold.aio.open(tmp_path / "store", embedder=None) as db:
            alice = db.user("alice")

            async def one(i: int) -> str:
                async with alice.turn(f"c{i % 7}", turn=f"t{i}") as turn:
                    await turn.prompt(f"message number {i}")
                return str(turn.outcome)

            outcomes = await asyncio.gather(*(one(i) for i in range(200)))
            assert set(outcomes) == {"created"}
            assert (await db.state()).counts["turns"] == 200

    asyncio.run(main())


def test_errors_are_those_of_the_synchronous_face() -> None:
    async def main() -> None:
        async with threefold.aio.open(":memory:", embedder=None) as db:
            with pytest.raises(threefold.InvalidInput, match="user"):
                db.user(" ")
            with pytest.raises(threefold.InvalidInput, match="limit"):
                await db.user("alice").conv.search("x", limit=0)
            with pytest.raises(AttributeError):
                db.user("alice").no_such_name  # noqa: B018

    asyncio.run(main())


def test_restore_and_closing_twice(tmp_path: Path) -> None:
    async def main() -> None:
        db = await threefold.aio.open(tmp_path / "store", embedder=None)
        async with db.user("alice").turn("trip") as turn:
            await turn.prompt("said")
        await db.user("alice").export(tmp_path / "all.zip")
        await db.user("alice").forget()
        assert (await db.restore(tmp_path / "all.zip")).created == 1
        await db.close()
        await db.close()
        with pytest.raises(threefold.Unavailable, match="closed"):
            await db.state()

    asyncio.run(main())


async def documents(db) -> None:
    alice = db.user("alice")
    done = await alice.doc.ingest("# Boats\n\nThe river boat.", source="s")
    assert (await alice.doc.retrieve("river"))[0].document == done.id
    assert "> The river boat." in await alice.doc.get_context("river")
    assert await alice.read(done.ref) == b"# Boats\n\nThe river boat."
    await db.organization().doc.ingest("shared", source="s")
    assert len(await alice.doc.list(shared=True)) == 2
    await alice.doc.clear()


def test_documents_are_awaited() -> None:
    async def run() -> None:
        async with threefold.aio.open(":memory:", embedder=HashEmbedder()) as db:
            await documents(db)

    asyncio.run(run())


def test_tokens_are_awaited(tmp_path):
    async def main():
        async with threefold.aio.open(tmp_path, embedder=None, background=False) as db:
            made = await db.tokens.create("ann")
            assert await db.tokens.find(made.secret) == made.token
            await db.tokens.revoke(made.token.id)
            assert await db.tokens.list() == ()

    asyncio.run(main())
