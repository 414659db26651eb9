"""The whole path of a turn begins here: prepare the request, open the turn in the store, hand it to its reader."""

import asyncio
import logging
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from conversations import ids, telemetry
from conversations.ask import Ask
from conversations.beside import LARGE, beside
from conversations.callers import NOT_ACCEPTED, Callers
from conversations.catalog import Catalog
from conversations.course import awake
from conversations.estimates import Estimates
from conversations.health import Rested
from conversations.hosted.addresses import Allowed
from conversations.hosted.runner import Limits as ToolLimits
from conversations.hosted.service import HostedTools
from conversations.hosted_turn import HostedTurn
from conversations.ledger import Prices
from conversations.limits import Admission, Full, Limits
from conversations.meter import Meter
from conversations.preparing import Prepared, prepare
from conversations.repeats import IN_FLIGHT, Repeat, asked_already, claims, refused, trace, untraced
from conversations.routing import Router
from conversations.state import State
from conversations.storable import storable
from conversations.store import Store, others
from conversations.store.claims import AlreadyClaimed, ClaimRow
from conversations.store.database import timestamp
from conversations.store.lost import CloseLost
from conversations.store.routes import SaveLearned, SaveRest
from conversations.turn import Turn
from conversations.upstream import Upstreams
from translation.adapter import Target
from translation.errors import (
    BridgeError,
    ConversationEnded,
    InvalidRequest,
    OverBudget,
    ShuttingDown,
    StoreUnavailable,
    Unauthenticated,
)
from translation.remedies import Remedy
from translation.values import Note

log = logging.getLogger(__name__)

SETTLE_SECONDS = 8.0
ENDING_SECONDS = 1.0  # that who appends waits for what was cut off
LOST_BATCH = 500
LESSON_LIMIT = 500  # characters of a remedy


class Settings(Struct, frozen=True):
    """What of the configuration a turn needs."""

    process: int
    retries: int = 2
    warn_unstored: bool = False
    tool_hosts: tuple[str, ...] = ()
    tool_limits: ToolLimits = ToolLimits()


class Bridge:
    """What all turns of a process share."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that turns share comes together here
        self,
        store: Store,
        state: State,
        upstreams: Upstreams,
        router: Router,
        limits: Limits,
        meter: Meter,
        rows: ids.RowIds,
        settings: Settings,
    ) -> None:
        self.hosted = HostedTools(store, Allowed(settings.tool_hosts), settings.tool_limits)
        self.store = store
        self.state = state
        self.upstreams = upstreams
        self.router = router
        self.limits = limits
        self.prices = Prices()
        self.meter = meter
        self.rows = rows
        self.settings = settings
        self.form = others.PLAIN  # of rows, that every process reads
        self.estimates = Estimates()
        self.catalog = Catalog(router, upstreams)
        upstreams.health.tell = self._tell_rest
        self.running: dict[int, set[Turn]] = {}  # by conversation
        self.ended = False  # the process stops, and waits for nobody any more
        self.lost: list[CloseLost] = []  # turns whose end could not be stored, until it can
        self._tasks: set[asyncio.Task[None]] = set()
        self._ending: dict[tuple[int, str], set[asyncio.Task[None]]] = {}  # by key and conversation

    async def open(self, ask: Ask, *, anew: bool = False) -> Turn | Repeat:
        """A turn whose opening write is on its way; or, for the same request again, what stands in for it."""
        if self.ended:
            raise ShuttingDown  # a retry that has waited for another process
        self.upstreams.lane.sign = ask.received
        if self.running:
            await self.together()
        large = ask.request.size >= LARGE
        claimed = await beside(ask.request.size, claims, ask, anew=anew) if large else claims(ask, anew=anew)
        if ask.key.limits is None:
            return await self._open(ask, None, claimed)
        try:
            admission = await self.limits.admit(ask.key, ask.request.model, ask.request_id)
        except (Full, OverBudget) as refusal:
            repeat = await self._repeat(ask, claimed, counted=isinstance(refusal, OverBudget))
            if repeat is None:
                raise
            return repeat
        opened = None
        try:
            opened = await self._open(ask, admission, claimed)
        finally:
            if not isinstance(opened, Turn):
                await admission.settle()  # a repeat asks again if it has to run after all
        return opened

    async def together(self) -> None:
        """Requests that come at once go on step by step, all of them: the processor's caches hold the code of one step,
        not that of the whole way."""
        await asyncio.sleep(0)

    async def _repeat(self, ask: Ask, claimed: tuple[ClaimRow, ...], *, counted: bool) -> Repeat | None:
        """What was asked already, perhaps in the key's last place, needs no other one to be heard once more, and no
        money. It counts as a request of the key's rate, as it has where only the budget refused it.
        """
        prepared = None
        if ask.identity.retry_count and untraced(ask, claimed):
            prepared = await self.prepare(ask)
            await trace(self, ask, prepared, claimed)
        claim = await asked_already(self, ask, claimed)
        if claim is None:
            if prepared is not None:
                self._drop(prepared)
            return None
        if not counted:
            admission = await self.limits.admit(ask.key, ask.request.model, ask.request_id, places=0)
            await admission.settle()
        return Repeat(self, ask, prepared or await self.prepare(ask), claim)

    async def _open(self, ask: Ask, admission: Admission | None, claimed: tuple[ClaimRow, ...]) -> Turn | Repeat:
        prepared = await self.prepare(ask)
        if self.running:
            await self.together()
        if telemetry.on():
            telemetry.opened(ask, prepared)
        if ask.identity.retry_count and untraced(ask, claimed):
            await trace(self, ask, prepared, claimed)
        kind = HostedTurn if prepared.aimed.hosted or prepared.waiting or prepared.offered.listings else Turn
        turn = kind(self, ask, prepared, claimed, admission)
        try:
            await turn.open()
        except AlreadyClaimed as error:
            self.leave(turn)
            error.__traceback__ = None  # it would hold the turn, which holds it
            if error.claim.kind == "thread":
                refusal = await refused(self, ask, error.claim)
                # Whoever continues it may have died: then it need not wait until somebody comes by.
                if refusal.code == IN_FLIGHT and await self.state.bury():
                    return await self._open(ask, admission, claimed)
                raise refusal from None
            return Repeat(self, ask, prepared, error.claim)
        # What was submitted may yet be stored, when the database is no longer stalled: then it must not stay `running`.
        except BridgeError as error:
            turn.fail(error)
            raise
        except asyncio.CancelledError:
            turn.abort()
            raise
        return turn

    async def prepare(self, ask: Ask) -> Prepared:
        if ask.identity.append and (ending := self._ending.get((ask.key.id, ask.identity.conversation_id))):
            await asyncio.wait(ending, timeout=ENDING_SECONDS)  # what was said there has been said, once it is stored
        wanted = self.router.resolve(ask.request.model)
        route = awake(wanted, self.upstreams.health) if wanted.fallbacks else wanted
        offered = await self.hosted.offered(ask.key, ask.request, route)
        given = (ask.key.id, ask.key.storage, ask.request, ask.identity, route, offered)
        try:
            prepared = await prepare(self.state, *given)
        except ConversationEnded:  # between two reads: what the store says now is whole
            prepared = await prepare(self.state, *given)
        notes = offered.notes
        if route is not wanted:
            note = Note("degradation", "fallback", f"{wanted.name} rests: {route.name} was asked instead")
            notes = (*notes, note)
        return replace(prepared, notes=(*prepared.notes, *notes)) if notes else prepared

    async def count(self, ask: Ask) -> int:
        """The tokens of what would be sent. What could not be sent is counted as the client wrote it."""
        if ask.key.limits is not None:
            self.limits.permit(ask.key.limits, ask.request.model)
        target, body = self.router.resolve(ask.request.model).target, ask.request.body
        try:
            prepared = await self.prepare(ask)
        except (InvalidRequest, StoreUnavailable) as error:
            log.info("count_tokens %s counts what the client wrote: %s", ask.request_id, error.message)
        else:
            target, body = prepared.route.target, prepared.sent.body
            self._drop(prepared)
        return await self.estimates.count(target.upstream, target.model, body)

    def _drop(self, prepared: Prepared) -> None:
        """Nobody will ask again for a conversation that was made for what becomes no turn."""
        if prepared.conversation.row.recognised == "new" and not prepared.conversation.stored:
            self.state.forget(prepared.conversation.row.id)

    # ------------------------------------------------------------ upstreams

    def learn(self, target: Target, remedy: Remedy) -> None:
        """What a refusal taught: known here at once, in every process within a second."""
        why, lesson = storable(remedy.why, 2000), replace(remedy, why="")
        self.router.learn(target, lesson)
        written = msgspec.json.encode(lesson).decode()
        if len(written) <= LESSON_LIMIT:
            self.track(self._write(SaveLearned(target.upstream, target.model[:200], written, why)))

    def _tell_rest(self, rested: Rested) -> None:
        log.warning("upstream %s rests: key %s, %s, %s s", rested.upstream, rested.key, rested.reason, rested.seconds)
        start = time.time()
        span = (timestamp(start), timestamp(start + rested.seconds))
        self.track(self._write(SaveRest(rested.upstream, rested.key, storable(rested.reason, 200), *span)))

    async def _write(self, write: SaveLearned | SaveRest) -> None:
        try:
            await self.store.write(write)
        except StoreUnavailable as error:
            log.warning("%s is known to this process only: %s", type(write).__name__, error.message)

    # ------------------------------------------------------------ running turns

    def enter(self, turn: Turn) -> None:
        self.running.setdefault(turn.conversation.row.id, set()).add(turn)
        self.meter.touched = True

    def leave(self, turn: Turn) -> None:
        conversation = turn.conversation.row.id
        turns = self.running.get(conversation)
        if turns is not None:
            turns.discard(turn)
            if not turns:
                del self.running[conversation]

    def running_turn(self, conversation_id: int, turn_id: int) -> Turn | None:
        return next((turn for turn in self.running.get(conversation_id, ()) if turn.id == turn_id), None)

    def end(self) -> None:
        self.ended = True
        for turn in self._turns():
            turn.end(ShuttingDown())

    async def end_refused(self, callers: Callers) -> None:
        """The turns of keys that are accepted no longer."""
        if not callers.changed:
            return
        for key_digest in await callers.refused({turn.ask.key.digest for turn in self._turns()}):
            for turn in self._turns():
                if turn.ask.key.digest == key_digest:
                    turn.end(Unauthenticated(NOT_ACCEPTED))

    def _turns(self) -> list[Turn]:
        return [turn for turns in self.running.values() for turn in turns]

    def end_conversation(self, conversation_id: int, error: BridgeError) -> None:
        """It was terminated or purged: nothing of it may be shown or stored any more."""
        self.state.forget(conversation_id)
        for turn in tuple(self.running.get(conversation_id, ())):
            turn.end_with_conversation(error)

    def track(self, coroutine: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Runs on after its request is gone; the process waits for it before it stops."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def track_end(self, turn: Turn, storing: Coroutine[Any, Any, None]) -> None:
        """The same for the end of a turn that was cut off."""
        name = turn.ask.key.id, turn.conversation_id
        task = self.track(storing)
        self._ending.setdefault(name, set()).add(task)
        task.add_done_callback(partial(self._has_ended, name))

    def _has_ended(self, name: tuple[int, str], task: "asyncio.Task[None]") -> None:
        self._ending[name].discard(task)
        if not self._ending[name]:
            del self._ending[name]

    @property
    def tracked(self) -> int:
        return len(self._tasks)

    async def settle(self, seconds: float = SETTLE_SECONDS) -> None:
        """A database that is away must not keep the process: the reconciler closes what it leaves."""
        until = time.monotonic() + seconds
        while self._tasks and (left := until - time.monotonic()) > 0:
            await asyncio.wait(self._tasks, timeout=left)

    async def close_lost(self) -> None:
        """What outages have left `running`, once the store is back; two at once take different ones."""
        while chosen := self.lost[:LOST_BATCH]:
            del self.lost[: len(chosen)]
            try:
                await asyncio.gather(*map(self.store.write, chosen))
            except BaseException:
                self.lost += chosen
                raise
