"""One request on its way. Its reader drives it: `begin` gets the first events that may be shown (trying again while
nothing has been shown), `read` those of each further upstream read, until `done`. Whatever ends it is stored.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from conversations import ids, links, message_rows, records, sent_rows, telemetry, usage_rows
from conversations.attempt import Attempt
from conversations.audience import Audience, Client, Reader
from conversations.beside import LARGE, beside, size_of
from conversations.errand import Errand
from conversations.limits import Admission
from conversations.records import Timings
from conversations.state import Conversation, Sent
from conversations.storable import words
from conversations.store import patience
from conversations.store.accounts import KeyRow
from conversations.store.links import LinkRow, SaveLinks, TakenId
from conversations.store.reads import Node
from conversations.store.usage import UsageRow
from conversations.store.writes import ClaimRow, CloseTurn, MessageRow, StaleConversation
from conversations.turn_rows import TurnRows
from translation.accumulator import Accumulator
from translation.adapter import UpstreamRequest, Writer
from translation.chain import link as chain_link
from translation.client.identity import Identity
from translation.client.stored import parse_answer
from translation.errors import (
    BridgeError,
    ConversationEnded,
    OwnFault,
    StoreUnavailable,
    UpstreamFault,
)
from translation.events import Event, Failed, Finished, MessageStart, WireEvent
from translation.values import Note, Origin, Request, ToolUse, Usage

if TYPE_CHECKING:
    from conversations.bridge import Bridge
    from conversations.preparing import Prepared

log = logging.getLogger(__name__)

STALE_TRIES = 3
# Short at first: whoever asks again waits until the turn that failed is closed.
CLOSE_PAUSES = (0.0, *(0.5,) * 4, *(1.0,) * 8, *(5.0,) * 11)  # seconds
CLOSERS = 2_000  # turns that may wait for the store to come back with all that they hold


class Ask(Struct, frozen=True):
    """What a client asks for, and who it is."""

    key: KeyRow
    request: Request
    identity: Identity
    request_id: str
    headers: dict[str, str]
    client: Client
    received: float = field(default_factory=time.perf_counter)
    body: bytes = b""  # as it came, where the request does not hold it


class Turn:
    def __init__(
        self,
        bridge: Bridge,
        ask: Ask,
        prepared: Prepared,
        claims: tuple[ClaimRow, ...],
        admission: Admission | None = None,
    ) -> None:
        self.bridge = bridge
        self.ask = ask
        self.errand = Errand(bridge, prepared, ask.key.storage)
        self.claims = claims
        self.admission = admission
        self.recorded = sent_rows.kept(ask.request, prepared.sent)  # the request that the store has as this turn's
        # The newest turn of a conversation is the one with the greatest number, whosever clock it was begun by.
        self.id = bridge.rows.mint(prepared.conversation.latest)
        self.message_id = ids.message_id()
        self.started = ask.received
        self.done = False
        self.usage = Usage()
        self.timings = Timings()
        self.attempts: list[records.AttemptRecord] = []
        self.entries: list[UsageRow] = []  # of the attempts that failed
        self.attempt = self._new_attempt()
        self.head = Node(b"", 0, 0)  # the last message of the request
        self.depth = 0  # of the chain of requests that are stored by what they add
        self.calls: dict[int, LinkRow] = {}
        self.unseen: list[str] = []  # calls of attempts that were not shown
        self.driven = True  # by whoever asked for it; until it has begun, and whenever that one reads
        self.audience: Audience | None = None  # once the same request came again
        self.reader: Reader | None = None  # what whoever asked for it goes on with then
        self._rows = TurnRows(bridge.store)
        self._attempt_started: float | None = None
        self._shown = False
        self._failure: BridgeError | None = None
        self._ended: BridgeError | None = None
        self._closed = False
        self._task: asyncio.Task[object] | None = None

    @property
    def prepared(self) -> Prepared:
        return self.errand.prepared

    @property
    def notes(self) -> list[Note]:
        return self.errand.notes

    @property
    def conversation(self) -> Conversation:
        return self.prepared.conversation

    @property
    def conversation_id(self) -> str:
        """The client's name for it."""
        return self.prepared.conversation.row.external_id

    @property
    def accumulator(self) -> Accumulator:
        return self.attempt.accumulator

    @property
    def told(self) -> int:
        """How many events of what was said its reader was given, when it is not driven."""
        return len(self.accumulator.said)

    @property
    def hop(self) -> tuple[UpstreamRequest, Attempt]:
        """The request and the answer that are kept with the turn itself."""
        return self.prepared.sent, self.attempt

    @property
    def elapsed(self) -> float:
        return round((time.perf_counter() - self.started) * 1000, 3)

    # ------------------------------------------------------------ the reader's verbs

    async def open(self) -> None:
        """Submit the opening write; with a claim in it, also wait for it."""
        await self._submit()
        if self.claims:
            await self._durable()  # the upstream must not be called for what another turn does

    async def _submit(self) -> None:
        full = self.ask.key.storage == "full"
        last = await self.bridge.state.last_sent(self.conversation) if full else None
        self.timings.state = self.elapsed
        build = partial(self._opening, last)
        if (size := size_of(self.prepared.received)) >= LARGE:
            opening = await beside(size, records.opening, self, last)
            build = partial(self._opening, last, opening)
        self._rows.open(build, self.conversation, at_once=bool(self.claims))
        self.bridge.enter(self)

    def _opening(self, last: Sent | None, made: records.Opening | None = None) -> records.Opening:
        opening = made or records.opening(self, last)
        self.head, self.depth = opening.head, opening.depth
        self.recorded = sent_rows.kept(self.ask.request, self.prepared.sent)
        return opening

    async def _durable(self) -> None:
        """Until the opening write is stored, whatever this process believed about the conversation."""
        for _ in range(STALE_TRIES):
            try:
                await self._rows.opened()
            except StaleConversation:
                await self._reprepare()
            else:
                return
        raise StoreUnavailable

    async def begin(self) -> list[WireEvent]:
        """The first events that may be shown. Raises what the client gets to see instead."""
        self._task = asyncio.current_task()
        try:
            wire = await self._begun()
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

    async def _begun(self) -> list[WireEvent]:
        for _ in range(STALE_TRIES):
            try:
                return await self._begin()
            except StaleConversation:
                await self._reprepare()
        raise StoreUnavailable

    async def read(self) -> list[WireEvent]:
        """The events of the next upstream read; none when the turn was only nudged."""
        self.driven = True  # and stays so if it is broken off
        wire = await self.step()
        self.driven = False
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
        events = await self.attempt.events()
        if self._ended is not None:
            raise self._ended
        return await self._advance(events) if events else self.attempt.waited()

    def nudge(self) -> None:
        self.attempt.nudge()

    def end(self, error: BridgeError) -> None:
        """Stop, from outside."""
        self._ended = error
        if self._task is not None:
            self._task.cancel()
        else:
            self.attempt.nudge()

    def fail(self, error: BridgeError) -> None:
        """The client is told of this error."""
        self._finish_in_background("error", error)

    def abort(self) -> None:
        """The client has gone."""
        self._finish_in_background("aborted", None)

    # ------------------------------------------------------------ before anything is shown

    async def _begin(self) -> list[WireEvent]:
        while True:
            self._attempt_started = time.perf_counter()
            try:
                wire = await self._first_events()
            except UpstreamFault as error:
                self._record(error)
                await self.attempt.close()
                await self.errand.go_on(error, b"".join(self.attempt.raw))
                self._restart()
            else:
                self._record(None)
                await self._rows.opened()
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
        await self.attempt.close()
        self.bridge.leave(self)
        self.bridge.state.forget(self.conversation.row.id)
        self.errand = Errand(self.bridge, await self.bridge.prepare(self.ask), self.ask.key.storage)
        self.calls, self.done = {}, False
        self.attempt = self._new_attempt()
        await self._submit()

    def _new_attempt(self) -> Attempt:
        prepared = self.prepared
        target = prepared.route.target
        tokens = self.bridge.estimates.prompt(target.upstream, target.model, prepared.aimed.weight)
        if self.admission is not None:
            micros = self.bridge.prices.cost(target.upstream, target.model, Usage(input_tokens=tokens))
            self.admission.expect(tokens, micros)
        start = MessageStart(self.message_id, self.ask.request.model, Usage(input_tokens=tokens, output_tokens=1))
        return Attempt(prepared.route, prepared.request, prepared.sent, start, self.errand.watch(), self._writer())

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
        while not self.done:
            asked.spent = 0.0  # what was stored of the last read came in time
            # Of the upstream, whatever else there is to wait for.
            if (wire := await Turn.step(self)) and self._shows_parts:
                self.timings.first_token = self.elapsed
                return [attempt.start, *wire]
        return [attempt.start]

    @property
    def _shows_parts(self) -> bool:
        return self.ask.request.stream

    def _record(self, error: BridgeError | None) -> None:
        """What became of the attempt; once: a short answer is complete before it counts as begun."""
        if self._attempt_started is None:
            return
        target = self.prepared.route.target
        elapsed = round((time.perf_counter() - self._attempt_started) * 1000, 3)
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

    def _is_taken(self, tool_use_id: str) -> bool:
        """Whether another call has this id: clients lose the second one of a history."""
        told = (block for message in self.prepared.received.messages for block in message.blocks)
        return tool_use_id in self.conversation.links or any(
            type(block) is ToolUse and block.id == tool_use_id for block in told
        )

    async def _store_links(self, rows: tuple[LinkRow, ...], events: list[Event]) -> None:
        target = self.prepared.route.target
        try:
            await self._rows.opened()
            rows = await self._save_links(rows, events)
        except StoreUnavailable as error:
            self._tolerate(error, "a tool call was shown that could not be stored")
        known = [links.known(link, target.upstream, target.model, self.id) for link in rows]
        self.bridge.state.note_links(self.conversation, known)

    async def _save_links(self, rows: tuple[LinkRow, ...], events: list[Event]) -> tuple[LinkRow, ...]:
        """As they are stored in the end: an id that another call of the key has gives way to one of ours."""
        row, target = self.conversation.row, self.prepared.route.target
        while True:
            kept = records.sealed(self, rows)
            try:
                await self.bridge.store.write(SaveLinks(row, self.id, target.upstream, target.model, kept))
            except TakenId as taken:
                rows = links.renamed(taken.tool_use_id, rows, events, self.calls)
            else:
                return rows

    def _tolerate(self, error: StoreUnavailable, what: str) -> None:
        """Under BRIDGE_UNSTORED_LINK=warn an answer that could not be stored is shown all the same, loudly."""
        if not self.bridge.settings.warn_unstored:
            raise error
        log.error("state.unstored %s: %s", self.ask.request_id, what)
        self.notes.append(Note("degradation", "unstored-link", what))

    # ------------------------------------------------------------ the end

    async def _complete(self, finished: Finished) -> list[WireEvent]:
        """Store the answer, then end the message."""
        self._record(None)
        # A short answer is complete in the read that begins it.
        self.timings.first_token = self.timings.first_token or self.elapsed
        await self._count(finished)
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
        if row is not None:
            origin = Origin(row.upstream, row.model, row.state)
            node = Node(row.chain_hash, row.depth, row.answers)
            self.bridge.state.note_answer(self.conversation, node, self.id, origin)
        return wire

    def _total(self) -> Usage:
        """What the client is told."""
        return self.usage

    async def _count(self, finished: Finished) -> None:
        target, body, estimates = self.prepared.route.target, self.prepared.sent.body, self.bridge.estimates
        if finished.usage is not None:
            self.usage = usage_rows.countable(finished.usage)
            estimates.learn(target.upstream, target.model, body, self.prepared.aimed.weight, self.usage)
        else:
            self.usage = await estimates.counted(target.upstream, target.model, body, self.accumulator.content)
            self.notes.append(Note("degradation", "usage-estimated", "the upstream reported no usage; it is estimated"))

    def estimate(self) -> Usage:
        """What an attempt used that did not end well: nothing, unless the upstream had begun to answer."""
        if not 200 <= self.attempt.status < 300:
            return Usage()
        target, weight = self.prepared.route.target, self.prepared.aimed.weight
        return self.bridge.estimates.usage(target.upstream, target.model, weight, len(self.accumulator.content))

    def _message(self, finished: Finished) -> MessageRow | None:
        if self.ask.key.storage == "minimal":
            return None
        self._rows.make()
        content = self.accumulator.content
        message = parse_answer(content)
        target = self.prepared.route.target
        row = message_rows.answer(
            self.head, chain_link(self.head.chain_hash, message), content, message, self.ask.key.storage
        )
        # Most of it is reasoning, in clear: a key that keeps no text keeps what its calls need.
        state = finished.state if self.calls or self.ask.key.storage == "full" else b""
        return replace(row, message_id=self.message_id, upstream=target.upstream, model=target.model, state=state)

    async def _close(
        self, status: str, error: BridgeError | None, message: MessageRow | None, returned: str, *, late: bool = False
    ) -> None:
        self._closed = True
        self.timings.duration = self.elapsed
        self.errand.over(error)
        await self.attempt.close()
        self.bridge.leave(self)
        row = records.closing(self, status, error, message, returned, late=late)
        try:
            await (self._rows.close_opened(row) if status == "complete" else self._rows.close(row))
        except (StaleConversation, ConversationEnded):
            self._closed = False  # the turn begins again, or is yet to be counted
            raise
        except BaseException:
            await self._settle(row)
            raise
        # Only now is it certain which request was sent: later ones may be stored as what they add to it.
        self._keep_sent()
        await self._settle(row)
        if telemetry.on():
            telemetry.closed(self, row)
        self.bridge.meter.turn(row, self.timings.state, self.notes)

    async def _settle(self, row: CloseTurn) -> None:
        if self.admission is not None:
            await self.admission.settle(*usage_rows.used(row))

    def _keep_sent(self) -> None:
        if self.ask.key.storage != "full" or not self._rows.stored:
            return
        sent = sent_rows.kept(self.ask.request, self.hop[0])
        depth = self.depth if sent.body == self.recorded.body else 0
        self.bridge.state.note_sent(self.conversation, Sent(self.id, depth, sent.body))

    def _finish_in_background(self, status: str, error: BridgeError | None) -> None:
        if self.audience is not None:
            self.audience.break_off()
            self.audience = None
        if self._closed:
            return
        self._closed = self.done = True
        self.usage = self.estimate()
        if not self._shown:
            self._forget_calls()
        self.bridge.track_end(self, self._store_end(status, error))

    async def _store_end(
        self, status: str, error: BridgeError | None, message: MessageRow | None = None, returned: str = ""
    ) -> None:
        """Until it is stored, or the conversation is gone: no turn may stay `running` in a living process."""
        for pause in CLOSE_PAUSES:
            await asyncio.sleep(pause)
            try:
                await self._close(status, error, message, returned, late=True)
            except StoreUnavailable:
                if self.bridge.tracked > CLOSERS:
                    break
                continue
            except StaleConversation:
                self._rows.forget()  # what was used is counted all the same
                continue
            except OwnFault as gone:
                log.info("state.turn_gone %s: %s", self.ask.request_id, gone.message)
            return
        self.bridge.lost.append(self.id)
