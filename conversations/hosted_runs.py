"""The tools that a turn has started: stored before they run, waited for side by side, stored when they end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from conversations.hosted.values import Hosted, Outcome
from conversations.storable import storable
from conversations.store.hosted import ExecutionRow, FinishExecution, StartExecutions, packed
from conversations.store.links import LinkRow
from translation.errors import StoreUnavailable
from translation.values import Origin

if TYPE_CHECKING:
    from conversations.turn import Turn


class _Run(Struct, frozen=True):
    tool_use_id: str
    elsewhere: bool  # by a worker


class Runs:
    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._running: dict[asyncio.Task[Outcome | None], _Run] = {}

    def __bool__(self) -> bool:
        """Whether any has not ended."""
        return bool(self._running)

    @property
    def tasks(self) -> set[asyncio.Task[Outcome | None]]:
        return set(self._running)

    async def start(self, calls: list[LinkRow], state: bytes, round_number: int, seconds: float) -> None:
        """What is about to run is stored first; so is the state that its round leaves."""
        turn, tools = self._turn, self._turn.prepared.hosted
        conversation, target = turn.conversation, turn.prepared.route.target
        rows = []
        for number, call in enumerate(calls):
            left = b"" if number else state
            rows.append(self._row(call, tools[call.name], left, round_number))
            conversation.rounds[call.tool_use_id] = Origin(target.upstream, target.model, left)
        await turn.bridge.store.write(StartExecutions(conversation.row, turn.id, tuple(rows)))
        for call in calls:
            tool, id_ = tools[call.name], call.tool_use_id
            work = turn.bridge.hosted.run(tool, conversation.row.id, id_, call.arguments, seconds)
            self._add(work, id_, elsewhere=tool.endpoint.long_running)

    def wait_for(self, tool_use_ids: Iterable[str], seconds: float) -> None:
        """What an earlier turn has started, and a worker has."""
        turn = self._turn
        for id_ in tool_use_ids:
            self._add(turn.bridge.hosted.awaited(turn.conversation.row.id, id_, seconds), id_, elsewhere=True)

    def ended(self) -> list[tuple[str, Outcome | None]]:
        """Those that have ended since, in the order in which they were started."""
        done = [task for task in self._running if task.done()]
        return [(self._running.pop(task).tool_use_id, task.result()) for task in done]

    async def keep(self, id_: str, outcome: Outcome) -> str:
        """Store an outcome; its text as it may be shown then."""
        text = storable(outcome.text, len(outcome.text))
        result, full = text.encode(), self._turn.ask.key.storage == "full"
        row = FinishExecution(
            conversation=self._turn.conversation.row.id,
            turn=self._turn.id,
            tool_use_id=id_,
            status="failed" if outcome.is_error else "complete",
            result=packed(result) if full else b"",
            size=len(result),
            is_error=outcome.is_error,
            error=outcome.error,
            attempts=outcome.attempts,
            duration_ms=outcome.ms,
            forget=not full,
        )
        await self._turn.bridge.store.write(row)
        return text

    def cancel(self) -> None:
        """Nobody waits for what still runs; a worker's run goes on, its result is picked up later."""
        running, self._running = self._running, {}
        for task, run in running.items():
            task.cancel()
            if not run.elsewhere:
                self._turn.bridge.track(self._cancelled(run.tool_use_id))

    def _add(self, work: Coroutine[None, None, Outcome | None], id_: str, *, elsewhere: bool) -> None:
        self._running[asyncio.get_running_loop().create_task(work)] = _Run(id_, elsewhere)

    def _row(self, call: LinkRow, tool: Hosted, state: bytes, round_number: int) -> ExecutionRow:
        elsewhere, full = tool.endpoint.long_running, self._turn.ask.key.storage == "full"
        return ExecutionRow(
            id=self._turn.bridge.rows.mint(),
            tool=tool.endpoint.row,
            tool_use_id=call.tool_use_id,
            server_name=tool.offer.server[:200],
            tool_name=tool.offer.tool[:200],
            round_number=round_number,
            arguments=call.arguments if full or elsewhere else b"",
            state=state,
            status="queued" if elsewhere else "running",
            long_running=elsewhere,
        )

    async def _cancelled(self, id_: str) -> None:
        try:
            row = FinishExecution(
                conversation=self._turn.conversation.row.id,
                turn=self._turn.id,
                tool_use_id=id_,
                status="cancelled",
                error="cancelled",
            )
            await self._turn.bridge.store.write(row)
        except StoreUnavailable:
            return  # the turn itself says that it was cut off
