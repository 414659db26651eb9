"""Migrations on a database that others use: processes that serve, and others that want to migrate it, too.

One migrates at a time. On PostgreSQL none waits long for a table: whoever else wants it then stands behind the one that
waits, and a backup, or a transaction that was forgotten, would stop every turn for as long as it lasts.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db import DatabaseError, OperationalError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

log = logging.getLogger(__name__)

NUMBER = 8_029_183_746  # of the advisory lock, ours
TABLE_WAIT = "250ms"
REST = 1.0  # seconds before the next try
LONGEST = 600.0  # seconds of tries
SHAPES = ("ALTER", "CREATE", "DROP")
LOCK_NOT_AVAILABLE = "55P03"


def pending() -> bool:
    """Compares names only: loading every migration to learn that nothing is to do would double the start."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT app, name FROM django_migrations")
            applied = set(cursor.fetchall())
    except DatabaseError:
        return True
    return any(
        (app.label, file.stem) not in applied
        for app in apps.get_app_configs()
        for file in Path(app.path, "migrations").glob("[!_]*.py")
    )


def migrate() -> None:
    if connection.vendor != "postgresql":
        _run()
        return
    with _alone(), connection.execute_wrapper(_impatiently):
        until = time.monotonic() + LONGEST
        while pending():
            _attempt(until)


def _run() -> None:
    from django.core.management import call_command  # noqa: PLC0415 - most starts have nothing to migrate

    call_command("migrate", verbosity=0, interactive=False)


def _attempt(until: float) -> None:
    """What is done stays done: the next attempt goes on after it."""
    try:
        _run()
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != LOCK_NOT_AVAILABLE or time.monotonic() > until:
            raise
        log.warning("a transaction uses a table that is to be changed; trying again")
        time.sleep(REST)


def _impatiently(execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: dict[str, Any]) -> Any:  # noqa: FBT001 - Django's
    """Not outside of a transaction: what is made concurrently holds nobody up, and would be left half done."""
    if connection.in_atomic_block and str(sql).startswith(SHAPES):
        execute(f"SET LOCAL lock_timeout = '{TABLE_WAIT}'", None, False, context)  # noqa: FBT003
    return execute(sql, params, many, context)


@contextmanager
def _alone() -> Iterator[None]:
    """In a transaction of its own, which a pooler, too, leaves on one connection."""
    keeper = connections.create_connection("default")
    try:
        while not _locked(keeper):
            time.sleep(REST)
        yield
    finally:
        with suppress(DatabaseError):
            keeper.close()


def _locked(keeper: BaseDatabaseWrapper) -> bool:
    """Tried, not waited for: who waits has a snapshot, and whatever is made concurrently would wait for that."""
    keeper.set_autocommit(False)
    with keeper.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [NUMBER])
        (locked,) = cursor.fetchone()
    if not locked:
        keeper.rollback()
    return bool(locked)
