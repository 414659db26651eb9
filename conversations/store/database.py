"""A raw database connection with one face for SQLite and PostgreSQL.

SQL is written with `%s` and `NOW()`: what processes compare is the database's clock, not their own. Statements run on
the driver itself: Django's cursor wrappers cost more than the work.
"""

import datetime as dt
import sqlite3
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

TRANSIENT = (sqlite3.OperationalError, psycopg.OperationalError, psycopg.InterfaceError)
ERRORS = (sqlite3.Error, psycopg.Error)


@lru_cache(maxsize=512)
def _qmarks(sql: str) -> str:
    return sql.replace("%s", "?").replace("NOW()", "strftime('%Y-%m-%d %H:%M:%f', 'now')")


def timestamp(seconds: float) -> str:
    """A point in time as both databases read it into a timestamp column."""
    return dt.datetime.fromtimestamp(seconds, dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")


class Database:
    """One connection, used by one thread. Opens itself when needed, forgets itself when broken."""

    def __init__(self) -> None:
        self._wrapper: BaseDatabaseWrapper | None = None
        self._raw: Any = None
        self.sqlite = connections.settings["default"]["ENGINE"].endswith("sqlite3")

    def execute(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Run a statement; how many rows it touched."""
        if self.sqlite:
            return self._connection().execute(_qmarks(sql), params).rowcount  # type: ignore[no-any-return]
        return self._connection().execute(sql, params).rowcount  # type: ignore[no-any-return]

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        if self.sqlite:
            self._connection().executemany(_qmarks(sql), rows)
        else:
            with self._connection().cursor() as cursor:
                cursor.executemany(sql, rows)

    def query(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        if self.sqlite:
            return self._connection().execute(_qmarks(sql), params).fetchall()  # type: ignore[no-any-return]
        return self._connection().execute(sql, params).fetchall()  # type: ignore[no-any-return]

    def begin(self) -> None:
        self._connection().execute("BEGIN IMMEDIATE" if self.sqlite else "BEGIN")

    def commit(self) -> None:
        self._connection().execute("COMMIT")

    def rollback(self) -> None:
        """Also after a failure of the connection itself: then there is nothing left to roll back."""
        if self._raw is None:
            return
        try:
            if not self.sqlite or self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
        except ERRORS:
            self.close()

    def close(self) -> None:
        wrapper, self._wrapper, self._raw = self._wrapper, None, None
        if wrapper is not None:
            try:
                wrapper.close()
            except ERRORS:
                wrapper.connection = None

    @property
    def broken(self) -> bool:
        return self._raw is not None and not self.sqlite and self._raw.broken

    def _connection(self) -> Any:
        if self._raw is None or self.broken:
            self.close()
            wrapper = connections.create_connection("default")
            # The thread that opens a connection here keeps it; Django's own per-thread bookkeeping stays out of it.
            wrapper.inc_thread_sharing()
            wrapper.connect()
            self._wrapper, self._raw = wrapper, wrapper.connection
            if not self.sqlite:
                self._raw.autocommit = True  # transactions are opened by name, as on SQLite
        return self._raw
