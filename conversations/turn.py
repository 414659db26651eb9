"""One request on its way. Its reader drives it: `begin` gets the first events that may be shown (trying again while
nothing has been shown), `read` those of each further upstream read, until `done`. Whatever ends it is stored.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from conversations import links, records, telemetry, usage_rows
from conversations.ask import Ask
from conversations.attempt import MATTERS, Attempt, Show
from conversations.audience import Audience, Reader
from conversations.errand import Errand
from conversations.lane import MUCH
from conversations.limits import Admission
from conversations.storable import words
from conversations.store import patience
from conversations.store.claims import ClaimRow
from conversations.store.reads import Node
from conversations.store.writes import StaleConversation
from conversations.stored_turn import StoredTurn
from translation.adapter import Writer
from translation.errors import BridgeError, StoreUnavailable, UpstreamFault
from translation.events import Event, Failed, Finished, MessageStart, WireEvent
from translation.values import Note, Origin, Usage

if TYPE_CHECKING:
    from conversations.bridge import Bridge
    from conversations.preparing import Prepared

log = logging.getLogger(__name__)

STALE_TRIES = 3


class Turn(StoredTurn):
    def __init__(
        self,
        bridge: Bridge,
        ask: Ask,
        prepared: Prepared,
        claims: tuple[ClaimRow, ...],
        admission: Admission | None = None,
    ) -> None:
        super().__init__(bridge, ask, prepared, claims, admission)
        self.attempt = self._new_attempt()
        self.done = False
        self.driven = True  # by whoever asked for it; until it has begun, and whenever that one reads
        self.audience: Audience | None = None  # once the same request came again
        self.reader: Reader | None = None  # what whoever asked for it goes on with then
        self.show: Show | None = None  # what whoever asked for it is shown with at once
        self._attempt_started: float | None = None
        self._shown = False
        self._failure: BridgeError | None = None
        self._ended: BridgeError | None = None
        self._task: asyncio.Task[object] | None = None

    @property
    def told(self) -> int:
        """How many events of what was said its reader was given, when it is not driven."""
        return len(self.accumulator.said)

    # ------------------------------------------------------------ the reader's verbs

    async def open(self) -> None:
        """Submit the opening write; with a claim in it, also wait for it."""
        await self._submit()
        self.bridge.enter(self)
        if self.claims:
            await self._durable()  # the upstream must not be called for what another turn does

    async def _durable(self) -> None:
        """Until the opening write is stored, whatever this process believed about the conversation."""
        for _ in range(STALE_TRIES):
            try:
                await self._rows.opened()
            except StaleConversation:
                await self._reprepare()
            else:
                return
        raise self._never_fresh()

    def _never_fresh(self) -> StoreUnavailable:
        log.warning("state.stale %s: what the store says of its conversation changes all the time", self.ask.request_id)
        return StoreUnavailable()

    async def begin(self) -> list[WireEvent]:
        """The first events that may be shown. Raises what the client gets to see instead."""
        self._task = asyncio.current_task()
        try:
            wire = await self._begin()
        except asyncio.CancelledError:
            if self._ended is None:
                raise
            raise self._ended from None
        finally:
            self._task = None
        self.driven = False
        if self.audience is not None:
            self.audience.share()
        return wire

    async def read(self) -> list[WireEvent]:
        """The events of the next upstream read that were not shown at once; none when the turn was only nudged."""
        attempt = self.attempt
        self.driven, attempt.show = True, self.show  # and stays so if it is broken off
        wire = await self.step()
        self.driven, attempt.show = False, None
        if self.audience is not None:
            self.audience.share()
        return wire

    async def attached(self, request_id: str) -> Reader | None:
        """For the same request again: a place beside its reader, or None if there is nothing to be heard any more."""
        if self._closed:
            return None
        log.info("request %s attaches to the turn of %s", request_id, self.ask.request_id)
        if self.audience is None:
            self.audience = Audience(self)
        return await self.audience.join()

    async def step(self) -> list[WireEvent]:
        if (over := self._ended or self._failure) is not None:
            raise over
        attempt = self.attempt
        events = await attempt.events()
        if self._ended is not None:
            raise self._ended
        if not events:
            return attempt.waited()
        if MATTERS.isdisjoint(map(type, events)):
            return attempt.write(events)
        return await self._advance(events)

    def nudge(self) -> None:
        self.attempt.nudge()

    def end(self, error: BridgeError) -> None:
        """Stop, from outside."""
        self._ended = error
        if self._task is not None:
            self._task.cancel()
        else:
            self.attempt.nudge()

    def end_with_conversation(self, error: BridgeError) -> None:
        """A turn that is not stored yet may have begun after that end: its opening write will tell."""
        self._rows.when_stored(partial(self.end, error))

    def fail(self, error: BridgeError) -> None:
        """The client is told of this error."""
        self._finish_in_background("error", error)

    def abort(self) -> None:
        """The client has gone."""
        self._finish_in_background("aborted", None)

    # ------------------------------------------------------------ before anything is shown

    async def _begin(self, tries: int = STALE_TRIES) -> list[WireEvent]:
        while True:
            self._attempt_started = time.perf_counter()
            try:
                wire = await self._first_events()
                self._record(None)
                await self._rows.opened()
            except UpstreamFault as error:
                self._record(error)
                self.attempt.close()
                await self.errand.go_on(error, b"".join(self.attempt.raw))
                self._restart()
            except StaleConversation:
                tries -= 1
                if not tries:
                    raise self._never_fresh() from None
                await self._reprepare()
            else:
                self._shown = True
                return wire

    def _restart(self) -> None:
        """Nothing of the last attempt was shown: the next one begins where it began."""
        self._forget_calls()
        self.attempt = self._new_attempt()

    def _forget_calls(self) -> None:
        """Nobody has seen them, so nobody will send their results."""
        self.unseen += [call.tool_use_id for call in self.calls.values()]
        self.calls = {}

    async def _reprepare(self) -> None:
        """What this process believed about the conversation was not so: ask the store, and begin anew."""
        self.attempt.close()
        self.bridge.leave(self)
        self.bridge.state.forget(self.conversation.row.id)
        prepared = await self.bridge.prepare(self.ask)
        self.errand = Errand(self.bridge, prepared, self.ask.key.storage, [*prepared.notes])
        self.calls, self.done = {}, False
        self.attempt = self._new_attempt()
        await self._submit()
        self.bridge.enter(self)

    def _new_attempt(self) -> Attempt:
        aimed = self.errand.prepared.aimed
        route, target = aimed.route, aimed.route.target
        tokens = self.bridge.estimates.prompt(target.upstream, target.model, aimed.weight)
        if self.admission is not None:
            micros = self.bridge.prices.cost(target.upstream, target.model, Usage(input_tokens=tokens))
            self.admission.expect(tokens, micros)
        start = MessageStart(self.message_id, self.ask.request.model, Usage(input_tokens=tokens, output_tokens=1))
        return Attempt(route, aimed.request, aimed.sent, start, self.errand.watch(), self._writer())

    def _writer(self) -> Writer | None:
        """One that this turn needs instead of the upstream's usual one."""
        return None

    async def _first_events(self) -> list[WireEvent]:
        """Call the upstream, and read until there is something to show: to who asked for no stream, that is the end."""
        attempt = self.attempt
        if telemetry.on():
            telemetry.calling(self)
        await attempt.send(self.bridge.upstreams)
        self.timings.first_byte = self.elapsed
        asked = patience.current()
        while not self._is_read:
            if asked.spent:
                asked.went_on()
            # Of the upstream, whatever else there is to wait for.
            if (wire := await Turn.step(self)) and self._shows_parts:
                self.timings.first_token = self.elapsed
                return [attempt.start, *wire]
        return [attempt.start]

    @property
    def _is_read(self) -> bool:
        """Whether the upstream has said all that this attempt is for."""
        return self.done

    @property
    def _shows_parts(self) -> bool:
        return self.ask.request.stream

    def _record(self, error: BridgeError | None) -> None:
        """What became of the attempt; once: a short answer is complete before it counts as begun."""
        if self._attempt_started is None:
            return
        target = self.errand.prepared.aimed.route.target
        elapsed = records.milliseconds(time.perf_counter() - self._attempt_started)
        self._attempt_started = None
        status, message = ("error", words(error, self.ask.key.storage)) if error else ("complete", "")
        self.attempts.append(records.AttemptRecord(target.upstream, target.model, status, message, elapsed))
        if error is not None:
            self.entries.append(usage_rows.failed_entry(self, elapsed))

    # ------------------------------------------------------------ each upstream read

    async def _advance(self, events: list[Event]) -> list[WireEvent]:
        if rows := links.brought(events, self.calls, self._is_taken):
            await self._store_links(rows, events)
        wire = self.attempt.write(events)
        match events[-1]:
            case Finished() as finished:
                wire += await self._complete(finished)
            case Failed(error=error):
                if not wire or not (self._shown or self.ask.request.stream):
                    raise error
                self._failure = error  # what came before it is shown first
        return wire

    # ------------------------------------------------------------ the end

    async def _complete(self, finished: Finished) -> list[WireEvent]:
        """Store the answer, then end the message."""
        self._record(None)
        if len(self.bridge.running) > 1:
            await self.bridge.together()
        # A short answer is complete in the read that begins it.
        self.timings.first_token = self.timings.first_token or self.elapsed
        await self._count(finished)
        if finished.notes:
            self.notes.extend(Note("repair", "answer-mended", what) for what in finished.notes)
        wire = self.attempt.finish(finished, self._total())
        self.message_id = self.accumulator.id or self.message_id  # an answer that is passed on has its own
        row = self._message(finished)
        self.done = True
        try:
            await self._close("complete", None, row, finished.model)
        except StoreUnavailable as error:
            self._closed = False  # that it failed is yet to be stored
            self._tolerate(error, "the answer could not be stored")
            self._closed = True
            self.bridge.track(self._store_end("complete", None, row, finished.model))
        except asyncio.CancelledError:  # whoever read it leaves, and may ask again for what is whole
            self.bridge.track_end(self, self._store_end("complete", None, row, finished.model))
            raise
        if row is not None:
            origin = Origin(row.upstream, row.model, row.state)
            node = Node(row.chain_hash, row.depth, row.answers)
            self.bridge.state.note_answer(self.conversation, node, self.id, origin)
        return wire

    def _total(self) -> Usage:
        """What the client is told."""
        return self.usage

    async def _count(self, finished: Finished) -> None:
        aimed, estimates = self.errand.prepared.aimed, self.bridge.estimates
        target, body = aimed.route.target, aimed.sent.body
        if finished.usage is not None:
            self.usage = usage_rows.countable(finished.usage)
            estimates.learn(target.upstream, target.model, body, aimed.weight, self.usage)
        else:
            self.usage = await estimates.counted(target.upstream, target.model, body, self.accumulator.content)
            self.notes.append(Note("degradation", "usage-estimated", "the upstream reported no usage; it is estimated"))

    def _let_go(self) -> None:
        self.attempt.close()
        self.bridge.leave(self)

    def _finish_in_background(self, status: str, error: BridgeError | None) -> None:
        if self.audience is not None:
            self.audience.break_off()
            self.audience = None
        if self._closed:
            return
        self._closed = self.done = True
        if not self._shown:
            self._forget_calls()
        self.bridge.track_end(self, self._store_cut(status, error))

    async def _store_cut(self, status: str, error: BridgeError | None) -> None:
        """A network that fails cuts off all its clients at once: of answers so far, large ones are kept one by one."""
        if self.attempt.size > MUCH:
            await self.bridge.upstreams.lane.turn()
        self.usage = self.estimate()
        await self._store_end(status, error)
