"""Large reads go one at a time: of many streams that bring much at once, a turn of the event loop works on one.

Whoever brings little waits for that one, and not for all of them. While a crowd brings much, it gives way to whoever
asks for something: a request takes about ten turns of the loop, and must not meet a large read in every one of them.
"""

import asyncio
import time
from collections import deque

MUCH = 32 * 1024  # bytes: about a millisecond of work
CROWD = 50  # that wait at once: no ordinary traffic, which is not slowed down
QUIET = 0.005  # seconds without a sign of a request: short ones are answered by then, of others the model is at work
REST = 10.0  # as a multiple of what its last read took: a crowd gives way no longer, whatever is asked


class Lane:
    """In order of arrival, one in each turn of the loop."""

    def __init__(self) -> None:
        self.sign = 0.0  # when a request last came, was sent or had its answer, by the performance counter
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        loop = asyncio.get_running_loop()
        place = loop.create_future()
        self._waiting.append(place)
        if len(self._waiting) == 1:
            loop.call_soon(self._next, loop)
        await place

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and self._waiting[0].done():
            self._waiting.popleft()  # it was cancelled, or it has had its turn
        if self._waiting:
            self._waiting[0].set_result(None)
            loop.call_soon(self._after, loop, time.perf_counter())

    def _after(self, loop: asyncio.AbstractEventLoop, began: float) -> None:
        now = time.perf_counter()
        self._give_way(loop, now + REST * (now - began))

    def _give_way(self, loop: asyncio.AbstractEventLoop, latest: float) -> None:
        now, until = time.perf_counter(), min(self.sign + QUIET, latest)
        if now < until and len(self._waiting) > CROWD:
            loop.call_later(until - now, self._give_way, loop, latest)
        else:
            self._next(loop)
