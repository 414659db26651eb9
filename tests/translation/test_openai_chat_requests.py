"""Requests to the chat family."""

import itertools
import json
import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.validators import reasoning
from translation import adapters
from translation.adapter import Target, UpstreamRequest
from translation.errors import OPAQUE_STATE_REJECTED, InvalidRequest
from translation.events import Finished
from translation.providers.openai_chat import OpenAIChat
from translation.providers.profiles import PROFILES
from translation.values import (
    Block,
    Document,
    Image,
    Link,
    Message,
    Origin,
    Other,
    RedactedThinking,
    Request,
    SearchResult,
    ServerToolUse,
    Text,
    Thinking,
    ThinkingConfig,
    Tool,
    ToolChoice,
    ToolReference,
    ToolResult,
    ToolUse,
)

FAMILY = tuple(name for name, profile in PROFILES.items() if profile.dialect == "openai_chat")
READ = Tool("Read", "Reads a file.", b'{"type":"object","properties":{"path":{"type":"string","title":"T"}}}')
WEATHER = Tool("get_weather", "", b'{"type":"object","properties":{}}')
CODE = Tool("code_execution", type="code_execution_20250825")
SEARCH = Tool("web_search", type="web_search_20250305")
PNG = Image("base64", "iVBORw0=", "image/png")


def user(*blocks: Block) -> Message:
    return Message("user", blocks)


def assistant(*blocks: Block, origin: Origin | None = None) -> Message:
    return Message("assistant", blocks, origin=origin)


def asking(*messages: Message, **more: Any) -> Request:
    return Request(model="claude", max_tokens=100, messages=messages or (user(Text("hi")),), **more)


def sent(request: Request, provider: str = "openai", model: str = "gpt-4.1", **profile: Any) -> UpstreamRequest:
    return OpenAIChat().build(request, Target(provider, model, replace(PROFILES[provider], **profile)))


def body(request: Request, provider: str = "openai", model: str = "gpt-4.1", **profile: Any) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode(sent(request, provider, model, **profile).body)
    return value


def rules(request: Request, provider: str = "openai", model: str = "gpt-4.1", **profile: Any) -> list[str]:
    return [note.rule for note in sent(request, provider, model, **profile).notes]


CHAIN = (
    user(Text("Compare a and b.")),
    assistant(
        Text("I read both."), ToolUse("toolu_1", "Read", b'{"path":"a"}'), ToolUse("toolu_2", "Read", b'{"path":"b"}')
    ),
    user(
        ToolResult("toolu_1", (Text("A"),)),
        ToolResult("toolu_2", (Text("no such file"),), is_error=True),
        Text("Go on."),
    ),
    assistant(ToolUse("toolu_3", "get_weather", b"")),
    user(ToolResult("toolu_3", ())),
)


# ---------------------------------------------------------------- messages


def test_a_tool_chain_is_told_in_chat_messages() -> None:
    messages = body(asking(*CHAIN, system=(Text("Be brief."), Text("Be kind.")), tools=(READ, WEATHER)))["messages"]
    call = {"id": "toolu_1", "type": "function", "function": {"name": "Read", "arguments": '{"path":"a"}'}}
    assert messages[0] == {"role": "system", "content": "Be brief.\n\nBe kind."}
    assert messages[1] == {"role": "user", "content": "Compare a and b."}
    assert (messages[2]["role"], messages[2]["content"], messages[2]["tool_calls"][0]) == (
        "assistant",
        "I read both.",
        call,
    )
    assert messages[3:6] == [
        {"role": "tool", "tool_call_id": "toolu_1", "content": "A"},
        {"role": "tool", "tool_call_id": "toolu_2", "content": "Error: no such file"},
        {"role": "user", "content": "Go on."},
    ]
    assert messages[6]["content"] is None
    assert messages[6]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert messages[7] == {"role": "tool", "tool_call_id": "toolu_3", "content": "(no output)"}


@pytest.mark.parametrize("provider", FAMILY)
def test_every_provider_of_the_family_accepts_the_chain(provider: str) -> None:
    long = replace(READ, name="mcp__server.with.dots__" + "x" * 60)
    request = asking(*CHAIN, tools=(READ, WEATHER, long), system=(Text("s"),), stream=True, user_id="u")
    profile = PROFILES[provider]
    lost = bool(profile.reasoning_placeholder)
    assert reasoning.validate(sent(request, provider).body, required=lost, prefill=profile.prefill_field) == []


@pytest.mark.parametrize("provider", FAMILY)
def test_a_longer_history_only_appends_to_the_bytes(provider: str) -> None:
    earlier, later = asking(*CHAIN[:3], tools=(READ,)), asking(*CHAIN, tools=(READ,))
    assert sent(later, provider).body.startswith(sent(earlier, provider).body.removesuffix(b"]}"))


def test_a_mixed_turn_is_results_then_one_user_message() -> None:
    mixed = user(Text("t1"), ToolResult("a", (Text("A"),)), PNG, ToolResult("b", (Text("B"),)), Text("t2"))
    messages = body(asking(assistant(ToolUse("a", "Read", b"{}"), ToolUse("b", "Read", b"{}")), mixed))["messages"]
    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user"]
    assert [part["type"] for part in messages[3]["content"]] == ["text", "image_url", "text"]


@pytest.mark.parametrize(
    ("provider", "model"), [("mistral", "mistral-large"), ("vllm", "mistralai/Devstral-2"), ("openrouter", "x/mixtral")]
)
def test_models_that_must_answer_results_get_an_answer_before_what_else_the_user_said(
    provider: str, model: str
) -> None:
    request = asking(*CHAIN[:3], tools=(READ,))
    messages = body(request, provider, model)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert messages[4] == {"role": "assistant", "content": "(results noted)"}
    assert "answer-inserted" in rules(request, provider, model)
    assert "answer-inserted" not in rules(asking(*CHAIN[3:]), provider, model)
    assert [message["role"] for message in body(request, "vllm", "qwen3")["messages"]][-2:] == ["tool", "user"]


def test_an_image_in_a_result_is_lifted_behind_the_last_result_and_named() -> None:
    results = user(ToolResult("a", (PNG,)), ToolResult("b", (Text("B"),)), Text("What is it?"))
    messages = body(asking(assistant(ToolUse("a", "Read", b"{}"), ToolUse("b", "Read", b"{}")), results))["messages"]
    assert messages[1]["content"] == "(see the file below)"
    assert messages[3]["content"] == [
        {"type": "text", "text": "What is it?"},
        {"type": "text", "text": "[from the result of Read, call a]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0="}},
    ]


def test_a_result_of_an_unknown_call_is_still_labelled() -> None:
    messages = body(asking(user(ToolResult("x", (PNG,)))))["messages"]
    assert messages[1]["content"][0]["text"] == "[from the result of a tool, call x]"


def test_images_go_as_data_or_by_address() -> None:
    parts = body(asking(user(Text("Look."), Image("url", "https://x/y.png"))))["messages"][0]["content"]
    assert parts[1] == {"type": "image_url", "image_url": {"url": "https://x/y.png"}}


@pytest.mark.parametrize(
    ("block", "provider", "words"),
    [
        (PNG, "deepseek", "takes no image"),
        (Image("url", "https://x"), "moonshot", "takes no image by url"),
        (Image("file", "file_1"), "openai", "takes no image by file"),
        (Document("base64", "JVBERi0=", "application/pdf"), "mistral", "takes no document of type application/pdf"),
        (Document("url", "https://x/y.pdf"), "openai", "takes no document of type unknown by url"),
    ],
)
def test_what_the_model_cannot_take_is_refused_by_its_path(block: Block, provider: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=rf"^messages\.1\.content\.1: .*{words}"):
        sent(asking(assistant(Text("hi")), user(Text("Look."), block)), provider)


def test_inside_a_result_it_is_replaced_by_a_line_and_noted() -> None:
    request = asking(assistant(ToolUse("a", "Read", b"{}")), user(ToolResult("a", (PNG, Text("and text")))))
    assert (
        body(request, "deepseek")["messages"][1]["content"] == "[image left out: this model does not take it]\nand text"
    )
    assert "content-left-out" in rules(request, "deepseek")


def test_documents_are_files_or_text() -> None:
    pdf = Document("base64", "JVBERi0=", "application/pdf", title="plan.pdf")
    text = Document("text", "words", "text/plain", title="notes")
    parts = body(asking(user(pdf, text)))["messages"][0]["content"]
    assert parts[0] == {
        "type": "file",
        "file": {"filename": "plan.pdf", "file_data": "data:application/pdf;base64,JVBERi0="},
    }
    assert parts[1] == {"type": "text", "text": "[document: notes]\nwords"}
    parts = body(asking(user(replace(pdf, context="of last year"))))["messages"][0]["content"]
    assert [part.get("text", "file") for part in parts] == ["[document: plan.pdf]\nof last year", "file"]


