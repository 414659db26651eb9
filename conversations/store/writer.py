"""Group commit: what the event loop wants durable is collected, and one transaction at a time makes it so.

A `Write` is applied whole or not at all, and once: a commit whose confirmation was lost is looked up. When a batch
fails, its members are tried one by one, so that one bad row fails one turn. Every process takes the conversations of a
batch in the same order: two that met in different ones would wait for each other. A batch that takes too long fails its
waiters (the database stalls; they answer 529), and new writes are refused until it has ended. Nobody waits longer than
its request's patience, behind whatever batch.

A transaction of thirty costs two thirds of what two of fifteen do, and those whom it answers go on together: what they
do next is in the processor's caches for all of them. So after one that had company the next waits a moment for those
who are to be expected, as many as were seen around the last one; where writes come one by one none waits.
"""

import asyncio
import logging
import queue
import threading
import time
from typing import Protocol

from conversations.figures import Histogram
from conversations.store import patience
from conversations.store.database import CONFLICTS, Database, is_transient
from conversations.store.writes import ConversationRow, StaleConversation
from translation.errors import BridgeError, StoreUnavailable

log = logging.getLogger(__name__)

QUEUE_LIMIT = 10_000  # writes that may wait; beyond that the bridge is overloaded
BATCH_LIMIT = 500
COMPANY, ENOUGH = 4, 64  # writes of a batch after which the next one waits for more; so many go at once
MOMENT = 0.008  # seconds of that, at most
RETRY_DELAYS = (0.1, 0.3)  # two retries, at most one second with the attempts themselves
PATIENCE = patience.WHOLE  # seconds without any progress after which a transaction has stalled
LOOKS = 10  # at a transaction within that time
LONGEST = 9.0  # seconds for one that gets on
REST = 0.5  # seconds after an outage in which nothing is tried
SEVER = 3.0  # seconds after which a transaction's connection is given up: its server may be gone without a word
# Every commit goes back to the same pages of the indexes; SQLite's usual 2 MB, which all others have, are too few.
# A statement of many rows keeps the pages as they were before it, beyond 64 kB in a file: a third of all pages written.
PRAGMAS = ("PRAGMA cache_size=-8000", "PRAGMA temp_store=MEMORY")


class Write(Protocol):
    def apply(self, db: Database) -> None:
        """Runs in the writer's thread, inside a transaction. May run more than once: earlier runs were rolled back."""
        ...


class _Entry:
    __slots__ = ("error", "future", "patience", "since", "until", "write")

    def __init__(self, write: Write, future: "asyncio.Future[None]", now: float) -> None:
        self.write = write
        self.future = future
        self.error: BaseException | None = None
        self.patience = patience.current()
        self.since = now
        self.until = now + self.patience.left(now)

    def settle(self, now: float, error: BaseException | None) -> None:
        if self.future.done():
            return
        self.patience.waited(self.since, now)
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)


def _place(entry: _Entry) -> tuple[bool, str, int]:
    """Where in its batch it is applied: by the conversation that it locks, by its name if that is yet to be made."""
    row = getattr(entry.write, "conversation", None)
    return (False, row.external_id, row.api_key) if isinstance(row, ConversationRow) else (True, "", 0)


