"""The transport itself: take or dial a connection, send, wait for the head."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

import httpx

from conversations.transport.connection import Connection
from conversations.transport.dial import dial
from conversations.transport.exchange import Exchange
from conversations.transport.origin import Origin, origin_of
from conversations.transport.outgoing import Outgoing, encode, pieces
from conversations.transport.pool import Pool
from conversations.transport.sweeper import Sweeper

KEEPALIVE = 60.0
Timeouts = Mapping[str, float | None]
NO_TIMEOUTS: Timeouts = {}
VERSIONS = {"1.0": b"HTTP/1.0", "1.1": b"HTTP/1.1"}


class Transport(httpx.AsyncBaseTransport):
    """Belongs to the event loop it is first used on. Request extensions: `timeout` (as httpx's; `pool` means nothing
    here) and `connect_to`, an IP address to dial instead of the url's host, which stays in `Host` and SNI."""

    def __init__(self, ssl_context: ssl.SSLContext | None = None, keepalive: float = KEEPALIVE) -> None:
        self._ssl_context = ssl_context
        self._pool = Pool(keepalive)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeper: Sweeper | None = None
        self._closed = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        timeouts: Timeouts = request.extensions.get("timeout", NO_TIMEOUTS)
        exchange = await self.exchange(origin_of(request.url, request.extensions), encode(request), timeouts)
        extensions = {"http_version": VERSIONS.get(exchange.version, b"HTTP/1.1")}
        return httpx.Response(exchange.status, headers=exchange.headers, stream=exchange, extensions=extensions)

    async def exchange(self, origin: Origin, outgoing: Outgoing, timeouts: Timeouts) -> Exchange:
        """The same without httpx's own request and response, which cost more than all the rest."""
        sweeper = self._bind()
        connection = self._pool.take(origin)
        if connection is not None:
            exchange = await _exchange(connection, outgoing, timeouts)
            if not _may_repeat(exchange, outgoing):
                return _answered(exchange)
        connection = await self._dial(origin, sweeper, timeouts.get("connect"))
        return _answered(await _exchange(connection, outgoing, timeouts))

    async def aclose(self) -> None:
        self._closed = True
        if self._sweeper is not None:
            await self._sweeper.close()

    def _bind(self) -> Sweeper:
        loop = asyncio.get_running_loop()
        if self._closed:
            raise RuntimeError("the transport is closed")
        if self._sweeper is None:
            self._loop = loop
            self._sweeper = Sweeper(loop)
        if self._loop is not loop:
            raise RuntimeError("the transport belongs to another event loop")
        return self._sweeper

    async def _dial(self, origin: Origin, sweeper: Sweeper, within: float | None) -> Connection:
        connection = Connection(asyncio.get_running_loop(), origin, self._pool, sweeper)
        await dial(connection, self._tls() if origin.scheme == "https" else None, within)
        if self._closed:
            connection.abort()
            raise httpx.ConnectError("the transport was closed")
        return connection

    def _tls(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            self._ssl_context = httpx.create_ssl_context()
            self._ssl_context.set_alpn_protocols(["http/1.1"])
        return self._ssl_context


async def _exchange(connection: Connection, outgoing: Outgoing, timeouts: Timeouts) -> Exchange:
    """Send the request and wait for a head or a failure."""
    exchange = Exchange(connection, timeouts.get("read"), outgoing)
    connection.start(exchange, timeouts.get("write"))
    if isinstance(outgoing.body, bytes):
        connection.send(outgoing.head, outgoing.body)
        exchange.sent = True
    else:
        connection.send(outgoing.head, b"")
        await _upload(connection, exchange, pieces(outgoing.body, outgoing.length))
    await exchange.head()
    return exchange


async def _upload(connection: Connection, exchange: Exchange, body: AsyncGenerator[bytes, None]) -> None:
    """Send a streamed body; an answer that is complete before it, or a lost connection, ends it early."""
    try:
        async with aclosing(body):
            async for piece in body:
                if exchange.over:
                    return
                connection.send(piece, b"")
                await connection.drain()
        exchange.sent = True
    except BaseException:
        exchange.abandon()
        raise


def _may_repeat(exchange: Exchange, outgoing: Outgoing) -> bool:
    """The reused connection was lost before any answer, and repeating cannot do anything twice."""
    if exchange.failure is None or not exchange.silent or not isinstance(outgoing.body, bytes):
        return False
    lost = isinstance(exchange.failure, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError)
    return lost and (exchange.closed_as_idle or outgoing.idempotent)


def _answered(exchange: Exchange) -> Exchange:
    if exchange.failure is not None and not exchange.status:
        raise exchange.failure
    return exchange
