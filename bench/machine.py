"""What a tree of processes uses: CPU time to the nanosecond, memory, descriptors."""

import os
import platform
import resource
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

CORES = frozenset(os.sched_getaffinity(0))  # of this run, before any part of it is kept to one
SERVER, LOAD = frozenset(sorted(CORES)[:1]), frozenset(sorted(CORES)[1:2])


def tree(pid: int) -> list[psutil.Process]:
    root = psutil.Process(pid)
    return [root, *root.children(recursive=True)]


class Cpu(dict[str, int]):
    """Nanoseconds on a core, by thread. The difference of two is in seconds; what a thread used that has ended since
    is not in it, but neither is it taken from the others'."""

    def __sub__(self, before: "Cpu") -> float:
        return sum(max(now - before.get(thread, 0), 0) for thread, now in self.items()) / 1e9


def cpu(pid: int) -> Cpu:
    """Of all threads of all processes; a tick of `times` would be as long as ten requests."""
    found = Cpu()
    for process in tree(pid):
        for task in Path(f"/proc/{process.pid}/task").iterdir():
            try:
                found[task.name] = int((task / "schedstat").read_bytes().split()[0])
            except OSError:
                continue
    return found


def memory(pid: int) -> float:
    """Megabytes resident."""
    total = 0
    for process in tree(pid):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / 2**20


def descriptors(pid: int) -> int:
    return sum(process.num_fds() for process in tree(pid))


def raise_descriptors() -> int:
    """As many as may be had; inherited by what is started afterwards."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def end_cleanly() -> None:
    """Who is told to end still ends what it started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def pin(cores: frozenset[int]) -> None:
    """The server gets a core of its own where there are two. What this process starts inherits its cores, and may be
    given others."""
    if len(CORES) > 1:
        os.sched_setaffinity(0, cores)


@contextmanager
def pinned(cores: frozenset[int]) -> Iterator[None]:
    """What is started meanwhile runs there."""
    before = frozenset(os.sched_getaffinity(0))
    pin(cores)
    try:
        yield
    finally:
        pin(before)


def described() -> str:
    cores = os.cpu_count() or 1
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        platform.machine(),
    )
    return f"{cores} cores, {model}, Linux {platform.release()}, Python {platform.python_version()}"