def test_openrouter_fetches_a_pdf_itself() -> None:
    file = {"filename": "document.pdf", "file_data": "https://x/y.pdf"}
    request = asking(user(Document("url", "https://x/y.pdf"), Text("Sum it up.")))
    assert body(request, "openrouter")["messages"][0]["content"][0] == {"type": "file", "file": file}


def test_search_results_references_and_unknown_blocks_become_words() -> None:
    blocks = (
        SearchResult("T", "https://s", (Text("found"),)),
        ToolReference("Fetch"),
        Other("container_upload", b'{"type":"container_upload","file_id":"f"}'),
    )
    request = asking(user(*blocks), assistant(ServerToolUse("s", "web_search", b"{}"), Text("ok")), user(Text("and?")))
    messages = body(request)["messages"]
    assert messages[0]["content"].splitlines()[0] == "[search result: T (https://s)]"
    assert '[container_upload: {"file_id":"f"}]' in messages[0]["content"]
    assert messages[1]["content"] == "[server_tool_use web_search: {}]\nok"
    assert rules(request) == ["block-summarised"]


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "gemini"])
def test_what_is_left_out_is_noted_at_its_message(provider: str) -> None:
    """Where nothing new is left out the turn need not record it again."""
    unknown = Other("weather_map", b'{"type":"weather_map"}')
    request = asking(user(Text("q")), assistant(Text("a")), user(unknown), assistant(unknown, unknown), user(Text("b")))
    target = Target(provider, "gemini-3-pro" if provider == "gemini" else "gpt-4.1", PROFILES[provider])
    notes = adapters.adapter(target.profile).build(request, target).notes
    assert {note.rule for note in notes} == {"block-summarised"}
    assert notes[-1].message == 3


def test_a_history_that_nobody_repaired_does_not_crash() -> None:
    request = asking(
        assistant(Thinking("hm", "sig"), RedactedThinking("x")),
        user(ToolUse("a", "Read", b"{}"), ToolResult("gone", (Text("B"), Thinking("x")))),
        Message("system", (Text("Mind the gap."),)),
        user(),
        assistant(Text("So")),
    )
    messages = body(request)["messages"]
    assert messages[0] == {"role": "assistant", "content": "(no content)"}
    assert messages[1] == {"role": "tool", "tool_call_id": "gone", "content": "B"}
    assert messages[2] == {"role": "user", "content": "<system-reminder>\nMind the gap.\n</system-reminder>"}
    assert messages[3] == {"role": "user", "content": "(no content)"}
    assert messages[4] == {"role": "assistant", "content": "So"}


def test_a_system_message_in_the_middle_stays_one_where_the_model_takes_it() -> None:
    request = asking(user(Text("a")), Message("system", (Text("Now."),)))
    assert body(request, mid_system=True)["messages"][1] == {"role": "system", "content": "Now."}


def test_a_prefill_is_marked_where_that_is_known_and_noted_where_not() -> None:
    request = asking(user(Text("a")), assistant(Text("The answer is")))
    assert body(request, "mistral")["messages"][-1]["prefix"] is True
    assert body(request, "moonshot")["messages"][-1]["partial"] is True
    assert rules(request) == ["prefill"]


def test_vllm_is_told_to_go_on_with_a_prefill_in_the_request() -> None:
    """Its template would begin another answer after it."""
    request = asking(user(Text("q")), assistant(Text("{")))
    told = {"add_generation_prompt": False, "continue_final_message": True}
    value = body(request, "vllm")
    assert {name: value.get(name) for name in told} == told
    assert rules(request, "vllm") == []
    assert not told.keys() & body(asking(), "vllm").keys()


# ---------------------------------------------------------------- reasoning


def turn(origin: Origin | None, link: Origin | None = None, *thoughts: Block) -> Request:
    stored = Link("toolu_1", "Read", "Read", "call_a", b"{}", link) if link else None
    called = assistant(*thoughts, ToolUse("toolu_1", "Read", b"{}", stored), origin=origin)
    return asking(user(Text("q")), called, user(ToolResult("toolu_1", (Text("A"),))), tools=(READ,))


STATE = b'{"reasoning_content":"First, look."}'
MINE = Origin("deepseek", "deepseek-v4-flash")


@pytest.mark.parametrize(
    "request_",
    [
        turn(replace(MINE, state=STATE)),
        turn(None, replace(MINE, state=STATE)),
        turn(MINE, None, Thinking("First, look.", "ours")),
        turn(None, MINE, Thinking("First, look.", "ours")),
        turn(replace(MINE, state=STATE), None, Thinking("", "redacted")),
    ],
)
def test_reasoning_goes_back_to_the_upstream_that_made_it(request_: Request) -> None:
    assert body(request_, "deepseek")["messages"][1]["reasoning_content"] == "First, look."
    assert "reasoning-substituted" not in rules(request_, "deepseek")


@pytest.mark.parametrize(
    "request_",
    [
        turn(None, None, Thinking("Claude's own.", "EqQB")),
        turn(Origin("anthropic", "claude", STATE), None, Thinking("Claude's own.", "EqQB")),
    ],
)
def test_reasoning_of_another_is_never_sent_and_a_placeholder_is_noted(request_: Request) -> None:
    assert body(request_, "deepseek")["messages"][1]["reasoning_content"] == " "
    assert "reasoning-substituted" in rules(request_, "deepseek")
    assert b"Claude" not in sent(request_, "deepseek").body
    assert b"EqQB" not in sent(request_, "deepseek").body


@pytest.mark.parametrize("signature", ["", "toolbridge_msg_1"])
@pytest.mark.parametrize(("provider", "field"), [("deepseek", "reasoning_content"), ("openrouter", "reasoning")])
def test_reasoning_that_only_the_client_has_is_taken_from_it(signature: str, provider: str, field: str) -> None:
    """A history from elsewhere, or from before a purge: what is not signed is not Claude's."""
    request = turn(None, None, Thinking("First, ", signature), Thinking("look.", signature))
    assert body(request, provider)["messages"][1][field] == "First, look."
    assert rules(request, provider) == []


def test_a_placeholder_is_not_needed_when_thinking_is_off_or_nobody_asks_for_it() -> None:
    lost = turn(None)
    assert (
        "reasoning_content" not in body(replace(lost, thinking=ThinkingConfig("disabled")), "deepseek")["messages"][1]
    )
    assert "reasoning_content" not in body(lost, "vllm")["messages"][1]
    assert "reasoning_content" not in body(turn(Origin("openai", "m", STATE)), "openai")["messages"][1]


def test_a_model_that_always_thinks_gets_the_reasoning_of_every_turn_back() -> None:
    """Kimi calls it preserved thinking: a history without it is not what the model said."""
    mine = Origin("moonshot", "kimi-k3", STATE)
    plain = asking(user(Text("q")), assistant(Text("a"), origin=mine), user(Text("r")))
    assert body(plain, "moonshot", "kimi-k3")["messages"][1]["reasoning_content"] == "First, look."
    assert "reasoning_content" not in body(plain, "moonshot", "kimi-k2.6")["messages"][1]
    unknown = replace(plain, messages=(plain.messages[0], assistant(Text("a")), plain.messages[2]))
    assert "reasoning_content" not in body(unknown, "moonshot", "kimi-k3")["messages"][1]


def test_only_tool_turns_carry_reasoning_unless_the_profile_wants_all() -> None:
    plain = asking(user(Text("q")), assistant(Text("a"), origin=replace(MINE, state=STATE)), user(Text("r")))
    assert "reasoning_content" not in body(plain, "deepseek")["messages"][1]
    in_pieces = asking(user(Text("hi")), assistant(Text("a"), Text("b"), origin=Origin("deepseek", "m", STATE)))
    assert "reasoning_content" not in body(in_pieces, "deepseek")["messages"][1]
    assert body(plain, "deepseek", replay_reasoning="always")["messages"][1]["reasoning_content"] == "First, look."


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (b'{"reasoning_content":"x","reasoning_details":[{"type":"reasoning.text","text":"x"}]}', "x"),
        (b'{"reasoning_details":[{"type":"reasoning.encrypted","data":"AAAA"}]}', " "),
        (b'{"reasoning_content":"\\r\\n"}', " "),
    ],
)
@pytest.mark.parametrize(("provider", "model"), [("deepseek", "deepseek-v4-flash"), ("moonshot", "kimi-k2.6")])
def test_who_asks_for_reasoning_gets_it_in_its_own_field(
    provider: str, model: str, state: bytes, expected: str
) -> None:
    _, message, *_ = body(turn(Origin(provider, model, state)), provider, model)["messages"]
    assert message["reasoning_content"] == expected
    assert "reasoning_details" not in message


