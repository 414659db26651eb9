"""A transaction on PostgreSQL, in as few packets and system calls as it takes.

psycopg's own pipeline talks to the server with each statement: a poll, a packet and some fifty calls. Here statements
wait in libpq's buffer until their answers are asked for, or it is full; values are still psycopg's to write and read.
"""

import select
from collections import Counter, deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ConnStatus, ExecStatus, Format

PREPARE_AFTER = 3  # the same statement so many times
MOST_PREPARED = 200  # statements, which the server keeps in its memory
MOST_COUNTED = 1_000
ANSWERED = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)

Key = tuple[bytes, tuple[int, ...] | None]  # a statement, and the types of its parameters


class Sent:
    """A statement on its way."""

    __slots__ = ("prepares", "result")

    def __init__(self, prepares: Key | None = None) -> None:
        self.prepares = prepares
        self.result: Any = None  # once the pipeline is synchronised

    @property
    def rowcount(self) -> int:
        return self.result.command_tuples or 0


class Pipeline:
    """Of one connection, whose pipeline mode is entered and left with each transaction."""

    def __init__(self, connection: "psycopg.Connection[Any]", *, prepares: bool) -> None:
        self._pg = connection.pgconn
        self._values = Transformer(connection)
        self._prepares = prepares
        self._names: dict[Key, bytes] = {}  # of prepared statements
        self._numbers = count()
        self._asked: Counter[Key] = Counter()
        self._sent: deque[Sent] = deque()
        self._socket = select.poll()
        self._socket.register(self._pg.socket, select.POLLIN)

    def enter(self) -> None:
        self._sent.clear()
        self._pg.enter_pipeline_mode()

    def send(self, sql: bytes, params: Sequence[Any] = ()) -> Sent:
        written = self._values.dump_sequence(params, _automatic(len(params)))
        types, formats = self._values.types, self._values.formats
        name = self._name((sql, types)) if self._prepares else None
        if name is None:
            self._pg.send_query_params(sql, written, types, formats, Format.BINARY)
        else:
            self._pg.send_query_prepared(name, written, formats, Format.BINARY)
        sent = Sent()
        self._sent.append(sent)
        return sent

    def sync(self) -> None:
        """Until all is answered; raises the first error, after which the server has left out the rest."""
        failed: psycopg.Error | None = None
        self._pg.pipeline_sync()
        self._flush()
        while (result := self._next()).status != ExecStatus.PIPELINE_SYNC:
            sent = self._sent.popleft()
            sent.result = result
            if result.status in ANSWERED:
                continue
            if sent.prepares is not None:
                del self._names[sent.prepares]
            failed = failed or error_from_result(result)
        if failed is not None:
            raise failed

    def rows(self, sent: Sent) -> list[tuple[Any, ...]]:
        self._values.set_pgresult(sent.result)
        return self._values.load_rows(0, sent.result.ntuples, tuple)

    def leave(self) -> None:
        try:
            self.sync()
        finally:
            self._pg.exit_pipeline_mode()

    def _name(self, key: Key) -> bytes | None:
        name = self._names.get(key)
        if name is not None:
            return name
        self._asked[key] += 1
        if self._asked[key] < PREPARE_AFTER or len(self._names) >= MOST_PREPARED:
            if len(self._asked) > MOST_COUNTED:
                self._asked.clear()
            return None
        name = self._names[key] = b"written_%d" % next(self._numbers)
        self._pg.send_prepare(name, *key)
        self._sent.append(Sent(key))
        return name

    def _flush(self) -> None:
        if not self._pg.flush():
            return
        # The server may wait for its answers to be read before it reads on.
        self._socket.modify(self._pg.socket, select.POLLIN | select.POLLOUT)
        while self._pg.flush():
            self._socket.poll()
            self._pg.consume_input()
        self._socket.modify(self._pg.socket, select.POLLIN)

    def _next(self) -> Any:
        """The next answer; between those of two statements there is nothing."""
        while True:
            while self._pg.is_busy():
                self._socket.poll()
                self._pg.consume_input()
            result = self._pg.get_result()
            if result is not None:
                return result
            if self._pg.status == ConnStatus.BAD:
                raise psycopg.OperationalError("the connection was lost")


@lru_cache(maxsize=512)
def _automatic(places: int) -> tuple[PyFormat, ...]:
    return (PyFormat.AUTO,) * places
