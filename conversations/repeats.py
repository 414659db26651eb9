"""The same request again: a client's retry attaches to the turn that runs, gets the answer that was stored, or takes
over from one that failed. Never two live turns, never two upstream calls for one complete answer.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import msgspec

from conversations import parameters
from conversations.callers import NOT_ACCEPTED
from conversations.ids import least
from conversations.storable import digest
from conversations.store import accounts, answers, others, reads
from conversations.store.accounts import KeyRow
from conversations.store.answers import Answer, Delivered
from conversations.store.claims import NO_TIME, ClaimRow, GiveClaim
from conversations.store.lost import DIED, CloseLost
from conversations.store.writes import ConversationRow
from translation import adapters
from translation.accumulator import Accumulator, unfolded
from translation.client.identity import Identity
from translation.errors import BridgeError, ConversationEnded, ShuttingDown, ThreadRefused, Unauthenticated
from translation.events import Finished, MessageStart, MessageStop, ToolStarted, WireEvent
from translation.values import Note, Usage

if TYPE_CHECKING:
    from conversations.ask import Ask
    from conversations.audience import Reader
    from conversations.bridge import Bridge
    from conversations.preparing import Prepared
    from conversations.turn import Turn

WINDOW = 600.0  # seconds in which an equal request is the same one
LOOK_SECONDS = 0.25
IN_FLIGHT = "thread_continue_in_flight"
RETRY_HEADER = "x-stainless-retry-count"


def claims(ask: Ask, *, anew: bool = False) -> tuple[ClaimRow, ...]:
    """What this request must be the only one to do; `anew` takes the claim from one whose answer is not to be had."""
    thread, identity = ask.request.thread, ask.identity
    who = _who(identity)
    if not who and thread is None and not identity.retry_count and RETRY_HEADER not in ask.head.names:
        return ()
    rows = []
    if thread is not None and thread.kind == "continue":
        rows.append(ClaimRow("thread", thread.previous_message_id[:64]))
    named = bool(who) or bool(rows) or identity.retry_count > 0
    if ask.key.storage == "full" and (named or RETRY_HEADER in ask.head.names):
        how = b"\0append\0" if identity.append else b"\0"  # the same bytes are another request there
        token = blake2b(who.encode() + how, digest_size=24)
        token.update(ask.request.body or ask.body)
        # A client that retries says so; its first request takes the claim from whoever has it.
        rows.append(ClaimRow("request", token.hexdigest(), WINDOW if named and not anew else NO_TIME))
    return tuple(reversed(rows))


def untraced(ask: Ask, claimed: tuple[ClaimRow, ...]) -> bool:
    """Whether what a retry repeats may have a turn without a claim: it named nothing, and said nothing of retries."""
    return not _who(ask.identity) and len(claimed) == 1 and claimed[0].seconds != NO_TIME


async def trace(bridge: Bridge, ask: Ask, prepared: Prepared, claimed: tuple[ClaimRow, ...]) -> None:
    """What says that it is a retry is one, also of a request by which nobody could tell that it might be made again:
    the turn of that has no claim, and gets one now.
    """
    asked, received = ask.request, prepared.received
    context = tuple(digest(raw) if raw else b"" for raw in (received.raw_system, received.raw_tools))
    same = (prepared.chain[-1], asked.model[:200], parameters.dump(asked, texts=True), *context, asked.stream)
    job = partial(answers.newest_equal, key=ask.key.id, since=least(time.time() - WINDOW), asked=same)
    first = await bridge.store.read(job, None)
    if first is not None and first.status in {"running", "complete"}:
        await bridge.store.write(GiveClaim(claimed[0], first.turn))


async def refused(bridge: Bridge, ask: Ask, claim: ClaimRow) -> ThreadRefused:
    """Why a thread's message cannot be continued."""
    job = partial(answers.claim_holder, key=ask.key.id, kind="thread", token=claim.token)
    holder = await bridge.store.read(job, None)
    if holder is not None and holder.status == "running":
        return ThreadRefused(f"{claim.token} is being continued", code=IN_FLIGHT)
    return ThreadRefused(f"{claim.token} was continued already", code="thread_already_continued")


async def asked_already(bridge: Bridge, ask: Ask, claimed: tuple[ClaimRow, ...]) -> ClaimRow | None:
    """The claim of a turn that runs now or has answered, and that this request only repeats."""
    for claim in claimed:
        if claim.kind == "request" and claim.seconds != NO_TIME:
            job = partial(answers.claim_holder, key=ask.key.id, kind=claim.kind, token=claim.token)
            holder = await bridge.store.read(job, None)
            return claim if holder is not None and holder.status in {"running", "complete"} else None
    return None


