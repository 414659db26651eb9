"""One response being received, as the stream of its body.

The connection fills it (`status`, `headers`, `chunks`) and calls `wake` once per socket read; one consumer waits. Its
`listener`, if it has one while it waits, is asked first: a chunk that it takes wakes nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING

import httpx

from conversations.transport.outgoing import Outgoing, RawHeaders

if TYPE_CHECKING:
    from conversations.transport.connection import Connection

# Takes a chunk where the socket is read. False wakes the one who waits, which has an empty chunk then.
Listener = Callable[[bytes], bool]


class Exchange(httpx.AsyncByteStream):
    __slots__ = (
        "_connection",
        "_nudged",
        "_waiter",
        "buffered",
        "chunks",
        "closed_as_idle",
        "failure",
        "head_only",
        "headers",
        "listener",
        "overhead",
        "read_timeout",
        "reusable",
        "sent",
        "silent",
        "status",
        "until_close",
        "version",
    )

    def __init__(self, connection: Connection, read_timeout: float | None, outgoing: Outgoing) -> None:
        self._connection: Connection | None = connection
        self.failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._nudged = False  # since the last wait began, and nothing has come since
        self.read_timeout = read_timeout
        self.head_only = outgoing.head_only
        self.reusable = not outgoing.close
        self.sent = False  # the whole request was handed to the socket
        self.silent = True  # not one byte of a response arrived
        self.closed_as_idle = False
        self.status = 0
        self.version = "1.1"
        self.headers: RawHeaders = []
        self.until_close = False
        self.chunks: list[bytes] = []
        self.buffered = 0
        self.listener: Listener | None = None
        self.overhead = 0  # bytes since the last head or body byte that were neither

    @property
    def over(self) -> bool:
        """Nothing more will arrive; the connection is no longer ours."""
        return self._connection is None

    @property
    def spent(self) -> bool:
        """All of it was read, to its end."""
        return self._connection is None and not self.chunks and self.failure is None

    async def head(self) -> None:
        """Wait until the head is there, or a failure."""
        if not self.status and self._connection is not None:
            try:
                await self._next(self._connection)
            except BaseException:
                self._give_up()
                raise

    def __aiter__(self) -> Exchange:
        return self

    async def __anext__(self) -> bytes:
        chunks = self.chunks
        if not chunks and self._connection is not None:
            try:
                await self._next(self._connection)
            except BaseException:
                self._give_up()
                raise
        self.listener = None
        if not chunks:
            return self._nothing()
        data = self.taken()
        if (connection := self._connection) is not None and connection.paused:
            connection.resume()
        return data

    def taken(self) -> bytes:
        """What has come since the last time."""
        chunks = self.chunks
        if len(chunks) == 1:
            data = chunks.pop()
        else:
            data = b"".join(chunks)
            chunks.clear()
        self.buffered, self._nudged = 0, False
        return data

    def _nothing(self) -> bytes:
        if self.failure is not None:
            raise self.failure
        if self._connection is not None:
            return b""  # nudged
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.abandon()

    def abandon(self) -> None:
        """Nobody will read the rest."""
        if self._connection is not None:
            self._connection.fail(httpx.StreamClosed())
            self.chunks.clear()

    def wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = self.listener = None
            if not waiter.done():
                waiter.set_result(None)

    def nudge(self) -> None:
        """Let the consumer that waits for the body have an empty chunk: it has something else to do."""
        if self.status:
            self._nudged = self._nudged or self.waiting
            self.wake()

    @property
    def waiting(self) -> bool:
        return self._waiter is not None

    def finish(self, failure: Exception | None) -> None:
        self._connection = None
        self.failure = failure
        self.wake()

    def _next(self, connection: Connection) -> asyncio.Future[None]:
        """Done when something has come, or the consumer is nudged."""
        waiter = self._waiter = connection.loop.create_future()
        # Who was only nudged waits on: the peer has been silent since the first wait, not since the last nudge.
        if not self._nudged or connection.deadline == inf:
            connection.expect()
        return waiter

    def _give_up(self) -> None:
        self._waiter = None
        self.abandon()
