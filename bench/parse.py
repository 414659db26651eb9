"""CPU microseconds per parse of what clients send: `python -m bench.parse`."""

import sys
import time
import timeit

from bench import bodies
from translation.client.parse import parse

REPEATS = 9


def microseconds(body: bytes, number: int) -> float:
    timer = timeit.Timer(lambda: parse(body, "2023-06-01", ()), timer=time.process_time)
    return min(timer.repeat(REPEATS, number)) / number * 1e6


if __name__ == "__main__":
    for name, body, number in (("small", bodies.small(), 1000), ("big", bodies.big(), 100)):
        sys.stdout.write(f"{name}: {len(body)} bytes, {microseconds(body, number):.0f} CPU us per parse\n")
