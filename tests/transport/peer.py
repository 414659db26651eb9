"""The other end of the wire: raw sockets, driven by the test byte by byte."""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from collections.abc import Callable

import httpx

from conversations.transport import Transport

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer:
    """One accepted connection."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.loop = asyncio.get_running_loop()

    async def request(self) -> bytes:
        """One whole request; b"" at the end of input."""
        data = b""
        while not _whole(data):
            more = await self.loop.sock_recv(self.sock, 65536)
            if not more:
                return b""
            data += more
        return data

    async def say(self, data: bytes) -> None:
        await self.loop.sock_sendall(self.sock, data)

    def close(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    async def gone(self) -> None:
        """Wait until the client has closed its side."""
        try:
            while await self.loop.sock_recv(self.sock, 65536):
                pass
        except ConnectionResetError:
            return


class Upstream:
    def __init__(self, family: socket.AddressFamily = socket.AF_INET) -> None:
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self.listener.listen(512)
        self.listener.setblocking(False)
        self.port: int = self.listener.getsockname()[1]
        self.url = f"http://[::1]:{self.port}/" if family == socket.AF_INET6 else f"http://127.0.0.1:{self.port}/"
        self.peers: list[Peer] = []

    async def accept(self) -> Peer:
        sock, _ = await asyncio.get_running_loop().sock_accept(self.listener)
        self.peers.append(Peer(sock))
        return self.peers[-1]

    async def serve(self, *answers: bytes) -> Peer:
        """Accept one connection and answer one request on it with each answer."""
        peer = await self.accept()
        for answer in answers:
            await peer.request()
            await peer.say(answer)
        return peer

    def close(self) -> None:
        self.listener.close()
        for peer in self.peers:
            peer.close()


def post(url: str, content: bytes = b"{}", **timeouts: float) -> httpx.Request:
    return httpx.Request("POST", url, content=content, extensions={"timeout": timeouts})


def get(url: str, **timeouts: float) -> httpx.Request:
    return httpx.Request("GET", url, extensions={"timeout": timeouts})


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop turn until it is so; the suite's own timeout says when it never is."""
    while not condition():  # noqa: ASYNC110 - the code under test has no event to wait for
        await asyncio.sleep(0)


async def ask(transport: Transport, request: httpx.Request) -> bytes:
    return await body_of(await transport.handle_async_request(request))


async def body_of(response: httpx.Response) -> bytes:
    return b"".join([chunk async for chunk in stream_of(response)])


def stream_of(response: httpx.Response) -> httpx.AsyncByteStream:
    assert isinstance(response.stream, httpx.AsyncByteStream)
    return response.stream


def _whole(data: bytes) -> bool:
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return False
    if re.search(rb"(?i)transfer-encoding: *chunked", head):
        return body.endswith(b"0\r\n\r\n")
    length = re.search(rb"(?i)content-length: *(\d+)", head)
    return len(body) >= (int(length[1]) if length else 0)
