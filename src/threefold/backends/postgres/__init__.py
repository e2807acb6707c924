"""PostgreSQL with pgvector: the same store for many processes on many machines."""

from threefold.backends.postgres.opening import migrate_postgres, open_postgres

__all__ = ["migrate_postgres", "open_postgres"]
