"""An upstream over real HTTP that follows a script: a test queues answers per path and reads the requests it got.

It runs an event loop in a thread of the test process. What is not scripted is answered with 599, so it shows.
"""

import asyncio
import threading
from collections import defaultdict, deque
from types import TracebackType
from typing import Self

import httptools

from tests.servers.ports import wait_until
from tests.servers.script import Abort, Answer, Gate, Pause, Raw, Recorded, Silence, Step

UNSCRIPTED = Answer((b"the test has scripted no answer for this",), 599)


class ScriptedUpstream:
    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self._queues: defaultdict[str, deque[Answer | Raw]] = defaultdict(deque)
        self._standing: dict[str, Answer | Raw] = {}
        self._connections: set[asyncio.BaseTransport] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="scripted upstream", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(self._listen(), self._loop)
        self._server = listening.result(10)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def queue(self, path: str, *answers: Answer | Raw) -> None:
        """The next requests to `path` get these, one each."""
        self._queues[path].extend(answers)

    def always(self, path: str, answer: Answer | Raw) -> None:
        """What `path` answers whenever nothing is queued for it."""
        self._standing[path] = answer

    def reset(self) -> None:
        """For the next test of those that share the server."""
        self.requests.clear()
        self._queues.clear()
        self._standing.clear()

    def wait_for_requests(self, count: int) -> list[Recorded]:
        wait_until(lambda: len(self.requests) >= count, f"{count} requests at the upstream")
        return self.requests

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def _answer_for(self, request: Recorded) -> Answer | Raw:
        self.requests.append(request)
        queue = self._queues[request.path]
        return queue.popleft() if queue else self._standing.get(request.path, UNSCRIPTED)

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=1024)

    async def _shut(self) -> None:
        self._server.close()
        for connection in list(self._connections):
            assert isinstance(connection, asyncio.Transport)
            connection.abort()
        await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    """One client connection; httptools calls the `on_` methods."""

    def __init__(self, upstream: ScriptedUpstream) -> None:
        self._upstream = upstream
        self._parser = httptools.HttpRequestParser(self)
        self._request = Recorded()
        self._parts: list[bytes] = []  # of its body
        self._answering: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._upstream._connections.add(transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._upstream._connections.discard(self._transport)
        if self._answering is not None and not self._answering.done():
            self._request.abandoned.set()
            self._answering.cancel()

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_message_begin(self) -> None:
        self._request, self._parts = Recorded(), []

    def on_url(self, url: bytes) -> None:
        path, _, query = url.decode().partition("?")
        self._request.path += path
        self._request.query += query

    def on_header(self, name: bytes, value: bytes) -> None:
        self._request.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self._request.method = self._parser.get_method().decode()
        self._request.body, self._parts = b"".join(self._parts), []
        answer = self._upstream._answer_for(self._request)
        self._answering = asyncio.get_running_loop().create_task(self._say(answer))

    async def _say(self, answer: Answer | Raw) -> None:
        whole = answer if isinstance(answer, Raw) else _on_the_wire(answer)
        for step in whole.steps:
            await self._take(step)
        if isinstance(answer, Raw):
            self._transport.close()

    async def _take(self, step: Step) -> None:
        match step:
            case bytes():
                self._transport.write(step)
            case Pause(seconds):
                await asyncio.sleep(seconds)
            case Gate():
                await step.passed()
            case Silence():
                await asyncio.Event().wait()
            case Abort():
                self._transport.abort()


def _on_the_wire(answer: Answer) -> Raw:
    head = [f"HTTP/1.1 {answer.status} scripted", *(f"{name}: {value}" for name, value in answer.headers.items())]
    given_length = any(name.lower() == "content-length" for name in answer.headers)
    if not given_length:
        head.append("transfer-encoding: chunked")
    opening = "\r\n".join([*head, "", ""]).encode("latin-1")
    if given_length:
        return Raw((opening, *answer.steps))
    chunks = (b"%x\r\n%b\r\n" % (len(step), step) if isinstance(step, bytes) else step for step in answer.steps)
    return Raw((opening, *chunks, b"0\r\n\r\n"))
