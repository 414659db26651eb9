"""Room for large requests: what one process holds of them at a time is bounded."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from translation.errors import Overloaded

BYTES = 256 * 1024 * 1024  # of bodies; each is held three or four times over while it is worked on
SECONDS = 30.0


class Room:
    """For so many bytes at a time. Whoever finds none waits, in order of arrival."""

    def __init__(self, size: int = BYTES, patience: float = SECONDS) -> None:
        self._free = size
        self._patience = patience
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def taken(self, size: int) -> AsyncIterator["Place"]:
        await self._enter(size)
        place = Place(self, size)
        try:
            yield place
        finally:
            place.resize(0)

    def give_back(self, size: int) -> None:
        self._free += size
        self._admit()

    async def _enter(self, size: int) -> None:
        place = (size, asyncio.get_running_loop().create_future())
        self._waiting.append(place)
        self._admit()
        try:
            async with asyncio.timeout(self._patience):
                await place[1]
        except BaseException as error:
            if place in self._waiting:
                self._waiting.remove(place)
            elif place[1].done() and not place[1].cancelled():
                self._free += size  # it was let in just now
            self._admit()
            if isinstance(error, TimeoutError):
                raise Overloaded("too many large requests at a time", retry_after=5.0) from None
            raise

    def _admit(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            size, place = self._waiting.popleft()
            if not place.done():
                self._free -= size
                place.set_result(None)


class Place:
    """Somebody's room: as much as was announced, until it is known how much it has to be."""

    def __init__(self, room: Room, size: int) -> None:
        self._room = room
        self._size = size

    def resize(self, size: int) -> None:
        """What turned out larger is not sent away; others wait longer for it."""
        given, self._size = self._size - size, size
        self._room.give_back(given)
