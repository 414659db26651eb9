"""A bridge's database, for what only an operator can do: keys with their own settings, holds, and the past.

A conftest imports this before Django is set up, so it asks for the models when they are needed.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django
import zstandard
from django.apps import apps
from django.db import connections
from django.db.models import QuerySet
from django.utils import timezone

from bridge_project.databases import database
from tests.servers.ports import wait_until

if TYPE_CHECKING:
    from conversations.models import Conversation, ToolExecution, Turn, UsageEntry


ZSTANDARD = b"\x28\xb5\x2f\xfd"


class Records:
    """Opened by a fixture that lets this test process reach the database."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def issue(self, **settings: Any) -> str:
        """The secret of a new key."""
        secret = "sk-test-" + secrets.token_hex(16)
        self.rows("ApiKey").create(name="test", prefix=secret[:10], digest=_digest(secret), **settings)
        return secret

    def revoke(self, secret: str) -> None:
        self.change(secret, revoked_at=timezone.now())

    def change(self, secret: str, **settings: Any) -> None:
        """A key, as the admin does it: every process is told."""
        self.rows("ApiKey").filter(digest=_digest(secret)).update(**settings)
        self.rows("Change").create(kind="key", ref=_digest(secret), created_at=timezone.now())

    def turns(self, api_key: str) -> "QuerySet[Turn]":
        return self.rows("Turn").filter(api_key__digest=_digest(api_key)).order_by("id")

    def ended(self, api_key: str, count: int) -> "list[Turn]":
        """The key's turns once none of them runs any more: a failed one is stored after its client was told."""
        turns = self.turns(api_key)
        wait_until(
            lambda: turns.count() == count and not turns.filter(status="running").exists(), f"{count} turns have ended"
        )
        return list(turns)

    def calling(self, api_key: str) -> int:
        """How many of the key's turns run and have called a tool."""
        calls = self.rows("ToolMapping").filter(api_key__digest=_digest(api_key), turn__status="running")
        return calls.values("turn").distinct().count()

    def conversations(self, api_key: str) -> "QuerySet[Conversation]":
        return self.rows("Conversation").filter(api_key__digest=_digest(api_key)).order_by("id")

    def usage(self, api_key: str) -> "QuerySet[UsageEntry]":
        return self.rows("UsageEntry").filter(api_key__digest=_digest(api_key)).order_by("id")

    def age_processes(self) -> None:
        """All of them were last seen long ago; those that live say so again within seconds."""
        self.rows("Process").update(seen_at=timezone.now() - timedelta(minutes=5))

    def everything(self, api_key: str, *, opened: bool = True) -> bytes:
        """What is kept for a key's conversations, as it lies in the tables; `opened` adds what is compressed."""
        parts: list[bytes] = []
        for name in ("Message", "Turn", "ToolMapping", "Blob", "ToolExecution", "Round"):
            owner = "conversation__api_key__digest" if name in ("Blob", "Round") else "api_key__digest"
            for row in self.rows(name).filter(**{owner: _digest(api_key)}).values_list():
                parts += [_plain(value, opened=opened) for value in row]
        return b"\n".join(parts)

    def executions(self, api_key: str) -> "QuerySet[ToolExecution]":
        return self.rows("ToolExecution").filter(api_key__digest=_digest(api_key)).order_by("id")

    def reconnect(self) -> None:
        """After an outage: the connection of this process may be dead too."""
        connections[self.alias].close()

    def rows(self, model: str) -> "QuerySet[Any]":
        rows: QuerySet[Any] = apps.get_model("conversations", model)._default_manager.using(self.alias)
        return rows


@contextmanager
def opened(alias: str, url: str) -> Iterator[Records]:
    django.setup()
    settings = connections.configure_settings({"default": {}, alias: database(url, Path())})
    connections.settings[alias] = settings[alias]
    try:
        yield Records(alias)
    finally:
        connections[alias].close()
        del connections[alias]
        del connections.settings[alias]


def _plain(value: object, *, opened: bool) -> bytes:
    if not isinstance(value, bytes | memoryview):
        return str(value).encode()
    stored = bytes(value)
    return stored + zstandard.decompress(stored) if opened and stored.startswith(ZSTANDARD) else stored


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
