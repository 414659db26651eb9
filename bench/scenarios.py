"""The plain scenarios: every target goes through all of them."""

import http.client
import time
from collections.abc import Callable

from msgspec import Struct

from bench import bodies, load, machine
from bench.targets import Running

Body = Callable[..., bytes]


class Scenario(Struct, frozen=True, kw_only=True):
    name: str
    body: Body = bodies.small
    slots: int = 1
    seconds: float = 3.0
    requests: int = 0
    chunks: int = 0  # of a stream; 0: not a stream
    delay_us: int = 0


SCENARIOS = (
    Scenario(name="small, 1 client"),
    Scenario(name="small, 32 clients", slots=32, seconds=4),
    Scenario(name="small, 200 clients", slots=200, seconds=4),
    Scenario(name="big, 1 client", body=bodies.big),
    Scenario(name="big, 32 clients", body=bodies.big, slots=32, seconds=4),
    Scenario(name="burst, 1 client", chunks=500),
    Scenario(name="burst, 32 clients", chunks=500, slots=32, seconds=4),
    # 32 streams of 125 chunks a second each: 4,000 a second.
    Scenario(name="paced, 32 clients", chunks=500, delay_us=8_000, slots=32, requests=32, seconds=30),
)


def measure(target: Running, scenario: Scenario, upstream: int, scale: float) -> dict[str, float]:
    chunks = max(int(scenario.chunks * scale), 20) if scenario.chunks else 0
    control(upstream, chunks=chunks or 500, delay_us=scenario.delay_us, stamp=int(scenario.delay_us > 0))
    streamed = scenario.chunks > 0
    asked = load.Load(
        port=target.port,
        path=target.path,
        body=scenario.body(stream=streamed),
        slots=max(int(scenario.slots * min(scale * 4, 1)), 1),
        seconds=scenario.seconds if scenario.requests else scenario.seconds * scale,
        requests=max(int(scenario.requests * min(scale * 4, 1)), 1) if scenario.requests else 0,
        complete=target.complete,
        stream=streamed,
        ramp=0.5 if scenario.delay_us else 0.0,
    )
    before = machine.cpu(target.pid)
    result = load.run(asked)
    figures = result.figures()
    if figures["requests"]:
        each = (machine.cpu(target.pid) - before) * 1e6 / figures["requests"]
        figures["cpu_us_per_request"] = each
        if chunks:
            figures["cpu_us_per_chunk"] = each / chunks
    if result.complaint:
        raise SystemExit(f"{scenario.name}: {result.errors} errors, the first: {result.complaint}")
    return figures


def control(upstream: int, **settings: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", upstream, timeout=10)
    query = "&".join(f"{name}={value}" for name, value in settings.items())
    connection.request("GET", f"/control?{query}")
    connection.getresponse().read()
    connection.close()


def settle(target: Running) -> None:
    """Until nothing of its start is still at work: a worker that loads would be counted with the first scenario."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        before = machine.cpu(target.pid)
        time.sleep(0.5)
        if machine.cpu(target.pid) - before < 0.02:
            return


def warm(target: Running) -> None:
    asked = load.Load(port=target.port, path=target.path, body=bodies.small(), slots=8, requests=200, seconds=5)
    load.run(asked)
    time.sleep(0.3)
