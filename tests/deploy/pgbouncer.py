"""A PgBouncer of the test's own, as deploy/pgbouncer.ini configures it."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.servers.bridge import PROJECT
from tests.servers.keeper import kept
from tests.servers.ports import free_port, wait_until

POOL = 2  # fewer server connections than one bridge has clients, so that they are shared for sure


@contextmanager
def running_pgbouncer(database_url: str, folder: Path) -> Iterator[str]:
    """The URL of the same database behind it."""
    command = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if command is None:
        pytest.skip("no PgBouncer: `make servers` could not install it")
    database, port = urlsplit(database_url), free_port()
    path = folder / "pgbouncer.ini"
    with path.open("w", encoding="utf-8") as file:
        _configuration(database_url, port).write(file)
    folder.chmod(0o755)
    # It refuses to run as root.
    user = ["-u", "nobody"] if os.getuid() == 0 else []
    with (folder / "pgbouncer.log").open("wb") as log:
        server = kept(subprocess.Popen([command, *user, str(path)], cwd=folder, stdout=log, stderr=log))
    try:
        url = f"postgres://{database.username}@127.0.0.1:{port}{database.path}"
        wait_until(lambda: _answers(url), "PgBouncer answers")
        yield url
    finally:
        server.terminate()
        server.wait(10)


def _configuration(database_url: str, port: int) -> ConfigParser:
    """The file that is deployed, but for its addresses, its users and a smaller pool."""
    database = urlsplit(database_url)
    name = database.path.lstrip("/")
    config = ConfigParser(interpolation=None)
    config.read(PROJECT / "deploy" / "pgbouncer.ini", encoding="utf-8")
    config["databases"] = {name: f"host=127.0.0.1 port={database.port} dbname={name} user={database.username}"}
    config["pgbouncer"].update({"listen_port": str(port), "auth_type": "any", "default_pool_size": str(POOL)})
    del config["pgbouncer"]["auth_file"]
    return config


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
