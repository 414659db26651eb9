"""Streams that wait for their model: what each costs, and whether anybody else notices."""

import asyncio
import time

from bench import bodies, load, machine
from bench.targets import Running

SPARE = 400  # descriptors for everything else


def measure(target: Running, wanted: int) -> dict[str, float]:
    """Two descriptors a stream at the bridge, one at the upstream and one here."""
    streams = min(wanted, (machine.raise_descriptors() - SPARE) // 2)
    import uvloop  # noqa: PLC0415 - only who sends load needs it

    return uvloop.run(_measure(target, streams))


async def _measure(target: Running, streams: int) -> dict[str, float]:
    asked = load.Load(port=target.port, path=target.path, body=bodies.held(), slots=streams, stream=True)
    before = machine.memory(target.web)
    opened: list[load.Slot] = []
    for start in range(0, streams, 100):
        batch = await asyncio.gather(*(_open(asked) for _ in range(min(100, streams - start))))
        opened += batch
    await asyncio.sleep(1)
    grown = machine.memory(target.web) - before
    spent, since = machine.cpu(target.pid), time.perf_counter()
    figures = await _others(target)
    idle_before, idle_since = machine.cpu(target.pid), time.perf_counter()
    await asyncio.sleep(3)
    idle = (machine.cpu(target.pid) - idle_before) / (time.perf_counter() - idle_since)
    for slot in opened:
        slot.transport.abort()
    return {
        "streams": float(streams),
        "kb_each": grown * 1024 / streams,
        "p99_ms": figures["p99_ms"],
        "errors": figures["errors"],
        "cpu_share_idle": idle,
        "cpu_share_busy": (idle_before - spent) / (idle_since - since),
    }


async def _open(asked: load.Load) -> load.Slot:
    """A stream that has shown its first event."""
    slot = await load.connect(asked.port, load.Result())
    slot.send(load.request(asked)).add_done_callback(lambda future: future.exception())  # it ends with the run
    while b"content_block_delta" not in slot.received:  # noqa: ASYNC110 - thousands of them, once
        await asyncio.sleep(0.02)
    return slot


async def _others(target: Running) -> dict[str, float]:
    """New requests meanwhile."""
    asked = load.Load(port=target.port, path=target.path, body=bodies.small(), slots=8, seconds=3)
    return (await load.run_here(asked)).figures()