@pytest.mark.parametrize(
    ("provider", "came", "back"),
    [
        ("vllm", ("reasoning",), "reasoning"),
        ("vllm", ("reasoning_content",), "reasoning_content"),
        ("vllm", ("reasoning", "reasoning_content"), "reasoning"),
        ("ollama", ("reasoning",), "reasoning"),
        ("deepseek", ("reasoning",), "reasoning_content"),
    ],
)
def test_reasoning_goes_back_in_the_field_that_it_came_in(provider: str, came: tuple[str, ...], back: str) -> None:
    """vLLM drops a `reasoning_content` without a word; DeepSeek asks for that one."""
    target = Target(provider, "m", PROFILES[provider])
    message = {"content": "x", **dict.fromkeys(came, "First, look.")}
    answer = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    decoder = OpenAIChat().decoder(asking(), target, sent(asking(), provider), "")
    (*_, finished) = [*decoder.feed(answer), *decoder.close()]
    assert isinstance(finished, Finished)
    _, said, *_ = body(turn(Origin(provider, "m", finished.state)), provider, "m")["messages"]
    assert {name: said[name] for name in ("reasoning", "reasoning_content") if name in said} == {back: "First, look."}


def test_details_that_openrouter_refuses_are_left_out_once() -> None:
    state = b'{"reasoning_details":[{"type":"reasoning.encrypted","data":"blob"}]}'
    target = Target("openrouter", "m", PROFILES["openrouter"])
    given = sent(turn(Origin("openrouter", "m", state)), "openrouter", "m")
    raw = '{"error":{"code":400,"message":"Corrupted thought signature.","status":"INVALID_ARGUMENT"}}'
    error = {"message": "Provider returned error", "code": 400, "metadata": {"raw": raw}}
    assert OpenAIChat().failure(target, 400, {}, msgspec.json.encode({"error": error})).code == OPAQUE_STATE_REJECTED
    bare = OpenAIChat().without_state(given)
    assert b"blob" in given.body
    assert b"reasoning_details" not in bare.body
    assert [note.rule for note in bare.notes][-1] == "opaque-state-dropped"
    assert OpenAIChat().without_state(bare) is bare


def test_openrouter_gets_its_details_back_as_they_were() -> None:
    state = b'{"reasoning_content":"x","reasoning_details":[{"type":"reasoning.text","text":"x","signature":"EqQ="}]}'
    message = body(turn(Origin("openrouter", "m", state)), "openrouter")["messages"][1]
    assert message["reasoning_details"] == [{"type": "reasoning.text", "text": "x", "signature": "EqQ="}]
    assert "reasoning" not in message


# ---------------------------------------------------------------- tools


def test_a_schema_is_passed_on_byte_for_byte() -> None:
    odd = b'{ "type":"object", "properties" : {"title":{"type":"string","default":1e2}} , "$schema":"x"}'
    assert odd in sent(asking(tools=(Tool("t", "", odd),))).body


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (b"", {"type": "object", "properties": {}}),
        (b"[]", {"type": "object", "properties": {}}),
        (b'{"type":"object"}', {"type": "object", "properties": {}}),
        (b'{"properties":{"a":{}}}', {"type": "object", "properties": {"a": {}}}),
        (b'{"type":"custom","properties":{"a":{}}}', {"type": "object", "properties": {"a": {}}}),
        (b'{"type":"object","properties":[],"required":null}', {"type": "object", "properties": {}}),
    ],
)
def test_a_schema_is_always_an_object_with_properties(schema: bytes, expected: dict[str, Any]) -> None:
    assert body(asking(tools=(Tool("t", "", schema),)))["tools"][0]["function"]["parameters"] == expected


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "gemini", "minimax"])
def test_a_blank_system_text_is_left_out(provider: str) -> None:
    """llama.cpp: `all messages must have non-empty content`."""
    target = Target(provider, "some-model", PROFILES[provider])
    build = adapters.adapter(target.profile).build
    blank = build(asking(system=(Text(" \n"), Text(""))), target).body
    assert not any(word in blank for word in (b"system", b"instructions"))
    assert b'"Be brief."' in build(asking(system=(Text(""), Text("Be brief."), Text(" "))), target).body


NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"type": ["string", "null"], "anyOf": [{"enum": ["a"]}, {"type": "null"}, True], "description": "D"},
            {
                "anyOf": [
                    {"type": ["string", "null"], "enum": ["a"]},
                    {"type": "null"},
                    {"type": ["string", "null"]},
                ],
                "description": "D",
            },
        ),
        (
            {"type": "object", "oneOf": [{"required": ["a"]}, {"$ref": "#/$defs/node"}]},
            {"oneOf": [{"type": "object", "required": ["a"], "properties": {"a": {}}}, {"$ref": "#/$defs/node"}]},
        ),
        ({"$ref": "#/definitions/node"}, {"$ref": "#/$defs/node"}),
        (
            {"$ref": "#/$defs/node", "description": "D", "title": "T"},
            {"description": "D", "anyOf": [{"$ref": "#/$defs/node"}]},
        ),
        (
            {"type": "array", "items": [{"type": "string"}, {"$ref": "#", "title": "T"}]},
            {"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}},
        ),
        ({"type": "array", "items": []}, {"type": "array", "items": {}}),
        # `property schema for 'b' must be an object`, `items must be an object`
        (
            {"properties": {"b": True, "c": False, "d": 1}, "additionalProperties": False},
            {"properties": {"b": {}, "c": {"not": {}}, "d": 1}, "additionalProperties": False},
        ),
        (
            {"type": "array", "prefixItems": [{}], "items": False},
            {"type": "array", "prefixItems": [{}], "items": {}},
        ),
        # `required property 'b' is not defined in properties`, `required must be an array`
        (
            {"properties": {"a": {"type": "string", "required": True}}, "required": ["a", "b"]},
            {"properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]},
        ),
        # `type is not defined`, `enum value (<nil>) does not match any type in [string]`
        ({"enum": ["a", "b"]}, {"enum": ["a", "b"], "type": "string"}),
        ({"enum": ["a", None], "title": "T"}, {"title": "T", "type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "string", "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        ({"type": "number", "enum": [1, 1.5]}, {"type": "number", "enum": [1, 1.5]}),
        ({"type": "string", "enum": []}, {"type": "string"}),
        (
            {"enum": ["a", 1, [2]], "description": "D"},
            {
                "description": "D",
                "anyOf": [
                    {"type": "string", "enum": ["a"]},
                    {"type": "integer", "enum": [1]},
                    {"type": "array", "enum": [[2]]},
                ],
            },
        ),
        # `invalid type`, `type array cannot be empty`
        ({"type": "STRING"}, {"type": "string"}),
        ({"type": ["any"], "description": 5}, {}),
        ({"type": ["Null", "Object"]}, {"type": ["null", "object"]}),
        # `keyword minLength is not allowed in combination with multiple types`
        ({"type": ["string", "null"], "title": "T"}, {"type": ["string", "null"], "title": "T"}),
        (
            {"type": ["string", "null"], "minLength": 1, "default": None},
            {"default": None, "anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
        ),
        # `conflicting keywords found in anyOf with parent: properties`
        (
            {
                "type": "object",
                "description": "D",
                "properties": {"b": {}, "c": {}},
                "required": ["b"],
                "anyOf": [{"required": ["c"]}, {"properties": {"d": {}}}, {"$ref": "#/$defs/node"}, 1],
            },
            {
                "description": "D",
                "anyOf": [
                    {"type": "object", "properties": {"b": {}, "c": {}}, "required": ["b", "c"]},
                    {"type": "object", "properties": {"b": {}, "c": {}, "d": {}}, "required": ["b"]},
                    {"$ref": "#/$defs/node"},
                    1,
                ],
            },
        ),
        ({"anyOf": [], "examples": [1]}, {"examples": [1]}),
        ({"anyOf": [{"type": "null"}], "examples": [1]}, {"anyOf": [{"type": "null"}], "examples": [1]}),
        ({"$ref": "#"}, {"$ref": "#"}),
    ],
)
@pytest.mark.parametrize("key", ["$defs", "definitions"])
def test_kimi_is_told_a_schema_in_the_form_that_it_takes(given: object, expected: object, key: str) -> None:
    """`not a valid moonshot flavored json schema`, for every request that holds the tool."""
    node = json.loads(json.dumps(NODE).replace("$defs", key))
    schema = json.dumps({"type": "object", "properties": {"a": given}, key: {"node": node}}).encode()
    found = body(asking(tools=(Tool("t", "", schema),)), "moonshot", "kimi-k2")["tools"][0]["function"]["parameters"]
    assert found == {"type": "object", "properties": {"a": expected}, "$defs": {"node": NODE}}


def test_kimi_finds_all_that_is_referred_to_among_the_definitions() -> None:
    """`references must start with #/$defs/`: libraries refer to the first place where a type stands."""
    tree = {"type": "object", "properties": {"below": {"$ref": "#/properties/tree"}}}
    kept = {"properties_tree": {"type": "string"}, "b/c": {"type": "null"}}
    properties = {
        "tree": tree,
        "again": {"$ref": "#/properties/tree", "description": "D"},
        "odd": {"$ref": "#/$defs/b~1c"},
        "lost": {"$ref": "#/properties/none", "title": "T"},
        "far": {"$ref": ["https://x"]},
    }
    schema = {"type": "object", "properties": properties, "$defs": kept}
    request = asking(tools=(Tool("t", "", json.dumps(schema).encode()),))
    found = body(request, "moonshot", "kimi-k2")["tools"][0]["function"]["parameters"]
    moved = {"$ref": "#/$defs/properties_tree_"}
    told = {"type": "object", "properties": {"below": moved}}
    assert found["properties"] == {
        "tree": told,
        "again": {"description": "D", "anyOf": [moved]},
        "odd": {"$ref": "#/$defs/defs_b_1c"},
        "lost": {"title": "T"},
        "far": {},
    }
    assert found["$defs"] == {
        "properties_tree": {"type": "string"},
        "properties_tree_": told,
        "defs_b_1c": {"type": "null"},
    }
    assert rules(request, "moonshot", "kimi-k2") == ["schema-lowered"]


def test_places_of_like_names_stay_apart_for_kimi() -> None:
    rows = {"type": "object", "properties": {"rows": {"type": "string"}}}
    places = {"a": rows, "a_properties_rows": {"type": "integer"}}
    references = {"x": {"$ref": "#/properties/a/properties/rows"}, "y": {"$ref": "#/properties/a_properties_rows"}}
    schema = json.dumps({"type": "object", "properties": places | references}).encode()
    found = body(asking(tools=(Tool("t", "", schema),)), "moonshot", "kimi-k2")["tools"][0]["function"]["parameters"]
    names = [found["properties"][name]["$ref"].removeprefix("#/$defs/") for name in references]
    assert [found["$defs"][name] for name in names] == [{"type": "string"}, {"type": "integer"}]


DEEP = 30
SPELLED = ["".join(letters) for letters in itertools.product(("a", "%61"), repeat=6)][1:]  # one place, many references


def repeating(**beside: object) -> Any:
    node: Any = {"type": "string"}
    for _ in range(DEEP):
        node = {"type": "object", "properties": {"a": node}, **beside}
    return node


@pytest.mark.parametrize(
    "given",
    [
        repeating(anyOf=[{"required": ["a"]}, {"minProperties": 1}]),
        repeating(type=["object", "array"]),
        {"aaaaaa": repeating(title="T" * 99)} | {place: {"$ref": f"#/properties/{place}"} for place in SPELLED},
    ],
    ids=["alternatives", "types", "references"],
)
def test_a_schema_for_kimi_is_never_many_times_as_long_as_the_clients(given: Any) -> None:
    """Alternatives in alternatives repeat what stands beside them: a kilobyte became gigabytes."""
    properties = given if "aaaaaa" in given else {"x": given}
    schema = json.dumps({"type": "object", "properties": properties}).encode()
    assert len(sent(asking(tools=(Tool("t", "", schema),)), "moonshot", "kimi-k2").body) < 10 * len(schema)


def nested(levels: int, leaf: object) -> dict[str, Any]:
    node: Any = leaf
    for _ in range(levels):
        node = {"type": "object", "properties": {"a": node}, "required": ["a"], "additionalProperties": False}
    found: dict[str, Any] = node
    return found


def levels(node: dict[str, Any]) -> int:
    return max((1 + levels(inner) for inner in node.get("properties", {}).values()), default=0)


LIST_OF_NODES = {"type": "array", "items": {"$ref": "#/$defs/node"}}
LINKED = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # `schema depth exceeds maximum limit of 10`
        (nested(9, {"type": "string"}), None),
        (nested(10, {"type": "string"}), 10),
        (nested(7, LIST_OF_NODES), None),
        (nested(8, LIST_OF_NODES), 9),
        (nested(9, {"$ref": "#"}), 10),
        # `schema exceeds maximum allowed size`
        ({"type": "string", "description": "D" * 14_000}, None),
        ({"type": "string", "description": "D" * 16_000}, 1),
        ({"type": "string", "description": "<" * 3_000}, 1),
        ({f"x{number}": {"const": 1} for number in range(1_000)}, 0),
        # `enum array cannot have more than 500 items`, `total string length of enum values ...`
        ({"type": "string", "enum": [f"{number}" for number in range(500)]}, None),
        ({"type": "string", "enum": [f"{number}" for number in range(501)]}, 1),
        ({"type": "string", "enum": [f"{number:031}" for number in range(251)]}, 1),
        ({"anyOf": [{"type": "string"}] * 101}, 1),
        # `total number of properties keys(1001) across all objects exceeds maximum limit of 1000`
        ({"type": "object", "properties": {f"{number}": {} for number in range(1_000)}}, 1),
        # `property name 'required' is reserved for JSON Schema keywords`
        ({"type": "object", "properties": {"required": {}, "b": {}}, "required": ["required", "b"]}, 2),
        ({"type": "object", "properties": {"$ref": {}}}, 1),
    ],
)
def test_kimi_is_told_a_large_schema_as_far_as_it_takes_it(given: dict[str, Any], expected: int | None) -> None:
    """Each is a 400 for every request that holds the tool."""
    schema = json.dumps({"type": "object", "properties": {"a": given}, "$defs": {"node": LINKED}}).encode()
    request = asking(tools=(Tool("t", "Does it.", schema),))
    told = body(request, "moonshot", "kimi-k2")["tools"][0]["function"]
    if expected is None:
        assert (told["description"], told["parameters"]) == ("Does it.", json.loads(schema))
        return
    assert told["description"] == f"Does it.\n\nThe JSON Schema of its parameters in full: {schema.decode()}"
    assert levels(told["parameters"]) == expected
    assert '{"type": "object", "additionalProperties": false}' not in json.dumps(told["parameters"])
    assert "required" not in told["parameters"].get("properties", {}).get("a", {}).get("properties", {})
    assert rules(request, "moonshot", "kimi-k2") == ["schema-lowered"]


def test_kimi_gets_no_definitions_with_slashes_below_them() -> None:
    """`$defs property name 'text/plain' cannot contain '/' character`"""
    named = {"type": "object", "properties": {"text/plain": {"type": "string"}}}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/b"}, "c/d": {}}, "$defs": {"b": named}}
    request = asking(tools=(Tool("t", "", json.dumps(schema).encode()),))
    told = body(request, "moonshot", "kimi-k2")["tools"][0]["function"]
    assert told["parameters"] == {"type": "object", "properties": {"a": {"type": "object"}, "c/d": {}}}
    assert told["description"].endswith(json.dumps(schema))


def test_what_is_left_of_a_large_schema_is_in_the_form_that_kimi_takes() -> None:
    """`keyword minLength is not allowed in combination with multiple types`, of which the values were an exception."""
    zones = {"type": ["string", "null"], "minLength": 1, "enum": [f"Zone/{number}" for number in range(501)]}
    schema = json.dumps({"type": "object", "properties": {"a": zones}}).encode()
    found = body(asking(tools=(Tool("t", "", schema),)), "moonshot", "kimi-k2")["tools"][0]["function"]["parameters"]
    assert found["properties"] == {"a": {"type": ["string", "null"]}}


@pytest.mark.parametrize(("model", "told"), [("moonshotai/kimi-k3", {}), ("openai/gpt-5.5", True)])
def test_kimi_takes_no_other_schemas_behind_openrouter(model: str, told: object) -> None:
    request = asking(tools=(Tool("t", "", b'{"type":"object","properties":{"a":true}}'),))
    found = body(request, "openrouter", model)["tools"][0]["function"]["parameters"]
    assert found["properties"] == {"a": told}


def test_kimi_is_told_other_schemas_as_the_client_wrote_them() -> None:
    for odd in (
        b'{ "type":"object", "properties":{"a":{"anyOf":[{"type":"string"}], "title":"T"}}}',
        b'{ "type":"object", "properties":{"a":{"items":1e400}}}',
    ):
        assert odd in sent(asking(tools=(Tool("t", "", odd),)), "moonshot", "kimi-k2").body


KINDS = [
    {"type": "object", "properties": {"k": {"const": "a"}, "x": {"type": "string"}}, "required": ["k", "x"]},
    {"$ref": "#/$defs/b"},
]
SECOND = {"type": "object", "properties": {"k": {"const": "b"}, "x": {"type": "string"}}, "required": ["k"]}


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_alternatives_at_the_root_of_a_schema_become_one_object(keyword: str, provider: str) -> None:
    """`schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level`."""
    schema = json.dumps({keyword: KINDS, "description": "D", "$defs": {"b": SECOND}}).encode()
    request = asking(tools=(Tool("t", "", schema, strict=True),))
    target = Target(provider, "gpt-4.1", PROFILES[provider])
    found = adapters.adapter(target.profile).build(request, target)
    (tool,) = json.loads(found.body)["tools"]
    assert tool.get("function", tool)["parameters"] == {
        "description": "D (required: k, x | k)",
        "$defs": {"b": SECOND},
        "type": "object",
        "properties": {"k": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "x": {"type": "string"}},
        "required": ["k"],
    }
    assert [note.rule for note in found.notes] == ["schema-lowered", "strict-dropped"]


@pytest.mark.parametrize(
    ("schema", "lost"),
    [
        ({"$ref": "#/$defs/b", "$defs": {"b": SECOND}}, False),
        ({"allOf": [SECOND, {"required": ["k"]}]}, False),
        ({**SECOND, "not": {"required": ["x"]}}, True),
        ({**SECOND, "enum": [{"k": "b"}]}, True),
    ],
)
def test_what_may_not_stand_at_the_root_of_a_schema_is_folded_into_it(schema: dict[str, object], lost: bool) -> None:
    request = asking(tools=(Tool("t", "", json.dumps(schema).encode()),))
    found = body(request)["tools"][0]["function"]["parameters"]
    assert {name: value for name, value in found.items() if name != "$defs"} == SECOND
    assert rules(request) == (["schema-lowered"] if lost else [])


def test_a_schema_that_cannot_be_read_to_its_end_is_passed_on_as_it_is() -> None:
    odd = b'{"type":"object","properties":{"a":{"type":"array","maxItems":1e400}}}'
    assert odd in sent(asking(tools=(Tool("t", "", odd),))).body


LOOKS = r"^(?!\.)[^@]+@[^@]+$"  # as Zod writes e-mail addresses
# fmt: off
ODD_PATTERNS = (
    "^[a[]$", "^[a-z&&b]$", "a" * 2001, "(a", "a)", ")(", "(" * 51 + ")" * 51, "a**", "^*", "a{3,2}", "a{,3}", "[]a]",
    "[z-a]", r"[\d-x]", r"[\t-\r]", r"(a)\1", r"\q", "a\\",
)
PATTERNS = (
    "", r"^[a-z0-9_-]+$", r"^\d{4}-\d{2}$", r"^(foo|bar)?$", r"^[\u4e00-\u9fa5\x20-\x7e]+?$", "^[一-龥]*$", r"[^-+]",
    "a{2,3}", r"^\$\{[^}]+\}$", r"^#(?:[0-9a-fA-F]{3,})\b", r"^[ \-/]$",
)
# fmt: on


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "string", "pattern": LOOKS}, {"type": "string", "description": f"(pattern: {LOOKS})"}),
        (
            {"type": "array", "items": {"pattern": "(?<=a)b", "description": "D"}},
            {"type": "array", "items": {"description": "D (pattern: (?<=a)b)"}},
        ),
        ({"properties": {"pattern": {"const": LOOKS}}}, {"properties": {"pattern": {"const": LOOKS}}}),
        ({"pattern": r"^(?:a|\(?=b)[^\w\[|.-]$"}, {"pattern": r"^(?:a|\(?=b)[^\w\[|.-]$"}),
        ({"pattern": r"^(?<n>a)$"}, {"description": r"(pattern: ^(?<n>a)$)"}),
        ({"pattern": r"^[\p{L} ]+$"}, {"description": r"(pattern: ^[\p{L} ]+$)"}),
        *(({"pattern": odd}, {"description": f"(pattern: {odd})"}) for odd in ODD_PATTERNS),
        *(({"pattern": known}, {"pattern": known}) for known in PATTERNS),
        ({"pattern": ["(?=a)"], "default": "(?=a)"}, {"pattern": ["(?=a)"], "default": "(?=a)"}),
        ({"anyOf": [True, {"pattern": "(?=a)"}]}, {"anyOf": [True, {"description": "(pattern: (?=a))"}]}),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "openai-responses", "vllm"])
