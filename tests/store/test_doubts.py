"""Transactions whose commit was not confirmed, and what is written after them."""

import threading
from pathlib import Path

import psycopg
import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from bridge_project.databases import database
from conversations.store.database import Database
from tests.servers.ports import wait_until
from tests.servers.postgres import Postgres
from tests.torture.proxy import Proxy


def test_a_commit_that_comes_late_is_not_stored_behind_what_was_written_since(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> None:
    """A turn that was closed before it was there would be `running` for ever."""
    with Proxy(postgres.port) as route, django_db_blocker.unblock():
        direct = postgres.create_database()
        url = direct.replace(f":{postgres.port}/", f":{route.port}/")
        monkeypatch.setitem(
            connections.settings,
            "default",
            connections.configure_settings({"default": database(url, Path())})["default"],
        )
        db, failed = Database(), list[Exception]()
        db.execute("CREATE TABLE turn (status text)")

        def store() -> None:
            try:
                db.begin()
                db.execute("INSERT INTO turn VALUES ('running')")
                db.commit()
            except psycopg.OperationalError as error:
                failed.append(error)
                db.rollback()
                db.close()

        route.hold = b"COMMIT"
        storing = threading.Thread(target=store)
        storing.start()
        assert route.held.wait(10)
        db.sever()
        storing.join(10)
        assert failed
        db.begin()
        db.execute("UPDATE turn SET status = 'error'")
        db.commit()
        route.let_go()
        wait_until(lambda: route.open == 1, "only the new connection is left")
        assert not db.committed()
        assert db.query("SELECT status FROM turn") == []
        db.close()
