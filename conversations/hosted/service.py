"""The tools of a process: what the bridge asks for, in one place."""

import asyncio
import time
from collections.abc import Awaitable
from functools import partial

from conversations.hosted import queue
from conversations.hosted.addresses import Allowed
from conversations.hosted.runner import Limits, Runner
from conversations.hosted.shelf import Shelf
from conversations.hosted.values import NOTHING_OFFERED, Hosted, Offered, Outcome, Progress
from conversations.routing import Route
from conversations.store import Store
from conversations.store.accounts import KeyRow
from conversations.store.hosted import Progressed, Ran, SaveBreaker, SaveProgress, ran
from translation import adapters
from translation.errors import StoreUnavailable
from translation.values import Request

LOOK_SECONDS = 0.5
TELL_SECONDS = 0.25  # between two writes of how far a tool is, however often it says so
NO_RUNS: list[Ran] = []


class HostedTools:
    def __init__(self, store: Store, allowed: Allowed, limits: Limits) -> None:
        self.limits = limits
        self._store = store
        self._runner = Runner(allowed, limits, self._report)
        self.shelf = Shelf(store, self._runner)

    async def offered(self, key: KeyRow, request: Request, route: Route) -> Offered:
        """What is registered is always the bridge's to run. So are the servers that a request names, if its key may
        name any; from a key that may not they are passed on to Anthropic, which has a connector itself."""
        connector = bool(request.mcp_servers) and (key.hosted or not adapters.relays(route.target.profile))
        if self.shelf.empty and not connector:
            return NOTHING_OFFERED
        names = (request.model, route.target.model, f"{route.target.upstream}/{route.target.model}")
        return await self.shelf.offered(key, request, names, connector=connector)

    async def run(
        self, tool: Hosted, conversation: int, tool_use_id: str, arguments: bytes, seconds: float
    ) -> Outcome | None:
        """What the tool gave; None for one that runs elsewhere and has not ended in this time."""
        if tool.endpoint.long_running:
            await queue.enqueue(conversation, tool_use_id)
            return await self.awaited(conversation, tool_use_id, seconds)
        return await self.run_here(tool, conversation, tool_use_id, arguments, seconds)

    async def run_here(
        self, tool: Hosted, conversation: int, tool_use_id: str, arguments: bytes, seconds: float
    ) -> Outcome:
        teller = _Teller(partial(self._progress, conversation, tool_use_id))
        outcome = await self._runner.run(tool, arguments, seconds, teller.tell)
        await teller.flush()
        if outcome.is_error:
            self.shelf.doubt(tool.endpoint)
        return outcome

    async def awaited(self, conversation: int, tool_use_id: str, seconds: float) -> Outcome | None:
        """The outcome of a run that a worker has."""
        deadline = asyncio.get_running_loop().time() + seconds
        job = partial(ran, conversation_id=conversation, tool_use_ids=(tool_use_id,))
        while True:
            found = await self._store.read(job, NO_RUNS)
            outcome = outcome_of(found[0]) if found else None
            if outcome is not None or asyncio.get_running_loop().time() >= deadline:
                return outcome
            await asyncio.sleep(LOOK_SECONDS)

    async def close(self) -> None:
        await self._runner.close()

    async def _progress(self, conversation: int, tool_use_id: str, progress: Progressed) -> None:
        await self._told(self._store.write(SaveProgress(conversation, tool_use_id, progress)))

    async def _report(self, breaker: SaveBreaker) -> None:
        await self._told(self._store.write(breaker))

    async def _told(self, write: Awaitable[None]) -> None:
        """Worth knowing, but no tool fails for it."""
        try:
            await write
        except StoreUnavailable:
            return


class _Teller:
    """Passes on the newest progress of a run, and not too often."""

    def __init__(self, write: Progress) -> None:
        self._write = write
        self._newest: Progressed | None = None
        self._next = 0.0

    async def tell(self, progress: Progressed) -> None:
        self._newest = progress
        if time.monotonic() >= self._next:
            await self.flush()

    async def flush(self) -> None:
        newest, self._newest = self._newest, None
        if newest is not None:
            self._next = time.monotonic() + TELL_SECONDS
            await self._write(newest)


def outcome_of(run: Ran) -> Outcome | None:
    if run.over:
        return Outcome(run.result, run.is_error)
    if run.status == "cancelled" or not run.long_running:
        return Outcome("[no result: interrupted]", is_error=True, error="interrupted")
    return None