def test_a_pattern_that_is_not_read_everywhere_is_told_in_words(given: object, expected: object, provider: str) -> None:
    """`Invalid JSON schema: regex lookaround is not supported.`, `'^[\\p{L} ]+$' is not a 'regex'`."""
    schemas = [json.dumps({"type": "object", "properties": {"a": each}}).encode() for each in (given, expected)]
    request = asking(tools=(Tool("t", "", schemas[0]),), output_schema=schemas[0])
    target = Target(provider, "gpt-4.1", PROFILES[provider])
    found = adapters.adapter(target.profile).build(request, target)
    value = json.loads(found.body)
    (tool,) = value["tools"]
    form = value["text"]["format"] if "text" in value else value["response_format"]["json_schema"]
    assert tool.get("function", tool)["parameters"] == form["schema"] == json.loads(schemas[1])
    told = [note.what for note in found.notes if note.rule == "schema-lowered"]
    wheres = ["tools.t.input_schema", "output_config.format"] if given != expected else []
    assert sorted(what.partition(":")[0] for what in told) == sorted(wheres)


def test_no_pattern_of_a_client_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes Python up to 180 ms for each, and a request of a megabyte a minute, in which nobody else is served."""

    def refuse(pattern: str) -> None:
        raise AssertionError(pattern)

    monkeypatch.setattr(re, "compile", refuse)
    costly = "".join(f"[\u0100-{chr(0x9000 + number)}]" for number in range(400))
    schema = json.dumps({"type": "object", "properties": {"a": {"pattern": costly}}}).encode()
    found = body(asking(tools=(Tool("t", "", schema),)))["tools"][0]["function"]["parameters"]
    assert found["properties"] == {"a": {"pattern": costly}}


def test_a_schema_with_such_a_pattern_that_cannot_be_read_is_passed_on() -> None:
    odd = b'{"type":"object","properties":{"a":{"pattern":"(?=a)","maxLength":1e400}}}'
    assert odd in sent(asking(tools=(Tool("t", "", odd),))).body


LIST: dict[str, Any] = {"type": "array"}
FILLED = {**LIST, "items": {}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (LIST, FILLED),
        ({"type": ["array", "null"], "maxItems": 3}, {"type": ["array", "null"], "maxItems": 3, "items": {}}),
        ({**LIST, "items": LIST}, {**LIST, "items": FILLED}),
        ({**LIST, "items": True}, FILLED),
        ({"items": False, "prefixItems": [{}]}, {"items": {}, "prefixItems": [{}]}),
        ({"anyOf": [LIST, {"type": "null"}]}, {"anyOf": [FILLED, {"type": "null"}]}),
        ({"type": "object", "properties": {"type": LIST}}, {"type": "object", "properties": {"type": FILLED}}),
        ({"type": "object", "additionalProperties": LIST}, {"type": "object", "additionalProperties": FILLED}),
        ({**LIST, "prefixItems": [LIST]}, {**LIST, "prefixItems": [FILLED], "items": {}}),
        ({**LIST, "items": [LIST, True]}, {**LIST, "prefixItems": [FILLED, True], "items": {}}),
        (
            {**LIST, "items": [{"items": [{}]}]},
            {**LIST, "prefixItems": [{"prefixItems": [{}], "items": {}}], "items": {}},
        ),
        (
            {**LIST, "items": [{}], "additionalItems": {"type": "string"}},
            {**LIST, "prefixItems": [{}], "items": {"type": "string"}},
        ),
        ({"items": [{}], "additionalItems": False, "maxItems": 1}, {"prefixItems": [{}], "items": {}, "maxItems": 1}),
        ({"anyOf": [{"items": []}]}, {"anyOf": [{"items": {}}]}),
        ({"enum": [LIST], "default": LIST}, {"enum": [LIST], "default": LIST}),
        ({"properties": {"array": {}}, "anyOf": "array"}, {"properties": {"array": {}}, "anyOf": "array"}),
    ],
)
def test_openai_is_told_what_an_array_holds(given: object, expected: object) -> None:
    """`Invalid schema for function 't': In context=('properties', 'a'), array schema missing items.`

    Tools in Rust and Go write any value as `true`: `array schema items is not an object`.
    """
    schema = json.dumps({"type": "object", "properties": {"a": given}}).encode()
    found = json.loads(sent(asking(tools=(Tool("t", "", schema),))).body)["tools"][0]["function"]["parameters"]
    assert found == {"type": "object", "properties": {"a": expected}}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"exclusiveMinimum": True, "exclusiveMaximum": 5}, {"exclusiveMaximum": 5}),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "moonshot"])
def test_limits_in_the_spelling_of_draft_4_are_respelled(given: object, expected: object, provider: str) -> None:
    """`Invalid schema for function 't': True is not of type 'number'.`"""
    schema = json.dumps({"type": "object", "properties": {"a": given}}).encode()
    found = body(asking(tools=(Tool("t", "", schema),)), provider)["tools"][0]["function"]["parameters"]
    assert found == {"type": "object", "properties": {"a": expected}}


@pytest.mark.parametrize(("provider", "anything"), [("openai", True), ("moonshot", {})])
def test_a_property_with_the_name_of_a_limit_is_none(provider: str, anything: object) -> None:
    schema = b'{"type":"object","properties":{"a":{"properties":{"exclusiveMinimum":true}}}}'
    found = body(asking(tools=(Tool("t", "", schema),)), provider)["tools"][0]["function"]["parameters"]
    assert found["properties"] == {"a": {"properties": {"exclusiveMinimum": anything}}}


def test_strictness_is_passed_where_it_is_known() -> None:
    strict = replace(READ, strict=True, schema=CLOSED)
    assert body(asking(tools=(strict,)))["tools"][0]["function"]["strict"] is True
    loose = replace(READ, strict=True)
    for request, provider in ((asking(tools=(strict,)), "moonshot"), (asking(tools=(loose,)), "openai")):
        assert "strict" not in body(request, provider)["tools"][0]["function"]
        assert rules(request, provider) == ["strict-dropped"]


def test_a_typed_client_tool_gets_a_schema_and_a_server_tool_is_left_out_with_a_note() -> None:
    request = asking(tools=(Tool("bash", type="bash_20250124"), SEARCH))
    (tool,) = body(request)["tools"]
    assert "command" in tool["function"]["parameters"]["properties"]
    assert rules(request) == ["server-tool"]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice("auto"), "auto"),
        (ToolChoice("any"), "required"),
        (ToolChoice("none"), "none"),
        (ToolChoice("tool", "Read"), {"type": "function", "function": {"name": "Read"}}),
    ],
)
def test_every_tool_choice_has_its_chat_form(choice: ToolChoice, expected: object) -> None:
    assert body(asking(tools=(READ,), tool_choice=choice))["tool_choice"] == expected


def test_no_choice_is_auto_and_one_without_tools_is_left_out() -> None:
    assert body(asking(tools=(READ,)))["tool_choice"] == "auto"
    assert "tool_choice" not in body(asking(tool_choice=ToolChoice("any")))
    assert "tools" not in body(asking(tools=(SEARCH,), tool_choice=ToolChoice("auto")))


def test_a_forced_choice_of_what_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidRequest, match=r"^tool_choice: "):
        sent(asking(tools=(CODE,), tool_choice=ToolChoice("any")))
    with pytest.raises(InvalidRequest, match=r"^tool_choice\.name: 'code_execution'"):
        sent(asking(tools=(READ, CODE), tool_choice=ToolChoice("tool", "code_execution")))


def test_a_choice_that_the_upstream_does_not_know_becomes_the_nearest_and_is_noted() -> None:
    forced = asking(tools=(READ,), tool_choice=ToolChoice("any"))
    assert body(forced, "zai")["tool_choice"] == "auto"
    assert rules(forced, "zai") == ["tool-choice"]
    never = asking(tools=(READ,), tool_choice=ToolChoice("none"))
    assert "tools" not in body(never, "zai")
    assert rules(never, "zai") == ["tool-choice"]


def test_one_call_at_a_time_is_asked_for_where_that_is_known() -> None:
    request = asking(tools=(READ,), tool_choice=ToolChoice(parallel=False))
    assert body(request)["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body(request, "ollama")
    assert rules(request, "ollama") == ["parallel-tool-use"]


def test_a_long_name_is_one_alias_everywhere() -> None:
    name = "mcp__server__" + "x" * 60
    history = (user(Text("q")), assistant(ToolUse("a", name, b"{}")), user(ToolResult("a", (Text("A"),))))
    request = asking(*history, tools=(Tool(name),), tool_choice=ToolChoice("tool", name))
    value = body(request)
    alias = value["tools"][0]["function"]["name"]
    assert len(alias) == 64
    assert value["tool_choice"]["function"]["name"] == alias
    assert value["messages"][1]["tool_calls"][0]["function"]["name"] == alias
    assert sent(request).names == ((alias, name),)


def test_mistral_gets_ids_of_nine_letters_and_digits_on_both_sides() -> None:
    messages = body(asking(*CHAIN, tools=(READ,)), "mistral")["messages"]
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"]
    assert len(messages[2]["tool_call_id"]) == 9


# ---------------------------------------------------------------- parameters


def test_the_plain_parameters() -> None:
    request = asking(temperature=0.5, top_p=0.9, stop_sequences=("a", "b"), user_id="u-1", stream=True)
    value = body(request)
    assert value["model"] == "gpt-4.1"
    assert value["stream"] is True
    assert value["stream_options"] == {"include_usage": True}
    assert (value["max_tokens"], value["temperature"], value["top_p"]) == (100, 0.5, 0.9)
    assert (value["stop"], value["user"]) == (["a", "b"], "u-1")
    assert "stream_options" not in body(replace(request, stream=False))
    assert "stream_options" not in body(request, "mistral")


def test_no_tokens_at_all_is_one_token() -> None:
    assert body(replace(asking(), max_tokens=0))["max_tokens"] == 1


def test_reasoning_models_have_their_own_limit_and_fixed_sampling() -> None:
    request = asking(temperature=0.5, top_p=0.9)
    value = body(request, model="gpt-5.1")
    assert value["max_completion_tokens"] == 100
    assert not {"max_tokens", "temperature", "top_p"} & value.keys()
    assert rules(request, model="gpt-5.1") == ["sampling", "sampling"]
    assert body(request, "moonshot", "moonshot-v1-8k")["temperature"] == 0.5
    assert "temperature" not in body(request, "moonshot", "kimi-k2.6")


@pytest.mark.parametrize(
    ("provider", "model", "given", "told"),
    [
        ("zai", "glm-5.2", 1.2, 1.0),
        ("zai", "glm-5.2", 1.0, 1.0),
        ("mistral", "mistral-large", 2.0, 1.5),
        ("mistral", "mistral-large", 1.5, 1.5),
        ("moonshot", "moonshot-v1-8k", 1.3, 1.0),
        ("moonshot", "kimi-k3", 1.3, None),
        ("deepseek", "deepseek-chat", 2.0, 2.0),
        ("openai", "gpt-4.1", 2.0, 2.0),
    ],
)
def test_a_temperature_is_at_most_what_the_provider_takes(
    provider: str, model: str, given: float, told: float | None
) -> None:
    request = asking(temperature=given)
    assert body(request, provider, model).get("temperature") == told
    changed = ["sampling"] if told is None else ["temperature-limited"] if told != given else []
    assert rules(request, provider, model) == changed


@pytest.mark.parametrize(
    ("provider", "model", "given", "told", "noted"),
    [
        ("mistral", "mistral-large", {"temperature": 0}, 1, []),
        ("mistral", "mistral-large", {"temperature": 0, "top_p": 0.9}, 1, ["sampling"]),
        ("mistral", "mistral-large", {"temperature": 0, "top_p": 1}, 1, []),
        ("mistral", "mistral-large", {"temperature": 0.1, "top_p": 0.9}, 0.9, []),
        ("mistral", "mistral-large", {"top_p": 0.9}, 0.9, []),
        ("openrouter", "mistralai/devstral-2", {"temperature": 0}, 1, []),
        ("openrouter", "openai/gpt-4.1", {"temperature": 0}, None, []),
        ("openai", "gpt-4.1", {"temperature": 0, "top_p": 0.9}, 0.9, []),
    ],
)
def test_a_mistral_model_that_is_to_be_exact_gets_the_top_p_that_it_asks_for(
    provider: str, model: str, given: dict[str, float], told: float | None, noted: list[str]
) -> None:
    """`top_p must be 1 when using greedy sampling`, also where the client has said nothing of it."""
    assert body(asking(**given), provider, model).get("top_p") == told
    assert rules(asking(**given), provider, model) == noted


def test_top_k_goes_where_it_is_known() -> None:
    assert body(asking(top_k=40), "vllm")["top_k"] == 40
    assert "top_k" not in body(asking(top_k=40))
    assert rules(asking(top_k=40)) == ["sampling"]


def test_more_stop_sequences_than_the_upstream_takes_are_cut_and_noted() -> None:
    request = asking(stop_sequences=("a", "b", "c", "d", "e"))
    assert body(request)["stop"] == ["a", "b", "c", "d"]
    assert rules(request) == ["stop-sequences"]
    assert len(body(request, "vllm")["stop"]) == 5


@pytest.mark.parametrize(
    ("provider", "model", "taken"),
    [
        ("openai", "gpt-4.1", {"stop", "parallel_tool_calls"}),
        ("openai", "gpt-5.1", {"stop", "parallel_tool_calls"}),
        ("openai", "gpt-5", {"parallel_tool_calls"}),
        ("openai", "gpt-5-mini-2025-08-07", {"parallel_tool_calls"}),
        ("openai", "gpt-6-sol", {"parallel_tool_calls"}),
        ("azure", "o4-mini", set()),
        ("xai", "grok-4.6", {"parallel_tool_calls"}),
        ("xai", "grok-4-fast-non-reasoning", {"stop", "parallel_tool_calls"}),
        ("xai", "grok-3", {"stop", "parallel_tool_calls"}),
    ],
)
def test_a_parameter_that_a_model_refuses_is_left_out_and_noted(provider: str, model: str, taken: set[str]) -> None:
    request = asking(stop_sequences=("a",), tools=(READ,), tool_choice=ToolChoice(parallel=False))
    value = body(request, provider, model)
    assert {"stop", "parallel_tool_calls"} & value.keys() == taken
    noted = [note.what for note in sent(request, provider, model).notes if note.rule != "effort-limited"]
    stopped = f"{model} takes 0 of 1: the bridge stops at the others"
    told = {"stop": stopped, "parallel_tool_calls": f"{model} takes no parallel_tool_calls"}
    assert noted == [what for name, what in told.items() if name not in taken]
    penalised = replace(request, extras=b'{"presence_penalty":0,"seed":7}')
    assert ("presence_penalty" in body(penalised, provider, model)) is (model in ("gpt-4.1", "gpt-5.1", "grok-3"))
    assert body(penalised, provider, model)["seed"] == 7


def test_a_long_user_id_becomes_a_stable_hash() -> None:
    long = '{"device_id":"' + "0" * 64 + '"}'
    assert len(body(asking(user_id=long))["user"]) == 64
    assert body(asking(user_id=long))["user"] == body(asking(user_id=long))["user"]
    assert "user" not in body(asking(user_id="u"), "mistral")
    assert rules(asking(user_id="u"), "mistral") == ["parameter-dropped"]


def test_mistral_is_told_of_a_chat_clients_parameters_what_it_has_words_for() -> None:
    """`body.seed: Extra inputs are not permitted`; a service tier of OpenAI's is refused for its value."""
    extras = b'{"seed":7,"metadata":{},"presence_penalty":1,"store":false,"verbosity":"low","service_tier":"default"}'
    value = body(asking(extras=extras), "mistral")
    assert value["random_seed"] == 7
    assert value.keys() >= {"metadata", "presence_penalty"}
    assert value.keys().isdisjoint(("seed", "store", "verbosity", "service_tier"))
    assert rules(asking(extras=extras), "mistral") == ["parameter-dropped"] * 3


