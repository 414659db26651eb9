"""A TCP proxy that hurts: it delays, cuts, corrupts, stalls and half-opens the connections that go through it.

with Proxy(port) as proxy:            # connect to proxy.port
    proxy.delay = 0.2                 # every chunk, both ways
    proxy.stall(); proxy.flow()       # bytes wait, connections stay
    proxy.cut()                       # all connections are reset, new ones are fine
    proxy.refuse(); proxy.accept()    # nobody listens
    proxy.lose = b"COMMIT"            # who says this next is heard, but cut off before it is answered
    proxy.hold = b"COMMIT"; proxy.let_go()  # who says this next is heard only then, also if it has left
    proxy.plan = lambda connection: Fault(after=100, kind="cut")   # for each new connection, by its number
"""

import asyncio
import itertools
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, TypeVar

Kind = Literal["cut", "close", "corrupt", "stall", "half-open", "delay"]
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens once `after` bytes of the answer went through.

    `cut` is a reset, `close` a clean end in the middle, `corrupt` turns over the bits of the next byte, `stall` and
    `delay` wait `seconds`, `half-open` forgets the server: the client hears nothing more and is not told.
    """

    kind: Kind
    after: int = 0
    seconds: float = 1.0


class _Ended(Exception):
    """By a fault, which has closed what it wanted closed."""


class Proxy:
    def __init__(self, port: int, host: str = "127.0.0.1") -> None:
        self._target = (host, port)
        self.port = 0
        self.delay = 0.0
        self.plan: Callable[[int], Fault | None] = lambda _: None
        self.accepted = 0
        self.lose = b""
        self.hold = b""
        self.held = threading.Event()
        self._released = asyncio.Event()
        self._numbers = itertools.count()
        self._writers: set[asyncio.StreamWriter] = set()
        self._forgotten: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._flowing.set()
        self._thread.start()
        self.accept()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def accept(self) -> None:
        self._do(self._listen())

    def refuse(self) -> None:
        """New connections are refused; those that are open go on."""
        self._do(self._close_listener())

    def stall(self) -> None:
        """Nothing moves any more, and nobody is told: what a lost route looks like."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def flow(self) -> None:
        self._loop.call_soon_threadsafe(self._flowing.set)

    def let_go(self) -> None:
        self._loop.call_soon_threadsafe(self._released.set)

    def forget(self) -> None:
        """The connections that are open now hear nothing more, ever, and are not told; new ones are fine."""
        self._loop.call_soon_threadsafe(self._forgotten.update, self._writers)

    def cut(self) -> int:
        """Resets every open connection; how many there were."""
        return self._do(self._cut())

    @property
    def open(self) -> int:
        """Connections that go through, now."""
        return len(self._writers) // 2

    def _do(self, work: "Awaitable[Found]") -> Found:
        async def run() -> Found:
            return await work

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close_listener(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _cut(self) -> int:
        count = self.open
        for writer in list(self._writers):
            _reset(writer)
        await asyncio.sleep(0)
        return count

    async def _end(self) -> None:
        await self._close_listener()
        await self._cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        task = self._loop.create_task(self._join(reader, writer, self.plan(next(self._numbers))))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault | None) -> None:
        try:
            await self._flowing.wait()
            target_reader, target_writer = await asyncio.open_connection(*self._target)
        except OSError:
            _reset(writer)
            return
        both = (writer, target_writer)
        self._writers.update(both)
        unheard = asyncio.Event()
        ways = {
            self._loop.create_task(self._pump(self._overheard(reader, unheard), target_writer, None)),
            self._loop.create_task(self._pump(self._answers(target_reader, unheard, writer), writer, fault)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for each in both:
                self._writers.discard(each)
                self._forgotten.discard(each)
                each.close()

    async def _overheard(self, reader: asyncio.StreamReader, unheard: asyncio.Event) -> AsyncIterator[bytes]:
        """What is asked; `unheard` if its answer is to be lost."""
        while data := await reader.read(65536):
            if self.lose and self.lose in data:
                self.lose = b""
                unheard.set()
            if self.hold and self.hold in data:
                self.hold = b""
                self.held.set()
                await self._released.wait()
            yield data

    async def _answers(
        self, reader: asyncio.StreamReader, unheard: asyncio.Event, writer: asyncio.StreamWriter
    ) -> AsyncIterator[bytes]:
        while data := await reader.read(65536):
            if unheard.is_set():
                _reset(writer)
                raise _Ended
            yield data

    async def _pump(self, chunks: AsyncIterator[bytes], writer: asyncio.StreamWriter, fault: Fault | None) -> None:
        passed = 0
        try:
            async for chunk in chunks:
                data = chunk
                if fault is not None and passed + len(data) > fault.after:
                    data = await self._hurt(fault, data, fault.after - passed, writer)
                    fault = None
                passed += len(data)
                await asyncio.sleep(self.delay)
                await self._flowing.wait()
                if writer in self._forgotten:
                    continue
                writer.write(data)
                await writer.drain()
        except OSError:
            _reset(writer)  # what one side did is done to the other

    async def _hurt(self, fault: Fault, data: bytes, place: int, writer: asyncio.StreamWriter) -> bytes:
        before, after = data[:place], data[place:]
        if fault.kind == "corrupt":
            return before + bytes([after[0] ^ 0xFF]) + after[1:]
        writer.write(before)
        await writer.drain()
        match fault.kind:
            case "cut":
                _reset(writer)
                raise _Ended
            case "close":
                writer.close()
                raise _Ended
            case "half-open":
                await asyncio.Event().wait()
            case _:
                await asyncio.sleep(fault.seconds)
        return after


def _reset(writer: asyncio.StreamWriter) -> None:
    """Closing without lingering sends RST instead of FIN."""
    found: socket.socket | None = writer.get_extra_info("socket")
    if found is not None and found.fileno() >= 0:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
