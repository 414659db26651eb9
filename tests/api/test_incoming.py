"""Bodies that are large, slow or nobody's: what reading them may cost."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from bridge_project.up.cycle import Head
from bridge_project.up.requests import Requests
from conversations.api.incoming import LARGE, bounded, read_body
from conversations.room import Room
from tests.api.conftest import CHAT, Served
from tests.servers import chat
from tests.servers.client import Client
from tests.servers.ports import wait_until
from tests.servers.script import Gate, sse_answer
from tests.servers.serving import serving
from translation.errors import Overloaded, TooSlow

HEAD = "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 20000000\r\n"


def answered(served: Served, head: str, seconds: float = 5.0) -> str:
    """The status line that a head alone gets; nothing of the body is ever sent."""
    with closing(socket.create_connection(("127.0.0.1", served.bridge.port), timeout=seconds)) as sock:
        sock.sendall(f"{head}\r\n".encode())
        try:
            return sock.recv(4096).decode().partition("\r\n")[0]
        except TimeoutError:
            return ""


def test_a_large_body_is_read_only_for_who_has_a_key(client: Client, served: Served) -> None:
    assert " 401 " in answered(served, HEAD)
    assert " 401 " in answered(served, f"{HEAD}x-api-key: nobody's\r\n")
    assert answered(served, f"{HEAD}x-api-key: {client.api_key}\r\n", seconds=0.5) == ""


def test_a_body_without_a_length_takes_no_more_room_than_it_needs(client: Client, served: Served) -> None:
    gate = Gate()
    served.upstream.always(CHAT, sse_answer(gate, chat.chunk({"content": "ok"}), *chat.ending("stop")))
    head = f"{HEAD}x-api-key: {client.api_key}\r\n".replace("content-length: 20000000", "transfer-encoding: chunked")
    body = b'{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}'
    with ExitStack() as stack:
        for _ in range(40):
            sock = stack.enter_context(closing(socket.create_connection(("127.0.0.1", served.bridge.port))))
            sock.sendall(b"%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (head.encode(), len(body), body))
        wait_until(lambda: len(served.upstream.requests) == 40, "all of them to be served at a time")
        gate.open()


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    parts = iter((b"{", b" "))

    async def receive() -> Mapping[str, Any]:
        if (part := next(parts, None)) is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": part, "more_body": True}

    with pytest.raises(TooSlow):
        await read_body(receive, seconds=0.01)


async def test_who_finds_no_room_waits_for_his_turn() -> None:
    room, entered = Room(size=10), []
    gates = [asyncio.Event() for _ in range(3)]

    async def visit(number: int, size: int) -> None:
        async with room.taken(size):
            entered.append(number)
            await gates[number].wait()

    async with asyncio.TaskGroup() as tasks:
        for number, size in enumerate((6, 8, 2)):
            tasks.create_task(visit(number, size))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert entered == [0], "the small one must not overtake for ever"
        gates[0].set()
        for _ in range(10):
            await asyncio.sleep(0)
        assert entered == [0, 1, 2]
        gates[1].set()
        gates[2].set()


async def test_room_that_turns_out_to_be_too_much_or_too_little_is_made_right() -> None:
    room = Room(size=10, patience=0.01)
    async with room.taken(10) as place:
        place.resize(4)
        async with room.taken(6) as other:
            other.resize(8)
            place.resize(0)
            with pytest.raises(Overloaded):
                async with room.taken(3):
                    pytest.fail("there was no room")
    async with room.taken(10):
        pass


@pytest.mark.parametrize("announced", [[], [(b"content-length", b"99999999")]])
async def test_django_gets_no_more_of_a_body_than_it_keeps_in_memory(announced: list[tuple[bytes, bytes]]) -> None:
    piece: Mapping[str, Any] = {"type": "http.request", "body": b"x" * 1_000_000, "more_body": True}
    gone: Mapping[str, Any] = {"type": "http.disconnect"}
    coming = iter([*[piece] * 40, gone])

    async def receive() -> Mapping[str, Any]:
        return next(coming)

    scope, bounded_receive = bounded({"headers": [(b"host", b"x"), *announced]}, receive)
    heard = [await bounded_receive() for _ in range(4)]
    assert [len(message.get("body", b"")) for message in heard] == [1_000_000, 1_000_000, 0, 0]
    assert [message["type"] for message in heard[2:]] == ["http.request", "http.disconnect"]
    assert scope["headers"][:2] == [(b"host", b"x"), (b"content-length", b"3000000")]  # by which Django refuses it


async def test_django_does_not_wait_for_a_body_for_ever() -> None:
    _, receive = bounded({"headers": []}, asyncio.Event().wait, seconds=0.01)  # type: ignore[arg-type]  # never comes
    with pytest.raises(TooSlow):
        await receive()


async def test_who_finds_no_room_for_long_is_told_to_come_again() -> None:
    room = Room(size=10, patience=0.01)
    async with room.taken(10):
        with pytest.raises(Overloaded):
            async with room.taken(1):
                pytest.fail("there was no room")
    leaving = asyncio.ensure_future(_stay(room))
    async with room.taken(10):
        await asyncio.sleep(0)
        leaving.cancel()
    async with room.taken(10):
        with pytest.raises(asyncio.CancelledError):
            await leaving


async def _stay(room: Room) -> None:
    async with room.taken(10):
        await asyncio.Event().wait()


class Hasty(Requests):
    head_seconds = 0.1
    rest_seconds = 0.2


READ = asyncio.Event()
PIECE = b"x" * 100_000
BEHIND: list[int] = []  # how many pieces had been written when the client was behind


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"].startswith("/pieces"):
        await _pieces(scope, scope["path"][-1:].encode())
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * Hasty.head_seconds)
    elif scope["path"] == "/read":
        await READ.wait()
    await send({"type": "http.response.body", "body": b"ok"})


async def _pieces(scope: Any, last: bytes) -> None:
    cycle = scope["toolbridge.cycle"]
    await cycle.begin(200, [])
    for number, piece in enumerate([b"", b"first ", *[PIECE] * 100, b"", last]):
        if (behind := cycle.write(piece)) is not None:
            BEHIND.append(number)
            await behind()
    await cycle.end()


@pytest_asyncio.fixture
async def port() -> AsyncIterator[int]:
    async with serving(_hello, Hasty, timeout_keep_alive=1) as listening:
        yield listening


async def _said(port: int, *parts: bytes) -> bytes:
    """All that a connection is told, until it is closed; each part is sent when the one before was answered."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    told = b""
    for part in parts[:-1]:
        writer.write(part)
        told += await reader.readuntil(b"ok")
    writer.write(parts[-1])
    told += await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return told


