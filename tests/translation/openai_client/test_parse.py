"""Chat Completions requests in canonical form, and what is wrong with them, by path."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from translation import adapters
from translation.adapter import Target
from translation.errors import InvalidRequest, UnknownToolResult, UpstreamRefused
from translation.events import TextDelta
from translation.history import repair
from translation.openai_client.parse import NO_LIMIT, Chat, parse
from translation.providers.profiles import PROFILES
from translation.values import (
    Document,
    Image,
    Message,
    Text,
    Thinking,
    ThinkingConfig,
    ToolChoice,
    ToolResult,
    ToolUse,
)

HELLO = {"role": "user", "content": "Hello"}
TOOL = {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": {"type": "object"}}}


def parsed(*messages: object, **fields: Any) -> Chat:
    return parse(msgspec.json.encode({"model": "gpt-5", "messages": messages or [HELLO], **fields}))


def said(*messages: object) -> tuple[Message, ...]:
    return parsed(*messages).request.messages


def refused(*messages: object, **fields: Any) -> str:
    with pytest.raises(InvalidRequest) as caught:
        parsed(*messages, **fields)
    return caught.value.message


# ---------------------------------------------------------------- messages


def test_system_messages_before_the_first_other_one_are_the_system_prompt() -> None:
    request = parsed(
        {"role": "system", "content": "One."},
        {"role": "developer", "content": [{"type": "text", "text": "Two."}]},
        HELLO,
    ).request
    assert request.system == (Text("One."), Text("Two."))
    assert request.raw_system == b'[{"type":"text","text":"One."},{"type":"text","text":"Two."}]'
    assert request.messages == (Message("user", (Text("Hello"),)),)


def test_a_later_system_message_stays_in_its_place() -> None:
    assert said(HELLO, {"role": "system", "content": "Now."})[1] == Message("system", (Text("Now."),))


def test_an_answer_has_its_reasoning_text_refusal_and_calls() -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"a": 1}'}}
    bare = {"id": "call_2", "function": {"name": "list", "arguments": ""}}
    answer = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm.", "tool_calls": [call, bare]}
    assert said(HELLO, answer)[1].blocks == (
        Thinking("Hm."),
        Text("Yes."),
        ToolUse("call_1", "read", b'{"a": 1}'),
        ToolUse("call_2", "list", b"{}"),
    )
    refusal = {"role": "assistant", "content": None, "refusal": "No.", "reasoning": "Hm."}
    assert said(HELLO, refusal)[1].blocks == (Thinking("Hm."), Text("No."))
    parts = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert said(HELLO, parts)[1].blocks == (Text("No."),)


def test_results_and_what_the_user_says_after_them_are_one_message() -> None:
    one = {"role": "tool", "tool_call_id": "call_1", "content": "1"}
    two = {"role": "tool", "tool_call_id": "call_2", "content": [{"type": "text", "text": "2"}]}
    assert said(HELLO, {"role": "assistant", "content": ""}, one, two, HELLO) == (
        Message("user", (Text("Hello"),)),
        Message("assistant", ()),
        Message("user", (ToolResult("call_1", (Text("1"),)), ToolResult("call_2", (Text("2"),)), Text("Hello"))),
    )


def test_messages_of_the_user_that_follow_each_other_stay_apart() -> None:
    assert len(said(HELLO, HELLO)) == 2


def test_images_and_files_are_understood() -> None:
    parts = [
        {"type": "text", "text": "See:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        {"type": "file", "file": {"file_id": "file-1"}},
    ]
    assert said({"role": "user", "content": parts})[0].blocks == (
        Text("See:"),
        Image("base64", "AAAA", "image/png", detail="low"),
        Image("url", "https://example.org/a.png"),
        Document("base64", "AAAA", "application/pdf", title="a.pdf"),
        Document("file", "file-1"),
    )


@pytest.mark.parametrize("kind", ["image/jpg", "image/JPEG"])
def test_an_image_has_the_one_name_of_its_type_that_everyone_takes(kind: str) -> None:
    """`messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', ...`"""
    part = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,AAAA"}}
    assert said({"role": "user", "content": [part]})[0].blocks == (Image("base64", "AAAA", "image/jpeg"),)


@pytest.mark.parametrize("kind", ["text/plain", "text/csv;charset=utf-8", "text/Markdown", "application/json"])
def test_a_text_file_is_what_it_says(kind: str) -> None:
    """Nobody but the Responses API takes files other than PDFs, and everybody takes text."""
    file = {"filename": "a.txt", "file_data": f"data:{kind};base64,w7xiZXI="}
    found = said({"role": "user", "content": [{"type": "file", "file": file}]})[0].blocks
    assert found == (Document("text", "über", "text/plain", title="a.txt"),)


@pytest.mark.parametrize("data", ["/w==", "A", "", "IA=="])
def test_a_text_file_that_holds_no_text_stays_a_file(data: str) -> None:
    file = {"filename": "a.txt", "file_data": f"data:text/plain;base64,{data}"}
    found = said({"role": "user", "content": [{"type": "file", "file": file}]})[0].blocks
    assert found == (Document("base64", data, "text/plain", title="a.txt"),)


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ({"content": "x"}, "messages.0.role: Field required"),
        ({"role": "function", "content": "x"}, "messages.0.role: Input should be 'system', 'developer', 'user',"),
        ({"role": "tool", "content": "x"}, "messages.0.tool_call_id: Field required"),
        (
            {"role": "developer", "content": [{"type": "image_url", "image_url": {"url": "https://a.example/1"}}]},
            "messages.0.content.0.type: Input should be 'text' in a message of this role",
        ),
        (
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            "messages.0.function_call: function_call is the old form of tool_calls",
        ),
        ({"role": "user", "content": 5}, "messages.0.content: Input should be a valid list"),
        ({"role": "user", "content": [{"text": "x"}]}, "messages.0.content.0.type: Field required"),
        ({"role": "user", "content": [{"type": "text"}]}, "messages.0.content.0.text: Field required"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages.0.content.0.image_url: Field required"),
        ({"role": "user", "content": [{"type": "input_audio"}]}, "messages.0.content.0.type: Input should be 'text',"),
        (
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ftp://x"}}]},
            "messages.0.content.0.image_url.url: Input should be an http(s) URL or a base64 data URL",
        ),
        ({"role": "user", "content": [{"type": "file", "file": {}}]}, "messages.0.content.0.file.file_data: Field"),
        (
            {"role": "user", "content": [{"type": "file", "file": {"file_data": "AAAA"}}]},
            "messages.0.content.0.file.file_data: Input should be a base64 data URL",
        ),
    ],
)
def test_a_wrong_message_is_named_by_its_path(message: object, complaint: str) -> None:
    assert refused(message).startswith(complaint)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (
            {"id": "c", "type": "custom", "function": {"name": "f"}},
            "messages.1.tool_calls.0.type: Input should be 'fun",
        ),
        (
            {"id": "c", "function": {"name": "f", "arguments": "{"}},
            "messages.1.tool_calls.0.function.arguments: Input should be a JSON object in a string",
        ),
        (
            {"id": "c", "function": {"name": "f", "arguments": "[1]"}},
            "messages.1.tool_calls.0.function.arguments: Input should be a valid dictionary",
        ),
        ({"id": "", "function": {"name": "f"}}, "messages.1.tool_calls.0.id: String should have at least 1 character"),
        ({"id": "c", "function": {}}, "messages.1.tool_calls.0.function.name: Field required"),
    ],
)
def test_a_wrong_call_is_named_by_its_path(call: object, complaint: str) -> None:
    assert refused(HELLO, {"role": "assistant", "tool_calls": [call]}).startswith(complaint)


@pytest.mark.parametrize("nothing", [{}, [], "", {"name": "", "arguments": ""}, {"name": None, "arguments": None}])
def test_an_old_call_that_is_none_is_none(nothing: object) -> None:
    """As servers written in Go and PHP tell it: clients give back what they were told."""
    assert said(HELLO, {"role": "assistant", "content": "x", "function_call": nothing})[1].blocks == (Text("x"),)


def test_an_old_call_beside_the_new_form_of_it_says_nothing_new() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    old = {"role": "assistant", "tool_calls": [call], "function_call": call["function"]}
    assert said(HELLO, old, {"role": "tool", "tool_call_id": "c1", "content": "1"})[1].blocks == (
        ToolUse("c1", "f", b"{}"),
    )


@pytest.mark.parametrize(("name", "options"), [(None, ()), ("", ()), ("bob", ("name",)), (7, ("name",))])
def test_whatever_a_speaker_is_called_costs_no_request(name: object, options: object) -> None:
    assert said({**HELLO, "name": name})[0].options == options


def test_where_only_the_system_speaks_its_last_message_is_the_users() -> None:
    request = parsed({"role": "system", "content": "a"}, {"role": "developer", "content": "b"}).request
    assert (request.system, request.messages) == ((Text("a"),), (Message("user", (Text("b"),)),))
    assert said({"role": "system", "content": "x"}) == (Message("user", (Text("x"),)),)


def test_there_must_be_a_message_and_not_too_many() -> None:
    with pytest.raises(InvalidRequest, match="messages: at least one message is required"):
        parse(b'{"model":"m","messages":[]}')
    body = msgspec.json.encode({"model": "m", "messages": [HELLO] * 100_001})
    with pytest.raises(InvalidRequest, match="at most 100000 items"):
        parse(body)


# ---------------------------------------------------------------- tools


def test_tools_are_kept_in_the_form_of_the_api() -> None:
    strict = {"type": "function", "function": {"name": "list", "strict": True, "parameters": None}}
    request = parsed(tools=[TOOL, strict]).request
    assert [tool.name for tool in request.tools] == ["read", "list"]
    assert request.tools[1].strict
    assert msgspec.json.decode(request.raw_tools) == [
        {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}},
        {"name": "list", "input_schema": {"type": "object", "properties": {}}, "strict": True},
    ]


@pytest.mark.parametrize(
    ("fields", "choice"),
    [
        ({}, None),
        ({"parallel_tool_calls": False}, ToolChoice("auto", parallel=False)),
        ({"parallel_tool_calls": True}, None),
        ({"tool_choice": "auto"}, ToolChoice("auto")),
        ({"tool_choice": "none"}, ToolChoice("none")),
        ({"tool_choice": "required", "parallel_tool_calls": False}, ToolChoice("any", parallel=False)),
        ({"tool_choice": {"type": "function", "function": {"name": "read"}}}, ToolChoice("tool", "read")),
    ],
)
def test_the_choice_among_tools(fields: dict[str, Any], choice: ToolChoice | None) -> None:
    assert parsed(tools=[TOOL], **fields).request.tool_choice == choice


def test_without_tools_there_is_nothing_to_call_one_at_a_time() -> None:
    request = parsed(tools=[], parallel_tool_calls=False).request
    assert (request.tool_choice, request.tools, request.raw_tools) == (None, (), b"")


def test_a_choice_among_tools_that_the_bridge_has_is_kept() -> None:
    assert parsed(tool_choice="none").request.tool_choice == ToolChoice("none")
    request = parsed(tool_choice="required").request
    assert request.tool_choice == ToolChoice("any")
    anthropic = Target("anthropic", "claude-sonnet-4-5", PROFILES["anthropic"])
    assert b"tool_choice" not in adapters.adapter(anthropic.profile).build(request, anthropic).body


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"tools": [{"type": "custom"}]}, "tools.0.type: Input should be 'function', not 'custom'"),
        ({"tools": [{"type": "function"}]}, "tools.0.function: Field required"),
        ({"tools": [TOOL, TOOL]}, "tools: Tool names must be unique."),
        (
            {"tools": [{"type": "function", "function": {"name": "x" * 129}}]},
            "tools.0.function.name: String should have at most 128 characters",
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "x", "parameters": []}}]},
            "tools.0.function.parameters: Input should be a valid dictionary",
        ),
        ({"tool_choice": "any"}, "tool_choice: Input should be 'auto', 'none' or 'required', not 'any'"),
        ({"tool_choice": {"type": "allowed_tools"}}, "tool_choice.type: Input should be 'function'"),
        ({"tool_choice": {"type": "function"}}, "tool_choice.function: Field required"),
        (
            {"tool_choice": {"type": "function", "function": {"name": ""}}, "tools": [TOOL]},
            "tool_choice.function.name: String should have at least 1 character",
        ),
    ],
)
def test_wrong_tools_are_named_by_their_path(fields: dict[str, Any], complaint: str) -> None:
    assert refused(**fields).startswith(complaint)


# ---------------------------------------------------------------- parameters


def test_limits_and_sampling() -> None:
    request = parsed(
        max_tokens=5, max_completion_tokens=7, temperature=1.5, top_p=0.5, top_k=3, stop="END", user="me", stream=True
    ).request
    assert (request.max_tokens, request.open_ended) == (7, False)
    assert (request.temperature, request.top_p, request.top_k) == (1.5, 0.5, 3)
    assert (request.stop_sequences, request.user_id, request.stream) == (("END",), "me", True)
    assert parsed(stop=["a", "b"]).request.stop_sequences == ("a", "b")
    assert parsed(max_tokens=5).request.max_tokens == 5


def test_without_a_limit_only_upstreams_that_need_one_get_one() -> None:
    request = parsed().request
    assert (request.max_tokens, request.open_ended) == (NO_LIMIT, True)
    for provider, limit in (
        ("openai", "max_tokens"),
        ("openai-responses", "max_output_tokens"),
        ("gemini", "maxOutputTokens"),
        ("minimax", "max_tokens"),
        ("anthropic", "none of its own"),
    ):
        target = Target(provider, "model", PROFILES[provider])
        body = adapters.adapter(target.profile).build(request, target).body
        assert limit.encode() not in body
        assert (b'"max_tokens":32000' in body) == (provider == "anthropic")


def test_effort_is_the_canonical_one() -> None:
    assert parsed(reasoning_effort="minimal").request.effort == "minimal"
    none = parsed(reasoning_effort="none").request
    assert (none.effort, none.thinking) == ("", ThinkingConfig("disabled"))
    anthropic = Target("anthropic", "claude", PROFILES["anthropic"])
    body = adapters.adapter(anthropic.profile).build(parsed(reasoning_effort="minimal").request, anthropic).body
    assert b'"output_config":{"effort":"low"}' in body


@pytest.mark.parametrize(
    ("temperature", "top_p", "expected", "rules"),
    [
        (0.7, 0.9, {"temperature": 0.7}, ["top-p-dropped"]),
        (0.7, 1, {"temperature": 0.7}, []),
        (1, 0.9, {"top_p": 0.9}, []),
        (1, 1, {"temperature": 1.0}, []),
        (2, 0.9, {"top_p": 0.9}, ["temperature-limited"]),
        (None, 0.9, {"top_p": 0.9}, []),
    ],
)
def test_anthropic_is_told_a_temperature_or_top_p(
    temperature: float | None, top_p: float, expected: dict[str, float], rules: list[str]
) -> None:
    """`temperature` and `top_p` cannot both be specified for this model. Please use only one."""
    target = Target("anthropic", "claude-opus-4-6", PROFILES["anthropic"])
    sent = adapters.adapter(target.profile).build(parsed(temperature=temperature, top_p=top_p).request, target)
    found = msgspec.json.decode(sent.body)
    assert {name: found[name] for name in ("temperature", "top_p") if name in found} == expected
    assert [note.rule for note in sent.notes] == rules


@pytest.mark.parametrize("model", ["claude-opus-4-7", "claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5"])
def test_claude_is_not_told_how_to_sample_where_it_does_not_take_it(model: str) -> None:
    """`temperature` is deprecated for this model."""
    target = Target("anthropic", model, PROFILES["anthropic"])
    adapter = adapters.adapter(target.profile)
    sent = adapter.build(parsed(temperature=0, top_p=0.5, top_k=5).request, target)
    assert msgspec.json.decode(sent.body).keys() == {"model", "max_tokens", "messages"}
    assert [note.rule for note in sent.notes] == ["parameter-dropped"] * 3
    assert adapter.build(parsed(temperature=1, top_p=1).request, target).notes == ()
    assert adapter.build(parsed().request, target).notes == ()
    older = adapter.build(parsed(temperature=0).request, replace(target, model="claude-haiku-4-5"))
    assert msgspec.json.decode(older.body)["temperature"] == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"temperature": 0.5}, "`temperature` is deprecated for this model."),
        ({"top_p": 0.5}, "`top_p` is deprecated for this model."),
        ({"reasoning_effort": "high"}, "This model does not support the effort parameter."),
        (
            {"reasoning_effort": "max"},
            "This model does not support effort level 'max'. Supported levels: high, low, medium.",
        ),
        (
            {"reasoning_effort": "xhigh"},
            'output_config.effort "xhigh" is not supported by model claude-opus-4.7; supported values: [medium]',
        ),
    ],
)
def test_what_claude_turns_out_to_refuse_of_a_chat_client_is_left_out(given: dict[str, object], words: str) -> None:
    target = Target("anthropic", "claude", PROFILES["anthropic"])
    request = parsed(**given).request
    error = msgspec.json.encode({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    sent = adapters.adapter(target.profile).build(request, target)
    cured = adapters.healed(request, target, sent, UpstreamRefused(words), error)
    assert cured is not None
    assert msgspec.json.decode(cured.sent.body).keys() == {"model", "max_tokens", "messages"}
    assert [note.rule for note in cured.sent.notes] == ["parameter-dropped", "parameter-healed"]


def test_what_anthropic_refuses_and_openai_takes_is_limited() -> None:
    anthropic = Target("anthropic", "claude", PROFILES["anthropic"])
    bare = {"type": "function", "function": {"name": "now", "parameters": {}}}
    request = parsed(temperature=1.5, stop=["\n", "END", ""], tools=[bare]).request
    sent = adapters.adapter(anthropic.profile).build(request, anthropic)
    assert b'"temperature":1.0,"stop_sequences":["END"]' in sent.body
    assert b'"input_schema":{"type":"object"}' in sent.body
    assert [note.rule for note in sent.notes] == ["temperature-limited", "stop-sequences-limited"]
    request = parsed(temperature=1, stop="\n", tools=[], tool_choice="auto").request
    body = adapters.adapter(anthropic.profile).build(request, anthropic).body
    assert b'"temperature":1.0' in body
    assert b"stop_sequences" not in body
    assert b"tool_choice" not in body
    named = [parsed(user="u" * length).request for length in (256, 257)]
    users = [msgspec.json.decode(adapters.adapter(anthropic.profile).build(one, anthropic).body) for one in named]
    assert [len(user["metadata"]["user_id"]) for user in users] == [256, 64]


@pytest.mark.parametrize(
    ("given", "expected", "rules"),
    [
        (
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
            {"description": "(required: a | b)"},
            ["schema-lowered"],
        ),
        ({"allOf": [{"required": ["a"]}]}, {"required": ["a"]}, []),
        ({"type": ["object", "null"]}, {}, []),
        # `tools.0.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`
        (
            {
                "properties": {"a.b": {}, "filter[id]": {"type": "string"}},
                "required": ["filter[id]", "a.b"],
                "additionalProperties": False,
            },
            {
                "properties": {"a.b": {}},
                "required": ["a.b"],
                "description": '(further properties: {"filter[id]":{"type":"string"}})',
            },
            ["schema-lowered"],
        ),
        (
            {"properties": {"@id": {}}, "description": "D"},
            {"properties": {}, "description": 'D (further properties: {"@id":{}})'},
            ["schema-lowered"],
        ),
        ({"properties": []}, {"properties": []}, []),
    ],
)
def test_anthropic_is_told_the_root_of_a_schema_in_the_form_that_it_takes(
    given: dict[str, Any], expected: dict[str, Any], rules: list[str]
) -> None:
    """`tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`."""
    properties = {"properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "x"}}}
    function = {"name": "find", "description": "D", "parameters": {"type": "object"} | properties | given}
    request = parsed(tools=[{"type": "function", "function": function}]).request
    hosted = replace(request, raw_tools=b"", tools=(replace(request.tools[0], raw=b""),), body=b'{"max_tokens":1}')
    target = Target("anthropic", "claude", PROFILES["anthropic"])
    for each in (request, hosted):
        sent = adapters.adapter(target.profile).build(each, target)
        (tool,) = msgspec.json.decode(sent.body)["tools"]
        schema = {"required": [], "type": "object"} | properties | expected
        found = {"required": []} | tool["input_schema"]
        assert (tool["name"], tool["description"], found) == ("find", "D", schema)
        assert [note.rule for note in sent.notes] == rules


def test_a_strict_schema_of_alternatives_is_one_object_for_anthropic_too() -> None:
    parameters = {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}]}
    function = {"name": "find", "parameters": parameters, "strict": True}
    target = Target("anthropic", "claude", PROFILES["anthropic"])
    request = parsed(tools=[{"type": "function", "function": function}]).request
    (tool,) = msgspec.json.decode(adapters.adapter(target.profile).build(request, target).body)["tools"]
    assert "strict" not in tool
    assert tool["input_schema"]["properties"] == {"a": {"type": "string"}}
    assert tool["input_schema"].keys() == {"type", "properties", "required"}


@pytest.mark.parametrize("role", ["system", "developer"])
def test_a_later_system_message_is_a_reminder_for_claude(role: str) -> None:
    """`role 'system' is not supported on this model`, and where it is only right behind what the user said."""
    said = [HELLO, {"role": "assistant", "content": "Hi."}, {"role": role, "content": "Now."}, HELLO]
    target = Target("anthropic", "claude-haiku-4-5", PROFILES["anthropic"])
    request, _ = repair(parsed(*said).request, target.profile)
    sent = adapters.adapter(target.profile).build(request, target)
    body = msgspec.json.decode(sent.body)
    reminder = "<system-reminder>\nNow.\n</system-reminder>"
    assert [(each["role"], each["content"][0]["text"]) for each in body["messages"]] == [
        ("user", "Hello"), ("assistant", "Hi."), ("user", reminder), ("user", "Hello"),
    ]  # fmt: skip
    assert [(note.rule, note.message) for note in sent.notes] == [("system-in-place", 2)]


@pytest.mark.parametrize(("last", "asked"), [("Once upon", True), (None, False)])
def test_claude_is_asked_to_go_on_from_the_beginning_of_an_answer(last: str | None, asked: bool) -> None:
    """`This model does not support assistant message prefill. The conversation must end with a user message.`"""
    said = [HELLO, *([{"role": "assistant", "content": last}] if last else [])]
    target = Target("anthropic", "claude-opus-4-6", PROFILES["anthropic"])
    sent = adapters.adapter(target.profile).build(parsed(*said).request, target)
    messages = msgspec.json.decode(sent.body)["messages"]
    assert [each["role"] for each in messages] == ["user", *(["assistant", "user"] if asked else [])]
    assert (messages[-1]["content"] == [{"type": "text", "text": "Continue."}]) == asked
    assert [note.rule for note in sent.notes] == ["prefill-continued"] * asked


def test_a_system_prompt_of_white_space_is_none() -> None:
    """Anthropic: `system: text content blocks must contain non-whitespace text`."""
    parts = [{"type": "text", "text": "\n"}, {"type": "text", "text": "Be brief."}]
    chat = parsed({"role": "system", "content": " "}, {"role": "developer", "content": parts}, HELLO).request
    assert chat.system == (Text("Be brief."),)
    assert chat.raw_system == b'[{"type":"text","text":"Be brief."}]'
    assert parsed({"role": "system", "content": " "}, HELLO).request.raw_system == b""


def test_the_form_of_the_answer() -> None:
    schema = {"name": "answer", "strict": True, "schema": {"type": "object"}}
    request = parsed(response_format={"type": "json_schema", "json_schema": schema}).request
    assert (request.output_schema, request.extras) == (b'{"type":"object"}', b"")
    assert parsed(response_format={"type": "text"}).request.extras == b""
    request = parsed(response_format={"type": "json_object"}).request
    assert request.extras == b'{"response_format":{"type":"json_object"}}'
    for provider, takes in (("openai", True), ("deepseek", True), ("minimax", False)):
        target = Target(provider, "model", PROFILES[provider])
        sent = adapters.adapter(target.profile).build(request, target)
        assert (b'"response_format":{"type":"json_object"}' in sent.body) == takes
        assert any(note.rule == "structured-output" for note in sent.notes) != takes


@pytest.mark.parametrize("provider", ["minimax", "anthropic"])
@pytest.mark.parametrize("system", ["", "Be brief."])
def test_json_of_any_shape_is_asked_for_in_words_where_there_is_no_field_for_it(provider: str, system: str) -> None:
    messages = [{"role": "system", "content": system}, HELLO] if system else [HELLO]
    request = parsed(*messages, response_format={"type": "json_object"}).request
    target = Target(provider, "model", PROFILES[provider])
    sent = adapters.adapter(target.profile).build(request, target)
    body = msgspec.json.decode(sent.body)
    told = body["system"] if provider == "anthropic" else [{"text": body["messages"][0]["content"]}]
    wanted = [text for text in (system, "Answer with one JSON object, and nothing else.") if text]
    assert "\n\n".join(block["text"] for block in told) == "\n\n".join(wanted)


def test_a_fence_around_json_that_was_asked_for_in_words_is_left_out() -> None:
    request = parsed(response_format={"type": "json_object"}).request
    target = Target("minimax", "model", PROFILES["minimax"])
    adapter = adapters.adapter(target.profile)
    decoder = adapter.decoder(request, target, adapter.build(request, target), "")
    message = {"role": "assistant", "content": '```json\n{"a": 1}\n```'}
    whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    events = [*decoder.feed(msgspec.json.encode(whole)), *decoder.close()]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == '{"a": 1}'


def test_parameters_of_chat_only_go_to_those_who_speak_it() -> None:
    request = parsed(seed=5, logit_bias={"1": 2}).request
    assert request.extras == b'{"seed":5,"logit_bias":{"1":2}}'
    target = Target("openai", "gpt-4.1", PROFILES["openai"])
    body = msgspec.json.decode(adapters.adapter(target.profile).build(request, target).body)
    assert (body["seed"], body["logit_bias"]) == (5, {"1": 2})
    assert adapters.left_out(request, PROFILES["openai"]) == ()
    assert adapters.left_out(parsed().request, PROFILES["gemini"]) == ()
    assert [note.what for note in adapters.left_out(request, PROFILES["gemini"])] == [
        "Google Gemini takes no logit_bias"
    ]
    assert adapters.left_out(parsed(seed=5).request, PROFILES["gemini"]) == ()


def test_a_place_is_told_as_the_client_counts_its_messages() -> None:
    system = {"role": "system", "content": "Be brief."}
    result = {"role": "tool", "tool_call_id": "call_1", "content": "1"}
    chat = parsed(system, HELLO, result)
    refused = chat.placed(InvalidRequest("messages.0.content.0: no"))
    assert refused.message == "messages.1.content.0: no"
    orphan = chat.placed(UnknownToolResult("messages.1.content.0: unexpected `tool_use_id`"))
    assert orphan.message == "messages.2.tool_call_id: there is no call of this id before it"
    elsewhere = InvalidRequest("thread: no")
    assert chat.placed(elsewhere) is elsewhere


def test_what_nobody_knows_is_noted_and_null_is_absent() -> None:
    request = parsed(extra_thing=1, stop=None, n=1, logprobs=False, modalities=["text"]).request
    assert request.unknown == ("extra_thing",)


def test_usage_in_a_stream_has_to_be_asked_for() -> None:
    assert parsed(stream=True, stream_options={"include_usage": True}).include_usage
    assert not parsed(stream=True, stream_options={}).include_usage
    assert not parsed(stream=True).include_usage


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"n": 2}, "n: Input should be 1"),
        ({"logprobs": True}, "logprobs: "),
        ({"top_logprobs": 3}, "top_logprobs: "),
        ({"modalities": ["text", "audio"]}, "modalities: "),
        ({"audio": {}}, "audio: "),
        ({"functions": []}, "functions: "),
        ({"function_call": "auto"}, "function_call: "),
        ({"web_search_options": {}}, "web_search_options: "),
        ({"moderation": {"model": "omni-moderation-latest"}}, "moderation: moderation is not supported"),
        ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
        ({"max_completion_tokens": -1}, "max_completion_tokens: Input should be from 0 to"),
        ({"temperature": 2.5}, "temperature: Input should be from 0 to 2"),
        ({"top_p": -1}, "top_p: Input should be from 0 to 1"),
        ({"top_k": -1}, "top_k: Input should be from 0"),
        ({"stop": 5}, "stop: Input should be a valid"),
        ({"reasoning_effort": "huge"}, "reasoning_effort: Input should be 'none', "),
        ({"response_format": {"type": "xml"}}, "response_format.type: Input should be 'text', "),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema: Field required"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, "response_format.json_schema.schema: Field"),
        ({"model": "x" * 257}, "model: String should have at most 256 characters"),
        ({"model": ""}, "model: String should have at least 1 character"),
        ({"model": None}, "model: Field required"),
        ({"messages": None}, "messages: Field required"),
        ({"messages": "hi"}, "messages: Input should be a valid list"),
        ({"stream": "yes"}, "stream: Input should be a valid boolean"),
    ],
)
def test_a_wrong_parameter_is_named(fields: dict[str, Any], complaint: str) -> None:
    assert refused(**fields).startswith(complaint)


def test_a_body_that_is_no_json_says_where() -> None:
    with pytest.raises(InvalidRequest, match="not valid JSON"):
        parse(b'{"model": }')


def test_those_who_know_how_closely_an_image_is_to_be_looked_at_are_told() -> None:
    """A `low` one costs a tenth."""
    urls = [
        {"url": "https://a.example/1", "detail": "low"},
        {"url": "data:image/png;base64,AAAA", "detail": "high"},
        {"url": "https://a.example/1"},
    ]
    parts = [{"type": "image_url", "image_url": url} for url in urls]
    request = parsed({"role": "user", "content": parts}).request
    bodies = {}
    for provider in ("openai", "openai-responses", "anthropic"):
        target = Target(provider, "gpt-4.1", PROFILES[provider])
        bodies[provider] = msgspec.json.decode(adapters.adapter(target.profile).build(request, target).body)
    assert [part["image_url"] for part in bodies["openai"]["messages"][0]["content"]] == urls
    told = [part.get("detail") for part in bodies["openai-responses"]["input"][0]["content"]]
    assert told == ["low", "high", None]
    assert b"detail" not in msgspec.json.encode(bodies["anthropic"])


def test_that_nobody_is_told_who_speaks_is_recorded() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked = parsed(
        HELLO,
        {"role": "assistant", "tool_calls": [call], "function_call": None},
        {"role": "tool", "tool_call_id": "c1", "content": "1"},
        {"role": "user", "content": "And?", "name": "bob"},
    ).request
    for provider in ("openai", "anthropic"):
        title = PROFILES[provider].title
        notes = adapters.left_out(asked, PROFILES[provider])
        assert [note.what for note in notes] == [f"messages: name of a message is not told to {title}"]


def test_how_a_prompt_is_cached_goes_on_to_who_knows_of_it() -> None:
    request = parsed(prompt_cache_options={"mode": "explicit"}).request
    for provider in ("openai", "openai-responses"):
        target = Target(provider, "gpt-5.6", PROFILES[provider])
        body = msgspec.json.decode(adapters.adapter(target.profile).build(request, target).body)
        assert body["prompt_cache_options"] == {"mode": "explicit"}
        assert adapters.left_out(request, PROFILES[provider]) == ()


@pytest.mark.parametrize("arguments", [None, "", "null", " {} ", "[]", '""'])
@pytest.mark.parametrize("kind", [{}, {"type": None}, {"type": "function"}])
def test_a_call_without_arguments_is_told_in_many_ways(arguments: str | None, kind: dict[str, object]) -> None:
    call = {"id": "c1", "function": {"name": "read", "arguments": arguments}, **kind}
    answer = said(HELLO, {"role": "assistant", "content": None, "tool_calls": [call]})[1]
    assert answer.blocks == (ToolUse("c1", "read", b"{}"),)


def test_an_image_may_be_its_url_alone() -> None:
    url = "https://a.org/b.png"
    (message,) = said({"role": "user", "content": [{"type": "image_url", "image_url": url}]})
    assert message.blocks == (Image("url", url),)
    wrong = refused({"role": "user", "content": [{"type": "image_url", "image_url": "b.png"}]})
    assert wrong == "messages.0.content.0.image_url: Input should be an http(s) URL or a base64 data URL"


MARKED = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}
HOUR = {"type": "ephemeral", "ttl": "1h"}


@pytest.mark.parametrize(
    ("messages", "fields", "told"),
    [
        ([{"role": "system", "content": [MARKED]}, HELLO], {}, {"type": "ephemeral"}),
        ([{"role": "user", "content": "q", "cache_control": HOUR}], {}, HOUR),
        ([HELLO], {"tools": [TOOL | {"cache_control": {"type": "ephemeral"}}]}, {"type": "ephemeral"}),
        ([HELLO], {"cache_control": HOUR}, HOUR),
        ([{"role": "user", "content": '{"cache_control": {"type": "ephemeral"}}'}], {}, None),
        ([HELLO], {}, None),
    ],
)
@pytest.mark.parametrize(("provider", "model"), [("anthropic", "claude-opus-4-6"), ("openrouter", "anthropic/claude")])
def test_what_a_chat_client_marks_for_the_cache_is_cached_by_claude(
    provider: str, model: str, messages: list[object], fields: dict[str, Any], told: object
) -> None:
    target = Target(provider, model, PROFILES[provider])
    sent = adapters.adapter(target.profile).build(parsed(*messages, **fields).request, target)
    assert msgspec.json.decode(sent.body).get("cache_control") == told
