"""The hot path's way to the database: one group-committing writer and a few readers per process.

`off` (benchmarks only) keeps nothing: writes are done at once, reads find nothing.
"""

import asyncio
from collections.abc import Callable
from typing import Literal, TypeVar

from django.db import connections

from conversations.store.database import Database
from conversations.store.reader import Reader
from conversations.store.writer import Write, Writer

Result = TypeVar("Result")


class Store:
    def __init__(self, mode: Literal["durable", "off"] = "durable") -> None:
        self._off = mode == "off"
        sqlite = connections.settings["default"]["ENGINE"].endswith("sqlite3")
        self.writer = Writer()
        self.reader = Reader(threads=1 if sqlite else 2)

    def start(self) -> None:
        self.writer.start()
        self.reader.start()

    def write(self, write: Write) -> "asyncio.Future[None]":
        """Done when it is durable."""
        if self._off:
            future = asyncio.get_running_loop().create_future()
            future.set_result(None)
            return future
        return self.writer.submit(write)

    async def read(self, job: Callable[[Database], Result], nothing: Result) -> Result:
        if self._off:
            return nothing
        return await self.reader.read(job)

    async def stop(self) -> None:
        await self.writer.stop()
        self.reader.stop()