def test_a_sentence_that_its_citations_cut_is_whole_again() -> None:
    cited = Text("sunny", b'[{"type":"web_search_result_location"}]')
    searched = ServerToolUse("srvtoolu_1", "web_search", b"{}")
    answer = assistant(searched, Text("It is "), cited, Text(" today."), Text("Anything else?"), searched, cited)
    told = body(asking(user(Text("q")), answer, user(Text("no"))))["messages"][1]["content"].split("\n")
    assert told[1:3] == ["It is sunny today.", "Anything else?"]
    assert told[-1] == "sunny"


def test_the_cache_key_is_the_same_in_every_turn_of_a_conversation_and_differs_between_two() -> None:
    first, later = body(asking(*CHAIN[:1])), body(asking(*CHAIN))
    assert first["prompt_cache_key"] == later["prompt_cache_key"]
    assert len(first["prompt_cache_key"]) == 64
    assert first["prompt_cache_key"] != body(asking(user(Text("other"))))["prompt_cache_key"]
    assert "prompt_cache_key" not in body(asking(), "vllm")


def test_the_cache_key_is_made_of_what_long_texts_begin_with() -> None:
    """All of one is megabytes, and what begins alike for so long shares its cache anyway."""
    long = "a" * 100_000
    keys = [body(asking(user(Text(text))))["prompt_cache_key"] for text in (long, long + "b", "b" + long, long[1:])]
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


