"""Bodies that are large, slow or nobody's: what reading them may cost."""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest
import uvicorn

from bridge_project.up.requests import Requests
from conversations.api.incoming import read_body
from conversations.room import Room
from tests.api.conftest import Served
from tests.servers.client import Client
from translation.errors import Overloaded, TooSlow

HEAD = "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 20000000\r\n"


def answered(served: Served, head: str) -> str:
    """The status line that a head alone gets; nothing of the body is ever sent."""
    with closing(socket.create_connection(("127.0.0.1", served.bridge.port), timeout=5)) as sock:
        sock.sendall(f"{head}\r\n".encode())
        try:
            return sock.recv(4096).decode().partition("\r\n")[0]
        except TimeoutError:
            return ""


def test_a_large_body_is_read_only_for_who_has_a_key(client: Client, served: Served) -> None:
    assert " 401 " in answered(served, HEAD)
    assert " 401 " in answered(served, f"{HEAD}x-api-key: nobody's\r\n")
    assert answered(served, f"{HEAD}x-api-key: {client.api_key}\r\n") == ""


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


async def _hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def test_a_head_that_never_ends_is_not_waited_for() -> None:
    server = uvicorn.Server(uvicorn.Config(_hello, port=0, http=Hasty, lifespan="off", log_config=None))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    for beginning in (b"", b"GET / HTTP/1.1\r\nhost: x\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        # A whole request first: the next head has its own time.
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n" if beginning else b"")
        if beginning:
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        writer.write(beginning)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
    server.should_exit = True
    await serving
