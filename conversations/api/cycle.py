"""A request and its response, as whoever serves the lean handler has them.

Our own server's (`bridge_project.up.cycle`) has a whole body at once and takes a whole answer at once; with any other
server it is ASGI's messages.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

from conversations.api.exchange import Drain
from conversations.api.incoming import Receive
from conversations.lines import Lines, split

CYCLE = "toolbridge.cycle"  # in the scope

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]


class Cycle(Protocol):
    lines: Lines  # of the head, but for the length of the body
    length: bytes  # as the client says it, b"" if it does not

    def body_at_once(self) -> bytes | None:
        """The whole body, if it has come; else it has to be received."""

    def watch(self, leave: Callable[[], None]) -> Callable[[], object]:
        """Call `leave` when the client leaves, until what is returned is called."""

    async def answer(self, status: int, headers: Headers, body: bytes) -> None:
        """The whole response."""

    async def begin(self, status: int, headers: Headers) -> None:
        """A response in pieces: `write` them, then `end`."""

    def write(self, piece: bytes) -> Drain | None:
        """Returns what to call and wait for before the next one, when the client is behind."""

    async def end(self) -> None: ...


class Messages:
    """Such a server has to be asked whether the client has left, which takes a task."""

    def __init__(self, headers: Iterable[tuple[bytes, bytes]], receive: Receive, send: Send) -> None:
        self.lines, self.length = split(headers)
        self._receive = receive
        self._send = send

    def body_at_once(self) -> bytes | None:
        return None

    def watch(self, leave: Callable[[], None]) -> Callable[[], object]:
        return asyncio.get_running_loop().create_task(self._disconnected(leave)).cancel

    async def answer(self, status: int, headers: Headers, body: bytes) -> None:
        await self.begin(status, [*headers, (b"content-length", b"%d" % len(body))])
        await self._send({"type": "http.response.body", "body": body})

    async def begin(self, status: int, headers: Headers) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    def write(self, piece: bytes) -> Drain:
        return partial(self._send, {"type": "http.response.body", "body": piece, "more_body": True})

    async def end(self) -> None:
        await self._send({"type": "http.response.body", "body": b""})

    async def _disconnected(self, leave: Callable[[], None]) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        leave()
