"""Self-healing: one refused parameter, one remedy."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.validators.gemini import validate
from translation import adapters
from translation.adapter import Target, UpstreamRequest
from translation.adapters import healed
from translation.errors import UpstreamRefused
from translation.overflow import overflow
from translation.providers.anthropic import Anthropic
from translation.providers.gemini import Gemini
from translation.providers.openai_chat import OpenAIChat
from translation.providers.openai_responses import OpenAIResponses
from translation.providers.profiles import PROFILES
from translation.remedies import Remedy, remedy, remembered
from translation.values import (
    Link,
    Message,
    Origin,
    Request,
    Text,
    ThinkingConfig,
    Tool,
    ToolResult,
    ToolUse,
)

SENT = {
    "model": "m",
    "stream": True,
    "stream_options": {},
    "max_tokens": 5,
    "temperature": 1,
    "top_p": 1,
    "user": "u",
    "stop": ["x"],
    "reasoning_effort": "low",
    "tools": [],
    "parallel_tool_calls": False,
    "messages": [],
}


def found(error: Any, sent: dict[str, Any] = SENT) -> Remedy | None:
    return remedy(
        msgspec.json.encode(error), UpstreamRequest("/chat/completions", msgspec.json.encode(sent), stream=True)
    )


def said(message: str, sent: dict[str, Any] = SENT) -> Remedy | None:
    return found({"error": {"message": message}}, sent)


def test_max_tokens_is_renamed_as_the_upstream_asks() -> None:
    words = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    assert said(words) == Remedy(words, rename=(("max_tokens", "max_completion_tokens"),))


def test_a_server_that_knows_only_the_old_name_gets_it() -> None:
    words = "Unrecognized request argument supplied: max_completion_tokens"
    assert said(words, {"max_completion_tokens": 5}) == Remedy(words, rename=(("max_completion_tokens", "max_tokens"),))


@pytest.mark.parametrize(
    ("message", "drop"),
    [
        (
            "Unsupported value: 'temperature' does not support 0.7 with this model.",
            ("temperature",),
        ),
        ("'temperature' does not support 0.7 with this model", ("temperature",)),
        ("Unsupported parameter: 'top_p' is not supported with this model.", ("top_p",)),
        ("Unknown parameter: 'stream_options'.", ("stream_options",)),
        ("Unrecognized request argument supplied: parallel_tool_calls", ("parallel_tool_calls",)),
        ("Unrecognized request arguments supplied: user, stream_options", ("user", "stream_options")),
        ("Argument not supported on this model: stop", ("stop",)),
        ("Model grok-4 does not support parameter reasoningEffort.", ("reasoning_effort",)),
        ('"gemma3:4b" does not support thinking', ("reasoning_effort",)),
        ("invalid temperature: only 1 is allowed for this model", ("temperature",)),
        ("Reasoning is mandatory for this endpoint and cannot be disabled.", ("reasoning",)),
        ("cannot specify both 'thinking' and 'reasoning_effort'", ("thinking",)),
        ("This model always engages in thinking and cannot be disabled; please use low, high, or max.", ("thinking",)),
        ('invalid reasoning value: "max" (must be "high", "medium", "low", or "none")', ("reasoning_effort",)),
    ],
)
def test_a_refused_parameter_is_dropped(message: str, drop: tuple[str, ...]) -> None:
    assert said(message) == Remedy(message, drop=drop)


def test_a_value_that_a_model_does_not_know_costs_its_parameter() -> None:
    """The Responses API names the value in its words, and the parameter beside them."""
    words = (
        "Unsupported value: 'xhigh' is not supported with the 'gpt-7' model. Supported values are: 'low' and 'high'."
    )
    error = {"error": {"message": words, "param": "reasoning.effort", "code": "unsupported_value"}}
    assert found(error, SENT | {"reasoning": {"effort": "xhigh"}}) == Remedy(words, drop=("reasoning",))
    words = "Unsupported value: 'temperature' does not support 0.7 with this model."
    assert found({"error": {"message": words, "param": "temperature"}}) == Remedy(words, drop=("temperature",))


def test_an_extra_input_is_dropped() -> None:
    error = {"detail": [{"type": "extra_forbidden", "loc": ["body", "user"], "msg": "Extra inputs are not permitted"}]}
    known = found(error)
    assert known is not None
    assert known.drop == ("user",)


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'messages' is not supported with this model.",
        "Unknown parameter: 'tools'.",
        "Unknown parameter: 'seed'.",
        "The model `x` does not exist",
    ],
)
def test_what_was_not_sent_or_cannot_be_spared_has_no_remedy(message: str) -> None:
    assert said(message) is None


VERIFY = "Your organization must be verified to {}. Please go to: https://platform.openai.com/settings/organization."


def test_an_organisation_that_is_not_verified_gets_no_summaries_and_keeps_its_effort() -> None:
    known = said(VERIFY.format("generate reasoning summaries"))
    assert known is not None
    request = Request(
        model="x", max_tokens=5, messages=(Message("user", (Text("q"),)),), thinking=ThinkingConfig("enabled", 9000)
    )
    profile = PROFILES["openai-responses"]
    sent = OpenAIResponses().build(request, Target("openai-responses", "gpt-5", remembered(profile, known)))
    assert msgspec.json.decode(sent.body)["reasoning"] == {"effort": "medium"}
    assert [note.rule for note in sent.notes] == ["parameter-dropped"]


def test_a_model_whose_reasoning_is_not_given_out_is_not_asked_for_it() -> None:
    known = said("Encrypted content is not supported with this model.")
    assert known is not None
    request = Request(model="x", max_tokens=5, messages=(Message("user", (Text("q"),)),))
    profile = remembered(PROFILES["openai-responses"], known)
    sent = OpenAIResponses().build(request, Target("openai-responses", "gpt-5-chat-latest", profile))
    assert "include" not in msgspec.json.decode(sent.body)


def test_an_organisation_that_is_not_verified_gets_its_answers_whole() -> None:
    known = said(VERIFY.format("stream this model"))
    assert known is not None
    request = Request(model="x", max_tokens=5, messages=(Message("user", (Text("q"),)),), stream=True)
    sent = OpenAIChat().build(request, Target("openai", "gpt-5", remembered(PROFILES["openai"], known)))
    assert not msgspec.json.decode(sent.body).keys() & {"stream", "stream_options"}


def test_an_answer_without_a_readable_error_has_no_remedy() -> None:
    assert remedy(b"<html>", UpstreamRequest("/x", b"{}", stream=False)) is None


def test_an_answer_that_does_not_fit_is_asked_for_shorter() -> None:
    words = (
        "'max_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has "
        "5000 input tokens (32000 > 32768 - 5000)."
    )
    assert said(words) == Remedy(words, max_tokens=27768)


@pytest.mark.parametrize(
    "words",
    [
        (
            "This model's maximum context length is 32768 tokens. However, you requested 40000 tokens (8000 in the "
            "messages, 32000 in the completion). Please reduce the length of the messages or completion."
        ),
        (
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens (7000 "
            "of text input, 1000 of tool input, 32000 in the output). Please reduce the length of either one."
        ),
        (
            "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total "
            "of 40000 tokens: 8000 tokens from the input messages and 32000 tokens for the completion."
        ),
        (
            "You passed 8000 input tokens and requested 32000 output tokens. However, the model's context length is "
            "only 32768 tokens, resulting in a maximum input length of 768 tokens."
        ),
    ],
)
def test_a_prompt_that_fits_is_not_too_long_for_the_answer_that_does_not(words: str) -> None:
    assert type(overflow(words, "context_length_exceeded")) is UpstreamRefused
    assert said(words) == Remedy(words, max_tokens=24768)


@pytest.mark.parametrize(
    "words",
    [
        (
            "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided "
            "32000."
        ),
        "Invalid max_tokens value, the valid range of max_tokens is [1, 16384]",
        "Range of max_tokens should be [1, 16384]",
        (
            "`max_completion_tokens` must be less than or equal to `16384`, the maximum value for "
            "`max_completion_tokens` is less than the `context_window` for this model"
        ),
        (
            "The parameter `max_tokens` specified in the request are not valid: integer above maximum value, expected "
            "a value <= 16384, but got 32000 instead."
        ),
        "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 16384, but got 32000 instead.",
        (
            "Unable to submit request because it has a maxOutputTokens value of 32000 but the supported range is from "
            "1 (inclusive) to 16385 (exclusive). Update the value and try again."
        ),
        "max_tokens: 32000 > 16384, which is the maximum allowed number of output tokens for claude-x",
    ],
)
def test_a_models_longest_answer_is_learned_and_kept_to(words: str) -> None:
    assert overflow(words) is None
    known = said(words)
    assert known == Remedy(words, max_output=16384)
    messages = (Message("user", (Text("hi"),)),)
    for provider, adapter, field in (
        ("deepseek", OpenAIChat(), "max_tokens"),
        ("openai-responses", OpenAIResponses(), "max_output_tokens"),
        ("gemini", Gemini(), "generationConfig"),
        ("anthropic", Anthropic(), "max_tokens"),
    ):
        target = Target(provider, "m", remembered(PROFILES[provider], known))
        for asked, expected in ((32000, 16384), (16384, 16384), (100, 100)):
            sent = adapter.build(Request(model="m", messages=messages, max_tokens=asked), target)
            value = msgspec.json.decode(sent.body)[field]
            assert (value["maxOutputTokens"] if provider == "gemini" else value) == expected
            assert [note.rule == "max-tokens-limited" for note in sent.notes] == [True] * (asked > expected)


def test_a_chat_client_that_sets_no_limit_gets_the_longest_answer_that_claude_gives() -> None:
    """One of Anthropic's own knows what to do about its words."""
    words = "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-x"
    body = msgspec.json.encode({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    target = Target("anthropic", "claude-x", PROFILES["anthropic"])
    asked = Request(model="m", messages=(Message("user", (Text("hi"),)),), max_tokens=32000, open_ended=True)
    found = healed(asked, target, Anthropic().build(asked, target), UpstreamRefused(words), body)
    assert found is not None
    assert msgspec.json.decode(found.sent.body)["max_tokens"] == 8192
    assert [note.rule for note in found.sent.notes] == ["parameter-healed"]
    written = b'{"model":"claude-x","max_tokens":32000,"messages":[{"role":"user","content":"hi"}]}'
    own = replace(asked, body=written, open_ended=False)
    assert healed(own, target, Anthropic().build(own, target), UpstreamRefused(words), body) is None


def test_a_remedy_is_remembered_in_the_profile_and_heals_the_next_request() -> None:
    profile = PROFILES["azure"]
    for words in (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "'temperature' does not support 0.7 with this model",
        "Function tools with reasoning_effort are not supported for my-deployment in /v1/chat/completions.",
    ):
        known = said(words)
        assert known is not None
        profile = remembered(profile, known)
    request = Request(
        model="x", max_tokens=5, temperature=0.7, messages=(Message("user", (Text("q"),)),), tools=(Tool("Read"),)
    )
    value = msgspec.json.decode(OpenAIChat().build(request, Target("azure", "my-deployment", profile)).body)
    assert value["max_completion_tokens"] == 5
    assert "temperature" not in value
    assert value["reasoning_effort"] == "none"


def test_a_server_that_says_how_many_tools_it_takes_gets_no_more() -> None:
    target = Target("openai-responses", "gpt-5.5", PROFILES["openai-responses"])
    words = "Invalid 'tools': array too long. Expected an array with maximum length 2, but got an array with length 4."
    body = msgspec.json.encode({"error": {"message": words, "param": "tools", "code": "array_above_max_length"}})
    called = Message("assistant", (ToolUse("toolu_1", "d", b"{}"),))
    request = Request(
        model="m",
        messages=(Message("user", (Text("hi"),)), called, Message("user", (ToolResult("toolu_1", (Text("ok"),)),))),
        max_tokens=5,
        tools=tuple(Tool(name, "", b'{"type":"object"}') for name in "abcd"),
    )
    sent = OpenAIResponses().build(request, target)
    healed_ = healed(request, target, sent, UpstreamRefused("no"), body)
    assert healed_ is not None
    assert [tool["name"] for tool in msgspec.json.decode(healed_.sent.body)["tools"]] == ["a", "d"]
    assert healed_.remedy == Remedy(words, tool_limit=2)
    assert healed_.target.profile.tool_limit == 2
    assert [note.rule for note in healed_.sent.notes] == ["parameter-healed", "tools-limited"]


@pytest.mark.parametrize(
    ("provider", "place"),
    [("azure", "tools[1].function.description"), ("openai-responses", "tools[1].description")],
)
def test_a_server_that_takes_short_descriptions_gets_their_beginnings(provider: str, place: str) -> None:
    words = f"Invalid '{place}': string too long. Expected a string with maximum length 10, but got a string with "
    words += "length 16 instead."
    target = Target(provider, "gpt-4.1", PROFILES[provider])
    adapter = adapters.adapter(target.profile)
    tools = (Tool("a", "short"), Tool("b", "Runs a command. "))
    request = Request(model="m", messages=(Message("user", (Text("hi"),)),), max_tokens=5, tools=tools)
    error = msgspec.json.encode({"error": {"message": words, "param": place, "code": "string_above_max_length"}})
    cured = healed(request, target, adapter.build(request, target), UpstreamRefused("no"), error)
    assert cured is not None
    told = [tool.get("function", tool)["description"] for tool in msgspec.json.decode(cured.sent.body)["tools"]]
    assert told == ["short", "Runs a ..."]
    assert cured.remedy == Remedy(words, description_limit=10)
    assert cured.target.profile.description_limit == 10
    assert [note.rule for note in cured.sent.notes] == ["description-limited", "parameter-healed"]


def test_what_the_server_runs_itself_is_among_the_tools_that_it_counts() -> None:
    target = Target("openai-responses", "gpt-5.5", PROFILES["openai-responses"])
    words = "Invalid 'tools': array too long. Expected an array with maximum length 3, but got an array with length 4."
    tools = (Tool("web_search", type="web_search_20250305"), *(Tool(name, "", b'{"type":"object"}') for name in "abc"))
    request = Request(model="m", messages=(Message("user", (Text("hi"),)),), max_tokens=5, tools=tools)
    sent = OpenAIResponses().build(request, target)
    healed_ = healed(request, target, sent, UpstreamRefused("no"), msgspec.json.encode({"error": {"message": words}}))
    assert healed_ is not None
    assert [tool["type"] for tool in msgspec.json.decode(healed_.sent.body)["tools"]] == [
        "web_search", "function", "function",
    ]  # fmt: skip


DEEP = b"""{"type":"object","required":["a","b"],"properties":{"a":{"type":"string"},"b":{"type":"object","properties":{
"c":{"type":"array","items":{"type":"object","properties":{"d":{"type":"array","items":{"type":"array","items":{}}}}}},
"e":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"array","items":{"type":"array","items":{}}}}]}}}}}"""


@pytest.mark.parametrize("json_schemas", [False, True])
def test_gemini_is_told_as_many_levels_of_a_schema_as_it_takes(json_schemas: bool) -> None:
    target = Target("gemini", "gemini-3-pro", replace(PROFILES["gemini"], json_schemas=json_schemas))
    words = "FunctionDeclaration 't' in the request exceeds the maximum allowed nesting depth."
    error = msgspec.json.encode({"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}})
    request = Request(
        model="m",
        messages=(Message("user", (Text("hi"),)),),
        max_tokens=5,
        tools=(
            Tool("t", "Does it.", DEEP),
            Tool("u", "", b'{"type":"object","properties":{"a":{"type":"string"}}}'),
            Tool("v", "", b'{"type":"object","properties":{"a":{"type":"object"}}}'),
        ),
        output_schema=b'{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}}',
    )
    sent = Gemini().build(request, target)
    learned = []
    while (cured := healed(request, target, sent, UpstreamRefused(words), error)) is not None:
        sent, target = cured.sent, cured.target
        assert cured.remedy is not None
        assert validate(sent.body) == []
        learned.append(cured.remedy.schema_levels)
    assert learned == [4, 3, 1]
    value = msgspec.json.decode(sent.body)
    first, second, third = value["tools"][0]["functionDeclarations"]
    assert first["description"] == f"Does it.\n\nThe JSON Schema of its parameters in full: {DEEP.decode()}"
    told = first["parametersJsonSchema" if json_schemas else "parameters"]
    assert (told["properties"].keys(), told["required"]) == ({"a"}, ["a"])
    assert "description" not in second
    assert third.keys() == {"name", "description"}


def test_open_objects_that_gemini_refuses_are_sent_as_json_schema() -> None:
    schema = b"""{"type":"object","required":["opts"],"properties":{"opts":{"type":"object","description":"any"},
        "unit":{"enum":["c","f",null]},"many":{"type":["array","null"],"items":{"type":"integer","minimum":1}},
        "value":{},"inner":{"type":"object","properties":{"a":{"type":"string"}}}}}"""
    target = Target("gemini", "gemini-3-pro", PROFILES["gemini"])
    request = Request(
        model="m",
        messages=(Message("user", (Text("hi"),)),),
        max_tokens=5,
        tools=(Tool("Run", "runs", schema), Tool("Now")),
        output_schema=b'{"type":"object","properties":{"meta":{"type":"object"}}}',
    )
    sent = Gemini().build(request, target)
    words = "* GenerateContentRequest.tools[0].function_declarations[0].parameters.properties[opts].properties: "
    words += "should be non-empty for OBJECT type\n"
    body = msgspec.json.encode({"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}})
    healed_ = healed(request, target, sent, Gemini().failure(target, 400, {}, body), body)
    assert healed_ is not None
    assert healed_.remedy == Remedy(words, json_schemas=True)
    again = msgspec.json.decode(healed_.sent.body)
    run, now = again["tools"][0]["functionDeclarations"]
    assert now == {"name": "Now"}
    assert "parameters" not in run
    assert run["parametersJsonSchema"] == {
        "type": "object",
        "properties": {
            "opts": {"type": "object", "description": "any"},
            "unit": {"type": ["string", "null"], "enum": ["c", "f", None]},
            "many": {"type": ["array", "null"], "items": {"type": "integer", "minimum": 1}},
            "value": {
                "anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"}],
            },
            "inner": {"type": "object", "properties": {"a": {"type": "string"}}},
        },
        "required": ["opts"],
    }
    assert again["generationConfig"]["responseJsonSchema"] == {
        "type": "object",
        "properties": {"meta": {"type": "object"}},
    }
    assert "responseSchema" not in again["generationConfig"]
    assert validate(healed_.sent.body) == []
    known = replace(target, profile=remembered(target.profile, healed_.remedy))
    assert Gemini().build(request, known).body == healed_.sent.body


HELLO = Message("user", (Text("hi"),))
FLASH = Target("gemini", "gemini-9-flash", PROFILES["gemini"])


def heal_gemini(request: Request, words: str) -> dict[str, Any]:
    """What Gemini is sent after it said this, then and in later requests."""
    sent = Gemini().build(request, FLASH)
    body = msgspec.json.encode([{"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}])
    cured = healed(request, FLASH, sent, Gemini().failure(FLASH, 400, {}, body), body)
    assert cured is not None
    assert cured.remedy is not None
    known = replace(FLASH, profile=remembered(FLASH.profile, cured.remedy))
    later = Gemini().build(request, known)
    assert later.body == cured.sent.body
    assert "parameter-dropped" in [note.rule for note in later.notes] or b"functionCall" in later.body
    value: dict[str, Any] = msgspec.json.decode(later.body)
    return value


@pytest.mark.parametrize(
    "words",
    [
        "Thinking level is not supported for this model.",
        "Thinking level MINIMAL is not supported for this model. Please retry with other thinking level.",
        "Unable to submit request because thinking_level MEDIUM is not supported by this model. Learn more: https://x",
        "The thinking budget (52428) is invalid.",
        "The thinking budget 0 is invalid. Please choose a value between 128 and 32768.",
        "Budget 0 is invalid. This model only works in thinking mode.",
        "Unable to submit request because The model does not support setting thinking_budget to 0",
    ],
)
def test_a_thinking_level_that_gemini_refuses_is_left_to_the_model(words: str) -> None:
    request = Request(model="m", messages=(HELLO,), max_tokens=5, thinking=ThinkingConfig("adaptive"), effort="low")
    assert heal_gemini(request, words)["generationConfig"]["thinkingConfig"] == {"includeThoughts": True}
    assert "thinkingConfig" not in heal_gemini(replace(request, thinking=None), words)["generationConfig"]


def test_a_gemini_model_that_does_not_think_is_not_told_to() -> None:
    request = Request(model="m", messages=(HELLO,), max_tokens=5, thinking=ThinkingConfig("adaptive"), effort="low")
    words = "Unable to submit request because thinking is not supported by this model."
    assert "thinkingConfig" not in heal_gemini(request, words)["generationConfig"]


def test_a_sampling_parameter_that_gemini_refuses_is_dropped() -> None:
    request = Request(model="m", messages=(HELLO,), max_tokens=5, top_k=100, top_p=0.5)
    words = "Unable to submit request because it has a topK value of 100 but the supported range is from 1 (inclusive) "
    words += "to 41 (exclusive). Update the value and try again."
    assert heal_gemini(request, words)["generationConfig"] == {"maxOutputTokens": 5, "topP": 0.5}
    for words in (
        "Unsupported parameter: 'topP' is not supported with this model.",
        "Unable to submit request because top_p is not supported by this model.",
        "The topP parameter is deprecated for this model.",
    ):
        assert heal_gemini(request, words)["generationConfig"] == {"maxOutputTokens": 5, "topK": 100}


def test_a_seed_that_gemini_refuses_is_dropped() -> None:
    request = Request(model="m", messages=(HELLO,), max_tokens=5, extras=b'{"seed":7}')
    words = "Unsupported parameter: 'seed' is not supported with this model."
    assert heal_gemini(request, words)["generationConfig"] == {"maxOutputTokens": 5}


@pytest.mark.parametrize(
    "words",
    [
        "Unsupported parameter: 'text.verbosity' is not supported with this model.",
        "Unsupported value: 'low' is not supported with the 'gpt-4o' model. Supported values are: 'medium'.",
    ],
)
def test_the_form_of_the_answer_stays_where_only_its_verbosity_is_refused(words: str) -> None:
    target = Target("openai-responses", "gpt-4o", PROFILES["openai-responses"])
    request = Request(model="m", messages=(HELLO,), max_tokens=50, extras=b'{"verbosity":"low"}')
    error = msgspec.json.encode({"error": {"message": words, "param": "text.verbosity"}})
    cured = healed(request, target, OpenAIResponses().build(request, target), UpstreamRefused(words), error)
    assert cured is not None
    assert cured.remedy == Remedy(words, drop=("text.verbosity",))
    known = replace(target, profile=remembered(target.profile, cured.remedy))
    later = OpenAIResponses().build(replace(request, output_schema=b'{"type":"object","properties":{}}'), known)
    assert msgspec.json.decode(later.body)["text"].keys() == {"format"}
    assert [note.what for note in later.notes if note.rule == "parameter-dropped"] == [
        "openai-responses takes no text.verbosity"
    ]


def test_a_gemini_server_that_refuses_the_ids_of_calls_gets_none() -> None:
    link = Link("toolu_1", "ping", "ping", "fc-1", b"{}", Origin("gemini", "gemini-9-flash"), 1, 0)
    called = Message("assistant", (ToolUse("toolu_1", "ping", b"{}", link),))
    answered = Message("user", (ToolResult("toolu_1", (Text("pong"),)),))
    request = Request(model="m", messages=(HELLO, called, answered), max_tokens=5, tools=(Tool("ping"),))
    words = (
        "Invalid JSON payload received. Unknown name \"id\" at 'contents[1].parts[0].function_call': Cannot find field."
    )
    contents = heal_gemini(request, words)["contents"]
    assert contents[1]["parts"][0]["functionCall"] == {"name": "ping", "args": {}}
    assert contents[2]["parts"][0]["functionResponse"] == {"name": "ping", "response": {"output": "pong"}}
