"""A server that is gone without a word, in whatever moment, is given up."""

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from django.db import connections
from pytest_django import DjangoDbBlocker

from bridge_project.databases import database
from conversations.store.database import Database
from conversations.store.reader import REST, Reader
from tests.servers.postgres import Postgres
from tests.torture.proxy import Proxy
from translation.errors import StoreUnavailable

ENCRYPTED = (80877103, 80877104)  # what a client asks for first: TLS, GSSAPI
STATUS = {"server_version": "16.0", "client_encoding": "UTF8", "TimeZone": "Europe/Oslo"}


class Silent:
    """A PostgreSQL that lets clients in and answers nothing that they ask."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.asked = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError), self._listener.accept()[0] as client:
            size, code = struct.unpack("!II", client.recv(8, socket.MSG_WAITALL))
            while code in ENCRYPTED:
                client.sendall(b"N")
                size, code = struct.unpack("!II", client.recv(8, socket.MSG_WAITALL))
            client.recv(size - 8, socket.MSG_WAITALL)
            told = [_message(b"S", f"{name}\0{value}\0".encode()) for name, value in STATUS.items()]
            client.sendall(_message(b"R", bytes(4)) + b"".join(told) + _message(b"Z", b"I"))
            while client.recv(4096):
                self.asked.set()


def _message(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack("!I", len(content) + 4) + content


@contextmanager
def silent() -> Iterator[Silent]:
    server = Silent()
    try:
        yield server
    finally:
        server.close()


def test_a_connection_that_is_still_being_made_is_given_up_too(
    monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> None:
    """Django asks the server for its time zone before the connection is anybody's."""
    failed: list[Exception] = []
    with silent() as server, django_db_blocker.unblock():
        url = f"postgres://nobody@127.0.0.1:{server.port}/none"
        given = connections.configure_settings({"default": database(url, Path())})["default"]
        monkeypatch.setitem(connections.settings, "default", given)
        db = Database()

        def read() -> None:
            try:
                db.query("SELECT 1")
            except psycopg.OperationalError as error:
                failed.append(error)

        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        assert server.asked.wait(10)
        db.sever()
        reading.join(10)
        assert failed
        db.close()


async def test_nobody_waits_behind_a_read_that_was_given_up(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch, django_db_blocker: DjangoDbBlocker
) -> None:
    """The route to the server is lost without a word: of two connections each costs one read, not all for seconds."""
    with Proxy(postgres.port) as route, django_db_blocker.unblock():
        url = postgres.create_database().replace(f":{postgres.port}/", f":{route.port}/")
        given = connections.configure_settings({"default": database(url, Path())})["default"]
        monkeypatch.setitem(connections.settings, "default", given)
        reader = Reader(threads=2)
        reader.start()
        connected = threading.Barrier(2)

        def meet(db: Database) -> None:
            db.query("SELECT 1")
            connected.wait(10)  # so that it takes both

        await asyncio.gather(reader.read(meet), reader.read(meet))
        route.forget()
        failed = 0
        while True:
            try:
                await reader.read(lambda db: db.query("SELECT 1"))
            except StoreUnavailable:
                failed += 1
                await asyncio.sleep(REST)
            else:
                break
        reader.stop()
    assert 1 <= failed <= 2
