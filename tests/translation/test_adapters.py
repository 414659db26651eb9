"""Which adapter and writer a profile has, and what a refused request is sent as instead."""

import msgspec
import pytest
from msgspec.structs import replace

from translation.adapter import Target, UpstreamRequest
from translation.adapters import adapter, healed, writer
from translation.errors import OPAQUE_STATE_REJECTED, UpstreamRefused
from translation.events import BlockDelta, BlockStart, ThinkingDelta
from translation.providers.profiles import PROFILES
from translation.relay import RelayWriter
from translation.values import Message, Request, Text, ThinkingConfig, Tool
from translation.writer import BlockWriter

REQUEST = Request(
    model="m",
    messages=(Message("user", (Text("hi"),)),),
    max_tokens=100,
    temperature=0.5,
    thinking=ThinkingConfig("adaptive", display="omitted"),
    tools=(Tool("eager", schema=b'{"type":"object","properties":{}}', eager=True),),
)
VLLM = Target("vllm", "some-model", PROFILES["vllm"])


def refusal(message: str) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "type": "invalid_request_error"}})


def test_anthropic_answers_are_relayed_and_all_others_written() -> None:
    assert isinstance(writer(PROFILES["anthropic"], REQUEST, "msg_1"), RelayWriter)
    assert isinstance(writer(PROFILES["openai"], REQUEST, "msg_1"), BlockWriter)


@pytest.mark.parametrize(
    ("thinking", "blocks", "deltas"),
    [
        (None, 1, 1),
        (ThinkingConfig("enabled", 2048), 1, 1),
        (ThinkingConfig("adaptive", display="omitted"), 1, 0),
        (ThinkingConfig("disabled"), 0, 0),
    ],
)
def test_thinking_is_shown_as_the_client_wants_it(thinking: ThinkingConfig | None, blocks: int, deltas: int) -> None:
    written = writer(PROFILES["openai"], replace(REQUEST, thinking=thinking), "msg_1").feed([ThinkingDelta("hm")])
    assert [type(event) for event in written] == [BlockStart] * blocks + [BlockDelta] * deltas


def test_a_refused_parameter_is_left_out_and_remembered() -> None:
    sent = adapter(VLLM.profile).build(REQUEST, VLLM)
    body = refusal("Unsupported parameter: 'temperature' is not supported with this model.")
    found = healed(REQUEST, VLLM, sent, UpstreamRefused("no"), body)
    assert found is not None
    assert b"temperature" not in found.sent.body
    assert found.remedy is not None
    assert found.remedy.drop == ("temperature",)
    assert any(note.rule == "parameter-healed" for note in found.sent.notes)


def test_an_answer_limit_is_lowered_for_this_request_only() -> None:
    sent = adapter(VLLM.profile).build(REQUEST, VLLM)
    body = refusal(
        "'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum context length is 4096 tokens "
        "and your request has 4000 input tokens (100 > 4096 - 4000)."
    )
    found = healed(REQUEST, VLLM, sent, UpstreamRefused("no"), body)
    assert found is not None
    assert msgspec.json.decode(found.sent.body)["max_tokens"] == 96
    assert found.remedy is None


def test_anthropics_own_limit_is_left_to_its_clients() -> None:
    target = Target("anthropic", "claude-opus-4-1", PROFILES["anthropic"])
    sent = adapter(target.profile).build(REQUEST, target)
    body = refusal("input length and `max_tokens` exceed context limit: 186433 + 20000 > 200000")
    assert healed(REQUEST, target, sent, UpstreamRefused("no"), body) is None


def test_what_nothing_is_known_about_stays_refused() -> None:
    sent = adapter(VLLM.profile).build(REQUEST, VLLM)
    assert healed(REQUEST, VLLM, sent, UpstreamRefused("no"), refusal("your messages are rude")) is None


def test_a_remedy_that_changes_nothing_is_not_tried() -> None:
    sent = adapter(VLLM.profile).build(REQUEST, VLLM)
    body = refusal(
        "'max_tokens' or 'max_completion_tokens' is too large: 100. This model's maximum context length is 4096 tokens "
        "and your request has 3996 input tokens (100 > 4096 - 3996)."
    )
    assert healed(REQUEST, VLLM, sent, UpstreamRefused("no"), body) is None


def test_rejected_state_is_left_out_once() -> None:
    target = Target("openai-responses", "gpt-5.5", PROFILES["openai-responses"])
    error = UpstreamRefused("cannot decrypt", code=OPAQUE_STATE_REJECTED)
    item = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": []}
    message = {"type": "message", "role": "user", "content": "hi"}
    sent = UpstreamRequest("/responses", msgspec.json.encode({"input": [item, message]}), stream=False)
    found = healed(REQUEST, target, sent, error, b"")
    assert found is not None
    assert b"encrypted_content" not in found.sent.body
    assert healed(REQUEST, target, found.sent, error, b"") is None
