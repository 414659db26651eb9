"""What docs/operations.md says is true: backups can be restored, older databases go on, keys can be changed."""

import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from cryptography.fernet import Fernet, InvalidToken

from conversations.secrets import _fernet_key
from tests.servers import chat
from tests.servers.bridge import PROJECT, Bridge, clean_environment
from tests.servers.client import TOOL, Client, result
from tests.servers.ports import wait_until
from tests.servers.postgres import Postgres
from tests.servers.upstream import ScriptedUpstream

CHAT = "/openai/v1/chat/completions"
DOCUMENT = (PROJECT / "docs" / "operations.md").read_text(encoding="utf-8")
OLD = PROJECT / "tests" / "upgrade"


class Operated:
    """A bridge that can be moved from one database to another."""

    def __init__(self, folder: Path, upstream: ScriptedUpstream, database: str) -> None:
        self.upstream = upstream
        self.database = database
        self.bridge = Bridge(
            folder / "home",
            {
                "DATABASE_URL": database,
                "OPENAI_API_KEY": "sk-upstream",
                "OPENAI_BASE_URL": f"{upstream.url}/openai/v1",
                "MODEL_MAP_SONNET": "openai/gpt-test",
            },
        )

    def __enter__(self) -> Client:
        self.bridge.start()
        self._client = Client(self.bridge.url, self.bridge.api_key)
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self.bridge.stop()


