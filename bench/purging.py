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

DONE = re.compile(r"(\d+) conversations deleted, .* (\d+) rows in all; the longest transaction took ([\d.]+) ms")


class Purge(Struct, frozen=True):
    environment: dict[str, str]
    conversations: int
    seconds: float  # of load without the purge, and the least with it
    budget: float


def measure(target: Running, purge: Purge) -> dict[str, float]:
    """p99 of live requests beside the purge, against the same with as many old rows and no purge."""
    _run(purge, "-m", "bench.seed", str(purge.conversations))
    before = _live(target, purge.seconds)
    said: list[str] = []
    started = time.perf_counter()
    command = ("manage.py", "purge_inactive", f"--seconds={purge.budget}")
    thread = threading.Thread(target=lambda: said.append(_run(purge, *command)))
    thread.start()
    during: list[dict[str, float]] = []
    while thread.is_alive():
        during.append(_live(target, purge.seconds))
    took = time.perf_counter() - started
    found = DONE.search(said[0])
    assert found is not None, said
    p99 = sorted(figures["p99_ms"] for figures in during)[len(during) // 2]
    return {
        "conversations": float(found[1]),
        "seconds": took,
        "per_second": int(found[1]) / took,
        "rows_per_second": int(found[2]) / took,
        "longest_transaction_ms": float(found[3]),
        "p99_before_ms": before["p99_ms"],
        "p99_during_ms": p99,
        "p99_ratio": p99 / before["p99_ms"],
        "p50_ratio": sorted(figures["p50_ms"] for figures in during)[len(during) // 2] / before["p50_ms"],
        "errors": sum(figures["errors"] for figures in (before, *during)),
    }


def _live(target: Running, seconds: float) -> dict[str, float]:
    """A server that is not at its limit: forty clients, each with a request every half second."""
    asked = load.Load(
        port=target.port, path=target.path, body=bodies.small(), slots=40, seconds=seconds, pause=0.5, ramp=0.5
    )
    return load.run(asked).figures()


def _run(purge: Purge, *arguments: str) -> str:
    python = PROJECT / ".venv" / "bin" / "python"
    command = [str(python) if Path(python).exists() else sys.executable, *arguments]
    done = subprocess.run(command, cwd=PROJECT, env=purge.environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout
