"""One web process: what is started with it, kept running in it and drained before it stops.

Registers itself in the database, tells that it lives, reads what other processes changed, and pings quiet streams. A
database that is away when the process starts is waited for; until then requests get 529.
"""

import asyncio
import gc
import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, Any

from asgiref.sync import sync_to_async
from django.db import DatabaseError
from django.db.models.functions import Now

from conversations import conf, deaths, figures, ids, keys, live
from conversations.bridge import Bridge, Settings
from conversations.callers import Callers
from conversations.demo import DemoServer
from conversations.figures import Figures
from conversations.heap import Heap
from conversations.hosted.runner import tool_limits
from conversations.ledger import Prices
from conversations.limits import Limits
from conversations.meter import Meter
from conversations.models import Process
from conversations.peeking import Peek
from conversations.prices import Price
from conversations.room import Room
from conversations.routing import Router
from conversations.state import State
from conversations.store import Store, accounts, others
from conversations.store.database import Database
from conversations.store.routes import Configuration, configuration
from conversations.store.writes import Heartbeat
from conversations.upstream import Upstreams
from translation.errors import ConversationEnded, StoreUnavailable

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 5.0
CHANGES_SECONDS = 0.4
CHANGES_WINDOW = 15.0  # rows may become visible later than their time says
TICK_SECONDS = 1.0
REPORT_SECONDS = 0.5
LEASE_SECONDS = 10.0
GARBAGE_SECONDS = 5.0
BURIAL_SECONDS = 2.0  # that a start waits for


class WebProcess:
    """Everything that the API of this process needs, once `start` has been called."""

    def __init__(self) -> None:
        self.conf = conf.current()
        self.store = Store(self.conf.storage)
        self.demo = DemoServer()
        self.callers = Callers(self.store)
        self.meter = Meter()
        self.limits = Limits(self.store, self.conf.redis_url)
        self.live = live.Live(self.store)
        self._heap = Heap()
        self._peeks: dict[int, Peek] = {}  # at the turns that somebody watches
        self.bridge: Bridge | None = None
        self.loop: asyncio.AbstractEventLoop | None = None
        self.quiet: set[Any] = set()  # streams that may need a ping
        self.room = Room()  # for large requests
        self.started = False
        self.stopping = False
        self._starting: asyncio.Task[None] | None = None
        self._jobs: list[asyncio.Task[Any]] = []
        self._sign: IO[str] | None = None  # of life
        self._seen: set[int] = set()
        self._routes_changed = False
        self._heard = time.monotonic()

    async def start_once(self) -> None:
        """Whoever comes first starts it, and everybody waits."""
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self.start())
        await asyncio.shield(self._starting)
        self.started = True

    async def start(self) -> None:
        # What was imported lives as long as the process: the collector need not look at it with every request.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        self.loop = asyncio.get_running_loop()
        self.store.start()
        await self.demo.start()
        try:
            await self._register()
        except (DatabaseError, StoreUnavailable) as error:
            log.error("state.unavailable at start, trying again: %s", error)
            self._job(self._register_later())
        self._job(self._every(TICK_SECONDS, self._tick))
        self._job(self._every(HEARTBEAT_SECONDS, self._heartbeat))
        self._job(self._every(HEARTBEAT_SECONDS, self._look_around))
        self._job(self._every(REPORT_SECONDS, self._report))
        self._job(self._every(CHANGES_SECONDS, self._changes))
        self._job(self._every(LEASE_SECONDS, self.limits.renew))
        self._job(self._every(live.SECONDS, self._show))
        self._job(self._every(GARBAGE_SECONDS, self._collect))

    async def stop(self) -> None:
        """After the server has let its requests end: what they left is stored."""
        self.stopping = True
        if self.bridge is not None:
            self._end_turns()
            await self.bridge.settle()
            await self.bridge.upstreams.close()
            await self.bridge.hosted.close()
            self.bridge.estimates.tokenizer.stop()
        for job in self._jobs:
            job.cancel()
        await asyncio.gather(*self._jobs, return_exceptions=True)
        with suppress(StoreUnavailable):
            await self._heartbeat()
        await self.limits.close()
        await self.store.stop()
        await self.demo.stop()
        if self._sign is not None:
            self._sign.close()

    def wind_down(self, seconds: float) -> None:
        """The server stops: turns may run on for so long, then they end in an error that tells the client to retry."""
        self.stopping = True
        if self.loop is not None:
            self.loop.call_later(seconds, self._end_turns)

    def _end_turns(self) -> None:
        if self.bridge is not None:
            self.bridge.end()

    async def healthy(self) -> bool:
        """Whether a request would find its store: reads are answered, and the last write was."""
        try:
            self.ready()
            await self.store.read(_answers, None)
        except StoreUnavailable:
            return False
        return self.store.writer.healthy

    def ready(self) -> Bridge:
        if self.bridge is None or self.stopping:
            raise StoreUnavailable
        return self.bridge

    # ------------------------------------------------------------ registration

    async def _register(self) -> None:
        process = await sync_to_async(self._create_row)()
        rows = ids.RowIds(process)
        settings = Settings(
            process=process,
            retries=self.conf.upstream_retries,
            warn_unstored=self.conf.unstored_link == "warn",
            tool_hosts=self.conf.tool_hosts,
            tool_limits=tool_limits(self.conf),
        )
        upstreams = Upstreams(self.conf.upstream_idle_seconds)
        router = Router(self.conf, self.demo.url)
        found = await self._configuration()
        router.load(found)
        upstreams.health.rest_by_hand(_left(found))
        self.bridge = Bridge(
            self.store, State(self.store, rows), upstreams, router, self.limits, self.meter, rows, settings
        )
        self.bridge.state.bury = partial(self._bury, deaths.bury_at_once)
        await self._load_prices()
        await self.bridge.hosted.shelf.load()
        await self._look_around()  # the last that may fail: until it is known, every process reads what is written
        # Who asks at once is to find ended what was cut off; of very much the rest goes on beside.
        await asyncio.wait((self._job(self._bury()),), timeout=BURIAL_SECONDS)

    async def _bury(self, how: Callable[[Path], int] = deaths.bury) -> int:
        try:
            closed = await sync_to_async(how)(self.conf.home)
        except DatabaseError as error:
            log.warning("the turns of dead processes are left to the reconciler: %s", error)
            return 0
        log.log(logging.WARNING if closed else logging.DEBUG, "closed %s turns of processes that died", closed)
        return closed

    async def _look_around(self) -> None:
        if self.bridge is not None:
            self.bridge.form = await self.store.read(others.form, others.NEWEST)

    async def _load_prices(self) -> None:
        try:
            none: list[Price] = []
            rows = await self.store.read(accounts.prices, none)
        except StoreUnavailable:
            log.error("state.unavailable: the prices could not be read; the old ones count")
            return
        if self.bridge is not None:
            self.bridge.prices = Prices(rows)

    async def _configuration(self) -> Configuration:
        self._routes_changed = False  # before reading: a change while it reads is another one
        return await self.store.read(configuration, Configuration())

    def _create_row(self) -> int:
        if self.conf.storage == "durable":
            keys.ensure_environment_keys(self.conf.api_keys)
        # By the database's clock, as everything that processes compare.
        times = {"started_at": Now(), "seen_at": Now()}
        host = socket.gethostname()[:255]
        process = Process.objects.create(host=host, pid=os.getpid(), form=others.NEWEST, **times)
        process.refresh_from_db(fields=["started_at"])
        self._sign = deaths.live(self.conf.home, process)
        return process.pk

    async def _register_later(self) -> None:
        while self.bridge is None:
            await asyncio.sleep(1)
            try:
                await self._register()
            except (DatabaseError, StoreUnavailable):
                log.debug("state.unavailable still")

    # ------------------------------------------------------------ what runs all the time

    def _job(self, coroutine: Any) -> "asyncio.Task[Any]":
        job: asyncio.Task[Any] = asyncio.get_running_loop().create_task(coroutine)
        self._jobs.append(job)
        return job

    async def _every(self, seconds: float, job: Any) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await job()
            except StoreUnavailable:
                log.debug("state.unavailable")

    async def _collect(self) -> None:
        """What is young only: few objects, but one of them may hold a failed turn with all its buffers, and a quiet
        process would not make twenty thousand more for hours."""
        gc.collect(0)
        self._heap.give_back()

    async def _tick(self) -> None:
        now = time.monotonic()
        for stream in tuple(self.quiet):
            stream.tick(now)

    async def _heartbeat(self) -> None:
        if self.bridge is not None:
            self.meter.touched = False
            if self.bridge.lost and self.store.writer.healthy:
                await self.bridge.close_lost()
            await self.store.write(Heartbeat(self.bridge.settings.process, figures.dump(self.figures())))

    async def _report(self) -> None:
        """What a request has counted is to be seen before the next heartbeat."""
        if self.meter.touched:
            await self._heartbeat()

    async def _show(self) -> None:
        """What the turns that somebody watches have said so far."""
        if self.bridge is None or self.live.idle:
            return
        running = self.bridge.running
        turns = [(pk, turn) for pk in self.live.watched() for turn in running.get(pk, ())]
        # A turn that begins a new attempt is looked at anew.
        before, self._peeks = self._peeks, {}
        for _, turn in turns:
            known = before.get(turn.id)
            self._peeks[turn.id] = known if known and known.attempt is turn.attempt else Peek(turn.attempt)
        await self.live.keep(
            live.Seen(turn.id, pk, self._peeks[turn.id].content(), turn.ask.key.storage == "full") for pk, turn in turns
        )

    def figures(self) -> Figures:
        bridge = self.bridge
        running = sum(map(len, tuple(bridge.running.values()))) if bridge else 0
        return self.meter.figures(self.store, bridge.state if bridge else None, self.limits, running)

    @property
    def tasks(self) -> int:
        """Looked for one by one: for who asks, not for the heartbeat."""
        return len(asyncio.all_tasks(self.loop)) if self.loop is not None else 0

    async def _changes(self) -> None:
        # After an outage the window reaches back to before it.
        asked = time.monotonic()
        seconds = asked - self._heard + CHANGES_WINDOW
        none: list[tuple[Any, ...]] = []
        for number, kind, ref in await self.store.read(lambda db: others.changes(db, seconds, self._seen), none):
            self._seen.add(number)
            self.apply(kind, ref)
        self._heard = asked
        if self.bridge is not None:
            await self.bridge.end_refused(self.callers)
            if self._routes_changed:
                await self._load_routes(self.bridge)
        if len(self._seen) > 10_000:
            self._seen = set(sorted(self._seen)[-1_000:])

    async def _load_routes(self, bridge: Bridge) -> None:
        try:
            found = await self._configuration()
            bridge.router.load(found)
            bridge.upstreams.health.rest_by_hand(_left(found))
        except StoreUnavailable:
            self._routes_changed = True
            raise

    def hear(self, kind: str, ref: str) -> None:
        """From any thread: a change that this process made itself counts at once."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.apply, kind, ref)

    def apply(self, kind: str, ref: str) -> None:
        """Forget what a change made untrue."""
        if kind == "key":
            self.callers.forget(ref)
        elif kind == "routes":
            self._routes_changed = True  # read with the next look at the changes
        elif kind == "watch":
            self.live.watch(int(ref))
        elif self.bridge is not None:
            self._apply(self.bridge, kind, ref)

    def _apply(self, bridge: Bridge, kind: str, ref: str) -> None:
        if kind == "conversation":
            bridge.end_conversation(int(ref), ConversationEnded("the conversation was terminated"))
        elif kind == "wake":
            bridge.upstreams.health.wake(ref)
        elif kind == "hosted":
            bridge.hosted.shelf.forget()
        elif kind == "breaker":
            bridge.hosted.shelf.reread()
        elif kind in {"forgotten", "purged"}:
            bridge.state.forget(*map(int, ref.split(",")))
        elif kind == "prices":
            bridge.track(self._load_prices())


def _answers(db: Database) -> None:
    db.query("SELECT 1")


def _left(found: Configuration) -> dict[str, float]:
    """How long upstreams have to rest by an operator's decision."""
    return {rest.upstream: rest.until - time.time() for rest in found.rests}


_current: WebProcess | None = None


def current() -> WebProcess:
    """This process's own; made by the first who asks (lifespan, or a test)."""
    global _current  # noqa: PLW0603 - one per process is what it is
    if _current is None:
        _current = WebProcess()
    return _current


def discard() -> None:
    """After `stop`: the next `current` is a new one."""
    global _current  # noqa: PLW0603
    _current = None
