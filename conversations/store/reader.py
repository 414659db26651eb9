"""Reads that the cache could not answer: a thread of its own per connection, one hop per read."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from conversations.figures import Histogram
from conversations.store import patience
from conversations.store.database import TRANSIENT, Database, is_transient
from translation.errors import StoreUnavailable

log = logging.getLogger(__name__)

Result = TypeVar("Result")
# Seconds after which a read that nobody waits for any more is given up with its connection: its server may be gone
# without a word, and everybody after it would wait behind it.
SEVER = 1.0
REST = 0.5  # seconds after an outage in which nothing is tried
QUEUE_LIMIT = 5_000
# Reads are for a few rows all over the file: they need little of SQLite's memory, which each connection has for itself.
PAGES = "PRAGMA cache_size=-1000"


class Reader:
    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._jobs: queue.SimpleQueue[tuple[Callable[[Database], Any], asyncio.Future[Any]] | None] = (
            queue.SimpleQueue()
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._rests_until = 0.0
        self._busy: dict[Database, float] = {}  # since when
        self.reads = 0
        self.retries = 0
        self.failures = 0
        self.timings = Histogram()

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        for number in range(self._threads):
            threading.Thread(target=self._run, name=f"store-reader-{number}", daemon=True).start()

    async def read(self, job: Callable[[Database], Result]) -> Result:
        assert self._loop is not None, "the store has not been started"
        if self._jobs.qsize() >= QUEUE_LIMIT or self._loop.time() < self._rests_until:
            raise StoreUnavailable
        future: asyncio.Future[Result] = self._loop.create_future()
        self._jobs.put((job, future))
        self.reads += 1
        waiting, since = patience.current(), self._loop.time()
        left = waiting.left(since)
        try:
            async with asyncio.timeout(left):
                return await future
        except TimeoutError:
            self.failures += 1
            if left >= patience.WHOLE:  # who had waited before may have found a store that is only slow
                self._rest()
            self._sever()
            raise StoreUnavailable from None
        finally:
            waiting.waited(since, self._loop.time())

    def _rest(self) -> None:
        """A request reads more than once: it need not find out about an outage each time."""
        assert self._loop is not None
        self._rests_until = self._loop.time() + REST

    def _sever(self) -> None:
        for db, since in tuple(self._busy.items()):
            if time.monotonic() - since > SEVER:
                db.sever()

    def stop(self) -> None:
        for _ in range(self._threads):
            self._jobs.put(None)

    def _run(self) -> None:
        db = Database(PAGES)
        while (item := self._jobs.get()) is not None:
            job, future = item
            if not future.cancelled():
                self._busy[db] = time.monotonic()
                self._answer(db, job, future)
                del self._busy[db]
        db.close()

    def _answer(self, db: Database, job: Callable[[Database], Any], future: "asyncio.Future[Any]") -> None:
        assert self._loop is not None
        started = time.monotonic()
        try:
            result = self._attempt(db, job, future)
        except Exception as error:  # noqa: BLE001 - the thread lives on
            db.close()
            if future.cancelled():
                return  # who waited has told of it, and what was given up says nothing about a new connection
            self.failures += 1
            log.error("state.read failed: %s", error)
            if is_transient(error):
                self._loop.call_soon_threadsafe(self._rest)
            self._loop.call_soon_threadsafe(_fail, future, StoreUnavailable())
        else:
            self.timings.observe(time.monotonic() - started)
            self._loop.call_soon_threadsafe(_settle, future, result)

    def _attempt(self, db: Database, job: Callable[[Database], Any], future: "asyncio.Future[Any]") -> Any:
        try:
            return job(db)
        except TRANSIENT as error:
            if not is_transient(error) or future.cancelled():
                raise
            # The connection may simply have been closed since it was last used; a fresh one tells.
            self.retries += 1
            db.close()
            return job(db)


def _settle(future: "asyncio.Future[Any]", result: object) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
