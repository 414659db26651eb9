"""Web processes share one port: whoever has the fewest connections takes the next, and nobody waits for long."""

import asyncio
import os
import resource
import socket
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import IO

import pytest

from bridge_project.up import board
from bridge_project.up.accepting import AT_ONCE, Acceptor
from bridge_project.up.board import AHEAD, PLACE, Board
from bridge_project.up.claims import claim_port
from tests.servers.ports import wait_until


class Talk(asyncio.Protocol):
    """Greets who comes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"welcome")


@pytest.fixture
def shared() -> Iterator[IO[bytes]]:
    with board.made(2) as file:
        yield file


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with claim_port("127.0.0.1", 0) as listener:
        yield listener


def elsewhere(descriptor: int, told: int) -> int:
    """What another process sees, which has so many connections."""
    place = Board(descriptor)
    place.tell(told)
    return place.room


def test_who_has_more_leaves_the_next_to_who_has_fewer(shared: IO[bytes]) -> None:
    own = Board(shared.fileno())
    assert own.room > AT_ONCE, "there is no other process yet"
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as process:
        assert process.submit(elsewhere, shared.fileno(), 10).result() == AHEAD - 10
    assert own.room == 10 + AHEAD
    own.tell(10 + AHEAD)
    assert own.room == 0
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as process:  # the dead one's place is free
        assert process.submit(elsewhere, shared.fileno(), 0).result() == 10 + 2 * AHEAD


async def test_a_connection_that_another_process_does_not_take_is_taken(
    shared: IO[bytes], listener: socket.socket
) -> None:
    os.pwrite(shared.fileno(), PLACE.pack(0, 1, 1), PLACE.size)  # another process, with none
    own = Board(shared.fileno())
    acceptor = Acceptor(listener, Talk, range(100), own)
    acceptor.tell()
    assert own.room < 0
    for _ in range(3):
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        assert await reader.readexactly(7) == b"welcome"
        writer.close()
    acceptor.stop()
    assert own.room < -(2**31), "who stops takes nothing more"


async def test_many_at_once_are_all_taken(listener: socket.socket) -> None:
    acceptor = Acceptor(listener, Talk, (), None)
    opened = await asyncio.gather(*(asyncio.open_connection(*listener.getsockname()) for _ in range(3 * AT_ONCE)))
    assert {await reader.readexactly(7) for reader, _ in opened} == {b"welcome"}
    for _, writer in opened:
        writer.close()
    acceptor.stop()


async def test_without_descriptors_it_waits_for_one(listener: socket.socket, caplog: pytest.LogCaptureFixture) -> None:
    acceptor = Acceptor(listener, Talk, (), None)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.socket() as client:
        client.setblocking(False)
        os.close(lowest := os.dup(client.fileno()))
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))  # the next one would have this number
        try:
            await asyncio.get_running_loop().sock_connect(client, listener.getsockname())
            await asyncio.to_thread(wait_until, lambda: "Too many open files" in caplog.text, "it has noticed")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert await asyncio.get_running_loop().sock_recv(client, 7) == b"welcome"
    acceptor.stop()
