"""Refusals with a known way out: tried once each, recorded on the turn, remembered where they are about a model."""

import json
from typing import Any

import pytest
from anthropic import Anthropic

from tests.e2e.dialects.conftest import NewChain
from tests.e2e.dialects.conversation import Conversation, bodies
from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import BY_NAME
from tests.e2e.dialects.script import TOOLS, Speech
from tests.e2e.dialects.wire import WIRES, data
from tests.e2e.dialects.wordings import (
    BLOBS,
    NO_TEMPERATURE,
    OVERFLOWS,
    PAIR,
    REFUSED,
    UNCOUNTED,
    UNCOUNTED_PAIRS,
    USE_OTHER,
)
from tests.servers.client import TOOL, Client, folded, names
from tests.servers.records import Records
from tests.servers.script import Answer, json_answer, sse_answer

GEMINI = WIRES["gemini"]
GEMINI_ROUTE = BY_NAME["gemini"].route


def gave_up(reason: str, stream: bool) -> Answer:
    candidate = {"index": 0, "finishReason": reason, "finishMessage": "print(default_api.Read())"}
    payload = {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 9}}
    return sse_answer(data(payload)) if stream else json_answer(payload)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "STOP"])
def test_an_answer_that_gemini_gave_up_on_is_asked_for_once_more(
    reason: str, stream: bool, client: Client, models: Models, records: Records
) -> None:
    path = GEMINI.path if stream else GEMINI.whole_path
    good = sse_answer(*GEMINI.text, *GEMINI.end)
    models.queue(path, gave_up(reason, stream), good)
    response = client.ask("Hi", model=GEMINI_ROUTE, tools=TOOLS, stream=stream)
    assert response.status_code == 200, response.text
    assert len(models.requests) == 2
    assert models.requests[0].body == models.requests[1].body
    (turn,) = records.ended(client.api_key, 1)
    assert b"asked-again" in turn.notes

    models.queue(path, gave_up(reason, stream), gave_up(reason, stream), good)
    response = client.ask("Hi again", model=GEMINI_ROUTE, tools=TOOLS, stream=stream)
    assert (response.status_code, response.json()["error"]["type"]) == (502, "api_error")
    if reason != "STOP":
        assert reason in response.json()["error"]["message"]
    assert len(models.requests) == 4


