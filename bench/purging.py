"""The purge of a great many conversations, and whether anybody who works meanwhile notices."""

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

from msgspec import Struct

from bench import bodies, load
from bench.targets import PROJECT, Running

ROUNDS = 4
WINDOW = 2.0  # seconds of load
DONE = re.compile(r"(\d+) conversations deleted, .* (\d+) rows in all; (?:the longest transaction took ([\d.]+) ms)?")


class Purge(Struct, frozen=True):
    environment: dict[str, str]
    conversations: int
    seconds: float  # of load without the purge, in all
    budget: float  # of the purge, in all


def measure(target: Running, purge: Purge) -> dict[str, float]:
    """p99 of live requests beside the purge, against the same without it; in turns, for a machine has its moods."""
    _run(purge, "-m", "bench.seed", str(purge.conversations))
    without, beside = load.Result(), load.Result()
    said: list[str] = []
    took = 0.0
    for _ in range(ROUNDS):
        for _ in range(max(round(purge.seconds / ROUNDS / WINDOW), 1)):
            _live(target, without)
        started = time.perf_counter()
        command = ("manage.py", "purge_inactive", f"--seconds={purge.budget / ROUNDS}")
        thread = threading.Thread(target=lambda command=command: said.append(_run(purge, *command)))
        thread.start()
        while thread.is_alive():
            _live(target, beside)
        took += time.perf_counter() - started
    found = [match for told in said if (match := DONE.search(told))]
    assert len(found) == ROUNDS, said
    before, during = without.figures(), beside.figures()
    return {
        "conversations": sum(float(told[1]) for told in found),
        "seconds": took,
        "per_second": sum(int(told[1]) for told in found) / took,
        "rows_per_second": sum(int(told[2]) for told in found) / took,
        "longest_transaction_ms": max(float(told[3] or 0) for told in found),
        "p99_before_ms": before["p99_ms"],
        "p99_during_ms": during["p99_ms"],
        "p99_ratio": during["p99_ms"] / before["p99_ms"],
        "p50_ratio": during["p50_ms"] / before["p50_ms"],
        "errors": before["errors"] + during["errors"],
    }


def _live(target: Running, into: load.Result) -> None:
    """A server that is not at its limit: forty clients, each with a request every half second."""
    asked = load.Load(
        port=target.port, path=target.path, body=bodies.small(), slots=40, seconds=WINDOW, pause=0.5, ramp=0.5
    )
    found = load.run(asked)
    into.latencies += found.latencies
    into.errors += found.errors
    into.wall += found.wall


def _run(purge: Purge, *arguments: str) -> str:
    python = PROJECT / ".venv" / "bin" / "python"
    command = [str(python) if Path(python).exists() else sys.executable, *arguments]
    done = subprocess.run(command, cwd=PROJECT, env=purge.environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout
