"""Migrations while others use the database: they hold nobody up, and only one does them."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg

from tests.servers import migrated
from tests.servers.bridge import PROJECT, clean_environment
from tests.servers.ports import wait_until

COLUMNS = PROJECT / "tests" / "upgrade" / "columns.txt"
WAITS = "a transaction uses a table that is to be changed"


def prepare(environment: dict[str, str]) -> "subprocess.Popen[str]":
    command = [sys.executable, "manage.py", "prepare"]
    return subprocess.Popen(
        command, cwd=PROJECT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_several_may_prepare_a_database_that_is_in_use(tmp_path: Path, postgres_url: str) -> None:
    given = {"DATABASE_URL": postgres_url, "BRIDGE_API_KEYS": "sk-test-" + "2" * 32, "BRIDGE_ADMIN_PASSWORD": "p" * 20}
    environment = clean_environment(tmp_path, 8000) | given
    both = [prepare(environment), prepare(environment)]
    assert [(one.communicate(timeout=60), one.returncode) for one in both] == [(("", ""), 0)] * 2
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE conversations_message DROP COLUMN span")
        connection.execute("ALTER TABLE conversations_process DROP COLUMN form")
        connection.execute("DELETE FROM django_migrations WHERE app = 'conversations' AND name >= '0012'")
        waits_for_a_backup(prepare(environment), postgres_url, connection)
        assert connection.execute("SELECT sum(span) FROM conversations_message").fetchone() == (None,)


def waits_for_a_backup(
    preparing: "subprocess.Popen[str]", url: str, served: "psycopg.Connection[tuple[object, ...]]"
) -> None:
    """Whoever serves does not notice: no lock of theirs takes a second."""
    served.execute("SET lock_timeout = '1s'")
    assert preparing.stderr is not None
    with psycopg.connect(url) as backup:
        backup.execute("SELECT count(*) FROM conversations_message")
        wait_until(lambda: _stands_in_line(served), "the migration wants the table")
        with served.transaction():
            served.execute("LOCK TABLE conversations_message IN ROW EXCLUSIVE MODE")
        assert WAITS in preparing.stderr.readline()
    preparing.communicate(timeout=60)
    assert preparing.returncode == 0


def _stands_in_line(connection: "psycopg.Connection[tuple[object, ...]]") -> bool:
    sql = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'conversations_message'::regclass"
    return connection.execute(sql).fetchone() is not None


def test_processes_of_the_version_before_can_write_all_their_rows(tmp_path: Path) -> None:
    """`columns.txt` is what that version knows. A column that it does not name needs a value of its own."""
    migrated.provide({"BRIDGE_HOME": str(tmp_path)})
    with closing(sqlite3.connect(tmp_path / "bridge.sqlite3")) as connection:
        for line in COLUMNS.read_text(encoding="utf-8").splitlines():
            table, _, named = line.partition(": ")
            known = set(named.split())
            columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
            assert known <= {name for _, name, *_ in columns}, table
            needed = {name for _, name, _, required, default, _ in columns if required and default is None}
            assert needed <= known, table
