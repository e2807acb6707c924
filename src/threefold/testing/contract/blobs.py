"""Bytes by content, kept apart for each owner."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable

import pytest

from threefold.errors import NotFound
from threefold.model.scope import Scope
from threefold.testing.contract.desk import ALICE, Desk, refused
from threefold.testing.contract.suite import Contract

LARGE = bytes(range(256)) * 8192


class BlobsContract(Contract):
    """`Blobs`."""

    @pytest.mark.capability("blobs.immutable")
    @pytest.mark.parametrize("data", [b"", b"text", b"\x00\xff\r\n", LARGE], ids=["empty", "text", "binary", "large"])
    def test_bytes_come_back_by_their_digest(self, desk: Desk, data: bytes) -> None:
        """Putting them again changes nothing but their time of writing."""
        digest = desk.blobs.put(ALICE, data)
        assert digest == hashlib.sha256(data).hexdigest()
        (first,) = desk.blobs.digests(ALICE)
        assert desk.blobs.put(ALICE, data) == digest
        assert [name for name, _ in desk.blobs.digests(ALICE)] == [first[0]]
        assert desk.blobs.get(ALICE, digest) == data
        assert first[1].tzinfo is not None

    @pytest.mark.capability("blobs.immutable")
    def test_bytes_are_there_after_reopening(self, desk: Desk, reopen: Callable[[Desk], Desk]) -> None:
        """They belong to the place, not to the handle."""
        digest = desk.blobs.put(ALICE, LARGE)
        assert reopen(desk).blobs.get(ALICE, digest) == LARGE

    @pytest.mark.capability("blobs.owners")
    def test_owners_do_not_see_each_others_bytes(self, desk: Desk) -> None:
        """Whatever their ids; app and agent make no difference."""
        digest = desk.blobs.put(ALICE, b"secret")
        assert desk.blobs.get(Scope("alice", app="x", agent="y"), digest) == b"secret"
        for scope in (
            Scope("alice2"), Scope("alice", "b"), Scope("default"), Scope("../alice"), Scope("7:defaultalice", "x"),
            Scope("talice", "defaul"), Scope("lice", "defaulta"), Scope("Alice"), Scope("alice/"), Scope("*"),
        ):  # fmt: skip
            assert not desk.blobs.has(scope, digest)
            assert list(desk.blobs.digests(scope)) == []
            assert desk.blobs.delete(scope, digest) is False
            with refused(NotFound):
                desk.blobs.get(scope, digest)
        assert desk.blobs.get(ALICE, digest) == b"secret"

    @pytest.mark.capability("blobs.delete")
    def test_deleting_removes_one_blob_of_one_owner(self, desk: Desk) -> None:
        """Once; it can be put again."""
        bob = Scope("bob")
        digest, other = desk.blobs.put(ALICE, b"one"), desk.blobs.put(ALICE, b"other")
        desk.blobs.put(bob, b"one")
        assert [desk.blobs.delete(ALICE, digest) for _ in range(2)] == [True, False]
        assert desk.blobs.has(bob, digest)
        assert [found for found, _ in desk.blobs.digests(ALICE)] == [other]
        with refused(NotFound):
            desk.blobs.get(ALICE, digest)
        assert desk.blobs.put(ALICE, b"one") == digest
        assert desk.blobs.get(ALICE, digest) == b"one"

    @pytest.mark.capability("blobs.threads")
    def test_putting_and_deleting_at_once_is_no_error(self, desk: Desk) -> None:
        """Two blobs whose digests begin alike come and go while others do."""
        errors: list[Exception] = []
        datas = [f"{i}".encode() for i in range(400) if hashlib.sha256(f"{i}".encode()).hexdigest()[:2] == "00"]

        def work(data: bytes) -> None:
            try:
                for _ in range(60):
                    desk.blobs.delete(ALICE, desk.blobs.put(ALICE, data))
            except Exception as error:  # noqa: BLE001 - shown below
                errors.append(error)

        threads = [threading.Thread(target=work, args=(data,)) for data in (*datas[:2], *datas[:2])]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert list(desk.blobs.digests(ALICE)) == []