@pytest.fixture(params=["sqlite", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def database(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The URL of an empty one."""
    if kind == "sqlite":
        return f"sqlite:///{tmp_path}/bridge.sqlite3"
    server: Postgres = request.getfixturevalue("postgres")
    return server.create_database()


def continues(client: Client, upstream: ScriptedUpstream, tool_use_id: str, name: str) -> None:
    """A lone result is enough: the call, its arguments and what was said before come from the store."""
    upstream.queue(CHAT, chat.text("So it is."))
    answer = client.ask(result(tool_use_id, "sunny"), tools=[TOOL], headers={"x-conversation-id": name})
    assert answer.status_code == 200, answer.text
    sent = upstream.requests[-1].json()["messages"]
    (call,) = [call for message in sent for call in message.get("tool_calls", ())]
    assert (call["id"], call["function"]["name"]) == ("call_old", "get_weather")
    assert "Oslo" in call["function"]["arguments"]


# ---------------------------------------------------------------- upgrades


def test_a_database_of_an_older_version_goes_on(
    tmp_path: Path, upstream: ScriptedUpstream, kind: str, database: str
) -> None:
    """The dumps are of migration 0003: one conversation, whose last answer called a tool."""
    script = (OLD / f"{kind}.sql").read_text(encoding="utf-8")
    if kind == "sqlite":
        with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as connection:
            connection.executescript(script)
    else:
        with psycopg.connect(database) as server:
            server.execute(script.encode())
    (tool_use_id,) = set(re.findall(r"toolu_\w{24}", script))
    with Operated(tmp_path, upstream, database) as client:
        (old,) = client.conversations()
        assert (old["id"], old["turns"], old["tool_mappings"]) == ("from before", 2, 1)
        continues(client, upstream, tool_use_id, "from before")
        assert [message["role"] for message in upstream.requests[-1].json()["messages"]] == [
            "system", "user", "assistant", "user", "assistant", "tool",
        ]  # fmt: skip
        assert client.mappings("from before")[0]["status"] == "answered"


# ---------------------------------------------------------------- backups


def test_a_backup_of_a_serving_bridge_can_be_restored(
    tmp_path: Path, upstream: ScriptedUpstream, kind: str, database: str, request: pytest.FixtureRequest
) -> None:
    backup = tmp_path / "backup"
    operated = Operated(tmp_path, upstream, database)
    with operated as client:
        upstream.queue(CHAT, chat.calls(("call_old", "get_weather", {"city": "Oslo"})), chat.text("later"))
        asked = client.ask("Weather?", tools=[TOOL], headers={"x-conversation-id": "kept"})
        back_up(kind, database, backup, request)
        client.ask("Hi", headers={"x-conversation-id": "lost"})
        names = [row["id"] for row in client.conversations()]
        assert names == ["lost", "kept"]
    restore(kind, database, backup, request)
    with operated as client:
        assert [row["id"] for row in client.conversations()] == ["kept"]
        continues(client, upstream, asked.json()["content"][0]["id"], "kept")


def back_up(kind: str, database: str, backup: Path, request: pytest.FixtureRequest) -> None:
    """By the document's own lines."""
    sqlite, postgres = re.findall(r"```sh\n(.*?)\n```", DOCUMENT, re.DOTALL)
    if kind == "sqlite":
        line = sqlite.replace(".venv/bin/python", sys.executable).replace("var/bridge.sqlite3 backup.sqlite3", "")
        line += f"{database.removeprefix('sqlite:///')} {backup}"
    else:
        binaries = request.getfixturevalue("postgres").binaries
        line = f"{binaries}/{postgres}".replace("backup.dump", str(backup)).replace("$DATABASE_URL", database)
    subprocess.run(line, shell=True, check=True)  # noqa: S602 - a line that people paste


def restore(kind: str, database: str, backup: Path, request: pytest.FixtureRequest) -> None:
    if kind == "sqlite":
        place = Path(database.removeprefix("sqlite:///"))
        for ending in ("-wal", "-shm"):
            place.with_name(place.name + ending).unlink(missing_ok=True)
        shutil.copy(backup, place)
        return
    with psycopg.connect(database, autocommit=True) as server:
        server.execute("DROP SCHEMA public CASCADE")
        server.execute("CREATE SCHEMA public")
    command = [str(request.getfixturevalue("postgres").binaries / "pg_restore"), "--no-owner", f"--dbname={database}"]
    subprocess.run([*command, str(backup)], check=True)


# ---------------------------------------------------------------- keys

ROWS = 800


def test_an_interrupted_change_of_keys_loses_nothing_and_is_done_again(tmp_path: Path) -> None:
    database = tmp_path / "bridge.sqlite3"
    common = clean_environment(tmp_path / "home", 1) | {"DATABASE_URL": f"sqlite:///{database}"}
    old, new = "the-old-key-" * 4, Fernet.generate_key().decode()
    before = common | {"BRIDGE_SECRET_KEY": old}
    both = before | {"BRIDGE_ENCRYPTION_KEYS": new}
    run("migrate", "--verbosity=0", **before)
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        opener = Fernet(_fernet_key(old))
        rows = [(f"s{n}", "host", opener.encrypt(f"secret {n}".encode()), "2026-01-01") for n in range(ROWS)]
        insert = "INSERT INTO conversations_toolsecret (name, host, value, created_at) VALUES (?, ?, ?, ?)"
        with connection:
            connection.executemany(insert, rows)
        command = [sys.executable, "manage.py", "rotate_key", "--encryption"]
        rotating = subprocess.Popen(command, cwd=PROJECT, env=both, stdout=subprocess.DEVNULL)
        tenth = "SELECT value FROM conversations_toolsecret WHERE name = 's10'"
        wait_until(lambda: connection.execute(tenth).fetchone()[0] != rows[10][2], "some are changed")
        rotating.send_signal(signal.SIGKILL)
        rotating.wait(30)
        changed = sum(under(new, connection))
        assert 10 <= changed < ROWS, "it was interrupted in the middle"
        assert sum(under(old, connection)) == ROWS - changed, "each is readable under one of the keys"
        assert f"{ROWS} values are encrypted" in run("rotate_key", "--encryption", **both)
        assert all(under(new, connection))
        # The old key may be forgotten now, and Django's own be another.
        after = common | {"BRIDGE_SECRET_KEY": "another" * 8, "BRIDGE_ENCRYPTION_KEYS": new}
        assert f"{ROWS} values are encrypted" in run("rotate_key", "--encryption", **after)


def under(key: str, connection: sqlite3.Connection) -> Iterator[bool]:
    """For each stored value whether this key opens it, to what it was."""
    ring = Fernet(_fernet_key(key))
    for number, (value,) in enumerate(connection.execute("SELECT value FROM conversations_toolsecret ORDER BY id")):
        try:
            yield ring.decrypt(value) == f"secret {number}".encode()
        except InvalidToken:
            yield False


def run(*arguments: str, **environment: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=PROJECT, env=environment, check=True, capture_output=True, text=True).stdout
