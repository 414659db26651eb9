"""A raw database connection with one face for SQLite and PostgreSQL.

SQL is written with `%s` and `NOW()`: what processes compare is the database's clock, not their own. Statements run on
the driver itself: Django's cursor wrappers cost more than the work. On PostgreSQL what is asked often is prepared: half
of a turn's work in the server was reading and planning the same ten statements.
"""

import datetime as dt
import logging
import os
import socket
import sqlite3
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from typing import Any

import psycopg
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.types.numeric import Int8BinaryDumper

from conversations import conf
from conversations.store.pipeline import PREPARE_AFTER, Pipeline

log = logging.getLogger(__name__)

# A statement that was prepared before a migration, or on another connection behind a pooler: a new connection knows.
OUTDATED = (
    psycopg.errors.FeatureNotSupported,
    psycopg.errors.InvalidSqlStatementName,
    psycopg.errors.DuplicatePreparedStatement,
)
TRANSIENT = (
    sqlite3.OperationalError,
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.errors.ReadOnlySqlTransaction,  # a server that is being replaced by another one
    psycopg.errors.IdleInTransactionSessionTimeout,
    *OUTDATED,
)
# Rows of one statement. Each size is a statement that stays prepared: few, but enough that fewer rows take two at most.
MOST_ROWS, FEWER_ROWS = 16, (12, 8, 6, 4, 3, 2, 1)
ERRORS = (sqlite3.Error, psycopg.Error)
# A process whose machine is gone leaves its transaction open, and nobody could write to its conversations for hours.
# For this transaction only: a pooler gives the connection to somebody else afterwards.
OPENED = b"SELECT set_config('idle_in_transaction_session_timeout', '5s', true), txid_current()"
# The backend that has this transaction: by its process a pooler's might be met that serves somebody else by now.
GIVE_UP = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid::text::bigint = mod(%s, 4294967296)"
GIVING_UP = (0.01, 0.02, 0.05, 0.1)  # seconds that it has for that
CONFLICTS = (sqlite3.IntegrityError, psycopg.IntegrityError)  # with a row that another process made meanwhile
# For values of other types than these SQLite's driver looks for an adapter, by an error that it raises and drops, each.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(bool, int)
sqlite3.register_adapter(type(None), {None: None}.get)


def is_transient(error: Exception) -> bool:
    """Whether the same again may work. SQLite has one class for a busy database and for a statement that is wrong."""
    wrong = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
    return isinstance(error, TRANSIENT) and not wrong


@lru_cache(maxsize=512)
def _qmarks(sql: str) -> str:
    return sql.replace("%s", "?").replace("NOW()", "strftime('%Y-%m-%d %H:%M:%f', 'now')")


@lru_cache(maxsize=512)
def _numbered(sql: str) -> bytes:
    """As PostgreSQL itself wants it. psycopg would find the places anew each time in a statement of many rows."""
    first, *rest = sql.split("%s")
    places = (f"${number}{part}" for number, part in enumerate(rest, 1))
    return "".join((first, *places)).replace("%%", "%").encode()


@lru_cache(maxsize=64)
def _repeated(sql: str, row: str, times: int) -> str:
    return sql.replace(row, ", ".join([row] * times))


@lru_cache(maxsize=64)
def _pieces(count: int) -> tuple[tuple[int, int], ...]:
    """So many rows, in as few statements as they take: where each begins and ends."""
    pieces, start = [], 0
    for size in (MOST_ROWS, *FEWER_ROWS):
        while count - start >= size:
            pieces.append((start, start + size))
            start += size
    return tuple(pieces)


def timestamp(seconds: float) -> str:
    """A point in time as both databases read it into a timestamp column."""
    whole, rest = divmod(int(seconds * 1_000_000), 1_000_000)
    return f"{_second(whole)}.{rest:06}"


