"""uvicorn's HTTP, with an end for heads that never end, and for bodies that nobody waits for any more: who only holds a
connection open must not have it for long. With a word to whoever answers when the client leaves meanwhile, one write
for a response's head and what follows it, the body of a request that would rather speak HTTP/2 (every Java client's, by
default), which httptools skips, and responses that HTTP/1.0 knows."""

from asyncio import AbstractEventLoop, BaseTransport, TimerHandle, Transport
from collections.abc import Callable
from typing import Any, cast

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

HEAD_SECONDS = 30.0
INVALID = "Invalid HTTP request received."
REST_SECONDS = 300.0  # of a body whose request was answered before it had come: a client may want to send all of it


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


def _closed(cycle: RequestResponseCycle, app: Any) -> Any:
    """For clients of HTTP/1.0, which know neither chunks nor `100 Continue`: the end of the connection, which uvicorn
    does not keep for them, is the end of a response whose length is not known before."""
    cycle.waiting_for_100_continue = False
    measured = True

    async def send(message: Any) -> None:
        nonlocal measured
        if message["type"] == "http.response.start":
            measured = any(name.lower() == b"content-length" for name, _ in message["headers"])
            cycle.chunked_encoding = None if measured else False
        elif not measured:
            cycle.expected_content_length = len(message.get("body", b""))
        await cycle.send(message)

    return lambda scope, receive, _: app(scope, receive, send)


class Requests(HttpToolsProtocol):
    head_seconds = HEAD_SECONDS
    rest_seconds = REST_SECONDS
    _late: TimerHandle | None = None
    _leave: Callable[[], None] | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast("Transport", transport))
        self._expect(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        while data:
            data = self._read(data)

    def on_header(self, name: bytes, value: bytes) -> None:
        """As uvicorn's, but white space after a value is none of it."""
        name, value = name.lower(), value.rstrip()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        cast("dict[str, object]", self.scope)["toolbridge.watch"] = self.watch
        if self._late is None:
            self._expect(self.head_seconds)

    def on_headers_complete(self) -> None:
        self._came()
        self._unset_keepalive_if_required()
        if not self._wishes():
            super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        cycle.transport = cast("Transport", Head(cycle, self.loop))
        super()._start_asgi_task(cycle, _closed(cycle, app) if cycle.scope["http_version"] == "1.0" else app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.cycle.response_complete and self.cycle.more_body and not self.transport.is_closing():
            self._expect(self.rest_seconds)

    def on_message_complete(self) -> None:
        if self._wishes():
            return
        super().on_message_complete()
        if self._late is not None:  # the rest of what was answered: uvicorn would wait for the next request for ever
            self._came()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._came()
        super().connection_lost(exc)
        if self._leave is not None:
            self._leave()

    def watch(self, leave: Callable[[], None]) -> Callable[[], None]:
        """Call this when the client leaves, until what is returned is called. One request is answered at a time."""
        self._leave = leave
        self.flow.resume_reading()  # after a large body nothing is read, not even that nobody is there
        return self._unwatch

    def _wishes(self) -> bool:
        """For a protocol that is not spoken here: httptools takes what follows the head for that protocol's."""
        return self.parser.should_upgrade() and self._get_upgrade() is not None and not self._should_upgrade()

    def _read(self, data: bytes) -> bytes:
        """Returns what is still to be read."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._wishes():
                return self._without_its_wish() + data[upgrade.args[0] :]
            if self._should_upgrade():
                self.handle_websocket_upgrade()
        except httptools.HttpParserError:
            self.logger.warning(INVALID)
            self.send_400_response(INVALID)
        return b""

    def _without_its_wish(self) -> bytes:
        """The head once more, for a parser that goes on with the body after it."""
        version = self.parser.get_http_version().encode()
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/" + version]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return b"\r\n".join([*lines, b"", b""])

    def _unwatch(self) -> None:
        self._leave = None

    def _expect(self, seconds: float) -> None:
        self._late = self.loop.call_later(seconds, self._close, seconds)

    def _came(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close(self, seconds: float) -> None:
        """Not while an earlier request is answered: it is not read any further then, so nothing can come."""
        if getattr(self.cycle, "response_complete", True):  # there is none before the first request
            self.transport.close()
        else:
            self._expect(seconds)
