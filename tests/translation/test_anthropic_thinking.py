"""Efforts, thinking and the retry without it: what each of Claude's models takes."""

from typing import Any

import msgspec
import pytest

from translation.adapter import Target, UpstreamRequest
from translation.client import parse as messages
from translation.openai_client import parse as chat
from translation.providers.anthropic import Anthropic
from translation.providers.profiles import PROFILES

Json = dict[str, Any]
HELLO = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}


def to(model: str) -> Target:
    return Target("anthropic", model, PROFILES["anthropic"])


def asked(model: str, **fields: Any) -> UpstreamRequest:
    """By a chat client."""
    return Anthropic().build(chat.parse(msgspec.json.encode(HELLO | fields)).request, to(model))


def written(model: str, **fields: Any) -> UpstreamRequest:
    """By a client that speaks the Messages API."""
    request = messages.parse(msgspec.json.encode(HELLO | {"model": model} | fields), "", ())
    return Anthropic().build(request, to(model))


def body(sent: UpstreamRequest) -> Json:
    return msgspec.json.decode(sent.body, type=Json)


def rules(sent: UpstreamRequest) -> list[str]:
    return [note.rule for note in sent.notes]


EFFORTS = [
    ("claude-opus-4-5-20251101", "max", "high"),
    ("claude-opus-4-5-20251101", "medium", "medium"),
    ("claude-opus-4-6", "xhigh", "high"),
    ("claude-opus-4-6", "max", "max"),
    ("claude-sonnet-4-6", "xhigh", "high"),
    ("claude-mythos-preview", "xhigh", "high"),
    ("claude-opus-4-7", "xhigh", "xhigh"),
    ("claude-opus-5", "max", "max"),
    ("claude-sonnet-5", "xhigh", "xhigh"),
    ("claude-haiku-5-5", "xhigh", "xhigh"),
    ("claude-fable-5-1", "max", "max"),
    ("claude-sonnet-4-5-20250929", "high", None),
    ("claude-sonnet-4-20250514", "low", None),
    ("claude-opus-4-1-20250805", "low", None),
    ("claude-haiku-4-5", "low", None),
    ("claude-3-7-sonnet-latest", "low", None),
    ("somebodys-own", "max", "max"),
]


@pytest.mark.parametrize(("model", "effort", "expected"), EFFORTS)
def test_an_effort_is_the_highest_that_the_model_has_up_to_what_was_asked(
    model: str, effort: str, expected: str | None
) -> None:
    """This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium."""
    for sent in (asked(model, reasoning_effort=effort), written(model, output_config={"effort": effort})):
        assert body(sent).get("output_config", {}).get("effort") == expected
        assert rules(sent) == ([] if expected == effort else ["effort-limited"])
        assert b'"output_config":{}' not in sent.body


def test_the_rest_of_the_output_config_stays() -> None:
    form = {"type": "json_schema", "schema": {"type": "object", "properties": {}, "additionalProperties": False}}
    sent = written("claude-haiku-4-5", output_config={"effort": "low", "format": form, "future": 1})
    assert body(sent)["output_config"] == {"format": form, "future": 1}
    assert sent.notes[0].what == "claude-haiku-4-5 knows no effort; low was left out"


@pytest.mark.parametrize("config", [None, {}, {"effort": None}])
def test_what_asks_for_no_effort_is_the_clients_own_bytes(config: Json | None) -> None:
    given = msgspec.json.encode(HELLO | {"model": "claude-opus-4-6", "output_config": config})
    assert Anthropic().build(messages.parse(given, "", ()), to("claude-opus-4-6")).body == given


def test_the_least_effort_of_openais_is_the_least_of_claudes() -> None:
    sent = asked("claude-opus-5", reasoning_effort="minimal")
    assert body(sent)["output_config"] == {"effort": "low"}
    assert rules(sent) == ["effort-limited"]


# ---------------------------------------------------------------- no thinking


