"""A folder of files as documents: taken in, kept up to date, watched."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from threefold.errors import Conflict, InvalidInput, NotFound, Unavailable

if TYPE_CHECKING:
    from threefold.model.document import Document
    from threefold.realms.doc.ingesting import Settings
    from threefold.realms.doc.realm import Doc

# The file by which a folder is known to be a store: what it keeps would be taken in again and again.
STORE: Final = "record.db"
_UNSEEN: Final = "cannot be looked into"
_PAGE: Final = 500
# How often it is looked whether watching is to stop.
_LOOK_SECONDS: Final = 0.2
OnProgress = Callable[[int, int], None] | None
Stamps = dict[Path, tuple[int, int]]


class SkippedFile(NamedTuple):
    """A file or folder that was not taken in, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True)
class IngestedFolder:
    """How many documents are new, replaced, unchanged and removed, and what was skipped and why."""

    created: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    skipped: tuple[SkippedFile, ...] = ()
    warnings: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The outcome as plain JSON values."""
        return {
            "created": self.created, "replaced": self.replaced, "unchanged": self.unchanged, "removed": self.removed,
            "skipped": [each._asdict() for each in self.skipped], "warnings": list(self.warnings),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder and what its files are called as sources.

    Raises:
        NotFound: there is none.
    """

    given: str | os.PathLike[str]
    source: str | None = None
    path: Path = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.given, str | os.PathLike):
            raise InvalidInput(f"path must be that of a folder, not {type(self.given).__name__}")
        object.__setattr__(self, "path", Path(self.given).expanduser().resolve())
        if not self.path.is_dir():
            raise NotFound(f"path: there is no folder {str(self.given)!r}")

    @property
    def prefix(self) -> str:
        """How the sources of its files begin."""
        return (self.path.as_posix() if self.source is None else self.source).rstrip("/") + "/"

    def source_of(self, file: Path) -> str:
        """What a file in it is called."""
        return self.prefix + file.relative_to(self.path).as_posix()

    def files(self) -> Iterator[Path | SkippedFile]:
        """Its files in order of their names, those of folders in it too, and what is left out."""
        yield from _files(self.path)


def _files(folder: Path) -> Iterator[Path | SkippedFile]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        yield SkippedFile(str(folder), f"{_UNSEEN}: {error.strerror or error}")
        return
    if any(entry.name == STORE for entry in entries):
        yield SkippedFile(str(folder), "is a Threefold store, whose files are no documents")
        return
    for entry in entries:
        path = folder / entry.name
        if entry.name.startswith("."):
            yield SkippedFile(str(path), "is hidden")
        elif entry.is_symlink():
            yield SkippedFile(str(path), "is a link, which is not followed")
        elif entry.is_dir():
            yield from _files(path)
        elif entry.is_file():
            yield path
        else:
            yield SkippedFile(str(path), "is no file")


def ingest_folder(
    doc: Doc,
    folder: Folder,
    metadata: Mapping[str, Any] | None,
    how: Settings,
    prune: bool,
    on_progress: OnProgress = None,
) -> IngestedFolder:
    """See `Doc.ingest_folder`."""
    found = list(folder.files())
    files = [each for each in found if isinstance(each, Path)]
    done = _take_in(doc, folder, files, metadata, how, on_progress)
    skipped = tuple(each for each in found if isinstance(each, SkippedFile))
    removed = _prune(doc, folder, files, skipped) if prune else 0
    return IngestedFolder(done.created, done.replaced, done.unchanged, removed, skipped + done.skipped, done.warnings)


def _take_in(
    doc: Doc, folder: Folder, files: Iterable[Path], metadata: Mapping[str, Any] | None, how: Settings,
    on_progress: OnProgress = None,
) -> IngestedFolder:  # fmt: skip
    counts, skipped, warnings, listed = Counter[str](), list[SkippedFile](), list[str](), list(files)
    for number, file in enumerate(listed, 1):
        source = folder.source_of(file)
        try:
            done = doc.ingest(file, source, metadata, how.strategy, how.chunk_tokens, how.overlap)
        except (Conflict, InvalidInput, NotFound, Unavailable) as error:
            skipped.append(SkippedFile(str(file), str(error)))
        else:
            counts[done.outcome] += 1
            warnings += [f"{source}: {warning}" for warning in done.warnings]
        if on_progress is not None:
            on_progress(number, len(listed))
    return IngestedFolder(
        counts["created"], counts["replaced"], counts["unchanged"], 0, tuple(skipped), tuple(warnings)
    )


def _prune(doc: Doc, folder: Folder, files: Iterable[Path], skipped: Iterable[SkippedFile]) -> int:
    """Remove documents of the folder whose files are not there; returns how many went.

    What lies in a folder that could not be looked into stays.
    """
    there = {folder.source_of(file) for file in files}
    unseen = tuple(folder.source_of(Path(each.where)) + "/" for each in skipped if each.why.startswith(_UNSEEN))
    gone = [
        each.id
        for each in _listed(doc)
        if each.source.startswith(folder.prefix) and each.source not in there and not each.source.startswith(unseen)
    ]
    removed = 0
    for id_ in gone:
        with suppress(NotFound):  # another process was first
            doc.remove(id_)
            removed += 1
    return removed


def _listed(doc: Doc) -> Iterator[Document]:
    page = doc.list(_PAGE, None)
    while page:
        yield from page
        page = doc.list(_PAGE, page[-1])


def watch_folder(
    doc: Doc, folder: Folder, metadata: Mapping[str, Any] | None, how: Settings, prune: bool, interval: float,
    stop: Callable[[], bool] | None, on_change: Callable[[IngestedFolder], None] | None,
) -> None:  # fmt: skip
    """See `Doc.watch_folder`."""
    if not isinstance(interval, int | float) or isinstance(interval, bool) or not 0 < interval <= 86_400:
        raise InvalidInput(f"interval {interval!r} must be a number of seconds, more than 0 and at most a day")
    before = _stamps(folder)
    done = ingest_folder(doc, folder, metadata, how, prune)
    if on_change is not None:
        on_change(done)
    while not _stopped(interval, stop):
        now = _stamps(folder)
        if now == before:
            continue
        changed = [file for file, stamp in now.items() if before.get(file) != stamp]
        if prune and before.keys() - now.keys():
            done = ingest_folder(doc, folder, metadata, how, prune)
        else:
            done = _take_in(doc, folder, changed, metadata, how)
        before = now
        if on_change is not None:
            on_change(done)


def _stamps(folder: Folder) -> Stamps:
    """Time and size of each file; one that goes away in this moment is not there."""
    stamps: Stamps = {}
    for file in folder.files():
        if isinstance(file, Path):
            try:
                about = file.stat()
            except OSError:
                continue
            stamps[file] = (about.st_mtime_ns, about.st_size)
    return stamps


def _stopped(seconds: float, stop: Callable[[], bool] | None) -> bool:
    """Wait so long; whether it is to stop."""
    end = time.monotonic() + seconds
    while stop is None or not stop():
        left = end - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, _LOOK_SECONDS))
    return True
