"""What a test process starts does not outlive it, however it dies: a process beside it hears of that, and kills."""

import atexit
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import AnyStr

import psutil


def kept(process: "subprocess.Popen[AnyStr]") -> "subprocess.Popen[AnyStr]":
    keeper = _keeper()
    assert keeper.stdin is not None
    keeper.stdin.write(f"{process.pid}\n")
    keeper.stdin.flush()
    return process


@cache
def _keeper() -> "subprocess.Popen[str]":
    keeper = subprocess.Popen(
        [sys.executable, "-m", "tests.servers.keeper"],
        cwd=Path(__file__).resolve().parents[2],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,  # Ctrl-C is for the tests
    )
    atexit.register(keeper.communicate)
    return keeper


def main() -> None:
    """Until the pipe ends; a process is known by when it was made, so that no other one with its number is meant."""
    processes = []
    for line in sys.stdin:
        with suppress(psutil.NoSuchProcess):
            processes.append(psutil.Process(int(line)))
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()


if __name__ == "__main__":
    main()
