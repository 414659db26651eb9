"""Each failure has its exact httpx exception."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from math import inf

import httpx
import pytest

from conversations.transport import Transport
from tests.transport.peer import OK, Upstream, body_of, get, post, until

STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"


async def test_refused_is_connect_error(transport: Transport, upstream: Upstream) -> None:
    upstream.close()
    with pytest.raises(httpx.ConnectError):
        await transport.handle_async_request(get(upstream.url))


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 64 + ".invalid"])
async def test_an_unknown_host_is_connect_error(host: str, transport: Transport) -> None:
    with pytest.raises(httpx.ConnectError):
        await transport.handle_async_request(get(f"http://{host}/"))


async def test_an_impossible_port_is_connect_error(transport: Transport) -> None:
    with pytest.raises(httpx.ConnectError):
        await transport.handle_async_request(get("http://127.0.0.1:99999/"))


async def test_an_unknown_scheme_is_refused(transport: Transport) -> None:
    with pytest.raises(httpx.UnsupportedProtocol):
        await transport.handle_async_request(get("ftp://127.0.0.1/"))


async def test_reset_before_the_head_is_read_error(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url)))
    (await upstream.serve(b"")).reset()
    with pytest.raises(httpx.ReadError):
        await asking


async def test_reset_within_the_body_is_read_error_after_what_arrived(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url)))
    peer = await upstream.serve(STREAM)
    chunks = aiter((await asking).stream)  # type: ignore[arg-type]  # the union with the synchronous kind
    assert await anext(chunks) == b"ab"
    peer.reset()
    for _ in range(2):
        with pytest.raises(httpx.ReadError):
            await anext(chunks)


async def test_what_arrived_before_the_end_is_delivered_before_the_error(
    transport: Transport, upstream: Upstream
) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url)))
    (await upstream.serve(STREAM)).close()
    chunks = aiter((await asking).stream)  # type: ignore[arg-type]  # the union with the synchronous kind
    assert await anext(chunks) == b"ab"
    with pytest.raises(httpx.RemoteProtocolError, match="without sending complete message body"):
        await anext(chunks)


async def test_silence_before_the_head_is_read_timeout(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url, read=0.05)))
    peer = await upstream.serve(b"")
    with pytest.raises(httpx.ReadTimeout):
        await asking
    await peer.gone()


async def test_silence_within_the_body_is_read_timeout(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url, read=0.05)))
    peer = await upstream.serve(STREAM)
    response = await asking
    with pytest.raises(httpx.ReadTimeout):
        await body_of(response)
    await peer.gone()


async def test_a_slow_consumer_is_not_a_read_timeout(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url, read=0.05)))
    peer = await upstream.serve(STREAM)
    response = await asking
    await asyncio.sleep(0.3)  # longer than the timeout and a sweep: nothing may happen
    await peer.say(b"0\r\n\r\n")
    assert await body_of(response) == b"ab"


async def test_every_byte_of_a_slow_head_pushes_the_deadline_back(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url, read=60)))
    peer = await upstream.serve(b"")
    assert transport._sweeper is not None
    (connection,) = transport._sweeper._watched
    for byte in OK[:-2]:
        connection.deadline = inf
        await peer.say(bytes([byte]))
        await until(lambda: connection.deadline < inf or asking.done())
    await peer.say(b"ok")
    assert await body_of(await asking) == b"ok"


async def test_a_peer_that_does_not_read_is_write_timeout(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url, b"x" * 32_000_000, write=0.05)))
    await upstream.accept()
    with pytest.raises(httpx.WriteTimeout):
        await asking


async def test_a_streamed_body_that_is_not_read_is_write_timeout(transport: Transport, upstream: Upstream) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536

    request = httpx.Request("POST", upstream.url, content=endless(), extensions={"timeout": {"write": 0.05}})
    asking = asyncio.create_task(transport.handle_async_request(request))
    await upstream.accept()
    with pytest.raises(httpx.WriteTimeout):
        await asking


async def test_a_handshake_without_an_answer_is_connect_timeout(transport: Transport, upstream: Upstream) -> None:
    url = upstream.url.replace("http:", "https:")
    asking = asyncio.create_task(transport.handle_async_request(get(url, connect=0.05)))
    peer = await upstream.accept()
    with pytest.raises(httpx.ConnectTimeout):
        await asking
    await peer.gone()


async def test_a_full_backlog_is_connect_timeout(transport: Transport) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), pytest.raises(httpx.ConnectTimeout):
            await transport.handle_async_request(get(f"http://127.0.0.1:{port}/", connect=0.05))


async def test_an_early_answer_to_a_large_body_is_seen(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url, b"x" * 32_000_000)))
    peer = await upstream.accept()
    await peer.loop.sock_recv(peer.sock, 1000)
    await peer.say(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
    response = await asking
    assert (response.status_code, await body_of(response)) == (413, b"no")
    await peer.gone()


async def test_an_early_answer_ends_a_streamed_body(transport: Transport, upstream: Upstream) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65536

    asking = asyncio.create_task(transport.handle_async_request(httpx.Request("POST", upstream.url, content=endless())))
    peer = await upstream.accept()
    await peer.loop.sock_recv(peer.sock, 1000)
    await peer.say(b"HTTP/1.1 400 Bad\r\nContent-Length: 2\r\n\r\nno")
    response = await asking
    assert (response.status_code, await body_of(response)) == (400, b"no")
    await peer.gone()
