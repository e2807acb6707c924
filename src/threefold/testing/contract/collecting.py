"""Collecting bytes that no turn refers to, never those of a turn that is about to be recorded; links to bytes."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any
from urllib.request import urlopen

import pytest

from threefold.errors import BytesGone, NotFound
from threefold.jobs.collect import collect_blobs, count_unreferenced
from threefold.model.commit import Commit, Outcome
from threefold.model.scope import Scope
from threefold.model.times import now
from threefold.realms.conv import Conv, Ports
from threefold.search.rank import Ranking
from threefold.testing.contract.desk import ALICE, NOW, Desk, full_turn, refused
from threefold.testing.contract.suite import NOT_APPLICABLE, Contract

BOB, NOBODY = Scope("bob"), Scope("nobody")
HOUR, NO_GRACE = timedelta(hours=1), timedelta(0)
WRITERS, TURNS = 3, 20


def collect_all(desk: Desk) -> int:
    """As a collector would whose clock is an hour ahead and who waits for nothing."""
    return collect_blobs(desk.backend, desk.blobs, now() + HOUR, NO_GRACE)


class CollectingContract(Contract):
    """`Upkeep.collect`, `Upkeep.collect_strays`, and what `Blobs` gives for it."""

    @pytest.mark.capability("blobs.refresh")
    def test_putting_bytes_again_makes_them_young(self, desk: Desk) -> None:
        """So that they are not collected before the commit that follows."""
        digest = desk.blobs.put(ALICE, b"again")
        ((_, first),) = desk.blobs.digests(ALICE)
        assert desk.blobs.put(ALICE, b"again") == digest
        ((_, again),) = desk.blobs.digests(ALICE)
        assert first <= again
        assert now() - HOUR < again < now() + HOUR

    @pytest.mark.capability("blobs.collect")
    def test_old_bytes_are_listed_over_all_owners_one_after_the_other(self, desk: Desk) -> None:
        """Under keys that differ by owner, not by app or agent."""
        put = [(desk.blobs.key(scope), desk.blobs.put(scope, data)) for data in (b"1", b"2") for scope in (ALICE, BOB)]
        found = list(desk.blobs.stale(now() + HOUR))
        assert sorted(found) == sorted(put)
        assert found[0][0] == found[1][0] != found[2][0] == found[3][0]
        assert list(desk.blobs.stale(now() - HOUR)) == []
        assert desk.blobs.key(Scope("alice", app="x", agent="y")) == desk.blobs.key(ALICE)
        assert "alice" not in desk.blobs.key(ALICE)

    @pytest.mark.capability("blobs.collect")
    def test_only_what_is_old_and_unreferenced_is_collected(self, desk: Desk) -> None:
        """Of the owner that is named; what another owner's turn refers to does not count."""
        desk.record(full_turn("trip", "1", "x"))
        desk.record(full_turn("trip", "1", "y"), BOB)
        kept = [file.digest for file in desk.stored("trip", "1").record.files]
        loose = [desk.blobs.put(ALICE, data) for data in (b"loose", b"y")]
        other = desk.blobs.put(BOB, b"loose")
        asked = [*kept, *loose, "0" * 64]
        assert desk.backend.collect(ALICE, asked, now() - HOUR) == 0
        assert all(desk.blobs.has(ALICE, digest) for digest in (*kept, *loose))
        assert desk.backend.collect(ALICE, asked, now() + HOUR) == 2
        assert [desk.blobs.has(ALICE, digest) for digest in (*kept, *loose)] == [True] * len(kept) + [False] * 2
        assert desk.blobs.has(BOB, other)
        assert desk.backend.collect(ALICE, asked, now() + HOUR) == 0

    @pytest.mark.capability("blobs.collect")
    def test_bytes_of_owners_that_never_were_are_collected(self, desk: Desk) -> None:
        """The very first turn of a user was killed. A key that is an owner's by now is left to `collect`."""
        desk.record(full_turn("trip", "1", "x"))
        digests = [desk.blobs.put(scope, b"loose") for scope in (ALICE, NOBODY)]
        found = {desk.blobs.key(scope): digests[:1] for scope in (ALICE, NOBODY)}
        assert desk.backend.collect_strays(found, now() - HOUR) == 0
        assert desk.backend.collect_strays(found, now() + HOUR) == 1
        assert (desk.blobs.has(ALICE, digests[0]), desk.blobs.has(NOBODY, digests[0])) == (True, False)
        assert list(desk.backend.scopes()) == [ALICE]

    @pytest.mark.capability("blobs.collect")
    def test_the_whole_store_is_collected(self, desk: Desk) -> None:
        """Every turn keeps its bytes; a grace spares what is young."""
        for scope in (ALICE, BOB):
            desk.record(full_turn("trip", "1", "x"), scope)
            desk.blobs.put(scope, b"loose")
        desk.blobs.put(NOBODY, b"loose")
        assert count_unreferenced(desk.backend, desk.blobs, now() + HOUR, NO_GRACE) == 3
        assert collect_blobs(desk.backend, desk.blobs, now() + HOUR) == 0
        assert collect_all(desk) == 3
        assert count_unreferenced(desk.backend, desk.blobs, now() + HOUR, NO_GRACE) == collect_all(desk) == 0
        for scope in (ALICE, BOB):
            for file in desk.stored("trip", "1", scope).record.files:
                assert desk.blobs.get(scope, file.digest)
        desk.purge()
        assert collect_all(desk) == 0
        assert list(desk.blobs.digests(ALICE)) == []

    @pytest.mark.capability("blobs.in-flight")
    def test_a_commit_whose_bytes_were_collected_is_refused_by_name(self, desk: Desk) -> None:
        """Nothing of it is left; with its bytes put again it is recorded."""
        turn = full_turn("trip", "1", "x")
        write = Conv(ALICE, ports(desk, times=9))
        with refused(BytesGone):
            write.record(turn)
        assert desk.turn("trip", "1") is None
        assert desk.record(turn) == "created"

    @pytest.mark.capability("blobs.in-flight")
    def test_the_recorder_puts_again_what_was_collected(self, desk: Desk) -> None:
        """So that not even a collector with a wrong clock loses a turn."""
        write = Conv(ALICE, ports(desk, times=2))
        assert write.record(full_turn("trip", "1", "x")) == "created"
        for file in desk.stored("trip", "1").record.files:
            assert desk.blobs.get(ALICE, file.digest)

    @pytest.mark.capability("blobs.in-flight")
    def test_what_is_recorded_while_a_collector_runs_has_its_bytes(self, desk: Desk) -> None:
        """Writers of equal and of different bytes; the collector waits for nothing."""
        done: list[tuple[Scope, str]] = []
        errors: list[Exception] = []
        over = threading.Event()

        def write(writer: int) -> None:
            scope = (ALICE, BOB)[writer % 2]
            conv = Conv(scope, ports(desk))
            try:
                for i in range(TURNS):
                    data = f"{writer}-{i}" if i % 2 else f"same {i % 4}"
                    turn = full_turn(f"c{writer}", f"{i}", "x", data=data.encode())
                    while not recorded(conv, turn):
                        pass
                    done.append((scope, f"{writer}-{i}"))
            except Exception as error:  # noqa: BLE001 - shown below
                errors.append(error)

        def sweep() -> None:
            try:
                while not over.is_set():
                    collect_all(desk)
            except Exception as error:  # noqa: BLE001 - shown below
                errors.append(error)

        writers = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
        collector = threading.Thread(target=sweep)
        for thread in (*writers, collector):
            thread.start()
        for thread in writers:
            thread.join()
        over.set()
        collector.join()
        assert errors == []
        assert len(done) == WRITERS * TURNS
        for scope, name in done:
            for file in desk.stored(f"c{name[0]}", name[2:], scope).record.files:
                assert desk.blobs.get(scope, file.digest)

    @pytest.mark.capability("blobs.link")
    def test_a_link_gives_the_exact_bytes_without_the_store(self, desk: Desk) -> None:
        """Where the place has links at all; of what is not there, there is none."""
        data = bytes(range(256)) * 99
        url = desk.blobs.link(ALICE, desk.blobs.put(ALICE, data), 60)
        if url is None:
            pytest.skip(f"{NOT_APPLICABLE}: no URLs here")
        with urlopen(url, timeout=10) as answer:  # noqa: S310 - the store's own
            assert answer.read() == data
        with refused(NotFound):
            desk.blobs.link(BOB, desk.blobs.put(ALICE, data), 60)


class Robbed:
    """The desk's store; its first commits find all unreferenced bytes collected just before."""

    def __init__(self, desk: Desk, times: int) -> None:
        self._desk, self._left = desk, times

    def commit(self, commit: Commit) -> tuple[Outcome, ...]:
        """See `Store.commit`."""
        self._left -= 1
        if self._left >= 0:
            assert collect_all(self._desk) > 0
        return self._desk.backend.commit(commit)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._desk.backend, name)


def ports(desk: Desk, times: int = 0) -> Ports:
    """What the record of a scope is wired to at this desk; its first commits are robbed of their bytes."""
    store: Any = Robbed(desk, times)
    return Ports(store, desk.blobs, None, lambda: NOW, None, Ranking(), lambda: None, lambda: None)


def recorded(conv: Conv, turn: Any) -> bool:
    """Whether the turn was recorded; not so where the collector was quicker each time."""
    try:
        conv.record(turn)
    except BytesGone:
        return False
    return True
