"""What goes on the wire, and what is refused before it does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import httpx
import pytest

from conversations.transport import Transport
from conversations.transport.outgoing import encode, encode_head
from tests.transport.peer import OK, Upstream, body_of, post

URL = "http://upstream.test/v1/messages?beta=true"


async def parts(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def sent(transport: Transport, upstream: Upstream, request: httpx.Request) -> bytes:
    async def serve() -> bytes:
        peer = await upstream.accept()
        received = await peer.request()
        await peer.say(OK)
        return received

    received, response = await asyncio.gather(serve(), transport.handle_async_request(request))
    assert await body_of(response) == b"ok"
    return received


def test_a_request_is_its_line_its_headers_in_order_and_its_body() -> None:
    outgoing = encode(httpx.Request("POST", URL, headers=[("X-B", "1"), ("x-a", "2")], content=b"{}"))
    assert outgoing.head == (
        b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: upstream.test\r\nX-B: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\n"
    )
    assert outgoing.body == b"{}"


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 5_000_000])
async def test_a_body_arrives_whole(size: int, transport: Transport, upstream: Upstream) -> None:
    received = await sent(transport, upstream, post(upstream.url, b"x" * size))
    assert received.partition(b"\r\n\r\n")[2] == b"x" * size


async def test_a_stream_is_sent_in_chunks(transport: Transport, upstream: Upstream) -> None:
    request = httpx.Request("POST", upstream.url, content=parts(b"hello", b"", b"x" * 17))
    received = await sent(transport, upstream, request)
    assert received.partition(b"\r\n\r\n")[2] == b"5\r\nhello\r\n11\r\n" + b"x" * 17 + b"\r\n0\r\n\r\n"
    assert len(transport._pool) == 1


async def test_a_stream_with_a_length_is_sent_as_it_is(transport: Transport, upstream: Upstream) -> None:
    request = httpx.Request("POST", upstream.url, headers={"content-length": "4"}, content=parts(b"ab", b"cd"))
    assert (await sent(transport, upstream, request)).endswith(b"\r\n\r\nabcd")


async def test_bytes_declared_as_chunked_are_one_chunk(transport: Transport, upstream: Upstream) -> None:
    headers = {"host": "upstream.test", "transfer-encoding": "chunked"}
    request = httpx.Request("POST", upstream.url, headers=headers, stream=httpx.ByteStream(b"ab"))
    assert (await sent(transport, upstream, request)).endswith(b"\r\n\r\n2\r\nab\r\n0\r\n\r\n")


@pytest.mark.parametrize("chunks", [(b"a",), (b"abc",)], ids=["short", "long"])
async def test_a_stream_that_breaks_its_length_is_refused(
    chunks: tuple[bytes, ...], transport: Transport, upstream: Upstream
) -> None:
    request = httpx.Request("POST", upstream.url, headers={"content-length": "2"}, content=parts(*chunks))
    asking = asyncio.create_task(transport.handle_async_request(request))
    peer = await upstream.accept()
    with pytest.raises(httpx.LocalProtocolError):
        await asking
    await peer.gone()


async def test_a_stream_that_fails_closes_the_connection(transport: Transport, upstream: Upstream) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"x"
        raise KeyError("broken")

    asking = asyncio.create_task(transport.handle_async_request(httpx.Request("POST", upstream.url, content=broken())))
    peer = await upstream.accept()
    with pytest.raises(KeyError):
        await asking
    await peer.gone()


@pytest.mark.parametrize("value", [b"a\r\nX: b", b"a\nb", b"a\rb", b"a\0b", b"\r\n"])
def test_a_value_cannot_smuggle_a_line(value: bytes) -> None:
    with pytest.raises(httpx.LocalProtocolError) as caught:
        encode(httpx.Request("GET", URL, headers=[(b"authorization", value)]))
    assert repr(value)[2:-1] not in str(caught.value)


@pytest.mark.parametrize("name", [b"", b"a b", b"a:b", b"a\r\nb", b"a\0", b"\xe4"])
def test_a_name_has_to_be_a_token(name: bytes) -> None:
    with pytest.raises(httpx.LocalProtocolError):
        encode(httpx.Request("GET", URL, headers=[(b"x", b"y"), (name, b"value")]))


@pytest.mark.parametrize("target", [b"", b"/a b", b"/a\r\nX: y", b"/\0", b"/\n"])
def test_a_target_cannot_smuggle_anything(target: bytes) -> None:
    with pytest.raises(httpx.LocalProtocolError):
        encode_head(b"GET", target, [(b"host", b"h")])


@pytest.mark.parametrize("method", ["", "A B", "GET\r\n", "CONNECT", "Ä"])
def test_a_method_has_to_be_a_token_and_not_connect(method: str) -> None:
    with pytest.raises(httpx.LocalProtocolError):
        encode(httpx.Request(method, URL))


@pytest.mark.parametrize(
    "headers",
    [
        [("content-length", "2"), ("content-length", "2")],
        [("content-length", "3")],
        [("content-length", "-2")],
        [("content-length", "2"), ("transfer-encoding", "chunked")],
        [("transfer-encoding", "gzip")],
        [("host", "a"), ("host", "b")],
    ],
)
def test_ambiguous_framing_is_refused(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(httpx.LocalProtocolError):
        encode(httpx.Request("POST", URL, headers=headers, content=b"ab"))


def test_a_missing_host_is_refused() -> None:
    request = httpx.Request("GET", URL, headers={"accept": "*/*"})
    del request.headers["host"]
    with pytest.raises(httpx.LocalProtocolError, match="Host"):
        encode(request)


def test_a_stream_without_framing_is_refused() -> None:
    request = httpx.Request("POST", URL, content=parts(b"a"))
    del request.headers["transfer-encoding"]
    with pytest.raises(httpx.LocalProtocolError, match="needs"):
        encode(request)


def test_a_synchronous_stream_is_refused() -> None:
    def blocking() -> Iterator[bytes]:
        yield b"a"

    with pytest.raises(httpx.LocalProtocolError, match="asynchronous"):
        encode(httpx.Request("POST", URL, content=blocking()))
