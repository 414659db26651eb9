"""Limits of a key, exact over four web processes that share PostgreSQL and Valkey."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.limits.cluster import CHAT, QUESTION, Cluster, chat_answer
from tests.servers.ports import free_port, wait_until
from tests.servers.script import Answer, Gate
from tests.servers.upstream import ScriptedUpstream


def test_a_rate_is_exact_however_many_processes_count(cluster: Cluster) -> None:
    key = cluster.issue("rate", requests_per_minute=20)
    replies = cluster.ask_many(key, 36)
    assert sorted(reply.status for reply in replies) == [200] * 20 + [429] * 16
    refused = [reply for reply in replies if reply.status == 429]
    assert {reply.error for reply in refused} == {"rate_limit_error"}
    assert all(50 <= int(reply.headers["retry-after"]) <= 60 for reply in refused)
    sql = "SELECT count(DISTINCT process) FROM conversations_turn t JOIN conversations_apikey k ON k.id = t.api_key_id"
    assert cluster.rows(f"{sql} WHERE k.name = 'rate'")[0][0] > 1, "one process answered all: nothing was shown"


def test_concurrent_requests_are_counted_over_all_processes(cluster: Cluster, scripted: ScriptedUpstream) -> None:
    key = cluster.issue("streams", concurrent_streams=3)
    gate = Gate()
    whole = chat_answer()
    scripted.queue(CHAT, *[Answer((gate, *whole.steps), headers=whole.headers)] * 3)
    before = len(scripted.requests)
    with ThreadPoolExecutor(3) as pool:
        running = [pool.submit(cluster.ask, key) for _ in range(3)]
        scripted.wait_for_requests(before + 3)
        refused = cluster.ask_many(key, 8)
        assert [(reply.status, reply.error, reply.headers["retry-after"]) for reply in refused] == [
            (429, "rate_limit_error", "1")
        ] * 8
        gate.open()
        assert [future.result().status for future in running] == [200] * 3
    # A client that waits for its answer may ask at once again: its place is free before it reads the end.
    assert [cluster.ask(key).status for _ in range(6)] == [200] * 6


def test_a_place_is_given_back_when_the_client_leaves(cluster: Cluster, scripted: ScriptedUpstream) -> None:
    key = cluster.issue("leaver", concurrent_streams=1)
    gate = Gate()
    scripted.queue(CHAT, Answer((gate,)))
    connection = http.client.HTTPConnection("127.0.0.1", cluster.tree.port)
    connection.request("POST", "/v1/messages", json.dumps(QUESTION), {"x-api-key": key})
    assert gate.reached.wait(10)
    assert cluster.ask(key).status == 429
    connection.close()
    wait_until(lambda: cluster.ask(key).status == 200, "the place is free again", seconds=5)
    gate.open()


def test_a_token_budget_ends_in_402_in_every_process(cluster: Cluster) -> None:
    key = cluster.issue("tokens", daily_tokens=150)
    replies = [cluster.ask(key) for _ in range(8)]
    # 60 tokens each: the third starts at 120.
    assert [reply.status for reply in replies] == [200] * 3 + [402] * 5
    assert replies[-1].error == "billing_error"
    assert "daily token budget of 150 tokens is used up" in replies[-1].body["error"]["message"]


def test_a_monthly_budget_counts_what_other_days_used(cluster: Cluster) -> None:
    key = cluster.issue("month", monthly_tokens=100, daily_tokens=1_000_000)
    assert [cluster.ask(key).status for _ in range(3)] == [200, 200, 402]


def test_routes_that_a_key_may_not_use_are_403(cluster: Cluster) -> None:
    key = cluster.issue("routes", allowed_routes="claude-*,OPENAI/gpt-*")
    assert cluster.ask(key).status == 200
    reply = cluster.ask(key, QUESTION | {"model": "openai/o3"})
    assert (reply.status, reply.error) == (403, "permission_error")
    assert "openai/o3" in reply.body["error"]["message"]


def test_without_redis_a_process_counts_by_itself(
    tmp_path: Path, postgres_url: str, scripted: ScriptedUpstream
) -> None:
    """The same when Redis is away: nobody listens on that port."""
    environment = {
        "WEB_WORKERS": "1",
        "DATABASE_URL": postgres_url,
        "REDIS_URL": f"redis://:canary@127.0.0.1:{free_port()}/0",
        "CELERY_BROKER_URL": "filesystem://localhost/",
        "OPENAI_BASE_URL": f"{scripted.url}/v1",
    }
    alone = Cluster(tmp_path / "home", environment)
    alone.start()
    try:
        key = alone.issue("alone", requests_per_minute=5, concurrent_streams=5)
        assert sorted(reply.status for reply in alone.ask_many(key, 8)) == [200] * 5 + [429] * 3
        spender = alone.issue("spender", daily_tokens=100)
        assert [alone.ask(spender).status for _ in range(3)] == [200, 200, 402]
        assert "Redis is away" in alone.tree.errors()
        assert "canary" not in alone.tree.errors()
    finally:
        alone.stop()
