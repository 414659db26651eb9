"""What is used is in the ledger, with its price, whatever became of the turn."""

import http.client
import json

import pytest

from conversations.ledger import Prices, cost
from conversations.prices import FREE, Price
from tests.limits.cluster import CHAT, QUESTION, Cluster, chat_answer
from tests.servers.ports import wait_until
from tests.servers.script import Abort, Silence, json_answer, sse_answer
from tests.servers.upstream import ScriptedUpstream
from translation.values import Usage

DELTA = b'data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "a few words"}}]}\n\n'


def entries(cluster: Cluster, name: str) -> list[tuple[object, ...]]:
    sql = """SELECT e.status, e.input_tokens, e.output_tokens, e.estimated, e.cost_micros, e.attempt
        FROM conversations_usageentry e JOIN conversations_apikey k ON k.id = e.api_key_id"""
    return cluster.rows(f"{sql} WHERE k.name = '{name}' ORDER BY e.id")


@pytest.mark.parametrize(
    ("upstream", "model", "dollars_in"),
    [
        ("anthropic", "claude-opus-4-8", 5),
        ("anthropic", "claude-opus-4-20250514", 15),
        ("openrouter", "anthropic/claude-sonnet-4.6", 3),
        ("openai", "gpt-5.4-mini-2026-01-01", 0.75),
        ("openai", "GPT-5", 1.25),
        ("gemini", "gemini-3.1-flash-lite", 0.25),
        ("ollama", "deepseek-r1", 0),
        ("demo", "claude-opus-4-8", 0),
        ("openai", "nobody-knows-it", 0),
    ],
)
def test_common_models_have_a_price(upstream: str, model: str, dollars_in: float) -> None:
    assert Prices().find(upstream, model).input == dollars_in


def test_a_row_counts_over_the_table_and_the_longest_pattern_over_the_others() -> None:
    rows = [Price("gpt-5*", 1, 1, 1, 1), Price("openai/gpt-5.4*", 2, 2, 2, 2)]
    assert Prices(rows).find("openai", "gpt-5.4").input == 2
    assert Prices(rows).find("azure", "GPT-5.4").input == 1
    assert Prices(rows).find("azure", "nothing") is FREE


def test_every_kind_of_token_has_its_own_price() -> None:
    usage = Usage(input_tokens=1_000, output_tokens=100, cache_read=10_000, cache_write=500)
    assert cost(Price("x", 3, 15, 0.3, 3.75), usage) == 3_000 + 1_500 + 3_000 + 1_875


def test_a_price_of_the_operators_counts_within_a_second_and_so_does_its_budget(cluster: Cluster) -> None:
    cluster.price("gpt-x", 1_000, 2_000)
    key = cluster.issue("priced", daily_dollars="0.15")
    assert [cluster.ask(key).status for _ in range(3)] == [200, 200, 402]
    # 40 tokens in, 20 out: $0.08 each.
    assert entries(cluster, "priced") == [("complete", 40, 20, False, 80_000, 1)] * 2


def test_each_attempt_has_an_entry_and_a_failed_one_costs_what_it_used(
    cluster: Cluster, scripted: ScriptedUpstream
) -> None:
    key = cluster.issue("retried")
    scripted.queue(CHAT, json_answer({"error": {"message": "no"}}, 500), sse_answer(Abort()), chat_answer())
    assert cluster.ask(key).status == 200
    first, second, third = entries(cluster, "retried")
    assert (first[0], first[1], first[5]) == ("error", 0, 1)
    assert (second[0], second[3], second[5]) == ("error", True, 2), "the upstream had begun to answer"
    assert (third[0], third[1:3], third[5]) == ("complete", (40, 20), 3)


def test_an_aborted_turn_is_counted_for_what_was_used(cluster: Cluster, scripted: ScriptedUpstream) -> None:
    key = cluster.issue("aborted")
    scripted.queue(CHAT, sse_answer(DELTA, Silence()))
    connection = http.client.HTTPConnection("127.0.0.1", cluster.tree.port, timeout=30)
    connection.request("POST", "/v1/messages", json.dumps(QUESTION | {"stream": True}), {"x-api-key": key})
    response = connection.getresponse()
    assert b"a few words" in response.read1() + response.read1()
    response.close()
    connection.close()
    wait_until(lambda: bool(entries(cluster, "aborted")), "the turn is in the ledger")
    ((status, given, answered, estimated, _, _),) = entries(cluster, "aborted")
    assert (status, estimated) == ("aborted", True)
    assert isinstance(given, int)
    assert isinstance(answered, int)
    assert given > 0
    assert answered > 0


def test_the_ledger_counts_what_each_request_used_and_the_calls_of_each_tool(
    cluster: Cluster, scripted: ScriptedUpstream
) -> None:
    key = cluster.issue("summed")
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": "d"}]}
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    scripted.queue(CHAT, json_answer({"id": "x", "model": "gpt-x", "choices": [choice], "usage": usage}))
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    assert cluster.ask(key, QUESTION | {"tools": tools}).status == 200
    cluster.ask(key)
    assert [entry[1:3] for entry in entries(cluster, "summed")] == [(7, 3), (40, 20)]
    script = (
        "import datetime as dt; from conversations import ledger;"
        "print(ledger.tool_totals(dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)))"
    )
    tools_used = cluster.manage("shell", "--no-imports", "-c", script)
    assert tools_used.strip() == "[ToolTotal(name='look', calls=2, answers=1)]"
