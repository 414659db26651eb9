"""Large reads go one at a time: of many streams that bring much at once, a turn of the event loop works on one.

Whoever brings little waits for that one, and not for all of them. While a crowd brings much, and others ask for
something, the lane rests after each: a request takes about ten turns of the loop, and must not meet a large read in
every one of them.
"""

import asyncio
import time
from collections import deque

MUCH = 32 * 1024  # bytes: about a millisecond of work
CROWD = 50  # that wait at once: no ordinary traffic, which is not slowed down
REST = 4.0  # after a read of a crowd, as a multiple of what it took: it gets a fifth of the time
RECENT = 0.25  # seconds in which a request was sent: somebody may be waiting for its answer


class Lane:
    """In order of arrival, one in each turn of the loop."""

    def __init__(self) -> None:
        self.sent = 0.0  # when a request was last sent to an upstream, by the performance counter
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
        if len(self._waiting) > CROWD and now - self.sent < RECENT:
            loop.call_later(REST * (now - began), self._next, loop)
        else:
            self._next(loop)
