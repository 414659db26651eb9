"""Every way a response can be framed, whole, in two reads cut anywhere, byte by byte, and ended too early anywhere."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.transport import Transport
from conversations.transport.connection import Connection
from conversations.transport.exchange import Exchange
from conversations.transport.origin import Origin
from conversations.transport.outgoing import encode
from conversations.transport.pool import Pool
from conversations.transport.sweeper import Sweeper
from tests.transport.peer import OK, Upstream, ask, body_of, get, post


class Case(NamedTuple):
    wire: bytes
    status: int
    body: bytes
    kept: bool = True
    method: str = "GET"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CASES = {
    "length": Case(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
    "empty": Case(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, b""),
    "no reason": Case(b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    "chunked": Case(CHUNKED + b"5\r\nhello\r\nA\r\n, world...\r\n0\r\n\r\n", 200, b"hello, world..."),
    "chunk extension": Case(CHUNKED + b"2;a=b\r\nok\r\n0\r\n\r\n", 200, b"ok"),
    "trailers": Case(CHUNKED + b"2\r\nok\r\n0\r\nX-Trailer: 1\r\n\r\n", 200, b"ok"),
    "close": Case(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", kept=False),
    "1.0": Case(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok", kept=False),
    "1.0 kept": Case(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    "204": Case(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    "304": Case(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304, b""),
    "100": Case(b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 200, b"ok"),
    "103": Case(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 P\r\n\r\n" + OK, 200, b"ok"),
    "head": Case(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, b"", method="HEAD"),
    "head chunked": Case(CHUNKED, 200, b"", method="HEAD"),
    "error": Case(b"HTTP/1.1 529 Overloaded\r\nContent-Length: 2\r\n\r\nno", 529, b"no"),
}
UNTIL_CLOSE = {
    "bare": b"HTTP/1.1 200 OK\r\n\r\nhello",
    "1.0": b"HTTP/1.0 200 OK\r\nServer: x\r\n\r\nhello",
    "coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello",
}
cases = pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())


class Wire(asyncio.Transport):
    """A transport that only remembers whether it was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.aborted = False

    def abort(self) -> None:
        self.aborted = True

    def is_closing(self) -> bool:
        return self.aborted

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Fed(NamedTuple):
    exchange: Exchange
    connection: Connection
    wire: Wire

    def body(self) -> bytes:
        return b"".join(self.exchange.chunks)


def feed(*reads: bytes, method: str = "GET") -> Fed:
    loop = asyncio.new_event_loop()
    try:
        wire = Wire()
        connection = Connection(loop, Origin("http", "h", 80, None), Pool(60), Sweeper(loop))
        connection.connection_made(wire)
        exchange = Exchange(connection, 60, encode(httpx.Request(method, "http://h/")))
        connection.start(exchange, 60)
        exchange.sent = True
        for read in reads:
            connection.data_received(read)
        return Fed(exchange, connection, wire)
    finally:
        loop.close()


@cases
def test_any_two_reads_are_the_same_response(case: Case) -> None:
    for cut in range(1, len(case.wire)):
        fed = feed(case.wire[:cut], case.wire[cut:], method=case.method)
        assert (fed.exchange.status, fed.body()) == (case.status, case.body), cut
        assert fed.exchange.over
        assert fed.exchange.failure is None
        assert fed.wire.aborted is not case.kept


def test_a_connection_lost_as_soon_as_made_fails_its_request() -> None:
    loop = asyncio.new_event_loop()
    connection = Connection(loop, Origin("http", "h", 80, None), Pool(60), Sweeper(loop))
    connection.connection_made(Wire())
    connection.connection_lost(None)
    exchange = Exchange(connection, 60, encode(httpx.Request("GET", "http://h/")))
    connection.start(exchange, 60)
    assert isinstance(exchange.failure, httpx.RemoteProtocolError)
    loop.close()


@cases
def test_byte_by_byte_is_the_same_response(case: Case) -> None:
    fed = feed(*(case.wire[at : at + 1] for at in range(len(case.wire))), method=case.method)
    assert (fed.exchange.status, fed.body(), fed.wire.aborted) == (case.status, case.body, not case.kept)


@given(data=st.data(), body=st.lists(st.binary(min_size=1, max_size=50), max_size=8))
def test_any_cuts_of_any_chunks_are_the_same_response(data: st.DataObject, body: list[bytes]) -> None:
    wire = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in body) + b"0\r\n\r\n"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(wire) - 1), max_size=10)))
    fed = feed(*(wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)))
    assert fed.body() == b"".join(body)
    assert fed.exchange.over
    assert not fed.wire.aborted


