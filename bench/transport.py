"""CPU microseconds per request of Transport and of stock httpx, against a raw server in another process.

python bench/transport.py [--requests 4000] [--clients 32] [--plain]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import resource
import sys
import time
import tracemalloc
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import cast

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from conversations.transport import Transport

SMALL = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n" + b"x" * 400
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'
CHUNK = b"%x\r\n%b\r\n" % (len(EVENT), EVENT)
EVENTS = 200
BODY = b"x" * 600
Fetch = Callable[[httpx.Request], Awaitable[None]]


class Server(asyncio.Protocol):
    """Answers a POST with BODY or a GET: /stream paced, /idle never ending, else a small answer."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.received = b""

    def data_received(self, data: bytes) -> None:
        data = self.received + data
        head, end, body = data.partition(b"\r\n\r\n")
        if not end or (head.startswith(b"POST") and len(body) < len(BODY)):
            self.received = data
            return
        self.received = b""
        if b" /stream " in data[:40]:
            self.transport.write(STREAM_HEAD)
            asyncio.get_running_loop().call_later(0.002, self.tick, EVENTS)
        elif b" /idle " in data[:40]:
            self.transport.write(STREAM_HEAD + CHUNK)
        else:
            self.transport.write(SMALL)

    def tick(self, left: int) -> None:
        if not left:
            self.transport.write(b"0\r\n\r\n")
            return
        self.transport.write(CHUNK)
        asyncio.get_running_loop().call_later(0.002, self.tick, left - 1)


def serve(pipe: Pipe) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=4096)
        pipe.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def measure(fetch: Fetch, url: str, requests: int, clients: int) -> tuple[float, float]:
    async def client(count: int) -> None:
        for _ in range(count):
            await fetch(httpx.Request("POST", url, headers={"authorization": "Bearer x"}, content=BODY))

    await asyncio.gather(*(client(2) for _ in range(clients)))
    started, clock = cpu(), time.perf_counter()
    await asyncio.gather(*(client(requests // clients) for _ in range(clients)))
    return (cpu() - started) / requests * 1e6, requests / (time.perf_counter() - clock)


async def requests_alone(count: int, url: str) -> float:
    started = cpu()
    for _ in range(count):
        httpx.Request("POST", url, headers={"authorization": "Bearer x"}, content=BODY)
    return (cpu() - started) / count * 1e6


def direct(transport: httpx.AsyncBaseTransport) -> Fetch:
    async def fetch(request: httpx.Request) -> None:
        response = await transport.handle_async_request(request)
        stream = cast("httpx.AsyncByteStream", response.stream)
        async for _ in stream:
            pass
        await stream.aclose()

    return fetch


def through(client: httpx.AsyncClient) -> Fetch:
    async def fetch(request: httpx.Request) -> None:
        await client.send(request)

    return fetch


class RawClient(asyncio.Protocol):
    """The floor: a socket, a write, a read, no HTTP at all."""

    def __init__(self) -> None:
        self.waiter: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.waiter is not None:
            self.waiter.set_result(None)


def floor(port: int) -> Fetch:
    idle: list[RawClient] = []
    wire = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 600\r\n\r\n" + BODY

    async def fetch(_: httpx.Request) -> None:
        loop = asyncio.get_running_loop()
        connection = idle.pop() if idle else (await loop.create_connection(RawClient, "127.0.0.1", port))[1]
        connection.waiter = loop.create_future()
        connection.transport.write(wire)
        await connection.waiter
        idle.append(connection)

    return fetch


async def memory(url: str, streams: int) -> float:
    transport = Transport()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    held = []
    for _ in range(streams):
        response = await transport.handle_async_request(httpx.Request("GET", url))
        stream = cast("httpx.AsyncByteStream", response.stream)
        held.append((stream, await anext(aiter(stream))))
    del response
    size = (tracemalloc.get_traced_memory()[0] - before) / streams
    tracemalloc.stop()
    await transport.aclose()
    return size


async def compare(port: int, requests: int, clients: int) -> None:
    url = f"http://127.0.0.1:{port}"
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    ours, stock = Transport(), httpx.AsyncHTTPTransport(limits=limits)
    building = await requests_alone(requests, url + "/")
    say(f"{requests} small requests, {clients} clients; building httpx.Request, {building:.0f} us, is taken off")
    ways = {
        "raw socket, no HTTP": (floor(port), requests),
        "Transport": (direct(ours), requests),
        "Transport under AsyncClient": (through(httpx.AsyncClient(transport=ours, timeout=60)), requests),
        "stock httpx transport": (direct(stock), requests // 4),
        "stock httpx AsyncClient": (through(httpx.AsyncClient(transport=stock, timeout=60)), requests // 4),
    }
    for name, (fetch, count) in ways.items():
        spent, rate = await measure(fetch, url + "/", count, clients)
        say(f"  {name:<28} {spent - building:8.1f} us CPU/request  {rate:8.0f} requests/s")
    say(f"{EVENTS} events paced 2 ms apart, {clients} streams at once")
    for name, transport in (("Transport", ours), ("stock httpx transport", stock)):
        spent, _ = await measure(direct(transport), url + "/stream", clients * 2, clients)
        say(f"  {name:<28} {spent / EVENTS:8.1f} us CPU/event")
    await ours.aclose()
    await stock.aclose()
    say(f"an idle stream: {await memory(url + '/idle', 500):.0f} bytes of Python objects")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--requests", type=int, default=8000)
    options.add_argument("--clients", type=int, default=32)
    options.add_argument("--plain", action="store_true", help="asyncio's own loop instead of uvloop")
    chosen = options.parse_args()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True)
    server.start()
    job = compare(ours.recv(), chosen.requests, chosen.clients)
    if chosen.plain:
        asyncio.run(job)
    else:
        import uvloop  # noqa: PLC0415 - optional

        uvloop.run(job)
    server.terminate()


if __name__ == "__main__":
    main()
