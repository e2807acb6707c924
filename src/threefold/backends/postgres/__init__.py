"""PostgreSQL with pgvector: the same store for many processes on many machines."""

from threefold.backends.postgres.opening import open_postgres

__all__ = ["open_postgres"]
