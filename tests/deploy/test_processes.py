"""The processes of a deployment, started as deploy/systemd starts them: PostgreSQL, Redis, production settings."""

import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from configparser import ConfigParser
from contextlib import ExitStack
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.servers.bridge import PROJECT, clean_environment
from tests.servers.client import TOOL, Client, result
from tests.servers.keeper import kept
from tests.servers.ports import free_port, wait_until

pytestmark = pytest.mark.timeout(300)  # seven processes start, perhaps on a busy machine

KEY = "sk-test-" + "1" * 32
SETTINGS = {
    "BRIDGE_ENV": "production",
    "BRIDGE_SECRET_KEY": "k9" * 20 + "-a-secret-key-for-the-tests",
    "BRIDGE_ALLOWED_HOSTS": "bridge.example.com",
    "BRIDGE_API_KEYS": KEY,
    "BRIDGE_ADMIN_PASSWORD": "a long password of the tests",
    # About a millisecond: everything is idle at once.
    "BRIDGE_INACTIVITY_HOURS": "0.0000003",
}
# What nginx or Caddy adds to each request.
FORWARDED = {"host": "bridge.example.com", "x-forwarded-proto": "https"}

Start = Callable[..., "subprocess.Popen[bytes]"]
Web = Callable[[], "tuple[subprocess.Popen[bytes], Client]"]


def command(unit: str) -> list[str]:
    """A unit's command, with the programs of this environment."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as configparser's documentation has it
    parser.read(PROJECT / "deploy" / "systemd" / unit, encoding="utf-8")
    return shlex.split(
        parser["Service"]["ExecStart"].replace("/opt/toolbridge/.venv/bin", str(Path(sys.executable).parent))
    )


@pytest.fixture
def environment(tmp_path: Path, postgres_url: str, redis_url: str) -> dict[str, str]:
    return clean_environment(tmp_path, 8000) | SETTINGS | {"DATABASE_URL": postgres_url, "REDIS_URL": redis_url}


@pytest.fixture
def start(tmp_path: Path, environment: dict[str, str]) -> Iterator[Start]:
    with ExitStack() as stack:

        def started(unit: str, **more: str) -> "subprocess.Popen[bytes]":
            words = [word.replace("/var/lib/toolbridge", str(tmp_path)) for word in command(unit)]
            log = stack.enter_context((tmp_path / f"{unit}.log").open("ab"))
            process = kept(subprocess.Popen(words, cwd=PROJECT, env=environment | more, stdout=log, stderr=log))
            stack.callback(process.wait, 30)
            stack.callback(process.kill)
            return process

        yield started


@pytest.fixture
def web(start: Start) -> Iterator[Web]:
    """Call it to get one web process more, and a client of it."""
    with ExitStack() as stack:

        def started() -> tuple["subprocess.Popen[bytes]", Client]:
            port = free_port()
            process = start("toolbridge-web@.service", PORT=str(port))
            client = Client(f"http://127.0.0.1:{port}", KEY)
            stack.callback(client.close)
            client.http.headers.update(FORWARDED)
            wait_until(lambda: _ready(client.http), "the web process is ready", seconds=60)
            return process, client

        yield started


def _ready(http: httpx.Client) -> bool:
    try:
        return http.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def prepare(environment: dict[str, str]) -> str:
    done = subprocess.run(
        command("toolbridge-prepare.service"), cwd=PROJECT, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_any_process_serves_any_turn_and_leaves_without_losing_one(web: Web, environment: dict[str, str]) -> None:
    assert prepare(environment) == prepare(environment) == ""  # nothing was generated; twice does no harm
    leaving, one = web()
    _, other = web()
    call = one.ask("What is the weather?", tools=[TOOL]).json()["content"][0]
    answered = other.ask(result(call["id"], "sunny"))
    assert "get_weather returned: sunny" in answered.text
    leaving.terminate()
    assert leaving.wait(30) in (0, -signal.SIGTERM)  # uvicorn drains, then dies of the signal that it got
    assert len(other.conversations()) == 1
    again = other.ask({"role": "user", "content": "Go on"}, headers={"x-conversation-id": "another"})
    assert again.status_code == 200
    plain = httpx.get(f"{other.http.base_url}/admin/", headers={"host": "bridge.example.com"})
    assert plain.headers["location"].startswith("https://")
    stranger = httpx.get(f"{other.http.base_url}/readyz", headers={"host": "evil.example.com"})
    assert stranger.status_code == 400
    serves_while_a_later_version_migrates(other, environment["DATABASE_URL"])


# What deploy/README.md allows the next version's migrations to do while this one serves.
MIGRATIONS = (
    "ALTER TABLE conversations_turn ADD COLUMN later integer NULL",
    "ALTER TABLE conversations_message ADD COLUMN later integer NOT NULL DEFAULT 7",
    "CREATE INDEX CONCURRENTLY later_index ON conversations_turn (later)",
    "ALTER TABLE conversations_conversation ALTER COLUMN external_id TYPE varchar(300)",
    "CREATE TABLE later (id bigint PRIMARY KEY)",
    "DROP INDEX CONCURRENTLY later_index",
)


def serves_while_a_later_version_migrates(client: Client, database: str) -> None:
    done = threading.Event()

    def ask() -> list[int]:
        thread = {"type": "create"}
        statuses: list[int] = []
        while not done.is_set() or len(statuses) < 10:  # also after the last of them
            answer = client.ask("Go on", thread=thread)
            statuses.append(answer.status_code)
            thread = {"type": "continue", "previous_message_id": answer.json().get("id", "")}
        return statuses

    with ThreadPoolExecutor(1) as pool, psycopg.connect(database, autocommit=True) as connection:
        asking = pool.submit(ask)
        for statement in MIGRATIONS:
            connection.execute(statement.encode())
        done.set()
        assert set(asking.result()) == {200}


def test_a_worker_purges_what_is_idle_and_beat_keeps_time(
    start: Start, web: Web, environment: dict[str, str], tmp_path: Path
) -> None:
    prepare(environment)
    _, client = web()
    client.ask("Hello")
    assert len(client.conversations()) == 1
    beat = start("toolbridge-beat.service")
    start("toolbridge-worker.service")
    celery = [str(Path(sys.executable).with_name("celery")), "--app", "bridge_project.celery:app"]
    call = [*celery, "call", "conversations.tasks.purge_inactive"]
    subprocess.run(call, cwd=PROJECT, env=environment, capture_output=True, check=True)
    wait_until(lambda: not client.conversations(), "the purge has run", seconds=120)
    assert beat.poll() is None
    wait_until(lambda: any(tmp_path.glob("beat-schedule*")), "beat has its schedule")
