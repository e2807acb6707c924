"""Identity through the public door: no operation, reference, board, context or export of one scope tells of another."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from conftest import BACKENDS, FAST_FOLDER, Address
from hypothesis import given, settings
from hypothesis import strategies as st

import threefold
from threefold.errors import ThreefoldError
from threefold.model.scope import Scope
from threefold.services import Operation
from threefold.testing.fakes import HashEmbedder
from threefold.testing.strategies import scopes

MODEL = HashEmbedder(16)
fewer = settings(max_examples=max(4, settings().max_examples // 10))


def marker(number: int) -> str:
    """A word that is in every text of one scope and in no name."""
    return "qz" + chr(97 + number) * 7


def fill(handle: threefold.Handle, word: str) -> list[str]:
    """One of everything that says `word`; returns the references."""
    with handle.turn("trip", turn="1") as turn:
        turn.prompt(f"harbour {word}")
        turn.step("look", {"for": word}, result=[word])
        turn.publish("plan.md", f"harbour {word}".encode())
        turn.answer(f"the harbour {word}")
    memory = handle.mem.remember(f"harbour is {word}")
    document = handle.doc.ingest(f"# Harbour\n\nThe harbour {word}.", source="guide.md")
    refs = [
        turn.ref, "conv:conversation:trip", "conv:fi:conv_trip.turn_1.files/plan.md", memory.ref, document.ref,
        handle.doc.chunks(document.id)[0].ref,
    ]  # fmt: skip
    board = handle.cnv.board("harbour")
    for ref in refs:
        board.pin(ref, note=f"harbour {word}")
    board.attach("trip")
    return [*refs, "cnv:harbour", "cnv:harbour@1"]


def arguments(operation: Operation, refs: list[str]) -> Iterator[dict[str, Any]]:
    """Ways to call an operation that might reach what another has: by question, name and reference."""
    needed = operation.takes.get("required", [])
    given = {"query": "harbour", "goal": "harbour", "board": "harbour", "conversation": "trip", "refs": refs}
    for ref in refs if {"id", "ref"} & set(needed) else refs[:1]:
        yield {name: given.get(name, ref) for name in needed}
    if operation.full_name == "context":
        yield {"goal": "harbour", "thread": "trip"}
    if operation.full_name == "cnv_list":
        yield {"attached": "trip"}


def everything(handle: threefold.Handle, refs: list[str], folder: Path) -> str:
    """All that a scope can be told, as one text: every reading operation with every reference that anybody has."""
    told = []
    for operation in handle.services.operations():
        if operation.access == "read":
            for each in arguments(operation, refs):
                try:
                    told.append(handle.services.call(operation.namespace, operation.name, each))
                except ThreefoldError as error:
                    told.append(str(error))
    told += [each.as_json() for each in handle.show(refs, 1000).values()]
    for ref in refs:
        try:
            told.append(handle.read(ref).decode())
        except ThreefoldError as error:
            told.append(str(error))
    told.append([[each.as_json() for each in board] for board in handle.cnv.look(handle.cnv.boards())])
    handle.export(folder / "all.zip")
    with zipfile.ZipFile(folder / "all.zip") as archive:
        told += [archive.read(name).decode(errors="replace") for name in archive.namelist()]
    return json.dumps(told, ensure_ascii=False)


@pytest.mark.parametrize("backend", BACKENDS)
@fewer
@given(st.lists(scopes(), min_size=2, max_size=3, unique=True))
def test_no_operation_tells_of_another_scope(backend: str, owners: list[Scope]) -> None:
    with TemporaryDirectory(dir=FAST_FOLDER) as folder:
        address = Address(backend, Path(folder))
        try:
            with threefold.open(address.name, embedder=MODEL, background=False, durable=False) as db:
                handles = [db.user(owner.user, owner.tenant) for owner in owners]
                filled = [fill(handle, marker(number)) for number, handle in enumerate(handles)]
                refs = list(dict.fromkeys(ref for each in filled for ref in each))
                db.embed_pending()
                for number, handle in enumerate(handles):
                    told = everything(handle, refs, Path(folder))
                    assert marker(number) in told
                    for other in range(len(handles)):
                        assert other == number or marker(other) not in told
        finally:
            address.give_back()
