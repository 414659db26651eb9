"""Long-running tools, in a worker. The row is the truth: who takes it says so in it, and again while it works.

A worker that dies leaves a row that has not been seen for a while; beat hands it over again. A tool may therefore run
more than once, and says in its row how often it was tried.
"""

import asyncio
import datetime as dt
import logging
import threading
from contextlib import suppress

from django.db import connections
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from conversations import conf
from conversations.hosted.addresses import Allowed
from conversations.hosted.queue import hand_over
from conversations.hosted.runner import tool_limits
from conversations.hosted.service import HostedTools
from conversations.hosted.values import Outcome
from conversations.models import ExecutionStatus, ToolExecution
from conversations.store import Store
from conversations.store.hosted import FinishExecution, SaveSeen, packed
from translation.errors import StoreUnavailable

log = logging.getLogger(__name__)

SEEN_SECONDS = 10.0
LOST_AFTER = dt.timedelta(seconds=60)
UNTAKEN_AFTER = dt.timedelta(seconds=15)
TRIES = 5
PAUSES = (1.0, 2.0, *(5.0,) * 60)  # seconds
CONCURRENT = 16  # of one worker
LONGEST = 3_600.0  # seconds, for a tool that has no limit of its own
_slots = threading.BoundedSemaphore(CONCURRENT)
GONE = Outcome("the tool was removed before it ran", is_error=True, error="refused")
LOST = Outcome(f"the tool was tried {TRIES} times; each time its worker died", is_error=True, error="interrupted")


def start(conversation: int, tool_use_id: str) -> None:
    """In a thread, since a worker that runs one task at a time has others to run. It may die with the worker."""
    threading.Thread(target=_in_turn, args=(conversation, tool_use_id), daemon=True).start()


def _in_turn(conversation: int, tool_use_id: str) -> None:
    with _slots:
        run(conversation, tool_use_id)
    connections.close_all()


def run(conversation: int, tool_use_id: str) -> str:
    """What became of it; "" when it is somebody else's, or over."""
    mine = _waiting().filter(conversation=conversation, tool_use_id=tool_use_id)
    if not mine.update(status=ExecutionStatus.RUNNING, seen_at=Now(), attempts=F("attempts") + 1):
        return ""
    row = ToolExecution.objects.get(conversation=conversation, tool_use_id=tool_use_id)
    return asyncio.run(_run(row))


def requeue() -> int:
    """Hand over again what nobody works on."""
    lost = list(_waiting(UNTAKEN_AFTER).values_list("conversation_id", "tool_use_id", "attempts")[:500])
    for conversation, tool_use_id, attempts in lost:
        if attempts >= TRIES:
            asyncio.run(_give_up(conversation, tool_use_id))
        else:
            hand_over(conversation, tool_use_id)
    return len(lost)


def _waiting(untaken: dt.timedelta = dt.timedelta(0)) -> QuerySet[ToolExecution]:
    queued = Q(status=ExecutionStatus.QUEUED, created_at__lte=Now() - untaken)
    lost = Q(status=ExecutionStatus.RUNNING, seen_at__lt=Now() - LOST_AFTER)
    return ToolExecution.objects.filter(queued | lost, long_running=True, conversation__ended_at=None)


async def _run(row: ToolExecution) -> str:
    store = Store()
    store.start()
    settings = conf.current()
    tools = HostedTools(store, Allowed(settings.tool_hosts), tool_limits(settings))
    seen = asyncio.get_running_loop().create_task(_tell(store, row))
    try:
        tool = await tools.shelf.find(row.tool_id or 0, row.tool_name)
        outcome = (
            GONE
            if tool is None
            else await tools.run_here(tool, row.conversation_id, row.tool_use_id, bytes(row.arguments), LONGEST)
        )
        await _keep(store, _finished(row.conversation_id, row.tool_use_id, row.attempts, outcome))
    finally:
        seen.cancel()
        await tools.close()
        await store.stop()
    return "failed" if outcome.is_error else "complete"


async def _keep(store: Store, finished: FinishExecution) -> None:
    """What a tool said is worth waiting for a store that is away: without it the tool would run again."""
    for pause in PAUSES:
        try:
            await store.write(finished)
        except StoreUnavailable:
            await asyncio.sleep(pause)
        else:
            return
    log.error("the outcome of %s could not be stored", finished.tool_use_id)


async def _tell(store: Store, row: ToolExecution) -> None:
    while True:
        await asyncio.sleep(SEEN_SECONDS)
        with suppress(StoreUnavailable):  # the next time will do: it is taken for lost much later
            await store.write(SaveSeen(row.conversation_id, row.tool_use_id))


async def _give_up(conversation: int, tool_use_id: str) -> None:
    store = Store()
    store.start()
    await store.write(_finished(conversation, tool_use_id, TRIES, LOST))
    await store.stop()


def _finished(conversation: int, tool_use_id: str, attempts: int, outcome: Outcome) -> FinishExecution:
    """Kept whatever the key's storage level is, until the turn that waits for it has told it."""
    result = outcome.text.encode("utf-8", "replace")
    return FinishExecution(
        conversation=conversation,
        tool_use_id=tool_use_id,
        status="failed" if outcome.is_error else "complete",
        result=packed(result),
        size=len(result),
        is_error=outcome.is_error,
        error=outcome.error,
        attempts=attempts,
        duration_ms=outcome.ms,
    )
