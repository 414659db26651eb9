"""Large reads go one at a time: of many streams that bring much at once, a turn of the event loop works on one.

Whoever brings little waits for that one, and not for all of them.
"""

import asyncio
from collections import deque

MUCH = 32 * 1024  # bytes: about a millisecond of work


class Lane:
    """In order of arrival, one in each turn of the loop."""

    def __init__(self) -> None:
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
            loop.call_soon(self._next, loop)
