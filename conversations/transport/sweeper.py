"""One timer for the deadlines of all connections: a waiting stream costs a float, not a timer.

A connection moves its own `deadline`; the sweeper looks at all of them when the earliest it knows of is due, and at
most ten times a second. Deadlines only ever pushed back (a busy stream) therefore cost nothing between sweeps.
"""

from __future__ import annotations

import asyncio
from math import inf
from typing import Protocol

SPACING = 0.1


class Watched(Protocol):
    deadline: float

    def expire(self) -> None: ...

    def abort(self) -> None: ...


class Sweeper:
    __slots__ = ("_emptied", "_loop", "_timer", "_watched", "due")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._watched: set[Watched] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None
        self.due = inf

    def watch(self, connection: Watched) -> None:
        self._watched.add(connection)

    def forget(self, connection: Watched) -> None:
        self._watched.discard(connection)
        if not self._watched and self._emptied is not None and not self._emptied.done():
            self._emptied.set_result(None)

    def advance(self, deadline: float) -> None:
        """A deadline earlier than `due` came up."""
        if self._timer is not None:
            self._timer.cancel()
        self.due = deadline
        self._timer = self._loop.call_at(deadline, self._sweep)

    async def close(self) -> None:
        """Abort every connection and wait until each has gone."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._watched):
            connection.abort()
        if self._watched:
            self._emptied = self._loop.create_future()
            await self._emptied

    def _sweep(self) -> None:
        self._timer = None
        self.due = inf
        now = self._loop.time()
        nearest = inf
        expired = []
        for connection in self._watched:
            deadline = connection.deadline
            if deadline <= now:
                expired.append(connection)
            elif deadline < nearest:
                nearest = deadline
        for connection in expired:
            connection.expire()
        nearest = min(nearest, self.due)
        if nearest < inf:
            self.advance(max(nearest, now + SPACING))