@lru_cache(maxsize=8)
def _second(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%d %H:%M:%S")


def seconds(moment: Any) -> float | None:
    """The inverse, of what either database reads: SQLite gives text, without its zone."""
    if moment is None:
        return None
    found = moment if isinstance(moment, dt.datetime) else dt.datetime.fromisoformat(moment)
    return (found if found.tzinfo else found.replace(tzinfo=dt.UTC)).timestamp()


class Database:
    """One connection, used by one thread. Opens itself when needed, forgets itself when broken."""

    def __init__(self, *pragmas: str) -> None:
        self._pragmas = pragmas  # of SQLite, for this connection only
        self._wrapper: BaseDatabaseWrapper | None = None
        self._raw: Any = None
        self._postgres: Pipeline | None = None
        self._pipeline: Pipeline | None = None  # the same, inside a transaction
        self._expected: list[tuple[Any, int, Exception]] = []
        self._opened: Any = None  # what PostgreSQL says of the transaction
        self._doubtful: int | None = None  # PostgreSQL's number of a transaction whose commit was not confirmed
        self._left: int | None = None  # the same of one that nobody waits for any more
        self._ensured: dict[tuple[str, str], dict[Any, tuple[Sequence[Any], Exception]]] = {}
        self._rows: dict[tuple[str, str], list[Sequence[Any]]] = {}  # to be inserted, by statement
        self.sqlite = connections.settings["default"]["ENGINE"].endswith("sqlite3")

    def execute(self, sql: str, params: Sequence[Any] = ()) -> None:
        """Run a statement of the transaction; on PostgreSQL it may still be on its way when this returns."""
        self.flush()
        self._run(sql, params)

    def ensure(self, sql: str, row: str, values: Sequence[Any], otherwise: Exception) -> None:
        """A row, known by its first value, that must be inserted or changed; if not, the transaction fails. It waits
        for those of other turns, but is there before anything that is expected."""
        waiting = self._ensured.setdefault((sql, row), {})
        if values[0] in waiting or len(waiting) == MOST_ROWS:
            self._flush_ensured()
        waiting[values[0]] = (values, otherwise)

    def expect(self, sql: str, params: Sequence[Any], otherwise: Exception) -> None:
        """A statement that must touch exactly one row, none of those that `insert` has yet to insert; if not, the
        transaction fails with `otherwise`."""
        self._flush_ensured()
        self._check(self._run(sql, params), 1, otherwise)

    def insert(self, sql: str, row: str, *rows: Sequence[Any]) -> None:
        """`sql` inserts one row, whose part is `row`. They wait for those of other turns: many at a time are one
        statement, which is faster, and leaves the event loop alone meanwhile."""
        waiting = self._rows.setdefault((sql, row), [])
        waiting += rows
        while len(waiting) >= MOST_ROWS:
            self._insert(sql, row, waiting[:MOST_ROWS])
            del waiting[:MOST_ROWS]

    def flush(self) -> None:
        """Write the rows that still wait."""
        self._flush_ensured()
        for (sql, row), waiting in self._rows.items():
            for start, end in _pieces(len(waiting)):
                self._insert(sql, row, waiting[start:end])
            waiting.clear()

    def _flush_ensured(self) -> None:
        for (sql, row), waiting in self._ensured.items():
            rows = list(waiting.values())
            for start, end in _pieces(len(rows)):
                cursor = self._insert(sql, row, [values for values, _ in rows[start:end]])
                self._check(cursor, end - start, rows[start][1])
            waiting.clear()

    def _check(self, cursor: Any, rows: int, otherwise: Exception) -> None:
        if not self.sqlite:
            self._expected.append((cursor, rows, otherwise))  # known when the pipeline is synchronised
        elif cursor.rowcount != rows:
            raise otherwise

    def _insert(self, sql: str, row: str, rows: list[Sequence[Any]]) -> Any:
        return self._run(_repeated(sql, row, len(rows)), tuple(chain.from_iterable(rows)))

    def _run(self, sql: str, params: Sequence[Any]) -> Any:
        if self._pipeline is not None:
            return self._pipeline.send(_numbered(sql), params)
        return self._connection().execute(_qmarks(sql) if self.sqlite else _numbered(sql), params)

    def query(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self.flush()
        if self.sqlite:
            return self._connection().execute(_qmarks(sql), params).fetchall()  # type: ignore[no-any-return]
        if self._pipeline is not None:
            sent = self._pipeline.send(_numbered(sql), params)
            self._pipeline.sync()
            return self._pipeline.rows(sent)
        # Binary: content is bytes, and text would be their hexadecimal digits.
        return self._connection().execute(_numbered(sql), params, binary=True).fetchall()  # type: ignore[no-any-return]

    def begin(self) -> None:
        """On PostgreSQL the whole transaction is one pipeline: a round trip for all of it, and one for the commit."""
        self._ensured, self._rows = {}, {}
        self._settle()
        connection = self._connection()
        if self.sqlite:
            connection.execute("BEGIN IMMEDIATE")
            return
        self._expected = []
        assert self._postgres is not None
        self._pipeline = self._postgres
        self._pipeline.enter()
        self._pipeline.send(b"BEGIN")
        self._opened = self._pipeline.send(OPENED)

    def commit(self) -> None:
        self.flush()
        if self._pipeline is not None:
            self._pipeline.sync()
            for cursor, rows, otherwise in self._expected:
                if cursor.rowcount != rows:
                    raise otherwise
            ((_, self._doubtful),) = self._pipeline.rows(self._opened)
        self._run("COMMIT", ())
        self._leave_pipeline()
        self._doubtful = None

    def committed(self) -> bool:
        """Whether the transaction that failed last was stored after all: only the server's word for it was lost."""
        if self._doubtful is None:
            return False
        return self._ended(self._doubtful)

    def _settle(self) -> None:
        """A commit that is still under way must not be stored behind what is written next: whoever looks for the rows
        of such a turn, to close it, would find none, and it would be `running` for ever."""
        if self._doubtful is not None:
            self._left, self._doubtful = self._doubtful, None
        if self._left is not None:
            self._ended(self._left)
            self._left = None

    def _ended(self, transaction: int) -> bool:
        """Whether it was stored, once that is certain: its server, which waits for somebody who has left, is told to
        give up."""
        for pause in (*GIVING_UP, None):
            try:
                ((status,),) = self.query("SELECT txid_status(%s)", (transaction,))
            except psycopg.errors.InvalidParameterValue:
                return False  # another server has taken over, which has not come that far
            if status != "in progress" or pause is None:
                break
            with suppress(psycopg.errors.InsufficientPrivilege):
                self.query(GIVE_UP, (transaction,))
            time.sleep(pause)
        if status == "in progress":
            raise psycopg.OperationalError("the server has yet to find out that nobody waits for its last transaction")
        return bool(status == "committed")

    def rollback(self) -> None:
        """Also after a failure of the connection itself: then there is nothing left to roll back."""
        if self._raw is None:
            return
        try:
            self._leave_pipeline()
        except ERRORS:
            log.debug("state.rollback: the pipeline had failed")
        try:
            if not self.sqlite or self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
        except ERRORS:
            self.close()

    def _leave_pipeline(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.leave()

    def close(self) -> None:
        wrapper, self._wrapper, self._raw, self._postgres, self._pipeline = self._wrapper, None, None, None, None
        if wrapper is not None:
            try:
                wrapper.close()
            except ERRORS:
                wrapper.connection = None

    def sever(self) -> None:
        """From another thread: whoever waits for an answer on this connection is told that there will be none, also
        while it is being made."""
        wrapper = self._wrapper
        raw = None if wrapper is None or self.sqlite else wrapper.connection
        if raw is None:
            return
        with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(raw.fileno())) as same:
            same.shutdown(socket.SHUT_RDWR)

    @property
    def broken(self) -> bool:
        return self._raw is not None and not self.sqlite and self._raw.broken

    def _connection(self) -> Any:
        if self._raw is None or self.broken:
            self.close()
            wrapper = connections.create_connection("default")
            # The thread that opens a connection here keeps it; Django's own per-thread bookkeeping stays out of it.
            wrapper.inc_thread_sharing()
            self._wrapper = wrapper
            _connect(wrapper)
            self._raw = wrapper.connection
            if not self.sqlite:
                _suit(self._raw)
                self._postgres = Pipeline(self._raw, prepares=self._raw.prepare_threshold is not None)
            else:
                for pragma in self._pragmas:
                    self._raw.execute(pragma)
        return self._raw


def _connect(wrapper: BaseDatabaseWrapper) -> None:
    try:
        wrapper.connect()
    except ERRORS as error:
        # The driver's error holds the half-open socket, and itself: until the collector comes by, a server that does
        # not answer would be left with one more at each try.
        failed: BaseException | None = error
        while failed is not None:
            traceback.clear_frames(failed.__traceback__)
            failed = failed.__context__
        raise


def _suit(raw: Any) -> None:
    raw.autocommit = True  # transactions are opened by name, as on SQLite
    raw.cursor_factory = psycopg.RawCursor  # Django's writes the parameters into the statement
    raw.adapters.register_dumper(int, Int8BinaryDumper)  # one statement, whatever the size of its numbers
    if _may_prepare(raw):
        raw.prepare_threshold = PREPARE_AFTER


def _may_prepare(raw: Any) -> bool:
    """A pooler hands each transaction to another connection, which knows nothing of what this one prepared."""
    wanted = conf.prepared_statements()
    if wanted != "auto":
        return wanted == "on"
    # A pooler has no process of the database to name, so it makes one up.
    return bool(raw.execute("SELECT pg_backend_pid()").fetchone()[0] == raw.info.backend_pid)