@pytest.mark.parametrize(
    ("mark", "asked"),
    [
        (b'{"type":"ephemeral"}', {"type": "ephemeral"}),
        (b'{"type": "ephemeral", "ttl": "1h", "scope": "global"}', {"type": "ephemeral", "ttl": "1h"}),
        (b"null", None),
    ],
)
def test_claude_behind_openrouter_is_asked_to_cache_where_the_client_asks_for_it(mark: bytes, asked: object) -> None:
    given = asking(body=b'{"system":[{"type":"text","text":"s","cache_control": %b}]}' % mark)
    assert body(given, "openrouter", "anthropic/claude-sonnet-4.5").get("cache_control") == asked
    assert "cache_control" not in body(given, "openrouter", "x-ai/grok-4")
    assert "cache_control" not in body(given)


def test_what_an_upstream_has_taught_us_is_renamed_or_dropped() -> None:
    request = asking(temperature=0.5)
    value = body(request, drop_params=("temperature",), rename_params=(("max_tokens", "max_completion_tokens"),))
    assert "temperature" not in value
    assert value["max_completion_tokens"] == 100
    assert list(value)[-1] == "messages"


# ---------------------------------------------------------------- thinking


@pytest.mark.parametrize(
    ("provider", "model", "thinking", "effort", "expected"),
    [
        ("openai", "o3", ThinkingConfig("enabled", 2048), "", {"reasoning_effort": "low"}),
        ("openai", "o3", ThinkingConfig("enabled", 31999), "", {"reasoning_effort": "high"}),
        ("openai", "gpt-5.1", ThinkingConfig("disabled"), "", {"reasoning_effort": "none"}),
        ("openai", "gpt-4.1", ThinkingConfig("adaptive"), "high", {}),
        ("openai", "gpt-5.1", None, "", {}),
        ("openrouter", "x/y", ThinkingConfig("adaptive"), "high", {"reasoning": {"effort": "high"}}),
        ("openrouter", "x/y", ThinkingConfig("disabled"), "", {"reasoning": {"enabled": False}}),
        ("deepseek", "deepseek-v4-flash", None, "", {}),
        ("deepseek", "deepseek-v4-flash", ThinkingConfig("disabled"), "high", {"thinking": {"type": "disabled"}}),
        (
            "deepseek",
            "deepseek-v4-flash",
            ThinkingConfig("adaptive"),
            "max",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "max"},
        ),
        ("zai", "glm-4.7", ThinkingConfig("adaptive"), "high", {"thinking": {"type": "enabled"}}),
        (
            "zai",
            "glm-5.2",
            ThinkingConfig("adaptive"),
            "low",
            {"thinking": {"type": "enabled"}, "reasoning_effort": "high"},
        ),
        ("zai", "glm-5.2", ThinkingConfig("disabled"), "", {"thinking": {"type": "disabled"}}),
        ("zai", "glm-5.3", ThinkingConfig("adaptive"), "max", {"reasoning_effort": "max"}),
        ("zai", "glm-5.3", ThinkingConfig("disabled"), "", {"reasoning_effort": "low"}),
        ("moonshot", "kimi-k2.6", ThinkingConfig("adaptive"), "high", {"thinking": {"type": "enabled"}}),
        ("moonshot", "kimi-k2.7-code", ThinkingConfig("adaptive"), "high", {}),
        ("moonshot", "kimi-k2.7-code", ThinkingConfig("disabled"), "", {}),
        ("moonshot", "kimi-k3", ThinkingConfig("adaptive"), "high", {"reasoning_effort": "high"}),
        ("moonshot", "kimi-k3.1-pro", ThinkingConfig("disabled"), "", {"reasoning_effort": "low"}),
        ("moonshot", "kimi-k3", None, "", {}),
        ("openai", "gpt-6-sol", ThinkingConfig("adaptive"), "max", {"reasoning_effort": "xhigh"}),
        ("xai", "grok-4.6", ThinkingConfig("adaptive"), "max", {"reasoning_effort": "xhigh"}),
        ("xai", "grok-4.5", ThinkingConfig("adaptive"), "max", {"reasoning_effort": "high"}),
        ("openrouter", "x/y", ThinkingConfig("adaptive"), "max", {"reasoning": {"effort": "max"}}),
        ("mistral", "mistral-small-latest", ThinkingConfig("adaptive"), "", {"reasoning_effort": "high"}),
        ("mistral", "mistral-medium-3-5", ThinkingConfig("disabled"), "", {"reasoning_effort": "none"}),
        (
            "vllm",
            "qwen",
            ThinkingConfig("disabled"),
            "",
            {"chat_template_kwargs": {"enable_thinking": False, "thinking": False}},
        ),
        (
            "vllm",
            "qwen",
            ThinkingConfig("enabled", 9000),
            "",
            {"chat_template_kwargs": {"enable_thinking": True, "thinking": True}},
        ),
        ("vllm", "qwen", None, "", {}),
        ("vllm", "openai/gpt-oss-120b", ThinkingConfig("adaptive"), "max", {"reasoning_effort": "high"}),
        ("vllm", "openai/gpt-oss-120b", ThinkingConfig("disabled"), "", {"reasoning_effort": "low"}),
        ("vllm", "openai/gpt-oss-120b", None, "", {}),
        ("ollama", "qwen3:8b", ThinkingConfig("disabled"), "", {"reasoning_effort": "none"}),
        ("mistral", "mistral-large-latest", ThinkingConfig("adaptive"), "high", {}),
    ],
)
def test_thinking_and_effort_become_each_providers_own_control(
    provider: str, model: str, thinking: ThinkingConfig | None, effort: str, expected: dict[str, Any]
) -> None:
    value = body(asking(thinking=thinking, effort=effort), provider, model)
    controls = ("reasoning_effort", "reasoning", "thinking", "chat_template_kwargs")
    assert {name: value[name] for name in controls if name in value} == expected