@pytest.mark.parametrize(
    ("model", "thinking", "effort"),
    [
        ("claude-opus-5", {"type": "disabled"}, None),
        ("claude-haiku-5-5", {"type": "disabled"}, None),
        ("claude-sonnet-5-5", {"type": "between_tools"}, None),
        ("claude-opus-5-5", None, "low"),
        ("claude-fable-5", None, "low"),
        ("claude-mythos-5-1", None, "low"),
    ],
)
def test_a_chat_client_that_wants_no_thinking_gets_the_least_that_the_model_can(
    model: str, thinking: Json | None, effort: str | None
) -> None:
    """ "thinking.type.disabled" is not supported for this model."""
    sent = asked(model, reasoning_effort="none")
    assert body(sent).get("thinking") == thinking
    assert body(sent).get("output_config", {}).get("effort") == effort
    assert rules(sent) == (["effort-limited"] if effort else [])


@pytest.mark.parametrize("model", ["claude-fable-5-1", "claude-mythos-5"])
def test_a_chat_clients_sampling_is_left_out_where_it_is_refused(model: str) -> None:
    """`temperature` is deprecated for this model."""
    sent = asked(model, temperature=0.5, top_p=0.9)
    assert not {"temperature", "top_p"} & body(sent).keys()
    assert rules(sent) == ["parameter-dropped", "parameter-dropped"]


THOUGHT: list[Json] = [
    {"role": "user", "content": "q"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "Eq=="},
            {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
        ],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]},
]
UNTHOUGHT = [THOUGHT[0], THOUGHT[1] | {"content": THOUGHT[1]["content"][1:]}, THOUGHT[2]]
FIXED = {"type": "enabled", "budget_tokens": 1024}


@pytest.mark.parametrize(("effort", "expected"), [("xhigh", "high"), ("max", "high"), ("low", "low")])
def test_thinking_that_the_bridge_switches_off_lowers_the_effort(effort: str, expected: str) -> None:
    """output_config.effort 'xhigh' is not supported when thinking is disabled on this model."""
    config = {"effort": effort}
    sent = written("claude-opus-5", messages=UNTHOUGHT, thinking=FIXED, output_config=config, max_tokens=9000)
    assert body(sent)["thinking"] == {"type": "disabled"}
    assert body(sent)["output_config"] == {"effort": expected}
    again = Anthropic().without_state(
        written("claude-opus-5", messages=THOUGHT, thinking=FIXED, output_config=config, max_tokens=9000)
    )
    assert body(again)["thinking"] == {"type": "disabled"}
    assert body(again)["output_config"] == {"effort": expected}


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-fable-5", "claude-sonnet-5-5"])
def test_a_model_that_takes_no_disabled_is_not_told_so_by_the_retry(model: str) -> None:
    adaptive = {"type": "adaptive"}
    again = Anthropic().without_state(written(model, messages=THOUGHT, thinking=FIXED | adaptive))
    assert body(again)["thinking"]["type"] == "adaptive"
    assert b"Eq==" not in again.body
    sent = written(model, messages=UNTHOUGHT, thinking=adaptive)
    assert Anthropic().without_state(sent) is sent


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "f"}}])
@pytest.mark.parametrize(
    ("model", "forced"),
    [
        ("claude-opus-5-5", False),
        ("claude-sonnet-5-5", False),
        ("claude-fable-5", False),
        ("claude-mythos-5-1", False),
        ("claude-opus-5", True),
        ("claude-haiku-5-5", True),
    ],
)
def test_a_model_that_cannot_be_made_to_call_a_tool_may_choose(model: str, forced: bool, choice: Any) -> None:
    """tool_choice: type "tool" and "any" are not supported for this model."""
    tools = [{"type": "function", "function": {"name": "f"}}]
    sent = asked(model, tools=tools, tool_choice=choice, parallel_tool_calls=False)
    told = body(sent)["tool_choice"]
    assert told["disable_parallel_tool_use"]
    assert (told["type"] != "auto", "name" in told) == (forced, forced and isinstance(choice, dict))
    assert rules(sent) == ([] if forced else ["tool-choice"])
