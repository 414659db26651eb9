"""Words that are passed on where the socket is read: nothing is lost, nothing is early, silence is still noticed."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise

import httpx
import pytest

from conversations.attempt import Attempt
from conversations.routing import Route
from conversations.transport import Transport
from conversations.transport.connection import LISTEN_LIMIT, Connection
from conversations.transport.exchange import Exchange
from conversations.upstream import Upstream as Configured
from conversations.upstream import Upstreams
from tests.translation.captures import CAPTURES, Case, load
from tests.transport.peer import Upstream, get
from translation.adapters import adapter
from translation.client.render import sse
from translation.events import BlockDelta, Failed, Finished, MessageStart, Relayed, WireEvent
from translation.policies import Policy
from translation.values import Usage

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
STREAMS = (
    "openai/text",
    "openai/parallel_interleaved",
    "openai-responses/text",
    "gemini/text",
    "anthropic/text",
    "minimax/text",
)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def begun(transport: Transport, upstream: Upstream, read: float = 60) -> tuple[Exchange, Connection]:
    asking = asyncio.create_task(transport.handle_async_request(get(upstream.url, read=read)))
    await upstream.serve(HEAD)
    stream = (await asking).stream
    assert isinstance(stream, Exchange)
    assert stream._connection is not None
    return stream, stream._connection


async def test_what_a_listener_takes_wakes_nobody(transport: Transport, upstream: Upstream) -> None:
    stream, connection = await begun(transport, upstream)
    heard: list[bytes] = []

    def listener(data: bytes) -> bool:
        heard.append(data)
        return data != b"last"

    stream.listener = listener
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    for data in (chunk(b"a") + chunk(b"b"), chunk(b"c")):
        connection.data_received(data)
        await asyncio.sleep(0.01)
        assert not waiting.done()
    connection.data_received(chunk(b"last"))
    connection.data_received(chunk(b"more"))  # before the reader has run
    assert heard == [b"ab", b"c", b"last"]
    assert await waiting == b"more"
    connection.data_received(chunk(b"again"))
    assert await anext(stream) == b"again"
    assert len(heard) == 3


async def test_a_large_read_is_left_to_the_reader(transport: Transport, upstream: Upstream) -> None:
    stream, connection = await begun(transport, upstream)
    stream.listener = lambda _: pytest.fail("it was not to be asked")
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0)
    connection.data_received(chunk(b"x" * LISTEN_LIMIT))
    assert await waiting == b"x" * LISTEN_LIMIT


async def test_silence_is_counted_from_what_the_listener_heard_last(transport: Transport, upstream: Upstream) -> None:
    stream, connection = await begun(transport, upstream, read=0.3)
    stream.listener = lambda _: True
    began = connection.loop.time()
    waiting = asyncio.ensure_future(anext(stream))
    for _ in range(5):
        await asyncio.sleep(0.1)
        connection.data_received(chunk(b"x"))
    with pytest.raises(httpx.ReadTimeout):
        await waiting
    assert connection.loop.time() - began > 0.75


class Told:
    """What a reader of an attempt was told, by whichever way."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self.wire: list[WireEvent] = []
        self.last: object = None
        self.passed_on = 0
        self.behind = random.Random(1)

    def show(self, wire: list[WireEvent]) -> bool:
        self.passed_on += 1
        self.wire += wire
        return self.behind.random() < 0.8

    async def read(self) -> None:
        while not isinstance(self.last, Finished | Failed):
            events = await self.attempt.events()
            self.wire += self.attempt.write(events)
            self.last = events[-1] if events else None

    @property
    def joined(self) -> bytes:
        """As the client reads it, wherever its pieces end."""
        return sse([event for event in self.attempt.accumulator.said if not isinstance(event, BlockDelta | Relayed)])


async def attempted(case: Case, upstream: Upstream, upstreams: Upstreams) -> tuple[Attempt, Connection]:
    target = case.target
    configured = Configured(case.provider, case.profile, upstream.url)
    sent = adapter(case.profile).build(case.request, target)
    start = MessageStart("msg_1", case.request.model, Usage())
    attempt = Attempt(Route(configured, target, Policy("agentic")), case.request, sent, start)
    asking = asyncio.create_task(attempt.send(upstreams))
    await upstream.serve(HEAD)
    await asking
    assert attempt._answer is not None
    connection = attempt._answer._stream._connection
    assert connection is not None
    return attempt, connection


@pytest.mark.parametrize("name", STREAMS)
async def test_an_answer_is_told_the_same_whoever_is_woken(name: str, upstream: Upstream) -> None:
    case, chance = load(CAPTURES / name), random.Random(name)
    contents = []
    for passing in (False, True, True, True):
        upstreams = Upstreams(60)
        attempt, connection = await attempted(case, upstream, upstreams)
        told = Told(attempt)
        attempt.show = told.show if passing else None
        reading = asyncio.create_task(told.read())
        edges = sorted({0, len(case.upstream), *[chance.randrange(len(case.upstream)) for _ in range(40)]})
        for start, end in pairwise(edges):
            if not reading.done():
                connection.data_received(chunk(case.upstream[start:end]))
            if chance.random() < 0.7:
                await asyncio.sleep(0)
        if not reading.done():
            connection.data_received(b"0\r\n\r\n")
        await asyncio.wait_for(reading, 5)
        assert isinstance(told.last, Finished)
        assert told.wire == attempt.accumulator.said[1:]
        assert bool(told.passed_on) == passing
        assert case.upstream.startswith(b"".join(attempt.raw))
        contents.append((attempt.accumulator.content, told.joined, told.last))
        attempt.close()
        await upstreams.close()
    assert all(content == contents[0] for content in contents)


async def test_what_goes_wrong_where_the_socket_is_read_is_the_readers(upstream: Upstream) -> None:
    upstreams = Upstreams(60)
    attempt, connection = await attempted(load(CAPTURES / "openai/text"), upstream, upstreams)

    def show(_: list[WireEvent]) -> bool:
        raise ZeroDivisionError

    attempt.show = show
    connection.data_received(chunk(b": begun\n\n"))
    assert await attempt.events() == []  # whether it is packed is known
    reading = asyncio.create_task(attempt.events())
    await asyncio.sleep(0)
    connection.data_received(chunk(b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'))
    with pytest.raises(ZeroDivisionError):
        await reading
    assert connection.open
    await upstreams.close()


async def test_a_connection_that_breaks_after_what_matters_does_not_swallow_it(upstream: Upstream) -> None:
    upstreams = Upstreams(60)
    attempt, connection = await attempted(load(CAPTURES / "openai/text"), upstream, upstreams)
    attempt.show = Told(attempt).show
    connection.data_received(chunk(b": begun\n\n"))
    assert await attempt.events() == []
    reading = asyncio.create_task(attempt.events())
    await asyncio.sleep(0)
    connection.data_received(
        chunk(b'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
    )
    connection.fail(httpx.ReadError("broken"))
    events = await reading
    assert isinstance(events[-1], Finished)
    await upstreams.close()
