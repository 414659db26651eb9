"""Around each server: so many calls at once, and none while it rests after failures in a row."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from conversations.hosted.values import BLAMED, Endpoint, Failure, ToolFailed
from conversations.store.database import timestamp
from conversations.store.hosted import SaveBreaker

FAILURES = 5  # in a row
REST_SECONDS = 30.0
CONCURRENT = 8
REMEMBERED = 2_000  # servers; clients may name any number of them

Report = Callable[[SaveBreaker], Awaitable[None]]


class _Server:
    def __init__(self) -> None:
        self.slots = asyncio.Semaphore(CONCURRENT)
        self.failures = 0
        self.rests_until = 0.0


class Guards:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._servers: dict[tuple[str, str], _Server] = {}

    @asynccontextmanager
    async def passed(self, endpoint: Endpoint) -> AsyncIterator[None]:
        """One call. Raises ToolFailed at once while the server rests."""
        server = self._server(endpoint)
        rest = server.rests_until - time.monotonic()
        if rest > 0:
            text = f"the tool is not called for {rest:.0f} s: it failed {server.failures} times in a row"
            raise ToolFailed("resting", text)
        async with server.slots:
            try:
                yield
            except ToolFailed as failed:
                await self._failed(server, endpoint, failed.kind, failed.text)
                raise
            else:
                await self._worked(server, endpoint)

    def _server(self, endpoint: Endpoint) -> _Server:
        identity = (endpoint.owner, endpoint.url)
        if identity not in self._servers:
            if len(self._servers) >= REMEMBERED:
                self._servers.pop(next(iter(self._servers)))
            self._servers[identity] = _Server()
        return self._servers[identity]

    async def _failed(self, server: _Server, endpoint: Endpoint, kind: Failure, text: str) -> None:
        if kind not in BLAMED:
            return
        server.failures += 1
        if server.failures >= FAILURES:
            # One call after the rest decides: if it fails, too, the next rest begins.
            server.rests_until = time.monotonic() + REST_SECONDS
        await self._tell(server, endpoint, text)

    async def _worked(self, server: _Server, endpoint: Endpoint) -> None:
        if server.failures:
            server.failures, server.rests_until = 0, 0.0
            await self._tell(server, endpoint, "")

    async def _tell(self, server: _Server, endpoint: Endpoint, text: str) -> None:
        if endpoint.row is None:
            return
        rest = server.rests_until - time.monotonic()
        until = timestamp(time.time() + rest) if rest > 0 else None
        await self._report(SaveBreaker(endpoint.row, server.failures, until, text))
