"""Heads that are known from an earlier request: what the application is told is what the parser would tell it."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from bridge_project.up import again
from bridge_project.up.requests import Requests
from conversations.heads import BETAS, Head, head_of
from conversations.lines import KNOWN, LARGEST, split
from tests.servers.serving import serving


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    """Everything that it was told, but for the order of the headers and whose connection it was."""
    cycle, body, more = scope.get("toolbridge.cycle"), b"", True
    lines = [] if cycle is None else cycle.lines
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    told = {name: str(value) for name, value in scope.items() if name not in {"headers", "client", "toolbridge.cycle"}}
    told |= {"headers": str(sorted(scope["headers"])), "lines": str(sorted(lines)), "body": str(body)}
    said = json.dumps(told).encode()
    headers = [(b"content-length", b"%d" % len(said))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": said})


@pytest_asyncio.fixture
async def port() -> AsyncIterator[int]:
    again.known_heads.clear()
    async with serving(_echo, Requests) as listening:
        yield listening


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, *parts: bytes) -> Any:
        """What is answered to a request that comes in these parts; the status line, if it was refused."""
        for part in parts:
            self._writer.write(part)
            await asyncio.sleep(0.01)
        return await self.hear()

    async def hear(self) -> Any:
        head = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), 5)
        (length,) = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")]
        body = await self._reader.readexactly(int(length.partition(b":")[2]))
        return json.loads(body) if b" 200 " in head[:16] else head.partition(b"\r\n")[0]

    def close(self) -> None:
        self._writer.close()


async def _connected(port: int) -> Connection:
    return Connection(*await asyncio.open_connection("127.0.0.1", port))


def _request(body: bytes, *more: bytes, line: bytes = b"POST /v1/messages?beta=true HTTP/1.1") -> bytes:
    lines = (line, b"Host: x", b"X-Api-Key: secret", *more, b"Content-Length: %d" % len(body), b"accept: */*")
    return b"\r\n".join((*lines, b"", body))


PLAIN = (
    _request(b'{"a": 1}'),
    _request(b""),
    _request(b"x", b"X-Twice: 1", b"x-twice:2 "),
    _request(b"x", line=b"POST /v1/conversations/a%2Fb/terminate HTTP/1.1"),
    _request(b"x" * 9_999, b"x-stainless-retry-count: 1"),
    _request(b"x", b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk"),
)
ODD = (
    _request(b"x", b"Expect: 100-continue"),
    _request(b"x", b"Connection: close"),
    _request(b"x", line=b"POST /v1/messages HTTP/1.0"),
    _request(b"x", b"x-long: " + b"y" * LARGEST),
    b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
)


@pytest.mark.parametrize("raw", PLAIN)
async def test_a_known_head_tells_what_the_parser_told(port: int, raw: bytes) -> None:
    one, other = await _connected(port), await _connected(port)
    first = await one.ask(raw)
    assert len(again.known_heads) == 1
    assert [await one.ask(raw), await other.ask(raw), await other.ask(raw)] == [first] * 3
    one.close()
    other.close()


@pytest.mark.parametrize("raw", ODD)
async def test_what_needs_the_parser_gets_it_each_time(port: int, raw: bytes) -> None:
    heads = []
    for _ in range(2):
        connection = await _connected(port)
        if b"100-continue" in raw:
            connection._writer.write(raw)
            await connection._reader.readuntil(b"100 Continue\r\n\r\n")
            heads.append(await connection.hear())
        elif b"HTTP/1.0" in raw or b"close" in raw:
            heads.append(await connection.ask(raw))
        else:
            heads += [await connection.ask(raw), await connection.ask(raw)]
        connection.close()
    assert heads == [heads[0]] * len(heads)
    assert not again.known_heads


async def test_each_body_is_its_own_however_long(port: int) -> None:
    connection = await _connected(port)
    for size in (5, 70, 70_000, 0, 123_456, 5):
        told = await connection.ask(_request(b"y" * size))
        assert told["body"] == str(b"y" * size)
        assert f"b'content-length', b'{size}'" in told["headers"]
    assert len(again.known_heads) == 1
    connection.close()


async def test_other_bytes_are_another_head(port: int) -> None:
    connection, raw = await _connected(port), _request(b"x")
    told = [await connection.ask(raw), await connection.ask(raw.replace(b"secret", b"Secret"))]
    assert told[0]["headers"] != told[1]["headers"]
    assert (await connection.ask(raw.replace(b"messages", b"models")))["path"] == "/v1/models"
    connection.close()


async def test_a_request_in_parts_or_with_another_behind_it_is_parsed(port: int) -> None:
    connection, raw = await _connected(port), _request(b"12345")
    first = await connection.ask(raw)
    for cut in (1, 20, raw.index(b"\r\n\r\n") + 2, len(raw) - 1):
        assert await connection.ask(raw[:cut], raw[cut:]) == first
    assert await connection.ask(raw + raw) == first
    assert await connection.hear() == first
    assert await connection.ask(raw) == first
    connection.close()


async def test_a_length_that_the_parser_refuses_is_refused_behind_a_known_head(port: int) -> None:
    raw = _request(b"12345")
    for wrong in (b"+5", b"5, 5", b"0x5", b"5\r\ncontent-length: 5", b"5\r\ntransfer-encoding: chunked"):
        connection = await _connected(port)
        await connection.ask(raw)
        assert b" 400 " in await connection.ask(raw.replace(b"Length: 5", b"Length: " + wrong))
        connection.close()


async def test_only_so_many_heads_are_remembered(port: int) -> None:
    connection = await _connected(port)
    for number in range(KNOWN + 1):
        again.remember(b"%d" % number, dict.fromkeys(again.KEPT, "") | {"headers": []})
    assert len(again.known_heads) == 1
    assert (await connection.ask(_request(b"x")))["body"] == "b'x'"
    connection.close()


def test_a_head_is_worked_out_once_and_large_ones_are_not_kept() -> None:
    lines, length = split([(b"x-api-key", b"s"), (b"content-length", b"7"), (b"user-agent", b"me")])
    assert length == b"7"
    head = head_of(lines)
    assert head is head_of(split([(b"x-api-key", b"s"), (b"user-agent", b"me")])[0])
    assert head.names == {"x-api-key": "s", "user-agent": "me"}
    assert head.stored == b'{"user-agent":"me"}'
    large = ((b"x", b"y" * LARGEST),)
    assert head_of(large) is not head_of(large)
    for number in range(KNOWN):
        head_of(((b"x", b"%d" % number),))
    assert head is not head_of(lines)


def test_betas_on_several_lines_are_one_list() -> None:
    head = Head(((BETAS, b"one, two"), (b"x", b"1"), (BETAS, b"three"), (b"x", b"2")))
    assert head.betas == ("one", "two", "three")
    assert head.names["x"] == "2"