def test_what_was_shown_is_not_asked_for_again(client: Client, models: Models) -> None:
    broken = data({"candidates": [{"index": 0, "finishReason": "MALFORMED_FUNCTION_CALL"}]})
    models.queue(GEMINI.path, sse_answer(*GEMINI.text, broken))
    events = client.events("Hi", model=GEMINI_ROUTE, tools=TOOLS)
    assert names(events)[-1] == "error"
    assert [block["text"] for block in folded(events)] == ["Hel"]
    assert len(models.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", BLOBS)
def test_state_that_its_maker_refuses_is_left_out_once(
    name: str, stream: bool, sdk: Anthropic, models: Models, new_chain: NewChain, bridge_key: str, records: Records
) -> None:
    provider, chain = BY_NAME[name], new_chain()
    conversation = Conversation(sdk, chain, stream=stream)
    conversation.turn(provider.route)
    path = models.requests[0].path
    models.queue(path, provider.dialect.error(BLOBS[name]), provider.dialect.answer(Speech(name, chain, 1, stream)))
    message = conversation.turn(provider.route)
    assert message.stop_reason == "tool_use"
    assert len(models.requests) == 3
    refused, healed = models.requests[1].body.decode(), models.requests[2].body
    secrets = Speech(name, chain, 0, stream).secrets
    assert any(secret in refused for secret in secrets)
    assert not any(secret in healed.decode() for secret in secrets)
    assert provider.dialect.refused(healed, long_ids=False) == []
    turn = records.turns(bridge_key).last()
    assert turn is not None
    assert b"opaque-state-dropped" in turn.notes

    models.queue(path, *[provider.dialect.error(BLOBS[name])] * 2)
    with pytest.raises(Exception, match="400"):
        conversation.turn(provider.route)
    assert len(models.requests) == 5


def refusal(message: str, param: str | None = None) -> Answer:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": "unsupported_parameter"}
    return json_answer({"error": error}, 400)


@pytest.mark.parametrize("case", REFUSED)
def test_a_parameter_that_a_model_refuses_is_healed_once_and_remembered(
    case: str, client: Client, models: Models, records: Records
) -> None:
    route, path, words, gone, come = REFUSED[case]
    wire = next(wire for wire in WIRES.values() if wire.path.endswith(path.rpartition("/v1")[2]))
    good = sse_answer(*wire.text, *wire.end)
    fields: Any = {"model": route, "temperature": 0.5, "top_k": 3}
    models.queue(path, refusal(words), good)
    assert client.ask("Hi", **fields).status_code == 200
    first, second = bodies(models.requests)
    assert gone in first
    assert gone not in second
    assert not come or second[come] == first[gone]
    (turn,) = records.ended(client.api_key, 1)
    assert b"parameter-healed" in turn.notes

    models.queue(path, good)
    assert client.ask("Hi again", **fields).status_code == 200
    assert len(models.requests) == 3, "the next request knows"
    assert gone not in models.requests[2].json()

    other = route.replace("learns", "other")
    models.queue(path, good)
    assert client.ask("Hi", **{**fields, "model": other}).status_code == 200
    assert gone in models.requests[3].json(), "other models are not concerned"


NO_TOP_K = "Unsupported parameter: 'top_k' is not supported with this model."


@pytest.mark.parametrize("stream", [False, True])
def test_whatever_can_be_spared_may_be_refused_one_after_another(client: Client, models: Models, stream: bool) -> None:
    wire = WIRES["openai"]
    good = sse_answer(*wire.text, *wire.end)
    spared = ("stop", "temperature", "top_p", "parallel_tool_calls", "prompt_cache_key", "user")
    refusals = [refusal(f"Unsupported parameter: '{name}' is not supported with this model.") for name in spared]
    models.queue("/openai/v1/chat/completions", *refusals, good, good)
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    sampling: Any = {"temperature": 0.5, "top_p": 0.5, "stop_sequences": ["x"], "stream": stream}
    fields: Any = {
        "model": f"openai/frugal-{stream}",
        "metadata": {"user_id": "u"},
        "tools": [TOOL],
        "tool_choice": choice,
    }
    assert client.ask("Hi", **fields, **sampling).status_code == 200
    assert models.requests[0].json().keys() >= {*spared}
    assert client.ask("Hi again", **fields, **sampling).status_code == 200
    assert len(models.requests) == 8, "the next request knows all of it"
    assert models.requests[7].json().keys().isdisjoint(spared)


def test_parameters_that_are_refused_one_after_another_are_healed_in_one_turn(client: Client, models: Models) -> None:
    """As an Azure deployment of a reasoning model does, whose name tells nothing."""
    path = "/vllm/v1/chat/completions"
    wire = WIRES["openai"]
    good = sse_answer(*wire.text, *wire.end)
    models.queue(path, refusal(USE_OTHER), refusal(NO_TEMPERATURE), refusal(NO_TOP_K), good, good)
    fields: Any = {"model": "vllm/picky", "temperature": 0.5, "top_k": 3}
    assert client.ask("Hi", **fields).status_code == 200
    assert client.ask("Hi again", **fields).status_code == 200
    assert len(models.requests) == 5, "the next request knows all of it"
    for body in (models.requests[number].json() for number in (3, 4)):
        assert body["max_completion_tokens"] == 100
        assert body.keys().isdisjoint(("max_tokens", "temperature", "top_k"))


def test_a_healed_request_records_only_what_is_new(client: Client, models: Models, records: Records) -> None:
    """What an earlier turn could not tell stands on that turn."""
    wire = WIRES["openai-responses"]
    good = sse_answer(*wire.text, *wire.end)
    source = {"type": "text", "media_type": "text/plain", "data": "A fact."}
    cited = {"type": "document", "source": source, "citations": {"enabled": True}}
    asked = {"role": "user", "content": [{"type": "text", "text": "Look."}, cited]}
    route = "openai-responses/learns-later"
    models.queue(
        wire.path, good, refusal("Unsupported parameter: 'temperature' is not supported with this model."), good
    )
    answer = folded(client.events(asked, model=route))
    client.events(asked, {"role": "assistant", "content": answer}, "And?", model=route, temperature=0.5)
    turns = records.ended(client.api_key, 2)
    notes = [note["rule"] for turn in turns for note in json.loads(bytes(turn.notes))]
    assert sorted(set(notes)) == ["citations-ignored", "parameter-dropped", "parameter-healed", "usage-estimated"]
    assert notes.count("citations-ignored") == 1


def test_a_refusal_that_healing_does_not_help_is_told(client: Client, models: Models) -> None:
    path = "/vllm/v1/chat/completions"
    models.queue(path, refusal(NO_TEMPERATURE), refusal(NO_TEMPERATURE))
    response = client.ask("Hi", model="vllm/stubborn", temperature=0.5, top_k=3)
    assert response.status_code == 400
    assert "temperature" in response.json()["error"]["message"]
    assert len(models.requests) == 2


def test_an_answer_that_would_not_fit_is_asked_for_shorter(client: Client, models: Models) -> None:
    words = (
        "'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum context length is 4096 tokens "
        "and your request has 4056 input tokens (100 > 4096 - 4056). None"
    )
    wire = WIRES["openai"]
    path = "/vllm/v1/chat/completions"
    models.queue(path, refusal(words), sse_answer(*wire.text, *wire.end))
    assert client.ask("Hi", model="vllm/small").status_code == 200
    first, second = bodies(models.requests)
    assert (first["max_tokens"], second["max_tokens"]) == (100, 40)


def test_a_models_longest_answer_is_remembered(client: Client, models: Models, records: Records) -> None:
    wire = WIRES["openai"]
    path = "/deepseek/v1/chat/completions"
    good = sse_answer(*wire.text, *wire.end)
    models.queue(path, refusal("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"), good, good)
    for words in ("Hi", "Hi again"):
        assert client.ask(words, model="deepseek/short-answers", max_tokens=32000).status_code == 200
    assert [body["max_tokens"] for body in bodies(models.requests)] == [32000, 8192, 8192]
    assert all(b"max-tokens-limited" in turn.notes for turn in records.ended(client.api_key, 2))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", [*OVERFLOWS, *UNCOUNTED])
def test_a_prompt_that_is_too_long_is_said_in_the_clients_words(
    name: str, stream: bool, client: Client, models: Models
) -> None:
    provider = BY_NAME[name]
    words = OVERFLOWS.get(name) or UNCOUNTED[name]
    stem = provider.variable.partition("_")[0].lower()
    ends = {"anthropic": "messages", "openai-responses": "responses", "xai-responses": "responses"}
    path = f"/{stem}/v1/{ends.get(name, 'chat/completions')}"
    if name == "gemini":
        path = GEMINI.path if stream else GEMINI.whole_path
    models.queue(path, provider.dialect.error(words))
    response = client.ask("Hi", model=provider.route, stream=stream)
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")
    message = response.json()["error"]["message"]
    assert message == (PAIR if name in OVERFLOWS else UNCOUNTED_PAIRS[name])
    assert len(models.requests) == 1
