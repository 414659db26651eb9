"""A mixed run for as long as one likes: `python -m bench.mixed --minutes 30`.

PostgreSQL, Redis, 4 web processes, 2 workers, the purge all the time. It must end without an error, and without growth
of memory or descriptors: the middle of the run is compared with its end.
"""

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import bodies, load, machine, targets
from bench.alone import DURABLE
from bench.targets import HOME, PROJECT, Running
from tests.servers.postgres import running_postgres
from tests.servers.valkey import running_valkey

SAMPLE_SECONDS = 5.0
IDLE_HOURS = "0.01"  # 36 seconds: what is not used is purged all the time
Part = Callable[["Mix"], Awaitable[None]]


class Mix:
    def __init__(self, target: Running, seconds: float) -> None:
        self.target, self.until = target, time.monotonic() + seconds
        self.answers: Counter[str] = Counter()
        self.complaints: list[str] = []
        self.samples: list[dict[str, float]] = []
        self.times: list[float] = []

    async def run(self, clients: int) -> None:
        parts = (asked_once, streamed, grown, continued, left)
        jobs = [self._client(parts[number % len(parts)]) for number in range(clients)]
        await asyncio.gather(self._watch(), *jobs)

    async def _client(self, part: Part) -> None:
        while time.monotonic() < self.until:
            try:
                await part(self)
            except (OSError, TimeoutError) as error:
                self.complaints.append(f"{part.__name__}: {error!r}")
            await asyncio.sleep(random.uniform(0.0, 0.1))  # noqa: S311 - no secret

    async def ask(self, what: str, body: bytes, *headers: tuple[str, str]) -> bytes:
        slot = await load.connect(self.target.port, load.Result())
        asked = load.Load(port=self.target.port, path=self.target.path, body=body, headers=headers)
        started = time.perf_counter()
        answer = await asyncio.wait_for(slot.send(load.request(asked)), 60)
        self.times.append(time.perf_counter() - started)
        slot.transport.close()
        self.answers[what] += 1
        if b" 200 " not in answer[:15] or b"event: error" in answer:
            self.complaints.append(f"{what}: {answer[:300]!r}")
        return answer.partition(b"\r\n\r\n")[2]

    async def _watch(self) -> None:
        while time.monotonic() < self.until:
            self.samples.append({"mb": machine.memory(self.target.pid), "fds": machine.descriptors(self.target.pid)})
            await asyncio.sleep(SAMPLE_SECONDS)


async def asked_once(mix: Mix) -> None:
    await mix.ask("small", bodies.small())


async def streamed(mix: Mix) -> None:
    await mix.ask("stream", bodies.small(stream=True))


async def grown(mix: Mix) -> None:
    """A conversation of a dozen turns, each with everything before it."""
    name = f"mixed-{random.getrandbits(64):x}"
    for turn in range(1, 13):
        await mix.ask("growing", bodies.growing(turn), ("x-conversation-id", name))


async def continued(mix: Mix) -> None:
    last = ""
    for turn in range(1, 13):
        answer = json.loads(await mix.ask("thread", bodies.continued(turn, last)))
        if "id" not in answer:
            return  # which was complained about
        last = answer["id"]


async def left(mix: Mix) -> None:
    """A client that goes away in the middle of an answer."""
    slot = await load.connect(mix.target.port, load.Result())
    asked = load.Load(port=mix.target.port, path=mix.target.path, body=bodies.held())
    slot.send(load.request(asked)).add_done_callback(lambda future: future.exception())
    deadline = time.monotonic() + 30
    while b"content_block_delta" not in slot.received:
        if time.monotonic() > deadline:
            raise TimeoutError("the stream did not begin")
        await asyncio.sleep(0.01)
    slot.transport.abort()
    mix.answers["left"] += 1


def measure(target: Running, seconds: float, clients: int) -> tuple[dict[str, float], list[str]]:
    import uvloop  # noqa: PLC0415 - only who sends load needs it

    mix = Mix(target, seconds)
    uvloop.run(mix.run(clients))
    half, last = (
        mix.samples[len(mix.samples) * 2 // 5 : len(mix.samples) * 3 // 5],
        mix.samples[-len(mix.samples) // 5 :],
    )
    middle = {name: statistics.median(sample[name] for sample in half) for name in ("mb", "fds")}
    end = {name: statistics.median(sample[name] for sample in last) for name in ("mb", "fds")}
    figures = {
        "minutes": seconds / 60,
        "answers": float(mix.answers.total()),
        "errors": float(len(mix.complaints)),
        "p50_ms": statistics.median(mix.times) * 1e3,
        "p99_ms": statistics.quantiles(mix.times, n=100)[98] * 1e3,
        "mb_middle": middle["mb"],
        "mb_end": end["mb"],
        "fds_middle": middle["fds"],
        "fds_end": end["fds"],
        **{f"answers_{name}": float(count) for name, count in sorted(mix.answers.items())},
    }
    return figures, mix.complaints


@contextmanager
def deployment(upstream: int) -> Iterator[Running]:
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres(DURABLE))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        settings = {
            "DATABASE_URL": server.create_database(),
            "REDIS_URL": stack.enter_context(running_valkey(folder)),
            "WEB_WORKERS": "4",
            "BRIDGE_INACTIVITY_HOURS": IDLE_HOURS,
        }
        running = stack.enter_context(targets.toolbridge(upstream, "mixed", **settings))
        environment = targets.surroundings(upstream, "mixed") | settings
        celery = [str(Path(sys.executable).with_name("celery")), "--app", "bridge_project.celery:app"]
        cores = machine.CORES
        for command in (
            [*celery, "worker", "--pool", "solo", "--loglevel", "WARNING"],
            [sys.executable, "-m", "bench.mixed", "--purge"],
        ):
            stack.enter_context(targets.launched(command, environment, cores, HOME / "mixed-worker.log"))
        yield running


def purge_for_ever() -> None:
    command = [sys.executable, "manage.py", "purge_inactive", "--seconds=60"]
    while not subprocess.run(command, cwd=PROJECT, check=True).returncode:
        time.sleep(5)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.mixed", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--purge", action="store_true", help="only purge, again and again, until it is ended")
    parser.add_argument("--out", default=str(HOME / "results.jsonl"))
    options = parser.parse_args(arguments)
    if options.purge:
        purge_for_ever()
    HOME.mkdir(parents=True, exist_ok=True)
    machine.end_cleanly()
    with targets.fake_upstream() as upstream, deployment(upstream.port) as running:
        figures, complaints = measure(running, options.minutes * 60, options.clients)
    line = json.dumps({"target": "toolbridge", "scenario": "mixed"} | {key: round(figures[key], 2) for key in figures})
    with Path(options.out).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")
    sys.stdout.write("\n".join([line, *complaints[:20], ""]))
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main(sys.argv[1:])