@given(st.binary(max_size=200))
def test_garbage_is_refused_or_incomplete_but_never_a_complete_body(garbage: bytes) -> None:
    fed = feed(garbage)
    assert not fed.exchange.status or garbage.startswith((b"HTTP/", b"\r", b"\n"))
    assert fed.exchange.failure is None or isinstance(fed.exchange.failure, httpx.RemoteProtocolError)


@cases
async def test_a_response_over_a_socket_and_one_after_it(case: Case, transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(case.wire, *([OK] if case.kept else [])))
    response = await transport.handle_async_request(httpx.Request(case.method, upstream.url))
    assert response.status_code == case.status
    assert await body_of(response) == case.body
    if case.kept:
        again = await transport.handle_async_request(get(upstream.url))
        assert await body_of(again) == b"ok"
        assert again.headers.raw == [(b"Content-Length", b"2")]
    await server
    assert len(upstream.peers) == 1


@cases
async def test_a_response_ended_early_anywhere_is_an_error(
    case: Case, transport: Transport, upstream: Upstream
) -> None:
    for cut in range(len(case.wire)):
        server = asyncio.create_task(upstream.serve(case.wire[:cut]))
        asking = asyncio.create_task(ask(transport, httpx.Request(case.method, upstream.url)))
        (await server).close()
        with pytest.raises(httpx.RemoteProtocolError):
            await asking


@pytest.mark.parametrize("wire", UNTIL_CLOSE.values(), ids=UNTIL_CLOSE.keys())
async def test_a_body_until_close_ends_with_the_connection(
    wire: bytes, transport: Transport, upstream: Upstream
) -> None:
    start = wire.index(b"\r\n\r\n") + 4
    for cut in range(start, len(wire) + 1):
        server = asyncio.create_task(upstream.serve(wire[:cut]))
        asking = asyncio.create_task(ask(transport, get(upstream.url)))
        (await server).close()
        assert await asking == wire[start:cut]


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"<html>",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"2\r\nabcd\r\n",
    ],
)
async def test_a_malformed_response_is_refused(wire: bytes, transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(wire))
    with pytest.raises(httpx.RemoteProtocolError, match="malformed"):
        await ask(transport, post(upstream.url))
    await (await server).gone()


async def test_headers_keep_case_order_and_repetition(transport: Transport, upstream: Upstream) -> None:
    wire = b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nset-cookie: b\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n"
    server = asyncio.create_task(upstream.serve(wire))
    response = await transport.handle_async_request(get(upstream.url))
    assert response.headers.raw == [
        (b"Set-Cookie", b"a"), (b"set-cookie", b"b"), (b"X-Empty", b""), (b"Content-Length", b"0"),
    ]  # fmt: skip
    await server


async def test_101_is_answered_as_is_and_its_connection_closed(transport: Transport, upstream: Upstream) -> None:
    wire = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nzzz"
    server = asyncio.create_task(upstream.serve(wire))
    response = await transport.handle_async_request(get(upstream.url))
    assert response.status_code == 101
    await (await server).gone()


@pytest.mark.parametrize(
    "wire",
    [
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: aaaaaaaa\r\n" * 8_000 + b"Content-Length: 0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 5_000,
        CHUNKED + b"0\r\nX: " + b"a" * 400_000,
    ],
    ids=["one header", "many headers", "endless 100", "trailers"],
)
@pytest.mark.parametrize("size", [1_000, 250_000])
def test_heads_and_trailers_are_bounded(wire: bytes, size: int) -> None:
    fed = feed(*(wire[at : at + size] for at in range(0, len(wire), size)))
    assert isinstance(fed.exchange.failure, httpx.RemoteProtocolError)


@pytest.mark.parametrize("surplus", [b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad", b"garbage", b"H"])
async def test_bytes_after_the_body_end_the_connection_not_the_response(
    surplus: bytes, transport: Transport, upstream: Upstream
) -> None:
    server = asyncio.create_task(upstream.serve(OK + surplus))
    assert await ask(transport, get(upstream.url)) == b"ok"
    await (await server).gone()


async def test_one_read_is_one_chunk(transport: Transport, upstream: Upstream) -> None:
    server = asyncio.create_task(upstream.serve(CHUNKED + b"1\r\na\r\n1\r\nb\r\n1\r\nc\r\n"))
    response = await transport.handle_async_request(get(upstream.url))
    chunks = aiter(response.stream)  # type: ignore[arg-type]  # the union with the synchronous kind
    assert await anext(chunks) == b"abc"
    peer = await server
    await peer.say(b"1\r\nd\r\n1\r\ne\r\n0\r\n\r\n")
    assert await anext(chunks) == b"de"
    assert [chunk async for chunk in chunks] == []