GET = b"GET / HTTP/1.1\r\nhost: x\r\n"
SLOW = GET.replace(b"/ ", b"/slow ")
POST = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n"


async def test_a_head_that_never_ends_is_not_waited_for(port: int) -> None:
    assert await _said(port, b"") == b""
    # A whole request first: the next head has its own time.
    assert (await _said(port, GET + b"\r\n", GET)).count(b"200 OK") == 1


async def test_a_head_that_is_not_read_yet_is_waited_for(port: int) -> None:
    """Behind requests that are being answered nothing is read: what was sent of the next one is not late."""
    assert (await _said(port, SLOW + b"\r\n" + SLOW + b"\r\n" + GET)).count(b"200 OK") == 2


@pytest.mark.parametrize("rest", [b"1", b"1234567890", b"1234567890" + GET + b"\r\n"])
async def test_a_connection_whose_body_was_not_wanted_is_closed_in_the_end(port: int, rest: bytes) -> None:
    """Without another word, in the middle of the body or after it; a request that follows is served."""
    assert (await _said(port, POST, rest)).count(b"200 OK") == 1 + rest.count(b"GET")


async def test_a_head_does_not_wait_for_a_body_that_comes_later(port: int) -> None:
    READ.clear()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GET.replace(b"/ ", b"/read ") + b"\r\n")
    assert b"200 OK" in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
    READ.set()
    assert await reader.readexactly(2) == b"ok"
    writer.close()


async def test_pieces_are_chunks_and_wait_for_a_client_that_is_behind(port: int) -> None:
    """Of two requests at once the second is answered after the first."""
    BEHIND.clear()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"".join(GET.replace(b"/ ", path) + b"\r\n" for path in (b"/pieces1 ", b"/pieces2 ")))
    while not BEHIND:  # noqa: ASYNC110 - what does not happen has no event
        await asyncio.sleep(0.01)
    before = list(BEHIND)
    await asyncio.sleep(0.05)
    assert before == BEHIND
    for last in (b"1", b"2"):
        assert b"transfer-encoding: chunked" in await reader.readuntil(b"\r\n\r\n")
        body = b"".join([b"6\r\nfirst \r\n", *[b"%x\r\n%b\r\n" % (len(PIECE), PIECE)] * 100, b"1\r\n%b\r\n" % last])
        assert await asyncio.wait_for(reader.readexactly(len(body) + 5), 10) == body + b"0\r\n\r\n"
    writer.close()


async def test_who_has_left_gets_no_further_piece(port: int) -> None:
    BEHIND.clear()
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GET.replace(b"/ ", b"/pieces ") + b"\r\n")
    while not BEHIND:  # noqa: ASYNC110 - what does not happen has no event
        await asyncio.sleep(0.01)
    before = list(BEHIND)
    writer.transport.abort()
    await asyncio.sleep(0.05)
    assert before == BEHIND  # and the rest went nowhere


class Wire:
    """A transport, and what was written to it at once."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.lost = False

    def is_closing(self) -> bool:
        return self.lost

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def writelines(self, parts: Iterable[bytes]) -> None:
        self.written.append(b"".join(parts))

    def close(self) -> None:
        self.written.append(b"closed")


async def test_a_head_and_the_body_that_follows_are_one_write() -> None:
    wire = Wire()
    cycle: Any = SimpleNamespace(transport=wire)
    cycle.transport = Head(cycle, asyncio.get_running_loop())
    for part in (b"head ", b"body ", b"more"):
        cycle.transport.write(part)
    await asyncio.sleep(0)
    assert wire.written == [b"head body ", b"more"]


async def test_a_head_is_not_written_to_who_has_left() -> None:
    wire = Wire()
    cycle: Any = SimpleNamespace(transport=wire)
    cycle.transport = Head(cycle, asyncio.get_running_loop())
    cycle.transport.write(b"head")
    wire.lost = True
    await asyncio.sleep(0)
    assert wire.written == []


async def test_a_connection_is_closed_behind_its_head() -> None:
    wire = Wire()
    cycle: Any = SimpleNamespace(transport=wire)
    cycle.transport = Head(cycle, asyncio.get_running_loop())
    cycle.transport.write(b"head")
    cycle.transport.close()
    assert wire.written == [b"head", b"closed"]


async def test_others_go_on_while_a_large_body_is_read() -> None:
    """Also when it comes so fast that there is never anything to wait for."""
    parts = [b"x" * LARGE] * 3
    went_on: list[bool] = []
    asyncio.get_running_loop().call_soon(went_on.append, True)

    async def receive() -> dict[str, Any]:
        part = parts.pop()
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    assert len(await read_body(receive)) == 3 * LARGE
    assert went_on