class Writer:
    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._batches: queue.SimpleQueue[list[_Entry] | None] = queue.SimpleQueue()
        self._waiting: list[_Entry] = []
        self._flying: list[_Entry] = []
        self._watchdog: asyncio.TimerHandle | None = None
        self._db = Database(*PRAGMAS)
        self._applied = 0  # writes, by the writer's thread; those of a second try are no progress
        self._began = self._moved = 0.0  # the batch in flight: when it began, when it was last seen to get on
        self.healthy = True  # whether the last transaction could be made
        self._rests_until = 0.0  # after an outage was seen, nobody waits to see it again
        self._scheduled = False
        self._moment: asyncio.TimerHandle | None = None  # while company is waited for
        self._enough = ENOUGH
        self._stalled = False
        self._closed = False
        self.writes = 0
        self.commits = 0
        self.retries = 0
        self.failures = 0
        self.timings = Histogram()  # of transactions, counted for each write in them

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, write: Write) -> "asyncio.Future[None]":
        """The future is done when the write is durable; it fails with what `apply` raised, or StoreUnavailable."""
        assert self._loop is not None, "the store has not been started"
        future = self._loop.create_future()
        refused = self._stalled or self._closed or len(self._waiting) >= QUEUE_LIMIT
        now = self._loop.time()
        if refused or now < self._rests_until:
            future.set_exception(StoreUnavailable())
            return future
        self.writes += 1
        self._waiting.append(_Entry(write, future, now))
        if not self._flying and not self._scheduled:
            # Everything that this turn of the loop submits goes into one transaction.
            self._scheduled = True
            self._loop.call_soon(self._dispatch)
        elif self._moment is not None and len(self._waiting) >= self._enough:
            self._moment.cancel()
            self._moment = None
            self._loop.call_soon(self._dispatch)
        return future

    async def drain(self) -> None:
        """Until nothing waits and nothing flies; what has stalled is not waited for."""
        while (self._waiting or self._flying) and not self._stalled:
            futures = [entry.future for entry in (*self._flying, *self._waiting)]
            await asyncio.wait(futures)
            await asyncio.sleep(0)

    async def stop(self) -> None:
        await self.drain()
        self._closed = True
        self._batches.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, 5)

    # ------------------------------------------------------------ on the event loop

    def _dispatch(self) -> None:
        self._scheduled = False
        self._moment = None
        if self._flying or not self._waiting:
            return
        self._flying, self._waiting = self._waiting[:BATCH_LIMIT], self._waiting[BATCH_LIMIT:]
        assert self._loop is not None
        self._began = self._moved = self._loop.time()
        self._watchdog = self._loop.call_later(PATIENCE / LOOKS, self._look, self._applied)
        self._batches.put(self._flying)

    def _landed(self, batch: list[_Entry]) -> None:
        if self._watchdog is not None:
            self._watchdog.cancel()
        self._stalled = False
        self._flying = []
        assert self._loop is not None
        now = self._loop.time()
        for entry in batch:
            entry.settle(now, entry.error)
        if not self.healthy:
            self._rest()
        seen = len(batch) + len(self._waiting)
        self._enough = min(seen - seen // 8, ENOUGH)  # one or another does not come back
        if len(batch) >= COMPANY and len(self._waiting) < self._enough:
            self._scheduled = True
            self._moment = self._loop.call_later(MOMENT, self._dispatch)
        else:
            self._dispatch()

    def _rest(self) -> None:
        """The database is away: what has queued up behind its last failure need not find out for itself."""
        assert self._loop is not None
        self._rests_until = self._loop.time() + REST
        self._give_up()

    def _give_up(self) -> None:
        waiting, self._waiting = self._waiting, []
        assert self._loop is not None
        now = self._loop.time()
        for entry in (*self._flying, *waiting):
            entry.settle(now, StoreUnavailable())

    def _look(self, before: int) -> None:
        """A transaction that gets on is only big, one that does not has stalled."""
        assert self._loop is not None
        now = self._loop.time()
        if self._applied != before:
            self._moved = now
        if now - self._moved >= PATIENCE * 0.99 or now - self._began >= LONGEST:
            self._stall()
            return
        if now > self._moved:
            self._lose_patience(now)
        self._watchdog = self._loop.call_later(PATIENCE / LOOKS, self._look, self._applied)

    def _lose_patience(self, now: float) -> None:
        """Nothing moves: who has waited long enough, here or before, does not wait for the end."""
        for entry in (*self._flying, *self._waiting):
            if entry.until <= now:
                entry.settle(now, StoreUnavailable())
        self._waiting = [entry for entry in self._waiting if not entry.future.done()]

    def _stall(self) -> None:
        """The transaction has not come back: nobody may wait for it any longer, and nobody new may queue behind it."""
        self._stalled = True
        self.failures += 1
        self._give_up()
        self.healthy = False
        assert self._loop is not None
        self._watchdog = self._loop.call_later(SEVER - PATIENCE, self._sever)
        log.error("state.stall: a transaction has taken more than %s s", PATIENCE)

    def _sever(self) -> None:
        """Again, until it has come back: the connection that it makes next may hear nothing either."""
        self._db.sever()
        assert self._loop is not None
        self._watchdog = self._loop.call_later(SEVER, self._sever)

    # ------------------------------------------------------------ in the writer's thread

    def _run(self) -> None:
        db = self._db
        while (batch := self._batches.get()) is not None:
            try:
                self._commit(db, batch)
            finally:
                # Whatever happened, the waiters must hear of it.
                assert self._loop is not None
                self._loop.call_soon_threadsafe(self._landed, batch)
        db.close()

    def _commit(self, db: Database, batch: list[_Entry]) -> None:
        started = time.monotonic()
        if len(batch) > 1:
            batch = sorted(batch, key=_place)
        for delay in (*RETRY_DELAYS, None):
            first = delay == RETRY_DELAYS[0]
            try:
                if first or not db.committed():
                    self._transaction(db, batch, progress=first)
            except Exception as error:  # noqa: BLE001 - the writer lives on, and nobody is told that it is stored
                db.rollback()
                if not is_transient(error):
                    self.healthy = True  # it answered
                    self._one_by_one(db, batch, error)
                    return
                db.close()
                if delay is None or time.monotonic() - started + delay > 1.0:
                    self._fail(batch, error)
                    return
                self.retries += 1
                time.sleep(delay)
            else:
                self.commits += 1
                self.healthy = True
                self.timings.observe(time.monotonic() - started, len(batch))
                return

    def _transaction(self, db: Database, batch: list[_Entry], *, progress: bool = True) -> None:
        db.begin()
        for entry in batch:
            entry.write.apply(db)
            self._applied += progress
        db.commit()

    def _one_by_one(self, db: Database, batch: list[_Entry], error: Exception) -> None:
        if len(batch) == 1:
            self._refuse(batch[0], error)
            return
        for index, entry in enumerate(batch):
            try:
                self._transaction(db, [entry])
            except Exception as own:  # noqa: BLE001 - one bad row fails one turn
                db.rollback()
                if is_transient(own):
                    db.close()
                    self._fail(batch[index:], own)  # nobody need find out for itself
                    return
                self._refuse(entry, own)

    def _refuse(self, entry: _Entry, error: Exception) -> None:
        if isinstance(error, BridgeError):
            entry.error = error
        elif isinstance(error, CONFLICTS):
            entry.error = StaleConversation("another process was faster")
        else:
            self.failures += 1
            log.error("state.write failed: %s", error)
            entry.error = StoreUnavailable()

    def _fail(self, batch: list[_Entry], error: Exception) -> None:
        self.failures += 1
        self.healthy = False
        log.error("state.write: the database is unavailable: %s", error)
        for entry in batch:
            entry.error = StoreUnavailable()
