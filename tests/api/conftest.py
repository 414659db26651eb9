"""One bridge and one scripted upstream for all tests of a worker; a fresh API key for each test isolates them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.servers.bridge import Bridge
from tests.servers.client import Client
from tests.servers.postgres import Postgres
from tests.servers.records import Records, opened
from tests.servers.upstream import ScriptedUpstream

CHAT = "/openai/v1/chat/completions"

BOTH = pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)


class Served:
    """A running bridge, the upstream that it calls, and its database."""

    def __init__(self, bridge: Bridge, upstream: ScriptedUpstream, records: Records, database_url: str) -> None:
        self.bridge = bridge
        self.upstream = upstream
        self.records = records
        self.database_url = database_url

    def chat(self, *answers: Any) -> None:
        """What the upstream will answer next."""
        self.upstream.queue(CHAT, *answers)

    def sent(self, number: int = -1) -> Any:
        """A request as the upstream got it."""
        return self.upstream.requests[number].json()


def settings(upstream: ScriptedUpstream) -> dict[str, str]:
    return {
        "OPENAI_API_KEY": "sk-upstream-secret",
        "OPENAI_BASE_URL": f"{upstream.url}/openai/v1",
        "MODEL_MAP_SONNET": "openai/gpt-test",
        "BRIDGE_UPSTREAM_RETRIES": "0",
    }


Serve = Callable[..., Served]
Connect = Callable[..., Client]


@pytest.fixture(scope="session")
def shared_upstream() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as server:
        yield server


@pytest.fixture(scope="session")
def serve_shared(
    shared_upstream: ScriptedUpstream,
    tmp_path_factory: pytest.TempPathFactory,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Serve]:
    with django_db_blocker.unblock(), ExitStack() as stack:

        def serve(database_url: str | None = None, **environment: str) -> Served:
            return stack.enter_context(
                _served(tmp_path_factory.mktemp("home"), shared_upstream, database_url, environment)
            )

        yield serve


@pytest.fixture
def serve(tmp_path: Path, shared_upstream: ScriptedUpstream, django_db_blocker: DjangoDbBlocker) -> Iterator[Serve]:
    """A bridge of the test's own, with these environment variables."""
    shared_upstream.reset()
    with django_db_blocker.unblock(), ExitStack() as stack:
        count = 0

        def start(database_url: str | None = None, **environment: str) -> Served:
            nonlocal count
            count += 1
            home = tmp_path / f"bridge-{count}"
            home.mkdir()
            return stack.enter_context(_served(home, shared_upstream, database_url, environment))

        yield start


@contextmanager
def _served(
    folder: Path, upstream: ScriptedUpstream, database_url: str | None, environment: dict[str, str]
) -> Iterator[Served]:
    url = database_url or f"sqlite:///{folder}/bridge.sqlite3"
    bridge = Bridge(folder / "home", {"DATABASE_URL": url, **settings(upstream), **environment})
    bridge.start()
    try:
        with opened(f"bridge-{bridge.port}", url) as records:
            yield Served(bridge, upstream, records, url)
    finally:
        bridge.stop()


@pytest.fixture(scope="session")
def sqlite_served(serve_shared: Serve) -> Served:
    return serve_shared()


@pytest.fixture(scope="session")
def postgres_served(serve_shared: Serve, postgres: Postgres) -> Served:
    return serve_shared(postgres.create_database())


@pytest.fixture
def database(request: pytest.FixtureRequest) -> str:
    """SQLite unless a test asks for more: `@BOTH`."""
    return str(getattr(request, "param", "sqlite"))


@pytest.fixture
def served(database: str, request: pytest.FixtureRequest, shared_upstream: ScriptedUpstream) -> Served:
    shared_upstream.reset()
    found: Served = request.getfixturevalue(f"{database}_served")
    return found


@pytest.fixture
def connect() -> Iterator[Connect]:
    """A client with a new key; settings are the key's."""
    clients: list[Client] = []

    def start(served: Served, **settings: Any) -> Client:
        clients.append(Client(served.bridge.url, served.records.issue(**settings)))
        return clients[-1]

    yield start
    for connected in clients:
        connected.close()


@pytest.fixture
def client(served: Served, connect: Connect) -> Client:
    return connect(served)


@pytest.fixture
def other_client(served: Served, connect: Connect) -> Client:
    """Another tenant."""
    return connect(served)
