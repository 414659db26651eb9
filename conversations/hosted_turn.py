"""A turn with tools that the bridge runs itself: call, execute, tell the model, go on, all in one answer.

A round is one call of the upstream. When it ends in calls of hosted tools, they are run side by side, their results are
stored and shown, and the next round begins; calls of the client's own tools end the message as always. Between rounds
the reader waits here, where a nudge wakes it as it does in an upstream read.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from msgspec.structs import replace

from conversations import ids, records, sent_rows, usage_rows
from conversations.attempt import Attempt, Mark
from conversations.hosted_runs import Runs
from conversations.preparing import continued
from conversations.store.hosted import SaveRound
from conversations.store.packing import compress
from conversations.store.writes import MessageRow
from conversations.turn import STALE_TRIES, Turn
from translation import adapters
from translation.adapter import UpstreamRequest, Writer
from translation.errors import BridgeError
from translation.events import (
    Event,
    Finished,
    ToolArguments,
    ToolDropped,
    ToolEnded,
    ToolStarted,
    WireEvent,
)
from translation.hosted import result_block
from translation.values import Usage

GOES_ON = frozenset({"stop", "tool_use", "stop_sequence"})
PAUSE = Finished("pause")


class HostedTurn(Turn):
    def __init__(self, *given: Any) -> None:
        self._round = 1
        self._before = 0  # calls of earlier rounds
        self._spent = Usage()  # by earlier rounds
        self._first: tuple[UpstreamRequest, Attempt] | None = None
        self._runs = Runs(self)
        self._last_sent = b""  # of the round before
        self._late = False  # a tool has not ended in the time that the turn has
        self._after: Finished | None = None  # what ends the message once the results are there
        self._next: asyncio.Task[list[WireEvent]] | None = None
        self._told_before = 0
        self._mark: Mark | None = None  # where the round began that goes on with the message
        self._nudged = asyncio.Event()
        self._over = False
        super().__init__(*given)

    # ------------------------------------------------------------ the reader's verbs

    @property
    def done(self) -> bool:
        """What the next call brought has to be read, too."""
        return self._over and self._next is None

    @done.setter
    def done(self, value: bool) -> None:
        self._over = value

    @property
    def told(self) -> int:
        """What the next call brings is read when it has something to show."""
        return super().told if self._next is None else self._told_before

    @property
    def hop(self) -> tuple[UpstreamRequest, Attempt]:
        return self._first or super().hop

    async def _begin(self, tries: int = STALE_TRIES) -> list[WireEvent]:
        if not self.prepared.waiting:
            return await super()._begin(tries)
        await self._durable()
        self._shown = True
        self._runs.wait_for((run.tool_use_id for run in self.prepared.waiting), self._time_left())
        return [self.attempt.start]

    async def step(self) -> list[WireEvent]:
        if not self._runs and self._next is None:
            return await super().step()
        if (over := self._ended or self._failure) is not None:
            raise over
        await self._something()
        if self._ended is not None:
            raise self._ended
        if self._next is not None:
            return self._went_on()
        return await self._results()

    def nudge(self) -> None:
        self._nudged.set()
        super().nudge()

    def end(self, error: BridgeError) -> None:
        super().end(error)
        self._nudged.set()

    def _finish_in_background(self, status: str, error: BridgeError | None) -> None:
        self._runs.cancel()
        if self._next is not None:
            self._next.cancel()
            self._next = None
        super()._finish_in_background(status, error)

    # ------------------------------------------------------------ a round

    def _writer(self) -> Writer:
        prepared = self.prepared
        offers = {name: tool.offer for name, tool in prepared.hosted.items()}
        return adapters.writer(prepared.route.target.profile, prepared.request, self.message_id, offers)

    def _restart(self) -> None:
        before = self.attempt
        super()._restart()
        if self._mark is not None:
            before.rewind(self._mark)
            self.attempt.go_on(before)

    def _forget_calls(self) -> None:
        """Those of earlier rounds were run."""
        run = {number: call for number, call in self.calls.items() if number < self._before}
        self.calls = {number: call for number, call in self.calls.items() if number >= self._before}
        super()._forget_calls()
        self.calls = run

    async def _advance(self, events: list[Event]) -> list[WireEvent]:
        return await super()._advance([self._numbered(event) for event in events])

    def _numbered(self, event: Event) -> Event:
        """Calls are numbered through the whole turn; one of ours gets an id of the API's kind for it."""
        if not isinstance(event, ToolStarted | ToolArguments | ToolEnded | ToolDropped):
            return event
        number = event.call + self._before
        if isinstance(event, ToolStarted) and not event.id and event.name in self.prepared.hosted:
            return replace(event, call=number, id=ids.hosted_tool_use_id())
        return replace(event, call=number)

    async def _complete(self, finished: Finished) -> list[WireEvent]:
        calls = [call for number, call in sorted(self.calls.items()) if number >= self._before]
        ours = [call for call in calls if call.name in self.prepared.hosted and call.status == "pending"]
        if not ours or finished.reason not in GOES_ON:
            return await super()._complete(finished)
        await self._rows.opened()
        await self._runs.start(ours, finished.state, self._round, self._time_left())
        if len(ours) < len(calls):
            self._after = finished  # the client's own calls: the chain goes on when their results come
        else:
            self._record(None)
            await self._spend(finished)
        return self.attempt.end_round()

    async def _first_events(self) -> list[WireEvent]:
        """When the first byte came is told of the first round, which begins with what servers were asked for."""
        if self._round > 1:
            timings = replace(self.timings)
            wire = await super()._first_events()
            self.timings = timings
            return wire
        listed = [event for block in self.prepared.offered.listings for event in self.attempt.add(block)]
        start, *wire = await super()._first_events()
        return [start, *listed, *wire]

    @property
    def _is_read(self) -> bool:
        """A round that has called tools waits for nothing but them, whether or not its last read showed anything."""
        return self._over or bool(self._runs)

    async def _spend(self, finished: Finished) -> None:
        await self._count(finished)
        self.entries.append(usage_rows.round_entry(self, finished.model))
        self._spent = _sum(self._spent, self.usage)
        self.usage = Usage()

    async def _count(self, finished: Finished) -> None:
        if finished is not PAUSE:
            await super()._count(finished)

    def _total(self) -> Usage:
        return _sum(self._spent, self.usage)

    # ------------------------------------------------------------ running tools

    async def _something(self) -> None:
        """Until a tool has ended, the next call has something to show, or the reader is wanted elsewhere."""
        nudged = asyncio.get_running_loop().create_task(self._nudged.wait())
        waited: set[asyncio.Task[Any]] = self._runs.tasks if self._next is None else {self._next}
        try:
            await asyncio.wait({*waited, nudged}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            nudged.cancel()
            self._nudged.clear()

    async def _results(self) -> list[WireEvent]:
        wire: list[WireEvent] = []
        ended = self._runs.ended()
        for id_, outcome in ended:
            if outcome is None:
                self._late = True
            else:
                text = await self._runs.keep(id_, outcome)  # stored, then shown
                wire += self.attempt.add(result_block(id_, text, is_error=outcome.is_error))
        if ended and not self._runs:
            wire += await self._after_results()
        return wire

    # ------------------------------------------------------------ going on

    async def _after_results(self) -> list[WireEvent]:
        limits = self.bridge.hosted.limits
        if self._after is not None:
            return await super()._complete(self._after)
        if self._late or self._round >= limits.rounds or self._time_left() <= 0:
            return await super()._complete(PAUSE)
        self._told_before = len(self.accumulator.said)
        self._next = asyncio.get_running_loop().create_task(self._next_round())
        return []

    async def _next_round(self) -> list[WireEvent]:
        before, sent = self.attempt, self.prepared.sent
        before.close()
        await self._keep_round()
        self._first, self._last_sent = self._first or (sent, before), sent.body
        self._round += 1
        self._before = len(self.calls)
        self.errand.next_round(continued(self.prepared, self.accumulator.content))
        self.attempt = self._new_attempt()
        self.attempt.go_on(before)
        self._mark = self.attempt.mark()
        self._shown = self._shows_parts
        return await super()._begin(tries=1)  # what was shown cannot begin anew

    def _went_on(self) -> list[WireEvent]:
        if self._next is None or not self._next.done():
            return []
        task, self._next = self._next, None
        return task.result()

    async def _keep_round(self) -> None:
        """The first round is the turn's own; each further one is kept by what it adds to the one before."""
        if self._first is None or self.ask.key.storage != "full":
            return
        prefix, tail = sent_rows.tail(self._last_sent, self.prepared.sent.body)
        answer, meta = compress(b"".join(self.attempt.raw)), records.answer_meta(self.attempt)
        row = SaveRound(self.id, self._round, prefix, tail, answer, meta)
        await self.bridge.store.write(row)

    async def _close(
        self, status: str, error: BridgeError | None, message: MessageRow | None, returned: str, *, late: bool = False
    ) -> None:
        await self._keep_round()
        await super()._close(status, error, message, returned, late=late)

    def _time_left(self) -> float:
        return self.bridge.hosted.limits.turn_seconds - (time.perf_counter() - self.started)


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cache_read + other.cache_read,
        one.cache_write + other.cache_write,
        one.thinking_tokens + other.thinking_tokens,
        one.searches + other.searches,
        one.estimated or other.estimated,
    )
