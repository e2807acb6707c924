"""A task tracker that publishes its namespace: `task:issue:<id>` and what is attached to them, `task:attachment:<id>`.

The tracker keeps its own data, here in a SQLite file of its own. With `publish` its objects are what every other object
is: they are searched, shown, read, pinned to boards and cited, from Python, the command line and MCP, each time as the
one who asks. Run it: `python examples/task_tracker.py`.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import threefold
from threefold import Caller, Resolved, Service, operation
from threefold.errors import Conflict, InvalidInput, NotFound

SCHEMA = """
CREATE TABLE IF NOT EXISTS issues (
    tenant TEXT, id TEXT, title TEXT, body TEXT, open INTEGER DEFAULT 1, revision INTEGER DEFAULT 1,
    PRIMARY KEY (tenant, id));
CREATE TABLE IF NOT EXISTS attachments (
    tenant TEXT, id TEXT, issue TEXT, name TEXT, data BLOB, PRIMARY KEY (tenant, id));
"""


class Tasks(Service):
    """Issues of a team: everyone of a tenant sees them, nobody else."""

    namespace = "task"
    line = "The team's issues and what is attached to them"
    about = "Search issues, read one, open, change and close them. An issue has a revision: name the one you saw."
    kinds = {"issue": "a thing to do, task:issue:<id>", "attachment": "a file of one, task:attachment:<id>"}

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.create_function("folded", 1, str.casefold, deterministic=True)
        self._db.executescript(SCHEMA)

    # What a reference names. The tenant is in every statement: a reference locates, it never authorises.

    def resolve(self, caller: Caller, ref: Any) -> Resolved:
        tenant = caller.scope.tenant
        if ref.kind == "attachment":
            sql = "SELECT name, data, issue FROM attachments WHERE tenant = ? AND id = ?"
            found = self._db.execute(sql, (tenant, ref.id)).fetchone()
            if found is not None:
                name, data, issue = found
                value = {"name": name, "size": len(data), "issue": f"task:issue:{issue}"}
                return Resolved(str(ref), "attachment", value, title=name, content=data)
        if ref.kind == "issue":
            issue = self._issue(tenant, ref.id)
            return Resolved(str(ref), "issue", issue, f"{issue['title']}\n{issue['body']}", title=issue["title"])
        raise NotFound(f"{ref}: no such {ref.kind}")

    # What can be called. Arguments are held against their types before a method runs.

    @operation()
    def search(self, caller: Caller, query: str, limit: int = 10) -> dict[str, Any]:
        """Find issues that have all the words."""
        words = query.casefold().split()
        each = "AND instr(folded(title || ' ' || body), ?) "
        sql = f"SELECT id FROM issues WHERE tenant = ? {each * len(words)} ORDER BY id LIMIT ?"
        found = self._db.execute(sql, (caller.scope.tenant, *words, limit))
        return {"issues": [self._issue(caller.scope.tenant, id_) for (id_,) in found.fetchall()]}

    @operation()
    def get(self, caller: Caller, id: str) -> dict[str, Any]:
        """Get one issue."""
        return self._issue(caller.scope.tenant, id.removeprefix("task:issue:"))

    @operation("write")
    def upsert(
        self,
        caller: Caller,
        title: str,
        body: str = "",
        id: Annotated[str | None, "the issue to change; a new one without"] = None,
        revision: Annotated[int | None, "the revision that was seen"] = None,
    ) -> dict[str, Any]:
        """Open an issue, or change one."""
        if not title.strip():
            raise InvalidInput("title is empty; say what is to be done")
        tenant, key = caller.scope.tenant, id or secrets.token_hex(4)
        if id is None:
            sql = "INSERT INTO issues (tenant, id, title, body) VALUES (?, ?, ?, ?)"
            self._db.execute(sql, (tenant, key, title, body))
            return self._issue(tenant, key)
        seen = self._issue(tenant, key)["revision"] if revision is None else revision
        sql = """UPDATE issues SET title = ?, body = ?, revision = revision + 1
                 WHERE tenant = ? AND id = ? AND revision = ?"""
        changed = self._db.execute(sql, (title, body, tenant, key, seen))
        if not changed.rowcount:
            raise Conflict(f"issue {key} is not at revision {seen} any more; read it and try again")
        return self._issue(tenant, key)

    @operation("write", idempotent=True)
    def close(self, caller: Caller, id: str) -> dict[str, Any]:
        """Close an issue."""
        self._issue(caller.scope.tenant, id)
        self._db.execute("UPDATE issues SET open = 0 WHERE tenant = ? AND id = ?", (caller.scope.tenant, id))
        return self._issue(caller.scope.tenant, id)

    @operation("write")
    def attach(self, caller: Caller, id: str, name: str, text: str) -> dict[str, Any]:
        """Attach a text file to an issue."""
        self._issue(caller.scope.tenant, id)
        key = secrets.token_hex(4)
        values = (caller.scope.tenant, key, id, name, text.encode())
        self._db.execute("INSERT INTO attachments VALUES (?, ?, ?, ?, ?)", values)
        return {"ref": f"task:attachment:{key}"}

    @operation("write", destructive=True, idempotent=True)
    def delete(self, caller: Caller, id: str) -> dict[str, Any]:
        """Remove an issue and what is attached to it."""
        self._db.execute("DELETE FROM attachments WHERE tenant = ? AND issue = ?", (caller.scope.tenant, id))
        gone = self._db.execute("DELETE FROM issues WHERE tenant = ? AND id = ?", (caller.scope.tenant, id))
        return {"deleted": gone.rowcount}

    def _issue(self, tenant: str, key: str) -> dict[str, Any]:
        sql = "SELECT id, title, body, open, revision FROM issues WHERE tenant = ? AND id = ?"
        found = self._db.execute(sql, (tenant, key)).fetchone()
        if found is None:
            raise NotFound(f"task:issue:{key}: no such issue")
        id_, title, body, is_open, revision = found
        sql = "SELECT id FROM attachments WHERE tenant = ? AND issue = ? ORDER BY id"
        attached = [f"task:attachment:{each}" for (each,) in self._db.execute(sql, (tenant, key))]
        return {"ref": f"task:issue:{id_}", "title": title, "body": body, "open": bool(is_open), "revision": revision,
                "attachments": attached}  # fmt: skip


def main(folder: Path) -> None:
    """A short session."""
    with threefold.open(folder / "store") as db:
        db.publish(Tasks(folder / "tasks.db"))
        alice = db.user("alice", tenant="acme")
        issue = alice.services.call("task", "upsert", title="Fix the back door", body="It sticks when it rains.")
        file = alice.services.call("task", "attach", id=issue["ref"].removeprefix("task:issue:"), name="door.txt",
                                   text="Oak, 2 m by 90 cm")  # fmt: skip
        print(json.dumps(alice.services.about("task"), indent=2, ensure_ascii=False))
        for ref, shown in alice.show([issue["ref"], file["ref"]]).items():
            print(ref, "·", shown.kind, "·", shown.title)
        print(alice.read(file["ref"]).decode())
        mallory = db.user("mallory", tenant="other")
        print(mallory.show([issue["ref"]])[issue["ref"]].standing)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary))
