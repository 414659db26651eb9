"""One request and its response, as uvicorn has them. What ASGI's messages tell in steps can be had, and answered, at
once here: most requests are small, and for them the steps cost more than what is in them."""

from asyncio import AbstractEventLoop, Transport, get_running_loop
from collections.abc import Awaitable, Callable, Iterable
from typing import cast

from uvicorn.protocols.http.httptools_impl import HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

from conversations.lines import Lines

Watch = Callable[[Callable[[], None]], Callable[[], None]]


class Head:
    """The transport of a response until its head is sent. It waits for what is written in the same turn of the loop:
    each write is a system call, and wakes the client."""

    def __init__(self, cycle: RequestResponseCycle, loop: AbstractEventLoop) -> None:
        self._cycle = cycle
        self._transport = cycle.transport
        self._loop = loop
        self._held = b""

    def write(self, data: bytes) -> None:
        if self._held:
            self._release(data)
        else:
            self._held = data
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _flush(self) -> None:
        if self._held and not self._transport.is_closing():  # the client may have left meanwhile
            self._release()

    def _release(self, *more: bytes) -> None:
        self._cycle.transport = self._transport
        self._transport.writelines((self._held, *more))
        self._held = b""


class Cycle(RequestResponseCycle):
    lines: Lines  # of the head, but for the length of the body
    length: bytes  # as the client says it, b"" if it does not
    watch: Watch  # calls when the client leaves, until what it returned is called

    def body_at_once(self) -> bytes | None:
        """The whole body, if it has come."""
        if self.more_body or self.waiting_for_100_continue:
            return None
        body, self.body = bytes(self.body), bytearray()  # of bytes, this is no copy
        return body

    async def answer(self, status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> None:
        """The whole response, in one write."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        lines = [*map(b": ".join, self.default_headers), *map(b": ".join, headers)]
        if HEADER_VALUE_RE.search(b"".join(lines)):
            raise RuntimeError("Invalid HTTP header value.")
        if not self.keep_alive:
            lines.append(b"connection: close")
        self.response_started = self.response_complete = True
        head = STATUS_LINE[status] + b"\r\n".join(lines)
        self.transport.write(b"%b\r\ncontent-length: %d\r\n\r\n%b" % (head, len(body), body))
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()

    async def begin(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """A response in pieces. Its head waits for the first of them."""
        self.transport = cast("Transport", Head(self, get_running_loop()))
        await self.send({"type": "http.response.start", "status": status, "headers": list(headers)})

    def write(self, piece: bytes) -> Callable[[], Awaitable[None]] | None:
        """As uvicorn's `send`, which asks anew for each piece what the head has settled. Returns what to call and wait
        for before the next one, when the client is behind."""
        if self.disconnected or not piece:  # an empty chunk would be the end
            return None
        self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        return self.flow.drain if self.flow.write_paused else None

    async def end(self) -> None:
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})
