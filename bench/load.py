"""A closed-loop client of `/v1/messages`: each slot sends its next request when its last answer is complete."""

import asyncio
import re
import time
from collections.abc import Iterator
from statistics import quantiles
from typing import Any, cast

from msgspec import Struct

KEY = "sk-bench-0123456789abcdef0123456789abcdef"  # of the benchmark's own servers, on loopback
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
STAMP = re.compile(rb"@(\d{9,});")


class Load(Struct, frozen=True, kw_only=True):
    """What to send, how often, to whom."""

    port: int
    path: str
    body: bytes
    slots: int = 1
    seconds: float = 3.0
    requests: int = 0  # 0: as many as the time allows
    complete: bytes = b"message_stop"  # a stream without it was cut short
    stream: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    ramp: float = 0.0  # seconds over which the slots start
    pause: float = 0.0  # of a slot after each answer


class Result:
    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.ages: list[float] = []
        self.errors = 0
        self.complaint = ""
        self.wall = 0.0

    def figures(self) -> dict[str, float]:
        figures = {"requests": float(len(self.latencies)), "errors": float(self.errors)}
        if self.latencies:
            figures["per_second"] = len(self.latencies) / self.wall
            figures["p50_ms"], figures["p99_ms"] = (1e3 * value for value in _middle_and_tail(self.latencies))
        if self.ages:
            figures["age_p50_ms"], figures["age_p99_ms"] = (value / 1e6 for value in _middle_and_tail(self.ages))
        return figures


def _middle_and_tail(values: list[float]) -> tuple[float, float]:
    if len(values) < 2:
        return values[0], values[0]
    cuts = quantiles(values, n=100, method="inclusive")
    return cuts[49], cuts[98]


class Slot(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._buffer, self._scanned = bytearray(), 0
        self._done: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        if self._done is not None and not self._done.done():
            self._done.set_exception(ConnectionResetError("closed before the answer was complete"))

    @property
    def received(self) -> bytearray:
        return self._buffer

    def send(self, request: bytes) -> "asyncio.Future[bytes]":
        self._buffer, self._scanned = bytearray(), 0
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return self._done

    def data_received(self, data: bytes) -> None:
        if self._done is None or self._done.done():
            return
        self._buffer += data
        for stamp in STAMP.finditer(self._buffer, self._scanned):
            self._result.ages.append(time.monotonic_ns() - int(stamp[1]))
            self._scanned = stamp.end()
        if self._complete():
            self._done.set_result(bytes(self._buffer))

    def _complete(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return False
        found = LENGTH.search(self._buffer, 0, end + 2)
        if found:
            return len(self._buffer) >= end + 4 + int(found[1])
        return self._buffer.endswith(b"\r\n0\r\n\r\n")


def request(load: Load, body: bytes | None = None) -> bytes:
    sent = load.body if body is None else body
    given = {
        "host": f"127.0.0.1:{load.port}",
        "content-type": "application/json",
        "x-api-key": KEY,
        "anthropic-version": "2023-06-01",
        "content-length": str(len(sent)),
        **dict(load.headers),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"POST {load.path} HTTP/1.1\r\n{head}\r\n".encode() + sent


def run(load: Load) -> Result:
    import uvloop  # noqa: PLC0415 - only who sends load needs it

    return uvloop.run(run_here(load))


async def run_here(load: Load) -> Result:
    result, sent = Result(), request(load)
    left = iter(range(load.requests)) if load.requests else _forever()
    started = time.perf_counter()
    slots = (_slot(load, result, sent, left, started, number) for number in range(load.slots))
    await asyncio.gather(*slots)
    result.wall = time.perf_counter() - started
    return result


def _forever() -> Iterator[int]:
    number = 0
    while True:
        yield number
        number += 1


async def _slot(load: Load, result: Result, sent: bytes, left: Iterator[int], started: float, number: int) -> None:
    await asyncio.sleep(load.ramp * number / load.slots)
    slot = await connect(load.port, result)
    while time.perf_counter() - started < load.seconds and next(left, None) is not None:
        begun = time.perf_counter()
        try:
            answer = await asyncio.wait_for(slot.send(sent), 60)
        except (OSError, TimeoutError) as error:
            _complain(result, repr(error))
            slot = await connect(load.port, result)
            continue
        if b" 200 " in answer[:15] and (not load.stream or load.complete in answer):
            result.latencies.append(time.perf_counter() - begun)
        else:
            _complain(result, answer[:400].decode("utf-8", "replace"))
        if load.pause:
            await asyncio.sleep(load.pause)
    slot.transport.close()


async def connect(port: int, result: Result) -> Slot:
    _, slot = await asyncio.get_running_loop().create_connection(lambda: Slot(result), "127.0.0.1", port)
    return slot


def _complain(result: Result, what: str) -> None:
    result.errors += 1
    result.complaint = result.complaint or what


def ask(port: int, path: str, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> Any:
    """One request, outside of any measurement."""
    return run(Load(port=port, path=path, body=body, requests=1, seconds=60, headers=headers))
