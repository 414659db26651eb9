"""uvicorn's HTTP, with an end for heads that never end or grow too large, and for bodies that nobody waits for any
more: who only holds a connection open must not have much of it. With a word to whoever answers when the client leaves
meanwhile, the body of a request that would rather speak HTTP/2 (every Java client's, by default), which httptools
skips, and responses that HTTP/1.0 knows."""

from asyncio import BaseTransport, Event, TimerHandle, Transport
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from bridge_project.up.again import Known, Whole, cut, known_heads, remember
from bridge_project.up.cycle import Cycle
from bridge_project.up.refused import INVALID, TOO_LARGE, refused
from conversations.lines import LENGTH, Lines, split

HEAD_SECONDS = 30.0
HEAD_BYTES = 256 * 1024  # httptools keeps what it has of a line, and copies it with each piece more
REST_SECONDS = 300.0  # of a body whose request was answered before it had come: a client may want to send all of it


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


def _is_over(cycle: RequestResponseCycle | None) -> bool:
    """There is none before the first request."""
    return cycle is None or cycle.response_complete


class Requests(HttpToolsProtocol):
    head_seconds = HEAD_SECONDS
    rest_seconds = REST_SECONDS
    _heading = False  # in the middle of a head
    _between = 0  # bytes since a head was whole, or something of a body came
    _late: TimerHandle | None = None
    _leave: Callable[[], None] | None = None
    _answered: RequestResponseCycle | None = None  # the one that is answered now, or was last
    _idle_until = 0.0

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast("Transport", transport))
        self._expect(self.head_seconds)

    def data_received(self, data: bytes) -> None:
        whole = cut(data) if self._is_between() else None
        if whole is not None and (known := known_heads.get(whole.head)) is not None:
            self._begin_again(known, whole)
            return
        before = self.cycle
        self._between += len(data)
        while data:
            data = self._read(data)
        if self._between > HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, TOO_LARGE)
        if self._heading and self._late is None:
            self._expect(self.head_seconds)
        if whole is not None and self.cycle is not before and self._is_simple():
            remember(whole.head, self.scope)

    def _is_between(self) -> bool:
        """Whether the parser is where a request begins, and none is being answered."""
        cycle = cast("Cycle | None", self.cycle)  # there is none before the first request
        return not self._heading and (cycle is None or (cycle.response_complete and not cycle.more_body))

    def _is_simple(self) -> bool:
        """Whether what has come is one request, whole, of which all but its length is in the head's other bytes."""
        cycle = self.cycle
        if cycle.more_body or self.expect_100_continue or not cycle.keep_alive:
            return False
        return not self.parser.should_upgrade() and [name for name, _ in self.headers].count(LENGTH) == 1

    def _begin_again(self, known: Known, whole: Whole) -> None:
        """A request whose head is known, without the parser."""
        self._came()
        self.expect_100_continue = False
        self.headers = [*known.lines, (LENGTH, whole.length)]
        own = {"server": self.server, "client": self.client, "scheme": self.scheme, "headers": self.headers}
        self.scope = cast("Any", {**known.scope, **own, "state": self.app_state.copy()})
        self.cycle = cycle = self._cycle(known.lines, whole.length, keep_alive=True)
        cycle.body, cycle.more_body = cast("bytearray", whole.body), False  # which is only read
        cycle.message_event.set()
        self._start_asgi_task(cycle, self.app)

    def on_header(self, name: bytes, value: bytes) -> None:
        """As uvicorn's, but white space after a value is none of it, nor what comes after a body: a proxy that decides
        by the head has not seen it."""
        if not self._heading:
            return
        name, value = name.lower(), value.rstrip()
        if name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._heading = True

    def on_body(self, body: bytes) -> None:
        self._between = 0
        super().on_body(body)

    def on_headers_complete(self) -> None:
        self._heading = False
        self._between = 0
        self._came()
        self.scope["method"] = self.parser.get_method().decode("ascii")
        if self.parser.should_upgrade() and (self._wishes() or self._should_upgrade()):
            return
        self._describe()
        keep_alive = self.scope["http_version"] != "1.0" and self.parser.should_keep_alive()
        self.cycle, before = self._cycle(*split(self.headers), keep_alive=keep_alive), self.cycle
        if _is_over(before):
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _describe(self) -> None:
        """What ASGI has to know of a request that is no upgrade, as uvicorn would say it."""
        scope, parser, url = self.scope, self.parser, httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope["http_version"] = parser.get_http_version()
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = url.path
        scope["query_string"] = url.query or b""

    def _cycle(self, lines: Lines, length: bytes, *, keep_alive: bool) -> Cycle:
        cycle = Cycle(
            self.scope,
            self.transport,
            self.flow,
            self.logger,
            self.access_logger,
            self.access_log,
            self.server_state.default_headers,
            Event(),
            self.expect_100_continue,
            keep_alive,
            self.on_response_complete,
        )
        cycle.lines, cycle.length, cycle.watch = lines, length, self.watch
        return cycle

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        if cycle.scope["http_version"] == "1.0":
            app = _closed(cycle, app)
        else:
            cast("dict[str, object]", cycle.scope)["toolbridge.cycle"] = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self.cycle.more_body:
            self._expect(self.rest_seconds)
        else:
            self._idle()

    def on_message_complete(self) -> None:
        if self._wishes():
            return
        super().on_message_complete()
        if self._late is not None:  # the rest of what was answered: uvicorn would wait for the next request for ever
            self._came()
            self._idle()

    def _idle(self) -> None:
        """The connection waits for its next request. A timer that runs already is good enough for this wait too."""
        self._idle_until = self.loop.time() + self.timeout_keep_alive
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_at(self._idle_until, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self._late is not None or not self.cycle.response_complete:
            return  # it does not wait: what it does has its own end
        if self._idle_until <= self.loop.time():
            super().timeout_keep_alive_handler()
        else:
            self.timeout_keep_alive_task = self.loop.call_at(self._idle_until, self.timeout_keep_alive_handler)

    def connection_lost(self, exc: Exception | None) -> None:
        self._came()
        super().connection_lost(exc)
        if (cycle := self._answered) is not None and not cycle.response_complete:
            cycle.disconnected = True  # uvicorn tells only the last that came, which may wait behind it
            cycle.message_event.set()
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
                self._unset_keepalive_if_required()
                self.handle_websocket_upgrade()
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST, INVALID)
        return b""

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """The end of the connection, with a word unless that would be in the middle of an answer."""
        self.logger.warning(message)
        if self._may_speak():
            self.transport.write(refused(status, message))
        self.transport.close()

    def _may_speak(self) -> bool:
        cycle = self.cycle
        if _is_over(cycle):
            return True
        return cycle.more_body and not cycle.response_started and not self.pipeline

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
        if _is_over(self.cycle):
            self.transport.close()
        else:
            self._expect(seconds)
