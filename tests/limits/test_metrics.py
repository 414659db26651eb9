"""`/metrics` after mixed traffic over four web processes, and the files that refer to it."""

import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from conversations.metrics import CATALOGUE
from tests.limits.cluster import CHAT, QUESTION, Cluster, chat_answer
from tests.servers.bridge import PROJECT
from tests.servers.ports import wait_until
from tests.servers.script import Answer, Gate, json_answer
from tests.servers.upstream import ScriptedUpstream

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
TOOL = {"name": "look", "input_schema": {"type": "object"}}
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}


def scrape(cluster: Cluster) -> Samples:
    status, text = cluster.get("/metrics")
    assert status == 200
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    """The sum over all series that have these labels."""
    wanted = set(labels.items())
    return sum(amount for (found, given), amount in samples.items() if found == name and wanted <= set(given))


def call_answer() -> Answer:
    message = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    return json_answer({"id": "x", "model": "gpt-x", "choices": [choice], "usage": usage})


def mixed_traffic(cluster: Cluster, scripted: ScriptedUpstream) -> None:
    key = cluster.issue("traffic")
    limited = cluster.issue("limited", requests_per_minute=1)
    assert {reply.status for reply in cluster.ask_many(key, 24)} == {200}
    scripted.queue(CHAT, call_answer())
    assert cluster.ask(key, QUESTION | {"tools": [TOOL]}).body["stop_reason"] == "tool_use"
    scripted.queue(CHAT, json_answer({"error": {"message": "bad"}}, 400))
    assert cluster.ask(key).status == 400
    unknown = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_x", "content": "?"}]}
    assert cluster.ask(key, QUESTION | {"messages": [unknown]}).status == 400
    assert [cluster.ask(limited).status for _ in range(2)] == [200, 429]


