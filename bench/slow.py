"""Clients that do not read: their upstreams have to wait, and nobody else."""

import asyncio
import http.client
import time

from bench import bodies, load, machine
from bench.targets import Running


def measure(target: Running, upstream: int, streams: int, seconds: float) -> dict[str, float]:
    import uvloop  # noqa: PLC0415 - only who sends load needs it

    return uvloop.run(_measure(target, upstream, streams, seconds))


async def _measure(target: Running, upstream: int, streams: int, seconds: float) -> dict[str, float]:
    before = await _others(target, seconds)
    memory, flooded = machine.memory(target.web), _flooded(upstream)
    asked = load.Load(port=target.port, path=target.path, body=bodies.flooded(), stream=True)
    slots = await asyncio.gather(*(_stuck(asked) for _ in range(streams)))
    await _settled(upstream)
    during = await _others(target, seconds)
    sent = (_flooded(upstream) - flooded) / streams
    grown = machine.memory(target.web) - memory
    for slot in slots:
        slot.transport.abort()
    return {
        "streams": float(streams),
        "upstream_kb_each": sent / 1024,  # most of it is in the sockets' buffers
        "memory_kb_each": grown * 1024 / streams,
        "p99_before_ms": before["p99_ms"],
        "p99_ms": during["p99_ms"],
        "errors": before["errors"] + during["errors"],
    }


async def _stuck(asked: load.Load) -> load.Slot:
    """A client that has seen the beginning and then reads no more."""
    slot = await load.connect(asked.port, load.Result())
    slot.send(load.request(asked)).add_done_callback(lambda future: future.exception())
    while b"content_block_delta" not in slot.received:  # noqa: ASYNC110 - a few of them, once
        await asyncio.sleep(0.01)
    slot.transport.pause_reading()
    return slot


async def _settled(upstream: int) -> None:
    """Until the buffers of all sockets on the way are full, and the upstreams have had to stop."""
    sent, deadline = -1, time.monotonic() + 60
    while sent != (now := _flooded(upstream)) and time.monotonic() < deadline:
        sent = now
        await asyncio.sleep(1)


async def _others(target: Running, seconds: float) -> dict[str, float]:
    asked = load.Load(port=target.port, path=target.path, body=bodies.small(), slots=8, seconds=seconds, pause=0.02)
    return (await load.run_here(asked)).figures()


def _flooded(upstream: int) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", upstream, timeout=10)
    connection.request("GET", "/flooded")
    count = int(connection.getresponse().read())
    connection.close()
    return count
