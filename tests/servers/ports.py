"""Free ports, and waiting for a server without guessing how long it takes."""

import socket
import time
from collections.abc import Callable


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def wait_until(condition: Callable[[], bool], what: str, *, seconds: float = 30.0) -> None:
    """Look every 10 ms; after `seconds` it is a failure that names what did not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.01)