def test_every_metric_is_summed_over_all_processes(cluster: Cluster, scripted: ScriptedUpstream) -> None:
    before = scrape(cluster)
    mixed_traffic(cluster, scripted)
    cluster.manage("purge_inactive")
    wait_until(
        lambda: _more(cluster, before, "toolbridge_turns_total", status="complete") == 26,
        "all turns are told",
        seconds=5,
    )
    after = scrape(cluster)

    def more(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert more("toolbridge_turns_total", status="complete", upstream="openai") == 26
    assert more("toolbridge_turns_total", status="error") == 1
    assert more("toolbridge_attempts_total") == 27
    assert more("toolbridge_time_to_first_token_seconds_count") == 26
    assert more("toolbridge_turn_seconds_count", upstream="openai") == 27
    assert more("toolbridge_added_seconds_count") == 27
    assert more("toolbridge_tokens_total", kind="input") == 25 * 40 + 7
    assert more("toolbridge_tokens_total", kind="output") == 25 * 20 + 3
    assert more("toolbridge_tool_calls_total") == 1
    assert more("toolbridge_pending_tool_calls") == 1
    assert more("toolbridge_unknown_tools_total") == 1
    assert more("toolbridge_errors_total", type="invalid_request_error") == 2
    assert more("toolbridge_errors_total", type="rate_limit_error") == 1
    assert more("toolbridge_refusals_total", reason="rate") == 1
    assert more("toolbridge_store_operations_total", operation="write") >= 27
    assert more("toolbridge_store_operation_seconds_count", operation="write") >= 27
    assert more("toolbridge_store_operations_total", operation="read") > 0
    assert more("toolbridge_state_lookups_total") >= 27
    assert more("toolbridge_purge_runs_total") == 1
    assert value(after, "toolbridge_processes") == 4
    assert value(after, "toolbridge_active_conversations") >= 26
    assert value(after, "toolbridge_table_rows", table="conversations_turn") >= 0
    assert value(after, "toolbridge_table_bytes", table="conversations_turn") > 0
    assert value(after, "toolbridge_database_bytes") > 0
    assert value(after, "toolbridge_purge_backlog") == 0
    assert value(after, "toolbridge_purge_last_run_timestamp_seconds") > 0
    for name, metric in CATALOGUE.items():
        shown = f"{name}_count" if metric.kind == "histogram" else name
        assert metric.labels or any(found == shown for found, _ in after), name


def _more(cluster: Cluster, before: Samples, name: str, **labels: str) -> float:
    return value(scrape(cluster), name, **labels) - value(before, name, **labels)


def test_running_streams_are_seen_from_every_process(cluster: Cluster, scripted: ScriptedUpstream) -> None:
    key = cluster.issue("runner")
    gate = Gate()
    whole = chat_answer()
    scripted.queue(CHAT, *[Answer((gate, *whole.steps), headers=whole.headers)] * 6)
    with ThreadPoolExecutor(6) as pool:
        running = [pool.submit(cluster.ask, key) for _ in range(6)]
        wait_until(lambda: value(scrape(cluster), "toolbridge_streams") == 6, "six streams are seen", seconds=10)
        gate.open()
        assert [future.result().status for future in running] == [200] * 6
    wait_until(lambda: value(scrape(cluster), "toolbridge_streams") == 0, "no stream is left", seconds=10)


def test_what_rests_is_seen_until_it_is_over(cluster: Cluster) -> None:
    sql = """INSERT INTO conversations_rest (upstream, key, reason, since, until)
        VALUES ('tired', 1, 'r', now(), now() + interval '1 hour'), ('tired', 2, 'r', now(), now() + interval '1 hour'),
        ('awake', 0, 'r', now() - interval '1 hour', now() - interval '1 minute') RETURNING 1"""
    assert len(cluster.rows(sql)) == 3
    seen = scrape(cluster)
    assert value(seen, "toolbridge_resting", upstream="tired") == 2
    assert value(seen, "toolbridge_resting", upstream="awake") == 0
    cluster.rows("DELETE FROM conversations_rest WHERE upstream IN ('tired', 'awake') RETURNING 1")


def test_from_beyond_this_machine_a_token_is_needed(cluster: Cluster) -> None:
    forwarded = {"X-Forwarded-For": "203.0.113.9"}
    assert cluster.get("/metrics", **forwarded)[0] == 401
    assert cluster.get("/metrics", **forwarded, Authorization="Bearer wrong")[0] == 401
    assert cluster.get("/metrics", **forwarded, Authorization="Bearer metrics-token")[0] == 200


def test_what_an_ended_process_counted_stays(cluster: Cluster) -> None:
    assert cluster.ask(cluster.issue("ended")).status == 200
    wait_until(lambda: value(scrape(cluster), "toolbridge_turn_seconds_count") > 0, "the turn is told", seconds=10)
    told = "SELECT 1 FROM conversations_process WHERE position('turn_seconds'::bytea in figures) > 0"
    wait_until(lambda: bool(cluster.rows(told)), "it is in its process's row", seconds=10)
    before = value(scrape(cluster), "toolbridge_turn_seconds_count")
    cluster.rows("""INSERT INTO conversations_process (host, pid, started_at, seen_at, figures)
        SELECT 'gone', 1, now(), now() - interval '2 days', figures FROM conversations_process
        WHERE position('turn_seconds'::bytea in figures) > 0 LIMIT 1 RETURNING 1""")
    doubled = value(scrape(cluster), "toolbridge_turn_seconds_count")
    assert doubled > before
    cluster.manage("shell", "--no-imports", "-c", "from conversations import retention; retention.reconcile()")
    assert cluster.rows("SELECT count(*) FROM conversations_process WHERE host = 'gone'") == [(0,)]
    # Other tests' turns may still be told meanwhile: it grows, and never shrinks.
    assert value(scrape(cluster), "toolbridge_turn_seconds_count") >= doubled


@pytest.mark.parametrize("path", ["deploy/grafana/toolbridge.json", "deploy/prometheus/toolbridge.rules.yml"])
def test_dashboard_and_alerts_name_metrics_that_exist(path: str) -> None:
    text = (PROJECT / path).read_text(encoding="utf-8")
    named = set(re.findall(r"toolbridge_\w+", text))
    known = {shown for name, metric in CATALOGUE.items() for shown in _shown(name, metric.kind)}
    assert named <= known
    assert named


def test_the_dashboard_shows_every_metric() -> None:
    text = (PROJECT / "deploy/grafana/toolbridge.json").read_text(encoding="utf-8")
    json.loads(text)
    missing = {name for name in CATALOGUE if name not in text}
    assert missing <= {"toolbridge_purge_seconds_total", "toolbridge_reconciled_turns_total"}


def _shown(name: str, kind: str) -> set[str]:
    return {f"{name}_bucket", f"{name}_count", f"{name}_sum"} if kind == "histogram" else {name}
