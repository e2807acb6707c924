"""Bringing a folder of Markdown files and curated memory together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from threefold.errors import ThreefoldError
from threefold.model.memory import Memory
from threefold.realms.mem.mirror import Folder, Page, Synced, from_page, hash_of, reason, to_page

if TYPE_CHECKING:
    from threefold.realms.mem.realm import Mem

_WHY = "edited in its file"


def sync(folder: Folder, mem: Mem, records: Mapping[str, Memory]) -> Synced:
    """Take in what a person changed in the files, then write what changed in `records`, those that are held.

    What was changed on both sides is left alone and told as a conflict.
    """
    done, left = Synced(), dict(records)
    seen: set[str] = set()
    for name, text in folder.pages():
        try:
            page = from_page(text)
            _take_in(folder, mem, left, seen, done, name, text, page)
        except ThreefoldError as error:
            done.skipped.append((name, reason(error)))
            seen.update(id_ for id_, known in folder.known.items() if known["file"] == name)
    for id_ in [id_ for id_ in folder.known if id_ not in seen]:
        _gone(folder, mem, left, done, id_)
    for id_, record in left.items():
        known = folder.known.get(id_)
        if known is None or (known["revision"] != record.revision and id_ not in _conflicting(folder, done)):
            folder.write(record)
            done.written.append(id_)
    for id_ in [id_ for id_ in folder.known if id_ not in left and id_ not in _conflicting(folder, done)]:
        folder.drop(id_)
    folder.close()
    return done


def _conflicting(folder: Folder, done: Synced) -> set[str]:
    names = {name for name, _ in done.conflicts}
    return {id_ for id_, known in folder.known.items() if known["file"] in names}


def _take_in(
    folder: Folder, mem: Mem, left: dict[str, Memory], seen: set[str], done: Synced, name: str, text: str, page: Page
) -> None:
    if page.id is None:
        record = mem.remember(page.memory, page.context, **page.fields)
        (folder.path / name).unlink()
        left[record.id] = record
        seen.add(record.id)
        done.created.append(record.id)
        folder.write(record)
        return
    known, record_now = folder.known.get(page.id), left.get(page.id)
    seen.add(page.id)
    if known is None:
        done.skipped.append(
            (name, f"its id {page.id!r} is not one that was written here; remove the id to add it anew")
        )
    elif known["hash"] == hash_of(text):
        return
    elif record_now is None:
        done.conflicts.append((name, "it was edited here and is held no more there"))
    elif record_now.revision != known["revision"]:
        if text != to_page(record_now):
            done.conflicts.append((name, f"it was edited here and there, where it says now: {record_now.memory}"))
    else:
        left[page.id] = _edit(mem, record_now, page)
        done.updated.append(page.id)
        folder.write(left[page.id])


def _edit(mem: Mem, record: Memory, page: Page) -> Memory:
    wanted = {"memory": page.memory, "context": page.context, **page.fields}
    pin = wanted.pop("pinned", record.pinned)
    after = mem.update(record.id, revision=record.revision, why=_WHY, **wanted)
    return after if bool(pin) == after.pinned else mem.pin(record.id, bool(pin))


def _gone(folder: Folder, mem: Mem, left: dict[str, Memory], done: Synced, id_: str) -> None:
    """A file that a person deleted: the record is retired, unless it was changed meanwhile."""
    record = left.get(id_)
    if record is not None and record.revision == folder.known[id_]["revision"]:
        mem.retire(id_, "its file was deleted")
        del left[id_]
        done.retired.append(id_)
    if record is None or id_ in done.retired:
        folder.known.pop(id_)
