"""A turn as the store knows it: opened before anything of it is shown, its calls saved before they are, its end written
whatever that was.
"""

from __future__ import annotations

import asyncio
import logging
import time
from functools import partial
from typing import TYPE_CHECKING

from conversations import ids, links, message_rows, records, sent_rows, telemetry, usage_rows
from conversations.beside import LARGE, beside, size_of
from conversations.conversation import Conversation, Sent
from conversations.errand import Errand
from conversations.records import Timings
from conversations.store import reads
from conversations.store.claims import ClaimRow
from conversations.store.links import LinkRow, SaveLinks, TakenId
from conversations.store.lost import CloseLost
from conversations.store.reads import Node
from conversations.store.usage import UsageRow
from conversations.store.writes import CloseTurn, MessageRow, StaleConversation
from conversations.turn_rows import TurnRows
from translation.accumulator import Accumulator
from translation.adapter import UpstreamRequest
from translation.chain import link as chain_link
from translation.client.stored import parse_answer
from translation.errors import BridgeError, CallForgotten, ConversationEnded, OwnFault, StoreUnavailable
from translation.events import Event, Finished
from translation.values import Note, ToolUse, Usage

if TYPE_CHECKING:
    from conversations.ask import Ask
    from conversations.attempt import Attempt
    from conversations.bridge import Bridge
    from conversations.limits import Admission
    from conversations.preparing import Prepared

log = logging.getLogger(__name__)

# Short at first: whoever asks again waits until the turn that failed is closed.
CLOSE_PAUSES = (0.0, *(0.5,) * 4, *(1.0,) * 8, *(5.0,) * 11)  # seconds
NO_USAGE, NOTHING = Usage(), Node(b"", 0, 0)
CLOSERS = 2_000  # turns that may wait for the store to come back with all that they hold


class StoredTurn:
    attempt: Attempt  # the call of an upstream that its answer comes from

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
        self.errand = Errand(bridge, prepared, ask.key.storage, [*prepared.notes])
        self.claims = claims
        self.admission = admission
        self.recorded = prepared.aimed.sent  # what the store has as this turn's request
        # The newest turn of a conversation is the one with the greatest number, whosever clock it was begun by.
        self.id = bridge.rows.mint(prepared.conversation.latest)
        self.message_id = ids.message_id()
        self.started = ask.received
        self.usage = NO_USAGE
        self.timings = Timings()
        self.attempts: list[records.AttemptRecord] = []
        self.entries: list[UsageRow] = []  # of the attempts that failed
        self.head = NOTHING  # the last message of the request
        self.depth = 0  # of the chain of requests that are stored by what they add
        self.calls: dict[int, LinkRow] = {}
        self.unseen: list[str] = []  # calls of attempts that were not shown
        self._rows = TurnRows(bridge.store)
        self._closed = False

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
    def hop(self) -> tuple[UpstreamRequest, Attempt]:
        """The request and the answer that are kept with the turn itself."""
        return self.errand.prepared.aimed.sent, self.attempt

    @property
    def elapsed(self) -> float:
        return int((time.perf_counter() - self.started) * 1_000_000) / 1000  # as `records.milliseconds` does

    # ------------------------------------------------------------ the beginning

    async def _submit(self) -> None:
        prepared, last = self.errand.prepared, None
        conversation = prepared.conversation
        if conversation.stored and self.ask.key.storage == "full":
            last = await self.bridge.state.last_sent(conversation)
        self.timings.state = self.elapsed
        build = partial(self._opening, last)
        if (size := size_of(prepared.received)) >= LARGE:
            opening = await beside(size, records.opening, self, last)
            build = partial(self._opening, last, opening)
        self._rows.open(build, conversation, at_once=bool(self.claims))

    def _opening(self, last: Sent | None, made: records.Opening | None = None) -> records.Opening:
        opening = made or records.opening(self, last)
        self.head, self.depth = opening.head, opening.depth
        self.recorded = opening.sent
        return opening

    # ------------------------------------------------------------ tool calls

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
            except CallForgotten:
                job, without_store = partial(reads.is_there, conversation_id=row.id), True
                if not await self.bridge.store.read(job, without_store):
                    raise ConversationEnded("the conversation was ended while this turn ran") from None
                raise
            else:
                return rows

    def _tolerate(self, error: StoreUnavailable, what: str) -> None:
        """Under BRIDGE_UNSTORED_LINK=warn an answer that could not be stored is shown all the same, loudly."""
        if not self.bridge.settings.warn_unstored:
            raise error
        log.error("state.unstored %s: %s", self.ask.request_id, what)
        self.notes.append(Note("degradation", "unstored-link", what))

    # ------------------------------------------------------------ the end

    def estimate(self) -> Usage:
        """What an attempt used that did not end well: nothing, unless the upstream had begun to answer."""
        if not 200 <= self.attempt.status < 300:
            return Usage()
        target, weight = self.prepared.route.target, self.prepared.aimed.weight
        return self.bridge.estimates.usage(target.upstream, target.model, weight, self.accumulator.size)

    def _message(self, finished: Finished) -> MessageRow | None:
        if self.ask.key.storage == "minimal":
            return None
        self._rows.make()
        head, content, storage = self.head, self.attempt.accumulator.content, self.ask.key.storage
        message, target = parse_answer(content), self.errand.prepared.aimed.route.target
        return MessageRow(
            chain_hash=chain_link(head.chain_hash, message),
            parent_hash=head.chain_hash,
            depth=head.depth + 1,
            answers=head.answers + 1,
            role="assistant",
            content=message_rows.kept(content, message, storage),
            message_id=self.message_id,
            upstream=target.upstream,
            model=target.model,
            # Most of it is reasoning, in clear: a key that keeps no text keeps what its calls need.
            state=finished.state if self.calls or storage == "full" else b"",
        )

    async def _close(
        self, status: str, error: BridgeError | None, message: MessageRow | None, returned: str, *, late: bool = False
    ) -> None:
        self._let_go()
        self._closed = True
        self.timings.duration = self.elapsed
        self.errand.over(error)
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
        if self.admission is not None:
            await self._settle(row)
        if telemetry.on():
            telemetry.closed(self, row)
        self.bridge.meter.turn(row, self.timings.state, self.errand.notes)

    def _let_go(self) -> None:
        """Nothing more is read for it."""

    async def _settle(self, row: CloseTurn) -> None:
        if self.admission is not None:
            await self.admission.settle(*usage_rows.used(row))

    def _keep_sent(self) -> None:
        if self.ask.key.storage != "full" or not self._rows.stored:
            return
        sent, depth = self.hop[0], self.depth
        if sent is not self.recorded:
            sent = sent_rows.kept(self.ask.request, sent)
            depth = depth if sent.body == self.recorded.body else 0
        self.bridge.state.note_sent(self.errand.prepared.conversation, Sent(self.id, depth, sent.body))

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
            except (ConversationEnded, OwnFault) as gone:
                log.info("state.turn_gone %s: %s", self.ask.request_id, gone.message)
            return
        self.bridge.lost.append(CloseLost(self.conversation.row, self.id))
