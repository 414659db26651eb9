"""The ways in which databases die, as context managers: each is a real fault, and ends with its block."""

import resource
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path

import psycopg

from tests.api.conftest import Served
from tests.servers.postgres import Postgres
from tests.torture.ledger import SCALE
from tests.torture.proxy import Proxy

DISK = 256 * 2**20

Faults = dict[str, Callable[[], AbstractContextManager[None]]]


def sqlite_faults(served: Served, disk: Path | None) -> Faults:
    """Without the right to mount or to make files immutable, what needs it is left out: no other read-only is real."""
    found: Faults = {"locked": partial(locked, served), "disk full": partial(_full(disk), served)}
    return found | {"read-only": partial(immutable, served)} if _may_freeze(served) else found


def postgres_faults(postgres: Postgres, proxy: Proxy, disk: Path | None) -> Faults:
    found: Faults = {
        "killed": partial(killed, postgres),
        "read-only": partial(read_only, postgres),
        "connection limit": partial(crowded, postgres),
        "gone": partial(gone, proxy),
    }
    if SCALE is not None:
        found["stalled"] = partial(stalled, proxy)
    return found | {"disk full": partial(filled, disk)} if disk else found


@contextmanager
def small_disk() -> Iterator[Path | None]:
    """A disk of its own, which can be filled; None where nobody may mount one."""
    with tempfile.TemporaryDirectory(prefix="toolbridge-disk-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL runs as somebody else
        image, disk = folder / "image", folder / "disk"
        disk.mkdir()
        with image.open("wb") as file:
            file.truncate(DISK)
        if not (_works("mkfs.ext4", "-q", "-m", "0", image) and _works("mount", "-o", "loop", image, disk)):
            yield None
            return
        try:
            yield disk
        finally:
            assert _works("umount", "--lazy", disk)


def _works(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    ballast = disk / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        yield
    finally:
        ballast.unlink()


@contextmanager
def locked(served: Served) -> Iterator[None]:
    connection = sqlite3.connect(served.database_url.removeprefix("sqlite:///"), isolation_level=None, timeout=30)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        connection.close()


@contextmanager
def full(served: Served) -> Iterator[None]:
    """No file of the bridge may grow: the system says EFBIG, as it says ENOSPC on a full disk."""
    before = resource.prlimit(served.bridge.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(served.bridge.pid, resource.RLIMIT_FSIZE, (1, before[1]))
    try:
        yield
    finally:
        resource.prlimit(served.bridge.pid, resource.RLIMIT_FSIZE, before)


def _full(disk: Path | None) -> Callable[[Served], AbstractContextManager[None]]:
    return full if disk is None else lambda _: filled(disk)


@contextmanager
def immutable(served: Served) -> Iterator[None]:
    """Its files cannot be written, not even by who has them open. The index of its journal stays as it is: that is
    memory which processes share, and the system kills whoever writes to it when its file is read-only."""
    frozen = [each for each in files(served)[:2] if each.exists()]
    assert _works("chattr", "+i", *frozen)
    try:
        yield
    finally:
        assert _works("chattr", "-i", *frozen)


def _may_freeze(served: Served) -> bool:
    probe = files(served)[0].with_name("probe")
    probe.touch()
    return _works("chattr", "+i", probe) and _works("chattr", "-i", probe)


def files(served: Served) -> list[Path]:
    path = served.database_url.removeprefix("sqlite:///")
    return [Path(path + suffix) for suffix in ("", "-wal", "-shm")]


@contextmanager
def killed(postgres: Postgres) -> Iterator[None]:
    postgres.kill()
    try:
        yield
    finally:
        postgres.start()


@contextmanager
def read_only(postgres: Postgres) -> Iterator[None]:
    switch = "default_transaction_read_only"
    _admin(postgres, f"ALTER SYSTEM SET {switch} = on", "SELECT pg_reload_conf()")
    try:
        yield
    finally:
        _admin(postgres, f"SET {switch} = off", f"ALTER SYSTEM RESET {switch}", "SELECT pg_reload_conf()")


@contextmanager
def crowded(postgres: Postgres) -> Iterator[None]:
    """Others have all connections."""
    taken: list[psycopg.Connection[tuple[object, ...]]] = []
    with psycopg.connect(postgres.address(), autocommit=True) as admin:
        try:
            deadline = time.monotonic() + 2
            while time.monotonic() < deadline:
                admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname LIKE 'test_%'")
                _take(postgres, taken)
            yield
        finally:
            for connection in taken:
                connection.close()


@contextmanager
def stalled(proxy: Proxy) -> Iterator[None]:
    """The way to it is silent, 5 s at a time."""
    ending = threading.Event()

    def breathe() -> None:
        while not ending.is_set():
            proxy.stall()
            ending.wait(5)
            proxy.flow()
            ending.wait(0.2)

    breathing = threading.Thread(target=breathe)
    breathing.start()
    try:
        yield
    finally:
        ending.set()
        breathing.join()


@contextmanager
def gone(proxy: Proxy) -> Iterator[None]:
    """Its machine lost power: nobody is told that the connections are dead; then another one takes its address."""
    proxy.forget()
    proxy.stall()
    try:
        yield
    finally:
        proxy.flow()


def _take(postgres: Postgres, taken: "list[psycopg.Connection[tuple[object, ...]]]") -> None:
    try:
        while True:
            taken.append(psycopg.connect(postgres.address(), connect_timeout=1))
    except psycopg.OperationalError:
        time.sleep(0.02)


def _admin(postgres: Postgres, *statements: str) -> None:
    with psycopg.connect(postgres.address(), autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)
