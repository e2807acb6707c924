"""Where bytes are kept: how folders, object stores and memory differ; settings; links; the daily collection."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore

import threefold
import threefold.aio
from threefold.backends.blobs import LocalBlobs, MemoryBlobs
from threefold.backends.blobs.objects import ObjectBlobs
from threefold.backends.memory import MemoryStore as MemoryRecord
from threefold.backends.opening import open_blobs
from threefold.errors import Conflict, Forbidden, IntegrityError, InvalidInput, NotFound, Unavailable
from threefold.jobs import worker
from threefold.jobs.collect import collect_blobs
from threefold.model.scope import Scope
from threefold.model.times import now
from threefold.ports import Blobs
from threefold.testing.contract.desk import ALICE

HOUR = timedelta(hours=1)
QUIET = {"embedder": None, "background": False, "durable": False}


def folder_blobs(folder: Path) -> Blobs:
    return LocalBlobs(folder)


def object_blobs(folder: Path) -> Blobs:
    folder.mkdir(exist_ok=True)
    return ObjectBlobs(LocalStore(folder), str(folder))


kinds = pytest.mark.parametrize("make", [folder_blobs, object_blobs])


def age(folder: Path, hours: float) -> Path:
    """Make the only file look older."""
    (file,) = [path for path in folder.rglob("*") if path.is_file()]
    os.utime(file, (time.time() - hours * 3600,) * 2)
    return file


@kinds
def test_putting_again_makes_old_bytes_young(make: Callable[[Path], Blobs], tmp_path: Path) -> None:
    blobs = make(tmp_path)
    digest = blobs.put(ALICE, b"data")
    age(tmp_path, 48)
    assert list(blobs.stale(now() - HOUR)) == [(blobs.key(ALICE), digest)]
    blobs.put(ALICE, b"data")
    assert list(blobs.stale(now() - HOUR)) == []
    assert blobs.discard(blobs.key(ALICE), [digest], now() - HOUR) == 0
    assert blobs.get(ALICE, digest) == b"data"


def test_an_object_that_is_young_is_not_written_again(tmp_path: Path) -> None:
    blobs = object_blobs(tmp_path)
    blobs.put(ALICE, b"data")
    before = age(tmp_path, 0.9).stat().st_mtime
    blobs.put(ALICE, b"data")
    assert age(tmp_path, 2).stat().st_mtime < before
    blobs.put(ALICE, b"data")
    ((_, at),) = blobs.digests(ALICE)
    assert at > now() - HOUR


@kinds
def test_both_lay_files_out_alike_and_leave_others_alone(make: Callable[[Path], Blobs], tmp_path: Path) -> None:
    blobs = make(tmp_path)
    digest = blobs.put(ALICE, b"data")
    assert (tmp_path / blobs.key(ALICE) / digest[:2] / digest).read_bytes() == b"data"
    for name in (
        "note.txt",
        f"{blobs.key(ALICE)}/{digest[:2]}/readme",
        f"{blobs.key(ALICE)}/ff/{digest}",
        f"x/ab/{digest}",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("not ours")
    assert list(blobs.stale(now() + HOUR)) == [(blobs.key(ALICE), digest)]
    for owner, name in (("../x", digest), (blobs.key(ALICE), "../note.txt"), (blobs.key(ALICE), f"{digest}.a/b.part")):
        with pytest.raises(InvalidInput):
            blobs.discard(owner, [name], now() + HOUR)


@kinds
def test_bytes_that_were_changed_are_told_from_those_put(make: Callable[[Path], Blobs], tmp_path: Path) -> None:
    blobs = make(tmp_path)
    digest = blobs.put(ALICE, b"data")
    age(tmp_path, 0).write_bytes(b"other")
    with pytest.raises(IntegrityError, match=digest):
        blobs.get(ALICE, digest)


def test_unfinished_files_are_collected_when_they_are_old(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)
    digest = blobs.put(ALICE, b"data")
    file = age(tmp_path, 0)
    unfinished = file.rename(file.with_name(f"{digest}.a_1.part"))
    store = MemoryRecord(blobs)
    assert collect_blobs(store, blobs, now()) == 0
    age(tmp_path, 25)
    assert list(blobs.stale(now() - 24 * HOUR)) == [(blobs.key(ALICE), unfinished.name)]
    assert list(blobs.digests(ALICE)) == []
    assert collect_blobs(store, blobs, now()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_collection_of_many_goes_in_parts() -> None:
    blobs = MemoryBlobs()
    store = MemoryRecord(blobs)
    for i in range(450):
        blobs.put(ALICE, f"{i}".encode())
        blobs.put(Scope(f"user{i}"), b"same")
    assert collect_blobs(store, blobs, now() + HOUR, timedelta(0), stopping=lambda: True) == 0
    assert collect_blobs(store, blobs, now() + HOUR, timedelta(0)) == 900
    assert list(blobs.stale(now() + HOUR)) == []


@pytest.mark.parametrize("grace", [timedelta(seconds=-1), 3, timedelta(days=99999)])
def test_a_grace_that_is_none_is_refused(grace: timedelta) -> None:
    with threefold.open(":memory:", embedder=None, background=False) as db, pytest.raises(InvalidInput, match="grace"):
        db.collect_blobs(grace)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ftp://host/x", "ftp"), ("S3://host/x", "S3"), ("s3://", "s3://bucket"),
        ("s3://key:secret@bucket", "environment"),
        ("s3://bucket?x=1", "prefix"), ("s3://[x", "s3://bucket"), ("az://bucket", "ccount"), ("", "blobs"),
    ],
)  # fmt: skip
def test_places_that_cannot_be_are_refused_and_secrets_not_repeated(
    name: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(InvalidInput, match=says) as failed:
        threefold.open(":memory:", embedder=None, blobs=name)
    assert "secret" not in str(failed.value)
    assert "\n" not in str(failed.value)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "threefold.backends.blobs.objects", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Unavailable, match=r"pip install 'threefold\[s3\]'"):
        open_blobs("s3://bucket")


@pytest.mark.skipif(os.name != "posix", reason="needs fork")
def test_a_forked_child_is_told_so(tmp_path: Path) -> None:
    code = """if True:
        import os, sys
        from obstore.store import MemoryStore
        from threefold.backends.blobs.objects import ObjectBlobs
        from threefold.errors import Unavailable
        from threefold.model.scope import Scope
        blobs = ObjectBlobs(MemoryStore(), "here")
        digest = blobs.put(Scope("alice"), b"data")
        if os.fork() == 0:
            try:
                blobs.get(Scope("alice"), digest)
            except Unavailable as error:
                os._exit(7 if "fork" in str(error) else 8)
            os._exit(9)
        sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
    """
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 7


def test_blobs_can_be_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = {"embedder": None, "background": False}
    with threefold.open(tmp_path / "store", blobs=str(tmp_path / "bytes"), **quiet) as db:
        with db.user("alice").turn("trip") as turn:
            turn.attach(("in.txt", b"data"))
        assert db.blobs_place == str(tmp_path / "bytes")
    assert not (tmp_path / "store" / "blobs").exists()
    monkeypatch.setenv("THREEFOLD_DB", str(tmp_path / "store"))
    monkeypatch.setenv("THREEFOLD_BLOBS", str(tmp_path / "bytes"))
    with threefold.open(**quiet) as db:
        card = db.user("alice").conv.turn(turn.ref).attachments[0]
        assert db.user("alice").read(card.ref) == b"data"
    with threefold.open(tmp_path / "other", **quiet) as db:
        assert db.blobs_place == str(tmp_path / "other" / "blobs")


class Linking(MemoryBlobs):
    """Memory with links, to see what is asked of a place that has them."""

    def link(self, scope: Scope, digest: str, seconds: int) -> str:
        return f"https://example.test/{self.key(scope)}/{digest}?{seconds}"


def test_links_are_given_to_whom_may_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threefold.backends.blobs.memory.MemoryBlobs", Linking)
    with threefold.open(":memory:", embedder=None, background=False) as db:
        alice = db.user("alice", app="notes")
        with alice.turn("trip") as turn:
            turn.prompt("look")
            turn.attach(("in.txt", b"data"))
        card = alice.conv.turn(turn.ref).attachments[0]
        assert alice.link(card.ref).endswith(f"{card.digest}?3600")
        assert alice.link(card.ref, expires=timedelta(days=7)).endswith("?604800")
        assert alice.link(card.ref.split("conv_trip.turn_")[1].join(["fi:", ""]), "trip")
        for expires in (timedelta(0), timedelta(days=7, seconds=1), timedelta(seconds=-5), 60):
            with pytest.raises(InvalidInput, match="expires"):
                alice.link(card.ref, expires=expires)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="use read"):
            alice.link(turn.ref)
        with pytest.raises(NotFound):
            db.user("bob").link(card.ref)
        with pytest.raises(Forbidden):
            db.user("alice", app="other").link(card.ref)
        alice.forget("trip")
        with pytest.raises(NotFound):
            alice.link(card.ref)


@pytest.mark.parametrize("objects", [False, True])
def test_a_place_without_links_says_what_to_do_instead(
    objects: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if objects:
        kept = ObjectBlobs(MemoryStore(), "here")
        monkeypatch.setattr("threefold.backends.opening.open_blobs", lambda name: kept)

    async def main() -> None:
        async with threefold.aio.open(tmp_path / "store", embedder=None, background=False) as db:
            alice = db.user("alice")
            async with alice.turn("trip") as turn:
                turn.attach(("in.txt", b"data"))
            card = (await alice.conv.turn(turn.ref)).attachments[0]
            assert await alice.read(card.ref) == b"data"
            with pytest.raises(InvalidInput, match="use read"):
                await alice.link(card.ref)

    asyncio.run(main())


def test_a_process_that_runs_on_collects_once_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr(worker, "collect_blobs", lambda *given, **more: counts.append(collect_blobs(*given, **more)))
    blobs = MemoryBlobs()
    blobs.put(ALICE, b"loose")
    thread = worker.Worker(MemoryRecord(blobs), blobs, None, lambda: now() + 30 * HOUR)
    thread._sweep()
    assert counts == []
    thread._collect_at -= worker.SWEEP_SECONDS
    thread._sweep()
    thread._sweep()
    assert counts == [1]
    thread._collect_at -= worker.COLLECT_SECONDS
    thread._sweep()
    assert counts == [1, 0]


@pytest.mark.parametrize("backend", ["memory", "sqlite"])
def test_a_place_belongs_to_the_store_that_first_wrote_there(backend: str, tmp_path: Path) -> None:
    """Its bytes would be leftovers to another one. Reading is free, and the same store may open it again."""
    names = [":memory:"] * 2 if backend == "memory" else [str(tmp_path / "one"), str(tmp_path / "other")]
    one, other = (threefold.open(name, blobs=str(tmp_path / "bytes"), **QUIET) for name in names)
    with one.user("alice").turn("trip", turn="1") as turn:
        turn.attach(("a.txt", b"ours"))

    def record() -> None:
        with other.user("alice").turn("trip") as turn:
            turn.attach(("b.txt", b"theirs"))

    for use in (record, other.user("alice").forget):
        with pytest.raises(Conflict, match="belong to another store"):
            use()
    later = now() + timedelta(days=9)
    with pytest.raises(Conflict, match="belong to another store"):
        collect_blobs(other._backend, other._blobs, later)
    assert collect_blobs(one._backend, one._blobs, later) == 0
    assert one.missing_blobs() == ()
    one.close()
    other.close()
    if backend == "sqlite":
        with threefold.open(names[0], blobs=str(tmp_path / "bytes"), **QUIET) as again:
            assert again.user("alice").forget().stores["blobs"] == 1
