"""The store on a real database, SQLite's file and PostgreSQL alike: each test runs on both, with a key of its own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import django
import pytest
import pytest_asyncio
from django.core.management import call_command
from django.db import connections
from pytest_django import DjangoDbBlocker

from bridge_project.databases import database
from tests.servers.postgres import Postgres

if TYPE_CHECKING:
    from conversations.models import ApiKey
    from conversations.store import Store


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def migrated(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, django_db_blocker: DjangoDbBlocker
) -> Iterator[str]:
    """Django's default database, for as long as the module runs."""
    django.setup()
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/store.sqlite3"
    if request.param == "postgres":
        postgres: Postgres = request.getfixturevalue("postgres")
        url = postgres.create_database()
    before = connections.settings["default"]
    connections.settings["default"] = connections.configure_settings({"default": database(url, Path())})["default"]
    _reconnect()
    with django_db_blocker.unblock():
        call_command("migrate", verbosity=0)
        yield url
        connections["default"].close()
    connections.settings["default"] = before
    _reconnect()


def _reconnect() -> None:
    if hasattr(connections._connections, "default"):  # type: ignore[attr-defined]  # Django's own way to reset one
        del connections["default"]


@pytest.fixture
def key(migrated: str) -> "ApiKey":
    from conversations import keys  # noqa: PLC0415 - Django is set up by now

    return keys.issue("test")[0]


@pytest_asyncio.fixture
async def store(migrated: str) -> "AsyncIterator[Store]":
    from conversations.store import Store  # noqa: PLC0415

    started = Store()
    started.start()
    yield started
    await started.stop()
