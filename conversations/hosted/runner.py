"""Runs a tool: where it is, within its time and size, and whatever happens, with an outcome."""

import asyncio
import importlib
import logging
import time
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from conversations.conf import Conf
from conversations.hosted import http_tool
from conversations.hosted.addresses import Allowed
from conversations.hosted.guard import Guards, Report
from conversations.hosted.values import Endpoint, Hosted, Outcome, Progress, ToolFailed
from conversations.transport import Transport
from translation.mcp_servers import Listed

log = logging.getLogger(__name__)

LISTING_SECONDS = 15.0
LISTING_BYTES = 4 * 1024 * 1024
TRIES = 2  # of a connection that could not be made: then nothing has been done twice
NO_OUTPUT = "(no output)"


class Limits(Struct, frozen=True):
    tool_seconds: float = 60.0
    result_bytes: int = 1024 * 1024
    rounds: int = 20
    turn_seconds: float = 600.0


def tool_limits(conf: Conf) -> Limits:
    return Limits(conf.tool_seconds, conf.tool_result_bytes, conf.tool_rounds, conf.tool_turn_seconds)


class Runner:
    def __init__(self, allowed: Allowed, limits: Limits, report: Report) -> None:
        self.limits = limits
        self.guards = Guards(report)
        self._allowed = allowed
        self._transport = Transport()
        self._mcp: Any = None

    async def run(self, tool: Hosted, arguments: bytes, seconds: float, progress: Progress) -> Outcome:
        """Within its own limit and `seconds`. Cancelled from outside, it raises; nothing else does."""
        started = time.perf_counter()
        outcome = Outcome("", is_error=True, error="protocol")
        own = tool.endpoint.timeout or (seconds if tool.endpoint.long_running else self.limits.tool_seconds)
        within = min(own, seconds)
        for attempt in range(1, TRIES + 1):
            outcome = await self._once(tool, arguments, within, progress)
            outcome = replace(outcome, attempts=attempt)
            within -= time.perf_counter() - started
            if outcome.error != "unreachable" or within <= 0:
                break
        return replace(outcome, ms=round((time.perf_counter() - started) * 1000, 3))

    async def listing(self, endpoint: Endpoint) -> tuple[Listed, ...]:
        """The tools of an MCP server. Raises ToolFailed."""
        client = await self._client()
        within = min(LISTING_SECONDS, self.limits.tool_seconds)
        async with self.guards.passed(endpoint, within):
            try:
                async with asyncio.timeout(within):
                    pinned = await self._allowed.pin(endpoint.url)
                    found: tuple[Listed, ...] = await client.listing(self._transport, endpoint, pinned, LISTING_BYTES)
                    return found
            except TimeoutError:
                raise ToolFailed("timeout", f"no list of tools within {within:.3g} s") from None

    async def close(self) -> None:
        await self._transport.aclose()

    async def _once(self, tool: Hosted, arguments: bytes, within: float, progress: Progress) -> Outcome:
        endpoint, deadline = tool.endpoint, asyncio.get_running_loop().time() + within
        try:
            async with self.guards.passed(endpoint, within):
                try:
                    async with asyncio.timeout_at(deadline):
                        text = await self._called(tool, arguments, progress)
                except TimeoutError:
                    raise ToolFailed("timeout", f"the tool did not answer within {within:.3g} s") from None
        except ToolFailed as failed:
            log.info("hosted.failed %s: %s", tool.offer.name, failed.kind)
            return Outcome(endpoint.without_secrets(failed.text), is_error=True, error=failed.kind)
        return Outcome(endpoint.without_secrets(text) if text.strip() else NO_OUTPUT)

    async def _called(self, tool: Hosted, arguments: bytes, progress: Progress) -> str:
        endpoint, limit = tool.endpoint, self.limits.result_bytes
        if endpoint.kind == "http":
            return await http_tool.call(self._transport, self._allowed, endpoint, arguments, limit)
        client = await self._client()
        pinned = await self._allowed.pin(endpoint.url)
        answered: str = await client.call(
            self._transport, endpoint, pinned, tool.offer.tool, arguments, limit, progress
        )
        return answered

    async def _client(self) -> Any:
        if self._mcp is None:
            self._mcp = await asyncio.to_thread(importlib.import_module, "conversations.hosted.mcp_client")
        return self._mcp
