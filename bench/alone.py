"""Scenarios of the bridge alone: idle streams, slow clients, growing conversations, the purge, the store by itself."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench import growth, idle, machine, purging, scenarios, slow, targets
from bench.purging import Purge
from bench.targets import HOME, PROJECT, Running
from tests.servers.postgres import Postgres, running_postgres

DURABLE = ("max_connections=200", "shared_buffers=128MB", "max_wal_size=4GB")
Tell = Callable[[str, str, dict[str, float]], None]
Wants = Callable[[str], bool]


class Alone:
    def __init__(self, upstream: int, scale: float, conversations: int, purging: float, tell: Tell) -> None:
        self.upstream, self.scale, self.tell = upstream, scale, tell
        self.conversations, self.purging = conversations, purging

    def run(self, wants: Wants) -> None:
        for name, job in (
            ("idle", self.idle),
            ("slow", self.slow),
            ("growth", self.growth),
            ("stored", self.stored),
            ("purge", self.purge),
            ("micro", self.micro),
        ):
            if wants(name):
                job()

    def idle(self) -> None:
        with targets.toolbridge(self.upstream, "idle") as running:
            scenarios.warm(running)
            self.tell("toolbridge", "idle", idle.measure(running, max(int(9_000 * self.scale), 20)))

    def slow(self) -> None:
        with targets.toolbridge(self.upstream, "slow") as running:
            scenarios.warm(running)
            streams, seconds = max(int(200 * self.scale), 5), max(5 * self.scale, 1)
            self.tell("toolbridge", "slow", slow.measure(running, self.upstream, streams, seconds))

    def growth(self) -> None:
        turns = max(int(500 * self.scale), 12)
        for threads, scenario in ((False, "growth"), (True, "growth, threads")):
            with targets.toolbridge(self.upstream, "growth") as running:
                scenarios.warm(running)
                for figures in growth.ages(running, turns, threads=threads):
                    self.tell("toolbridge", scenario, figures)
            with postgres(self.upstream, "growth-postgres") as running:
                scenarios.warm(running)
                for figures in growth.ages(running, turns, threads=threads):
                    self.tell("toolbridge", f"{scenario}, PostgreSQL", figures)

    def stored(self) -> None:
        turns = max(int(200 * self.scale), 10)
        with targets.toolbridge(self.upstream, "stored") as running:
            file = growth.Kept(HOME / "stored" / "bridge.sqlite3")
            self.tell("toolbridge", "stored", growth.stored(running, file, turns))
        with durable() as server:
            url = server.create_database()
            with targets.toolbridge(self.upstream, "stored-postgres", DATABASE_URL=url) as running:
                self.tell("toolbridge", "stored, PostgreSQL", growth.stored(running, growth.Kept(url), turns))

    def purge(self) -> None:
        many, seconds = max(int(self.conversations * self.scale), 500), max(20 * self.scale, 3)
        with targets.toolbridge(self.upstream, "purge", BRIDGE_INACTIVITY_HOURS="48") as running:
            scenarios.warm(running)
            environment = targets.surroundings(self.upstream, "purge") | {"BRIDGE_INACTIVITY_HOURS": "48"}
            self.tell(
                "toolbridge", "purge", purging.measure(running, Purge(environment, many // 10, seconds, self.purging))
            )
        with durable() as server:
            more = {"BRIDGE_INACTIVITY_HOURS": "48", "DATABASE_URL": server.create_database()}
            with targets.toolbridge(self.upstream, "purge-postgres", **more) as running:
                scenarios.warm(running)
                environment = targets.surroundings(self.upstream, "purge-postgres") | more
                found = purging.measure(running, Purge(environment, many, seconds, self.purging))
                self.tell("toolbridge", "purge, PostgreSQL", found)

    def micro(self) -> None:
        self.tell("store", "micro", self._micro({}))
        with durable() as server:
            self.tell("store", "micro, PostgreSQL", self._micro({"DATABASE_URL": server.create_database()}))
        for dialect, figures in json.loads(_output("-m", "bench.decoders", "--json")).items():
            self.tell("decoder", dialect, figures)

    def _micro(self, more: dict[str, str]) -> dict[str, float]:
        home = HOME / "micro"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        said = _output("-m", "bench.micro", str(home), str(self.scale), **more)
        figures: dict[str, float] = json.loads(said)
        return figures


@contextmanager
def durable() -> Iterator[Postgres]:
    """A PostgreSQL that keeps what it was given, on whichever core is free."""
    with ExitStack() as running:
        with machine.pinned(machine.CORES):
            server = running.enter_context(running_postgres(DURABLE))
        yield server


@contextmanager
def postgres(upstream: int, name: str, **settings: str) -> Iterator[Running]:
    """The bridge on a durable PostgreSQL of its own."""
    with durable() as server:
        url = server.create_database()
        with targets.toolbridge(upstream, name, DATABASE_URL=url, **settings) as running:
            yield running


def _output(*arguments: str, **more: str) -> str:
    environment = targets.surroundings(1, "micro") | {"PYTHONPATH": str(PROJECT), **more}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=Path(PROJECT), env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout
