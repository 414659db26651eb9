"""What one machine can give only once: BRIDGE_HOME and the port."""

import errno
import fcntl
import os
import socket
from pathlib import Path
from typing import TextIO

from bridge_project.secret import PRIVATE
from bridge_project.up.errors import StartError


def claim_home(home: Path) -> TextIO:
    """Hold the lock as long as the file is open; the kernel drops it with the process, however that ends."""
    try:
        home.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        file = (home / "up.lock").open("a+", encoding="ascii")
    except OSError as error:
        raise StartError(f"BRIDGE_HOME {home} cannot be written: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with file:
            file.seek(0)
            raise StartError(f"already running on BRIDGE_HOME {home} as process {file.read()}") from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def claim_port(host: str, port: int) -> socket.socket:
    try:
        listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=2048
        )
    except OSError as error:
        reason = "the port is taken; choose another with PORT=" if error.errno == errno.EADDRINUSE else str(error)
        raise StartError(f"cannot listen on {host}:{port}: {reason}") from error
    listener.settimeout(0)  # several processes wait at it: who comes too late must not stand still there
    return listener
