"""What has to be true before the first request: folders, a sound database, its tables, an operator, an API key."""

import secrets
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.checks import run_checks
from django.db import DatabaseError, IntegrityError, connection

from bridge_project.secret import PRIVATE
from bridge_project.up import migrating
from bridge_project.up.announcement import FirstRun
from bridge_project.up.errors import StartError
from conversations import keys
from conversations.models import ApiKey, Upstream

# SQLite reads the whole file to check it; a bigger one is trusted until a query fails.
CHECKED_BYTES = 16 * 2**20


def prepare() -> FirstRun:
    make_folders()
    try:
        if connection.vendor == "sqlite":
            check_file(Path(settings.DATABASES["default"]["NAME"]))
        if migrating.pending():
            migrating.migrate()
        return FirstRun(
            admin_password=first_operator(),
            api_key=first_key(),
            only_demo=only_demo(),
            operator_exists=operator_exists(),
        )
    except (DatabaseError, sqlite3.Error) as error:
        raise StartError(f"the database {_database()} cannot be used: {_first_line(error)}") from error
    finally:
        connection.close()


def complain() -> None:
    """About settings that are served with, though not as they were meant: `manage.py check` says the same."""
    for message in run_checks(tags=["toolbridge"]):
        sys.stderr.write(f"toolbridge: {message.msg}\n")


def make_folders() -> None:
    """Celery's own worker, which deployments run, finds its broker's folders or fails."""
    for folder in (settings.BRIDGE_HOME, *settings.BROKER_FOLDERS.values()):
        try:
            folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            raise StartError(f"{folder} cannot be made: {error.strerror}") from error


def check_file(path: Path) -> None:
    """A file that was cut short or overwritten is found now, not in the middle of a conversation."""
    if not path.exists() or path.stat().st_size > CHECKED_BYTES:
        return
    with closing(sqlite3.connect(path, timeout=10)) as database:
        ((verdict,), *_) = database.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok":
        raise StartError(f"the database {path} is damaged ({verdict}): restore a backup or move the file away")


def first_operator() -> str | None:
    """The generated password, if one was generated."""
    users = get_user_model()._default_manager
    if users.exists():
        return None
    password = settings.BRIDGE_ADMIN_PASSWORD or secrets.token_urlsafe(12)
    try:
        users.create_superuser(settings.BRIDGE_ADMIN_USER, password=password)
    except IntegrityError:
        return None  # another one prepares the same database, and was first
    return None if settings.BRIDGE_ADMIN_PASSWORD else password


def operator_exists() -> bool:
    """The variable is for the first start: a later one makes nobody."""
    users = get_user_model()._default_manager
    return users.filter(username=settings.BRIDGE_ADMIN_USER).exists()


def first_key() -> str | None:
    for key in keys.left_of_environment(settings.BRIDGE_API_KEYS):
        sys.stderr.write(
            f"toolbridge: {key} is no longer in BRIDGE_API_KEYS, but still accepted; manage.py revoke_key ends that\n"
        )
    if settings.BRIDGE_API_KEYS:
        keys.ensure_environment_keys(settings.BRIDGE_API_KEYS)
        return None
    if ApiKey.objects.exists():
        return None
    _, secret = keys.issue("first key")
    return secret


def only_demo() -> bool:
    named = any(keys or url for keys, url in settings.BRIDGE_UPSTREAMS.values())
    return not named and not Upstream.objects.filter(enabled=True).exists()


def _database() -> str:
    database = settings.DATABASES["default"]
    return str(database["NAME"]) if connection.vendor == "sqlite" else f"{database['NAME']} on {database['HOST']}"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
