"""The bridge through a real PgBouncer in transaction mode: nothing may be left behind on a server connection."""

import datetime as dt
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psycopg
import pytest

from tests.conftest import StartBridge
from tests.deploy.pgbouncer import POOL, running_pgbouncer
from tests.servers.bridge import Bridge
from tests.servers.client import TOOL, Client, folded, result
from tests.servers.postgres import connections

CLIENTS = 30


@pytest.fixture
def pooled(postgres_url: str, tmp_path: Path) -> Iterator[str]:
    folder = tmp_path / "pgbouncer"
    folder.mkdir()
    # A server whose own time zone is not UTC would show a session setting that got lost.
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE \"{name}\" SET timezone TO 'Asia/Tokyo'")
    with running_pgbouncer(postgres_url, folder) as url:
        yield url


@pytest.fixture
def bridge(pooled: str, start_bridge: StartBridge) -> Bridge:
    return start_bridge(DATABASE_URL=pooled)


def tool_chain(bridge: Bridge, number: int) -> str:
    """A streamed call, its result alone, and an appended message."""
    client = Client(bridge.url, bridge.api_key)
    headers = {"x-conversation-id": f"chain-{number}"}
    try:
        (call,) = folded(client.events(f"Question {number}", tools=[TOOL], headers=headers))
        answered = client.ask(result(call["id"], f"result {number}"), headers=headers)
        assert f"get_weather returned: result {number}" in answered.text
        appended = client.ask(f"Again {number}", tools=[], headers=headers | {"x-conversation-mode": "append"})
        assert f"You said: Again {number}" in appended.text
    finally:
        client.close()
    return str(call["id"])


def test_tool_chains_share_a_few_server_connections(bridge: Bridge, pooled: str, postgres_url: str) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        ids = list(pool.map(lambda number: tool_chain(bridge, number), range(CLIENTS)))
    client = Client(bridge.url, bridge.api_key)
    assert len(client.conversations()) == CLIENTS
    assert {client.mappings(f"chain-{number}")[0]["tool_use_id"] for number in range(CLIENTS)} == set(ids)
    created = dt.datetime.fromisoformat(client.conversations()[0]["created_at"])
    assert abs((dt.datetime.now(dt.UTC) - created).total_seconds()) < 300
    client.close()
    assert connections(postgres_url) == POOL


def test_terminate_and_threads_work_through_it(bridge: Bridge) -> None:
    client = Client(bridge.url, bridge.api_key)
    first = client.ask("Hello", thread={"type": "create"})
    thread = {"type": "continue", "previous_message_id": first.json()["id"]}
    assert "You said: Go on" in client.ask("Go on", thread=thread).text
    refused = client.ask("Go on otherwise", thread=thread).json()
    assert refused["error"]["details"]["error_code"] == "thread_already_continued"
    name = first.headers["x-conversation-id"]
    ended = client.http.post(f"/v1/conversations/{name}/terminate")
    assert ended.json()["deleted"] == {"messages": 4, "turns": 2, "tool_mappings": 0}
    client.close()


def test_the_admin_signs_in_through_it(bridge: Bridge) -> None:
    with httpx.Client(base_url=bridge.url, timeout=30) as browser:
        assert browser.get("/admin/login/").status_code == 200
        assert browser.get("/readyz").status_code == 200
