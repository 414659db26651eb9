"""Back-pressure, cancellation in every phase, closing, many at once."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest

from conversations.transport import Transport
from conversations.transport.connection import HIGH_WATER
from conversations.transport.exchange import Exchange
from tests.transport.peer import OK, Peer, Upstream, ask, body_of, get, post, until

STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"


async def test_a_slow_consumer_stalls_its_upstream(transport: Transport, upstream: Upstream) -> None:
    size = 64_000_000
    asking = asyncio.create_task(transport.handle_async_request(get(upstream.url)))
    peer = await upstream.serve(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
    sending = asyncio.create_task(peer.say(b"x" * size))
    stream = (await asking).stream
    assert isinstance(stream, Exchange)
    await until(lambda: stream.buffered >= HIGH_WATER)
    buffered = stream.buffered
    await asyncio.wait({sending}, timeout=0.2)
    assert not sending.done()
    assert stream.buffered == buffered < 3 * HIGH_WATER
    received = 0
    async for chunk in stream:
        assert len(chunk) < 3 * HIGH_WATER
        received += len(chunk)
    assert received == size
    await sending


async def dialing(transport: Transport, upstream: Upstream) -> tuple[asyncio.Task[object], Peer]:
    task = asyncio.create_task(ask(transport, get(upstream.url.replace("http:", "https:"))))
    return task, await upstream.accept()


async def awaiting_the_head(transport: Transport, upstream: Upstream) -> tuple[asyncio.Task[object], Peer]:
    task = asyncio.create_task(ask(transport, get(upstream.url)))
    return task, await upstream.serve(b"HTTP/1.1 200")


async def awaiting_the_body(transport: Transport, upstream: Upstream) -> tuple[asyncio.Task[object], Peer]:
    started = asyncio.Event()

    async def consume() -> object:
        response = await transport.handle_async_request(get(upstream.url))
        started.set()
        return await body_of(response)

    task: asyncio.Task[object] = asyncio.create_task(consume())
    peer = await upstream.serve(STREAM)
    await started.wait()
    return task, peer


async def uploading(transport: Transport, upstream: Upstream) -> tuple[asyncio.Task[object], Peer]:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536

    task = asyncio.create_task(ask(transport, httpx.Request("POST", upstream.url, content=endless())))
    return task, await upstream.accept()


async def sending_a_large_body(transport: Transport, upstream: Upstream) -> tuple[asyncio.Task[object], Peer]:
    task = asyncio.create_task(ask(transport, post(upstream.url, b"x" * 32_000_000)))
    return task, await upstream.accept()


async def producing_the_body(transport: Transport, upstream: Upstream) -> tuple[asyncio.Task[object], Peer]:
    async def stuck() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.Event().wait()

    task = asyncio.create_task(ask(transport, httpx.Request("POST", upstream.url, content=stuck())))
    return task, await upstream.accept()


Phase = Callable[[Transport, Upstream], Awaitable[tuple["asyncio.Task[object]", Peer]]]


@pytest.mark.parametrize(
    "phase",
    [dialing, awaiting_the_head, awaiting_the_body, uploading, sending_a_large_body, producing_the_body],
)
@pytest.mark.parametrize("turns", range(4))
async def test_cancelling_closes_the_connection(
    phase: Phase, turns: int, transport: Transport, upstream: Upstream
) -> None:
    task, peer = await phase(transport, upstream)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await peer.gone()
    assert len(transport._pool) == 0


async def test_closing_the_transport_ends_every_stream(upstream: Upstream) -> None:
    transport = Transport()
    server = asyncio.create_task(upstream.serve(OK))
    assert await ask(transport, get(upstream.url)) == b"ok"
    idle = await server
    held = asyncio.create_task(transport.handle_async_request(get(upstream.url)))
    assert await idle.request()
    await idle.say(STREAM)
    response = await held
    await transport.aclose()
    await idle.gone()
    with pytest.raises(httpx.ReadError):
        await body_of(response)
    with pytest.raises(RuntimeError, match="closed"):
        await transport.handle_async_request(get(upstream.url))


def test_a_transport_belongs_to_one_loop(upstream: Upstream) -> None:
    transport = Transport()

    async def once() -> object:
        server = asyncio.create_task(upstream.serve(OK))
        answer = await ask(transport, httpx.Request("GET", upstream.url, headers={"connection": "close"}))
        await (await server).gone()
        return answer

    assert asyncio.run(once()) == b"ok"
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(transport.handle_async_request(get(upstream.url)))


async def test_two_hundred_at_once(transport: Transport, upstream: Upstream) -> None:
    async def echo(peer: Peer) -> None:
        body = (await peer.request()).partition(b"\r\n\r\n")[2]
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async def serve() -> None:
        await asyncio.gather(*[asyncio.create_task(echo(await upstream.accept())) for _ in bodies])

    bodies = [b"%d" % number for number in range(200)]
    server = asyncio.create_task(serve())
    answers = await asyncio.gather(*(ask(transport, post(upstream.url, body)) for body in bodies))
    assert answers == bodies
    await server
    assert len(transport._pool) == 200


async def test_it_works_under_an_httpx_client(upstream: Upstream) -> None:
    async with httpx.AsyncClient(transport=Transport()) as client:
        server = asyncio.create_task(upstream.serve(OK, STREAM + b"0\r\n\r\n", STREAM))
        assert (await client.post(upstream.url, json={"a": 1})).text == "ok"
        async with client.stream("GET", upstream.url) as response:
            assert [chunk async for chunk in response.aiter_bytes()] == [b"ab"]
        async with client.stream("GET", upstream.url) as response:
            assert response.http_version == "HTTP/1.1"
        await (await server).gone()


async def test_ipv6(transport: Transport) -> None:
    upstream = Upstream(socket.AF_INET6)
    server = asyncio.create_task(upstream.serve(OK))
    assert await ask(transport, get(upstream.url)) == b"ok"
    await server
    upstream.close()


async def test_small_writes_are_not_delayed(transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(OK))
    assert await ask(transport, get(upstream.url)) == b"ok"
    await server
    ((connection,),) = transport._pool._idle.values()
    assert connection._transport is not None
    assert connection._transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
