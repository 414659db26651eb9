"""Signed calls of servers that speak Chat Completions for Gemini: their signatures come back on the same calls."""

import json
from itertools import pairwise
from typing import Any

import pytest

from tests.e2e.dialects.models import Models
from tests.e2e.dialects.wire import data
from tests.servers.client import TOOL, Client, folded, result
from tests.servers.records import Records
from tests.servers.script import Answer, json_answer, sse_answer

PATH, MODEL = "/vllm/v1/chat/completions", "vllm/gemini-3-pro"
SIGNED = {"google": {"thought_signature": "EjQKMgEMOdbH+/=="}}
MISSING = "Function call is missing a thought_signature in functionCall parts. This is required for tools to work."
CITIES = ("Paris", "Oslo")


def calling() -> Answer:
    """As Google's layer streams them: whole, without an index, the first one signed."""
    calls: list[dict[str, Any]] = [
        {"function": {"arguments": json.dumps({"city": city}), "name": TOOL["name"]}, "id": city, "type": "function"}
        for city in CITIES
    ]
    calls[0]["extra_content"] = SIGNED
    return sse_answer(chunk({"role": "assistant", "tool_calls": calls}), chunk({}, "stop"), b"data: [DONE]\n\n")


def saying() -> Answer:
    return sse_answer(chunk({"role": "assistant", "content": "Fine."}), chunk({}, "stop"), b"data: [DONE]\n\n")


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return data({"choices": [{"delta": delta, "index": 0, "finish_reason": finish}], "model": "gemini-3-pro"})


def signatures(body: dict[str, Any]) -> list[Any]:
    calls = [call for message in body["messages"] for call in message.get("tool_calls", ())]
    return [call.get("extra_content") for call in calls]


def asked(client: Client, history: list[Any], model: str = MODEL) -> list[Any]:
    """The history with the answer to it, and the results of what that calls."""
    answer = folded(client.events(*history, model=model, tools=[TOOL]))
    results = [result(block["id"])["content"][0] for block in answer if block["type"] == "tool_use"]
    return [*history, {"role": "assistant", "content": answer}, {"role": "user", "content": results or "And then?"}]


def test_a_signature_is_back_on_its_call_in_every_later_request(client: Client, models: Models) -> None:
    models.queue(PATH, calling(), calling(), saying(), saying())
    history: list[Any] = ["How is the weather?"]
    for _ in range(4):
        history = asked(client, history)
    bodies = [request.json() for request in models.requests]
    assert [signatures(body) for body in bodies] == [[], [SIGNED, None], *[[SIGNED, None] * 2] * 2]
    for earlier, later in pairwise(bodies):
        assert later["messages"][: len(earlier["messages"])] == earlier["messages"]


@pytest.mark.parametrize(
    ("model", "path"), [("openai/gpt-5.1", "/openai/v1/chat/completions"), ("vllm/qwen3-vl", PATH)]
)
def test_nobody_else_is_told(model: str, path: str, client: Client, models: Models) -> None:
    models.queue(PATH, calling())
    history = asked(client, ["How is the weather?"])
    models.queue(path, saying())
    asked(client, history, model)
    assert SIGNED["google"]["thought_signature"].encode() not in models.requests[1].body
    assert signatures(models.requests[1].json()) == [None, None]


def test_calls_of_others_are_told_to_be_unsigned_once_they_are_refused(
    client: Client, models: Models, records: Records
) -> None:
    refused = json_answer([{"error": {"code": 400, "message": MISSING, "status": "INVALID_ARGUMENT"}}], 400)
    models.queue("/openai/v1/chat/completions", calling())
    history = asked(client, ["How is the weather?"], "openai/gpt-5.1")
    models.queue(PATH, refused, saying())
    asked(client, history)
    lost = {"google": {"thought_signature": "skip_thought_signature_validator"}}
    assert [signatures(request.json()) for request in models.requests[1:]] == [[None, None], [lost, None]]
    assert b"opaque-state-dropped" in records.ended(client.api_key, 2)[-1].notes
