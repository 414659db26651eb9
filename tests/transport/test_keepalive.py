"""Which connections are used again, and which requests are sent again."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from conversations.transport import Transport
from tests.transport.peer import OK, Upstream, ask, body_of, get, post, stream_of, until


async def test_a_connection_is_used_again(transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(*[OK] * 5))
    for _ in range(5):
        assert await ask(transport, post(upstream.url)) == b"ok"
    await server
    assert len(upstream.peers) == 1


async def test_a_complete_body_need_not_be_read(transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(OK, OK))
    response = await transport.handle_async_request(post(upstream.url))
    await stream_of(response).aclose()
    assert await ask(transport, post(upstream.url)) == b"ok"
    await server


async def test_aclose_before_the_end_closes_at_once(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url)))
    peer = await upstream.serve(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
    response = await asking
    await stream_of(response).aclose()
    await peer.gone()
    with pytest.raises(httpx.StreamClosed):
        await body_of(response)


async def test_origins_and_pins_do_not_share_connections(transport: Transport, upstream: Upstream) -> None:
    pinned = httpx.Request("GET", f"http://upstream.test:{upstream.port}/", extensions={"connect_to": "127.0.0.1"})
    for request in (get(upstream.url), pinned, get(f"http://localhost:{upstream.port}/")):
        asking = asyncio.create_task(ask(transport, request))
        peer = await upstream.accept()
        assert request.headers["host"].encode() in await peer.request()
        await peer.say(OK)
        assert await asking == b"ok"


async def test_a_pin_has_to_be_an_address(transport: Transport) -> None:
    with pytest.raises(httpx.LocalProtocolError):
        await transport.handle_async_request(
            httpx.Request("GET", "http://upstream.test/", extensions={"connect_to": "localhost"})
        )


async def test_connection_close_in_the_request_is_obeyed(transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(OK))
    assert await ask(transport, httpx.Request("GET", upstream.url, headers={"connection": "close"})) == b"ok"
    await (await server).gone()


async def test_an_idle_connection_expires(upstream: Upstream) -> None:
    transport = Transport(keepalive=0.02)
    server = asyncio.create_task(upstream.serve(OK))
    assert await ask(transport, get(upstream.url)) == b"ok"
    await (await server).gone()
    await transport.aclose()


@pytest.mark.parametrize("farewell", [b"", b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"])
async def test_a_connection_closed_while_idle_is_not_used(
    farewell: bytes, transport: Transport, upstream: Upstream
) -> None:
    server = asyncio.create_task(upstream.serve(OK))
    assert await ask(transport, get(upstream.url)) == b"ok"
    peer = await server
    await peer.say(farewell)
    peer.close()
    await until(lambda: not len(transport._pool))
    server = asyncio.create_task(upstream.serve(OK))
    assert await ask(transport, post(upstream.url)) == b"ok"
    await server


async def test_a_post_on_a_connection_just_closed_as_idle_is_sent_again(
    transport: Transport, upstream: Upstream
) -> None:
    server = asyncio.create_task(upstream.serve(OK))
    assert await ask(transport, post(upstream.url)) == b"ok"
    (await server).close()
    # No turn of the event loop in between: the transport cannot have seen the end yet.
    asking = transport.handle_async_request(post(upstream.url, b'{"again":1}'))
    server = asyncio.create_task(upstream.serve(OK))
    assert await body_of(await asking) == b"ok"
    await server
    assert len(upstream.peers) == 2


async def test_a_post_that_the_server_read_is_not_sent_again(transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(OK, b""))
    assert await ask(transport, post(upstream.url)) == b"ok"
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url)))
    (await server).close()
    with pytest.raises(httpx.RemoteProtocolError):
        await asking


async def test_a_get_that_the_server_read_is_sent_again(transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(OK, b""))
    assert await ask(transport, get(upstream.url)) == b"ok"
    asking = asyncio.create_task(ask(transport, get(upstream.url)))
    (await server).close()
    await upstream.serve(OK)
    assert await asking == b"ok"


async def test_a_reset_post_is_not_sent_again(transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(OK, b""))
    assert await ask(transport, post(upstream.url)) == b"ok"
    asking = asyncio.create_task(transport.handle_async_request(post(upstream.url)))
    (await server).reset()
    with pytest.raises(httpx.ReadError):
        await asking


async def test_a_request_with_half_an_answer_is_not_sent_again(transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(OK, b"HTTP/1.1 200"))
    assert await ask(transport, get(upstream.url)) == b"ok"
    asking = asyncio.create_task(transport.handle_async_request(get(upstream.url)))
    (await server).close()
    with pytest.raises(httpx.RemoteProtocolError):
        await asking


async def test_a_fresh_connection_is_not_retried(transport: Transport, upstream: Upstream) -> None:
    asking = asyncio.create_task(transport.handle_async_request(get(upstream.url)))
    (await upstream.serve(b"")).close()
    with pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        await asking