class Repeat:
    """Stands in for a turn: attaches to the one that has the claim, or waits for it, and says what it said."""

    reader = None  # it finds its place itself

    def __init__(self, bridge: Bridge, ask: Ask, prepared: Prepared, claim: ClaimRow) -> None:
        self.ask = ask
        self.done = False
        self.notes: list[Note] = []
        self.accumulator = Accumulator()
        self.conversation_id = prepared.conversation.row.external_id
        self._prepared = prepared
        self._bridge = bridge
        self._claim = claim
        self._turn: Turn | Repeat | Reader | None = None

    async def begin(self) -> list[WireEvent]:
        holder = await self._ended()
        if self._turn is None:
            complete = holder is not None and holder.status == "complete"
            if holder is not None and complete and not self._goes_on(holder):
                stored = await self._bridge.store.read(partial(answers.delivered, turn=holder.turn), None)
                if stored is not None:
                    self.done, self.notes = True, list(stored.notes)
                    relayed = await self._relayed(holder.turn, stored)
                    return self._said(relayed or _unfolded(stored, self.ask.request.model))
            self._turn = await self._bridge.open(self.ask, anew=complete)
        self.conversation_id = self._turn.conversation_id
        wire = await self._turn.begin()
        self._follow(self._turn)
        return wire

    def _goes_on(self, holder: Answer) -> bool:
        """What only appends ("yes") is said again, and anew, once the conversation has gone on since."""
        identity, base = self.ask.identity, self._prepared.base
        return identity.append and not identity.retry_count and base is not None and base.turn > holder.turn

    async def read(self) -> list[WireEvent]:
        if self._turn is None:
            return []
        self._turn = self._turn.reader or self._turn
        wire = await self._turn.read()
        self._follow(self._turn)
        return wire

    def nudge(self) -> None:
        if self._turn is not None:
            self._turn.nudge()

    def fail(self, error: BridgeError) -> None:
        if self._turn is not None:
            self._turn.fail(error)

    def abort(self) -> None:
        if self._turn is not None:
            (self._turn.reader or self._turn).abort()

    async def _ended(self) -> Answer | None:
        """The turn that has the claim, once it runs no longer or is attached to; None when it gave the claim back."""
        awaited = None
        # It may run in another process: the database is where they meet.
        while (holder := await self._holder()) is not None and holder.status == "running":
            awaited = holder.conversation.id
            if await self._attached(holder):
                break
            if self._bridge.ended:
                raise ShuttingDown
            if not await self._left_behind(holder):
                await asyncio.sleep(LOOK_SECONDS)
        if awaited is not None and self._turn is None:
            await self._still_accepted()
        if holder is None and awaited is not None:
            job, without_store = partial(reads.is_there, conversation_id=awaited), True
            if not await self._bridge.store.read(job, without_store):
                raise ConversationEnded("the conversation was terminated")
        return holder

    async def _still_accepted(self) -> None:
        """What has waited for long is no running turn that ends when its key is revoked."""
        job = partial(accounts.key_by_digest, digest=self.ask.key.digest)
        without_store: KeyRow | None = self.ask.key
        if await self._bridge.store.read(job, without_store) is None:
            raise Unauthenticated(NOT_ACCEPTED)

    async def _attached(self, holder: Answer) -> bool:
        """Whether it runs in this process, and was joined there."""
        turn = self._bridge.running_turn(holder.conversation.id, holder.turn)
        if turn is not None and not self._goes_on(holder):
            self._turn = await turn.attached(self.ask.request_id)
        return self._turn is not None

    async def _left_behind(self, holder: Answer) -> bool:
        """Whether its process died: then nobody has to wait until the reconciler comes by, and there may be none."""
        if await self._bridge.state.bury():
            return True
        job, without_store = partial(others.is_dead, turn=holder.turn), False
        dead = await self._bridge.store.read(job, without_store)
        if dead:
            found = holder.conversation
            row = ConversationRow(found.id, self.ask.key.id, found.external_id, "")
            await self._bridge.store.write(CloseLost(row, holder.turn, DIED))
        return dead

    async def _holder(self) -> Answer | None:
        job = partial(answers.claim_holder, key=self.ask.key.id, kind=self._claim.kind, token=self._claim.token)
        holder = await self._bridge.store.read(job, None)
        if holder is not None:  # a client without a name for its conversation goes on with the one that it is told
            self.conversation_id = holder.conversation.external_id
        return holder

    def _follow(self, turn: Turn | Repeat | Reader) -> None:
        self.done, self.notes, self.accumulator = turn.done, turn.notes, turn.accumulator
        self.conversation_id = turn.conversation_id

    async def _relayed(self, turn: int, stored: Delivered) -> list[WireEvent]:
        """An answer in the client's own dialect, as its upstream wrote it; nothing where that is not to be had."""
        aimed, target = self._prepared.aimed, self._prepared.route.target
        if self._prepared.offered.tools or not adapters.relays(target.profile):
            return []
        job = partial(answers.raw_answer, turn=turn, upstream=target.upstream)
        if (raw := await self._bridge.store.read(job, None)) is None:
            return []
        decoder = adapters.adapter(target.profile).decoder(aimed.request, target, aimed.sent, raw.content_type)
        events = [*decoder.feed(raw.answer), *decoder.close()]
        if any(isinstance(event, ToolStarted) and not _has(stored, event.id) for event in events):
            return []  # its calls were given other ids
        writer = adapters.writer(target.profile, aimed.request, stored.message_id)
        wire = writer.feed(events)
        finished = next((event for event in events if isinstance(event, Finished)), None)
        return [*wire, *writer.finish(finished, Usage())] if finished is not None else []

    def _said(self, wire: list[WireEvent]) -> list[WireEvent]:
        self.accumulator.feed(wire)
        return wire


def _who(identity: Identity) -> str:
    """An agent is one of its session's: alone it names nobody."""
    return identity.conversation_id or (identity.session_id and f"{identity.session_id}/{identity.agent_id}")


def _has(stored: Delivered, tool_use_id: str) -> bool:
    return msgspec.json.encode(tool_use_id) in stored.content


def _unfolded(stored: Delivered, model: str) -> list[WireEvent]:
    start = MessageStart(stored.message_id, model, stored.ending.usage)
    return [start, *unfolded(stored.content), stored.ending, MessageStop()]
