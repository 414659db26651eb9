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
    def __init__(self, failures: int) -> None:
        self.slots = asyncio.Semaphore(CONCURRENT)
        self.failures = failures
        self.rests_until = 0.0  # by the monotonic clock

    def rest(self, endpoint: Endpoint) -> float:
        """Seconds, whichever process has found that it needs them."""
        return max(self.rests_until - time.monotonic(), endpoint.open_until - time.time())


class Guards:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._servers: dict[tuple[str, str], _Server] = {}

    @asynccontextmanager
    async def passed(self, endpoint: Endpoint, within: float) -> AsyncIterator[None]:
        """One call. Raises ToolFailed at once while the server rests, and after `within` if it is never its turn."""
        server = self._server(endpoint)
        rest = server.rest(endpoint)
        if rest > 0:
            failures = max(server.failures, endpoint.failures)
            raise ToolFailed("resting", f"the tool is not called for {rest:.0f} s: it failed {failures} times in a row")
        try:
            async with asyncio.timeout(within):
                await server.slots.acquire()
        except TimeoutError:
            text = f"the tool is busy: {CONCURRENT} calls of it ran, and none ended within {within:.3g} s"
            raise ToolFailed("busy", text) from None
        try:
            yield
        except ToolFailed as failed:
            await self._failed(server, endpoint, failed.kind, endpoint.without_secrets(failed.text))
            raise
        else:
            await self._worked(server, endpoint)
        finally:
            server.slots.release()

    def _server(self, endpoint: Endpoint) -> _Server:
        identity = (endpoint.owner, endpoint.url)
        if identity not in self._servers:
            if len(self._servers) >= REMEMBERED:
                self._servers.pop(next(iter(self._servers)))
            self._servers[identity] = _Server(endpoint.failures)
        return self._servers[identity]

    async def _failed(self, server: _Server, endpoint: Endpoint, kind: Failure, text: str) -> None:
        if kind not in BLAMED:
            return
        server.failures += 1
        opens = server.failures >= FAILURES
        if opens:
            # One call after the rest decides: if it fails, too, the next rest begins.
            server.rests_until = time.monotonic() + REST_SECONDS
        await self._tell(server, endpoint, text, turned=opens)

    async def _worked(self, server: _Server, endpoint: Endpoint) -> None:
        if server.failures or endpoint.failures:
            closes = max(server.failures, endpoint.failures) >= FAILURES
            server.failures, server.rests_until = 0, 0.0
            await self._tell(server, endpoint, "", turned=closes)

    async def _tell(self, server: _Server, endpoint: Endpoint, text: str, *, turned: bool) -> None:
        if endpoint.row is None:
            return
        rest = server.rests_until - time.monotonic()
        until = timestamp(time.time() + rest) if rest > 0 else None
        await self._report(SaveBreaker(endpoint.row, server.failures, until, text, turned))
