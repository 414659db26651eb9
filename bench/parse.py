"""CPU microseconds per parse of the load generator's payloads: `python bench/parse.py PATH_OF_PAYLOADS_PY`."""

import importlib.util
import sys
import time
import timeit
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from translation.client.parse import parse

REPEATS = 9


def payload(path: str, name: str) -> bytes:
    spec = importlib.util.spec_from_file_location("payloads", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    body: bytes = module.get(name, True)
    return body


def microseconds(body: bytes, number: int) -> float:
    timer = timeit.Timer(lambda: parse(body, "2023-06-01", ()), timer=time.process_time)
    return min(timer.repeat(REPEATS, number)) / number * 1e6


def main(path: str) -> None:
    for name, number in (("small", 1000), ("big", 100)):
        body = payload(path, name)
        sys.stdout.write(f"{name}: {len(body)} bytes, {microseconds(body, number):.0f} CPU us per parse\n")


if __name__ == "__main__":
    main(sys.argv[1])