@pytest.mark.parametrize(("provider", "model"), [("vllm", "qwen"), ("zai", "glm-4.7"), ("mistral", "mistral-large")])
def test_an_effort_that_cannot_be_told_is_noted(provider: str, model: str) -> None:
    assert rules(asking(effort="high"), provider, model) == ["effort-limited"]
    assert rules(asking(), provider, model) == []


def test_newer_openai_models_take_tools_without_reasoning_only() -> None:
    request = asking(tools=(READ,), effort="high")
    assert body(request, model="gpt-5.5")["reasoning_effort"] == "none"
    assert rules(request, model="gpt-5.5") == ["effort-limited"]
    assert rules(replace(request, effort="", thinking=ThinkingConfig("disabled")), model="gpt-5.5") == []
    assert body(asking(effort="high"), model="gpt-5.5")["reasoning_effort"] == "high"


def test_a_forced_call_switches_thinking_off_where_both_are_refused() -> None:
    request = asking(tools=(READ,), tool_choice=ToolChoice("any"), thinking=ThinkingConfig("adaptive"))
    assert body(request, "deepseek", "deepseek-v4-flash")["thinking"] == {"type": "disabled"}
    assert rules(request, "deepseek", "deepseek-v4-flash") == ["effort-limited"]
    assert rules(replace(request, thinking=ThinkingConfig("disabled")), "deepseek", "deepseek-v4-flash") == []


@pytest.mark.parametrize(
    ("model", "choice", "expected", "noted"),
    [
        ("kimi-k3", ToolChoice("any"), "required", []),
        ("kimi-k3", ToolChoice("tool", "Read"), "required", ["tool-choice"]),
        ("kimi-k3", ToolChoice("none"), "none", []),
        ("kimi-k2.7-code", ToolChoice("any"), "auto", ["tool-choice"]),
        ("kimi-k2.7-code", ToolChoice("tool", "Read"), "auto", ["tool-choice"]),
    ],
)
def test_a_model_that_always_thinks_is_forced_as_far_as_it_can_be(
    model: str, choice: ToolChoice, expected: str, noted: list[str]
) -> None:
    """`tool_choice 'specified' is incompatible with thinking enabled`, which cannot be switched off."""
    request = asking(tools=(READ,), tool_choice=choice)
    value = body(request, "moonshot", model)
    assert value["tool_choice"] == expected
    assert "thinking" not in value
    assert rules(request, "moonshot", model) == noted


def test_that_a_model_thinks_all_the_same_is_noted_and_its_lost_reasoning_has_a_placeholder() -> None:
    request = replace(turn(None), thinking=ThinkingConfig("disabled"))
    for model in ("kimi-k3", "kimi-k2.7-code"):
        assert body(request, "moonshot", model)["messages"][1]["reasoning_content"] == " "
        assert "effort-limited" in rules(request, "moonshot", model)
    assert "reasoning_content" not in body(request, "moonshot", "kimi-k2.6")["messages"][1]


# ---------------------------------------------------------------- structured output


CLOSED = b'{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}'


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        (b'{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}', False),
        (b'{"type":"object","properties":{"a":{}},"required":[],"additionalProperties":false}', False),
    ],
)
def test_a_schema_for_the_answer_is_strict_where_strict_mode_takes_it(schema: bytes, strict: bool) -> None:
    form = body(asking(output_schema=schema))["response_format"]
    assert form["type"] == "json_schema"
    assert b'"schema":' + schema in sent(asking(output_schema=schema)).body
    assert form["json_schema"]["strict"] is strict


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (LIST, FILLED),
        ({**LIST, "items": True}, FILLED),
        ({**LIST, "items": [{"type": "string"}]}, {**LIST, "prefixItems": [{"type": "string"}], "items": {}}),
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_what_would_be_refused_in_a_tool_is_mended_in_the_answers_schema_too(
    given: object, told: object, provider: str
) -> None:
    """`Invalid schema for response_format 'answer': In context=(...), array schema items is not an object.`"""
    schema = json.dumps({"type": "object", "properties": {"a": given}}).encode()
    target = Target(provider, "gpt-4.1", PROFILES[provider])
    value = json.loads(adapters.adapter(target.profile).build(asking(output_schema=schema), target).body)
    form = value["text"]["format"] if "text" in value else value["response_format"]["json_schema"]
    assert form["schema"]["properties"] == {"a": told}
    assert form["strict"] is False


LISTED = b'{"type":"array","items":{"type":"string"}}'
EITHER = b'{"anyOf":[{"type":"object","properties":{"a":{}}},{"type":"null"}]}'


@pytest.mark.parametrize("schema", [LISTED, EITHER, b"{}"])
@pytest.mark.parametrize("provider", ["openai", "openai-responses", "deepseek"])
def test_an_answer_that_is_no_object_is_asked_for_in_words(schema: bytes, provider: str) -> None:
    """`Invalid schema for response_format 'answer': schema must be a JSON Schema of 'type: "object"'`."""
    target = Target(provider, "gpt-4.1", PROFILES[provider])
    found = adapters.adapter(target.profile).build(asking(output_schema=schema), target)
    value = json.loads(found.body)
    assert "response_format" not in value
    assert "text" not in value
    said = value.get("instructions") or value["messages"][0]["content"]
    assert said == f"Answer with one JSON value that matches this JSON Schema, and nothing else:\n{schema.decode()}"
    assert [note.rule for note in found.notes] == ["structured-output"]


def test_servers_that_hold_a_model_to_any_schema_are_told_it() -> None:
    assert body(asking(output_schema=LISTED), "vllm")["response_format"]["json_schema"]["schema"] == json.loads(LISTED)


def test_what_the_root_of_an_answers_schema_refers_to_is_in_its_place() -> None:
    definitions = {"node": json.loads(CLOSED)}
    schema = json.dumps({"$ref": "#/$defs/node", "$defs": definitions}).encode()
    form = body(asking(output_schema=schema))["response_format"]["json_schema"]
    assert form == {"name": "answer", "schema": {**definitions["node"], "$defs": definitions}, "strict": True}
    untyped = body(asking(output_schema=b'{"properties":{"a":{}}}'))["response_format"]["json_schema"]["schema"]
    assert untyped == {"type": "object", "properties": {"a": {}}}


def test_without_schemas_the_system_prompt_asks_for_the_object() -> None:
    request = asking(output_schema=CLOSED, system=(Text("Be brief."),))
    value = body(request, "deepseek")
    assert value["response_format"] == {"type": "json_object"}
    assert value["messages"][0]["content"].startswith("Be brief.\n\nAnswer with one JSON object")
    assert CLOSED.decode() in value["messages"][0]["content"]
    assert rules(request, "deepseek") == ["structured-output"]
    assert "response_format" not in body(request, "vllm", structured="none")


def test_an_image_of_an_older_turn_is_left_out_for_a_model_that_takes_none() -> None:
    given = asking(user(Text("Look."), PNG), Message("assistant", (Text("Seen."),)), user(Text("Go on.")))
    assert sent(given, "deepseek").notes[0].rule == "content-left-out"


@pytest.mark.parametrize("provider", ["deepseek", "zai", "vllm", "minimax"])
def test_the_turn_says_how_much_thinking_went_back(provider: str) -> None:
    call, result = ToolUse("toolu_1", "Read", b"{}"), user(ToolResult("toolu_1", (Text("A"),)))
    own = Origin(provider, "m", b'{"reasoning_content":"hm"}')
    mine = (assistant(Thinking("hm", "s"), call, origin=own), result)
    others = (assistant(Thinking("hm", "s"), call, origin=Origin("anthropic", "claude")), result)
    plain = (assistant(call), result)

    def said(*messages: Message) -> list[str]:
        notes = sent(asking(*messages, thinking=ThinkingConfig("disabled")), provider).notes
        return [note.what for note in notes if note.rule == "thinking-replayed"]

    assert said(*mine, *plain) == []
    assert said(*mine, *others, *plain) == ["thinking_replayed 1/2: the rest is not this upstream's"]
    assert said(*others) == ["thinking_replayed 0/1: the rest is not this upstream's"]
    assert sent(asking(*others)).notes == ()
