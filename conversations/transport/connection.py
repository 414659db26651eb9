"""One connection: socket events in, one exchange at a time out. All of its state is here.

While it has no exchange it is idle in the pool: then any input, the end of input or the deadline closes it.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import cast

import httptools
import httpx

from conversations.transport.evidence import closed_as_idle
from conversations.transport.exchange import Exchange
from conversations.transport.framing import HEAD_LIMIT, cut_short, too_large, until_close
from conversations.transport.origin import Origin
from conversations.transport.pool import Pool
from conversations.transport.sweeper import Sweeper

HIGH_WATER = 256 * 1024  # unread body bytes beyond which the socket is not read
LISTEN_LIMIT = 32 * 1024  # of a larger read nothing is done while the socket is read
JOIN_LIMIT = 64 * 1024  # a larger body is not copied behind its head


class Connection(asyncio.Protocol):
    __slots__ = (
        "_complete",
        "_drained",
        "_exchange",
        "_heard",
        "_parser",
        "_pool",
        "_surplus",
        "_sweeper",
        "_transport",
        "_unsent",
        "_writable",
        "_write_timeout",
        "deadline",
        "loop",
        "origin",
        "paused",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, origin: Origin, pool: Pool, sweeper: Sweeper) -> None:
        self.loop = loop
        self.origin = origin
        self.deadline = inf
        self._pool = pool
        self._sweeper = sweeper
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._exchange: Exchange | None = None
        self._drained: asyncio.Future[None] | None = None
        self._write_timeout: float | None = None
        self._unsent = 0  # of the socket's write buffer, when last looked at
        self._writable = True
        self.paused = False  # nothing is read from the socket
        self._heard = -inf  # when a listener last took something
        self._complete = False  # the exchange's response is whole
        self._surplus = False  # and something came after it

    # Called by the client and by the exchange

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def start(self, exchange: Exchange, write_timeout: float | None) -> None:
        if self._transport is None:  # lost as soon as made
            exchange.finish(cut_short(exchange))
            return
        # Not in connection_made: a cancelled dial on uvloop is not followed by connection_lost, which forgets.
        self._sweeper.watch(self)
        self._exchange = exchange
        self._write_timeout = write_timeout
        self._complete = self._surplus = False
        self.deadline, self._heard = inf, -inf
        if self._parser is None:
            self._parser = httptools.HttpResponseParser(self)

    def send(self, head: bytes, body: bytes) -> None:
        if self._transport is None:
            return
        if len(body) < JOIN_LIMIT:
            self._transport.write(head + body)
        else:
            self._transport.writelines((head, body))

    async def drain(self) -> None:
        """Wait until the socket takes more, or never will."""
        if self._writable or self._exchange is None:
            return
        self._drained = self.loop.create_future()
        self.expect()
        try:
            await self._drained
        finally:
            self._drained = None

    def expect(self) -> None:
        """Something has to happen within the timeout: the peer reads on if it is behind, or else it writes."""
        exchange = self._exchange
        if exchange is None:
            return
        if self._writable:
            timeout = exchange.read_timeout
        else:
            timeout, self._unsent = self._write_timeout, self._write_buffer()
        if timeout is None:
            self.deadline = inf
        else:
            self._expire_at(self.loop.time() + timeout)

    def resume(self) -> None:
        if self.paused and self._transport is not None:
            self.paused = False
            self._transport.resume_reading()

    def fail(self, failure: Exception) -> None:
        """End the exchange, and the connection with it."""
        exchange = self._exchange
        self._exchange = None
        self._release_drain()
        if self._transport is not None:
            self._transport.abort()
        if exchange is not None:
            exchange.finish(failure)

    def abort(self) -> None:
        self.fail(httpx.ReadError("the transport was closed"))

    # Called by the sweeper

    def expire(self) -> None:
        self.deadline = inf
        exchange = self._exchange
        if exchange is None:
            self.abort()
        elif not exchange.waiting and self._drained is None:
            return
        elif self._writable:
            due = self._heard + (exchange.read_timeout or inf)  # who listens waits on without a word
            if due > self.loop.time():
                self._expire_at(due)
            else:
                self.fail(httpx.ReadTimeout("no byte of the response arrived in time"))
        elif self._write_buffer() < self._unsent:
            self.expect()
        else:
            self.fail(httpx.WriteTimeout("the peer did not read the request in time"))

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        exchange, parser = self._exchange, self._parser
        if exchange is None or parser is None:
            self.abort()
            return
        exchange.silent = False
        headless = not exchange.status
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if self._is_malformed(error):
                return
        if headless and exchange.status and too_large(exchange, data):
            self.fail(httpx.RemoteProtocolError(f"the response head is larger than {HEAD_LIMIT} bytes"))
        elif self._complete:
            self._settle(exchange)
        elif exchange.chunks:
            exchange.overhead = 0
            listener = exchange.listener
            if listener is None or len(data) > LISTEN_LIMIT:
                self._buffer(exchange, len(data))
            elif listener(exchange.taken()):
                self._heard = self.loop.time()
            else:
                exchange.wake()
        elif headless and exchange.status:
            exchange.overhead = 0
            exchange.wake()
        else:
            self._bound_overhead(exchange, len(data))

    def eof_received(self) -> None:
        self._pool.discard(self)
        exchange = self._exchange
        if exchange is None:
            return
        if exchange.silent and self._transport is not None:
            exchange.closed_as_idle = closed_as_idle(self._transport)
        self._end(exchange)

    def connection_lost(self, error: Exception | None) -> None:
        self._pool.discard(self)
        self._sweeper.forget(self)
        self._transport = None
        exchange = self._exchange
        if exchange is not None and error is None:
            self._end(exchange)
        elif isinstance(error, BrokenPipeError):
            if exchange is not None:
                # EPIPE is a reset after the end of input: see evidence.py.
                exchange.closed_as_idle = exchange.silent
            self.fail(httpx.WriteError(str(error)))
        else:
            self.fail(httpx.ReadError(str(error) or "the connection was lost"))
        self._parser = None  # it and this object refer to each other

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        self._release_drain()
        if self._exchange is not None and self._exchange.waiting:
            self.expect()

    # Called by the parser

    def on_message_begin(self) -> None:
        if self._complete:
            self._surplus = True

    def on_header(self, name: bytes, value: bytes) -> None:
        exchange = self._exchange
        if exchange is not None and not exchange.status:  # else a trailer
            exchange.headers.append((name, value))

    def on_headers_complete(self) -> None:
        exchange, parser = self._exchange, self._parser
        if self._complete or exchange is None or parser is None:
            return
        status = parser.get_status_code()
        if status < 200 and status != 101:
            exchange.headers.clear()
            return
        exchange.status = status
        exchange.version = parser.get_http_version()
        if not parser.should_keep_alive():
            exchange.reusable = False
            exchange.until_close = until_close(exchange.headers)
        if exchange.head_only:
            # The parser cannot know that no body follows; the next response gets a new one.
            self._complete = True
            self._parser = None

    def on_body(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None or self._complete:
            self._surplus = True
        else:
            exchange.chunks.append(data)

    def on_message_complete(self) -> None:
        if self._exchange is not None and self._exchange.status:
            self._complete = True

    # Steps

    def _is_malformed(self, error: Exception) -> bool:
        self._surplus = True
        if not self._complete:
            self.fail(httpx.RemoteProtocolError(f"malformed response: {error}"))
        return not self._complete

    def _end(self, exchange: Exchange) -> None:
        """The input ended."""
        if exchange.until_close:
            self._settle(exchange)
        else:
            self.fail(cut_short(exchange))

    def _settle(self, exchange: Exchange) -> None:
        """The response is whole: keep the connection if both sides are where the next exchange can begin."""
        self._exchange = None
        self._release_drain()
        if exchange.reusable and exchange.sent and not self._surplus and not self._write_buffer() and self.open:
            self.resume()
            self._expire_at(self.loop.time() + self._pool.keepalive)
            self._pool.put(self)
        elif self._transport is not None:
            self._transport.abort()
        exchange.finish(None)

    def _buffer(self, exchange: Exchange, size: int) -> None:
        exchange.buffered += size
        if exchange.buffered >= HIGH_WATER and not self.paused and self._transport is not None:
            self.paused = True
            self._transport.pause_reading()
        exchange.wake()

    def _bound_overhead(self, exchange: Exchange, size: int) -> None:
        exchange.overhead += size
        if exchange.overhead > HEAD_LIMIT:
            self.fail(httpx.RemoteProtocolError(f"more than {HEAD_LIMIT} bytes of head, chunk sizes or trailers"))
        elif exchange.waiting:
            self.expect()

    def _expire_at(self, deadline: float) -> None:
        self.deadline = deadline
        if deadline < self._sweeper.due:
            self._sweeper.advance(deadline)

    def _release_drain(self) -> None:
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _write_buffer(self) -> int:
        return 0 if self._transport is None else self._transport.get_write_buffer_size()
