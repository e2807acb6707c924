"""Plans as PostgreSQL itself reports them while the program's statements run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from postgres_server import Server

from threefold.backends.postgres.blobs import PostgresBlobs
from threefold.backends.postgres.connection import Database, Db
from threefold.backends.postgres.store import PostgresStore
from threefold.model.commit import Commit, RecordTurn
from threefold.model.scope import Scope
from threefold.testing.contract.desk import NOW, Desk, make_turn, own
from threefold.testing.fakes import HashEmbedder

PARTITIONS = 16
MODEL = HashEmbedder(16)
Plan = dict[str, Any]
TELL = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
}


def steps(plan: Plan) -> Iterator[Plan]:
    """A step of a plan and those below it."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from steps(below)


@dataclass
class Report:
    """The statements of one call and how each was carried out."""

    plans: list[tuple[str, Plan]] = field(default_factory=list)

    def take(self, notice: Any) -> None:
        _, found, plan = str(notice.message_primary).partition("plan:\n")
        if found and "threefold." in (said := json.loads(plan))["Query Text"].replace("'threefold.", ""):
            self.plans.append((said["Query Text"], said["Plan"]))

    def steps(self) -> list[Plan]:
        return [step for _, plan in self.plans for step in steps(plan)]

    def touched(self) -> dict[str, set[str]]:
        """Table → those of its partitions that the plans name."""
        found: dict[str, set[str]] = {}
        for step in self.steps():
            for table, part in re.findall(r"^([a-z]+)_(\d+)", step.get("Relation Name", step.get("Index Name", ""))):
                found.setdefault(table, set()).add(part)
        # Bytes to delete are looked for among all owners; there are hardly ever any.
        return {table: parts for table, parts in found.items() if table != "doomed"}

    def scans(self) -> set[str]:
        """Tables that are read from end to end, but for those that are hardly more than empty."""
        found = {s["Relation Name"] for s in self.steps() if s["Node Type"] == "Seq Scan"}
        return {table for table in found if table.partition("_")[0] not in ("meta", "doomed")}

    def looked_at(self) -> float:
        """How many rows were taken up, wanted or not."""
        return sum(
            s.get("Actual Loops", 1)
            * (
                s.get("Rows Removed by Filter", 0)
                + s.get("Rows Removed by Join Filter", 0)
                + (0 if "Plans" in s else s.get("Actual Rows", 0))
            )
            for s in self.steps()
        )

    def indexes(self) -> dict[str, str]:
        """Index → the condition with which it is entered."""
        return {s["Index Name"]: s.get("Index Cond", "") for s in self.steps() if "Index Name" in s}


class Telling(Database):
    """A database whose transactions tell their plans."""

    def __init__(self, url: str, durable: bool) -> None:
        super().__init__(url, durable)
        self.report, self._told = Report(), set[int]()

    def _speak_for(self, db: Db, owner: UUID | None, read_only: bool) -> None:
        super()._speak_for(db, owner, read_only)
        if id(db) not in self._told:
            self._told.add(id(db))
            db.add_notice_handler(self._take)

    def _take(self, notice: Any) -> None:
        self.report.take(notice)

    @contextmanager
    def telling(self) -> Iterator[Report]:
        self.report = Report()
        yield self.report
        assert self.report.plans

    @classmethod
    def make(cls, place: Server, name: str) -> tuple[Telling, Desk]:
        """A new store that tells its plans."""
        url = place.make_database(name)
        with place.admin() as db:
            for setting, value in TELL.items():
                db.execute(f"ALTER DATABASE {name} SET {setting} = '{value}'")
        database = cls(url, durable=False)
        blobs = PostgresBlobs(database)
        return database, Desk(PostgresStore(database, blobs, PARTITIONS), blobs)


def load(desk: Desk, scope: Scope, turns: int) -> None:
    for start in range(0, turns, 200):
        numbers = range(start, min(start + 200, turns))
        made = [
            make_turn(f"c{n % 7}", f"{n}", f"asked common {own(n)} rare{n % 500}", f"answered common {n % 97}",
                      NOW - timedelta(minutes=n))
            for n in numbers
        ]  # fmt: skip
        writes = tuple(RecordTurn(desk.fold(turn, scope, timedelta(days=365))) for turn in made)
        desk.backend.commit(Commit(scope, writes))
