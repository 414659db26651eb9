"""Bad input, each with the exact message that the client reads."""

import json
from typing import Any

import pytest

from translation.client.parse import MAX_MESSAGES, parse
from translation.client.paths import CROWD, MAX_DEPTH, MAX_FIELDS
from translation.errors import InvalidRequest

V1, V2 = "2023-06-01", "2026-10-21"
USER = {"role": "user", "content": "hi"}
CUSTOM = {"name": "read", "input_schema": {"type": "object"}}


def refusal(body: bytes, version: str = V1) -> str:
    with pytest.raises(InvalidRequest) as caught:
        parse(body, version, ())
    assert caught.value.status == 400
    assert caught.value.type == "invalid_request_error"
    return caught.value.message


def body(**fields: Any) -> bytes:
    request = {"model": "m", "max_tokens": 1, "messages": [USER]} | fields
    return json.dumps({name: value for name, value in request.items() if value is not ...}).encode()


def content(*blocks: Any) -> bytes:
    return body(messages=[{"role": "user", "content": list(blocks)}])


TOP_LEVEL = [
    ({"model": ...}, "model: Field required"),
    ({"model": None}, "model: Field required"),
    ({"model": 5}, "model: Input should be a valid string"),
    ({"model": ""}, "model: String should have at least 1 character"),
    ({"model": "a\0b"}, "model: String should hold printable characters only"),
    ({"model": "m" * 257}, "model: String should have at most 256 characters"),
    ({"max_tokens": ...}, "max_tokens: Field required"),
    ({"max_tokens": "5"}, "max_tokens: Input should be a valid integer"),
    ({"max_tokens": True}, "max_tokens: Input should be a valid integer"),
    ({"max_tokens": 1.5}, "max_tokens: Input should be a valid integer"),
    ({"max_tokens": -1}, "max_tokens: Input should be greater than or equal to 0"),
    ({"max_tokens": 10**30}, "max_tokens: Input should be less than or equal to 2147483647"),
    ({"messages": ...}, "messages: Field required"),
    ({"messages": "hi"}, "messages: Input should be a valid list"),
    ({"messages": {}}, "messages: Input should be a valid list"),
    ({"messages": []}, "messages: at least one message is required"),
    ({"messages": [], "thread": {"type": "create"}}, "messages: at least one message is required"),
    ({"messages": ["hi"]}, "messages.0: Input should be a valid dictionary"),
    ({"messages": [None]}, "messages.0: Input should be a valid dictionary"),
    ({"messages": [USER, {"content": "x"}]}, "messages.1.role: Field required"),
    ({"messages": [USER, {"role": 5, "content": "x"}]}, "messages.1.role: Input should be a valid string"),
    (
        {"messages": [{"role": "tool", "content": "x"}]},
        "messages.0.role: Input should be 'user', 'assistant' or 'system', not 'tool'",
    ),
    ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
    (
        {"messages": [{"role": "system", "content": [], "output_config": {"effort": "huge"}}]},
        "messages.0.output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max', not 'huge'",
    ),
    (
        {"messages": [{"role": "system", "content": [], "output_config": {"effort": 5}}]},
        "messages.0.output_config.effort: Input should be a valid string",
    ),
    (
        {"messages": [{"role": "system", "content": [], "output_config": 5}]},
        "messages.0.output_config: Input should be a valid dictionary",
    ),
    ({"messages": [{"role": "user", "content": None}]}, "messages.0.content: Input should be a valid list"),
    ({"messages": [{"role": "user", "content": 5}]}, "messages.0.content: Input should be a valid list"),
    ({"messages": [{"role": "user", "content": {}}]}, "messages.0.content: Input should be a valid list"),
    (
        {"messages": [{"role": "user", "content": {"content": {"content": "x"}}}]},
        "messages.0.content: Input should be a valid list",
    ),
    (
        {"messages": [{"role": "user", "content": {"text": 5}}]},
        "messages.0.content.text: Input should be a valid string",
    ),
    ({"system": 5}, "system: Input should be a valid list"),
    ({"system": [{"type": "text"}]}, "system.0.text: Field required"),
    ({"system": [{"type": "thinking", "thinking": "x"}]}, "system.0.type: Input should be 'text'"),
    ({"stream": "yes"}, "stream: Input should be a valid boolean"),
    ({"temperature": "hot"}, "temperature: Input should be a valid number"),
    ({"temperature": -0.1}, "temperature: Input should be greater than or equal to 0"),
    ({"temperature": 1.1}, "temperature: Input should be less than or equal to 1"),
    ({"top_p": 2}, "top_p: Input should be less than or equal to 1"),
    ({"top_k": -1}, "top_k: Input should be greater than or equal to 0"),
    ({"stop_sequences": "x"}, "stop_sequences: Input should be a valid list"),
    ({"stop_sequences": ["x", 1]}, "stop_sequences.1: Input should be a valid string"),
    ({"metadata": "me"}, "metadata: Input should be a valid dictionary"),
    ({"metadata": {"user_id": 5}}, "metadata.user_id: Input should be a valid string"),
    ({"mcp_servers": {}}, "mcp_servers: Input should be a valid list"),
    ({"thinking": {}}, "thinking.type: Field required"),
    (
        {"thinking": {"type": "hard"}},
        "thinking.type: Input should be 'enabled', 'adaptive', 'between_tools' or 'disabled', not 'hard'",
    ),
    ({"thinking": {"type": "enabled"}}, "thinking.budget_tokens: Field required"),
    (
        {"thinking": {"type": "enabled", "budget_tokens": 1023}},
        "thinking.budget_tokens: Input should be greater than or equal to 1024",
    ),
    (
        {"output_config": {"effort": "huge"}},
        "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max', not 'huge'",
    ),
    (
        {"output_config": {"format": {"type": "xml", "schema": {}}}},
        "output_config.format.type: Input should be 'json_schema', not 'xml'",
    ),
    ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema: Field required"),
    (
        {"output_format": {"type": "json_schema", "schema": []}},
        "output_format.schema: Input should be a valid dictionary",
    ),
    ({"thread": {"type": "fork"}}, "thread.type: Input should be 'create' or 'continue', not 'fork'"),
    ({"thread": {"type": "continue"}}, "thread.previous_message_id: Field required"),
]

TOOLS = [
    ({"tools": {}}, "tools: Input should be a valid list"),
    ({"tools": ["x"]}, "tools.0: Input should be a valid dictionary"),
    ({"tools": [CUSTOM, {"input_schema": {}}]}, "tools.1.name: Field required"),
    ({"tools": [{"name": "", "input_schema": {}}]}, "tools.0.name: String should have at least 1 character"),
    ({"tools": [{"name": "x" * 129}]}, "tools.0.name: String should have at most 128 characters"),
    ({"tools": [{"name": 5}]}, "tools.0.name: Input should be a valid string"),
    ({"tools": [{"name": "x", "input_schema": "s"}]}, "tools.0.input_schema: Input should be a valid dictionary"),
    ({"tools": [{"name": "x", "description": 5}]}, "tools.0.description: Input should be a valid string"),
    ({"tools": [{"name": "x", "strict": 1}]}, "tools.0.strict: Input should be a valid boolean"),
    ({"tools": [CUSTOM, CUSTOM]}, "tools: Tool names must be unique."),
    ({"tool_choice": "auto"}, "tool_choice: Input should be a valid dictionary"),
    (
        {"tool_choice": {"type": "best"}},
        "tool_choice.type: Input should be 'auto', 'any', 'tool' or 'none', not 'best'",
    ),
    ({"tool_choice": {"type": "tool"}, "tools": [CUSTOM]}, "tool_choice.name: Field required"),
    (
        {"tool_choice": {"type": "tool", "name": ""}, "tools": [CUSTOM]},
        "tool_choice.name: String should have at least 1 character",
    ),
]

USE = {"type": "tool_use", "id": "a", "name": "n", "input": {}}

BLOCKS = [
    ("hi", ": Input should be a valid dictionary"),
    ({}, ".type: Field required"),
    ({"type": 5}, ".type: Input should be a valid string"),
    ({"type": "text"}, ".text: Field required"),
    ({"type": "text", "text": 5}, ".text: Input should be a valid string"),
    ({"type": "tool_result", "content": "x"}, ".tool_use_id: Field required"),
    ({"type": "tool_result", "tool_use_id": 5}, ".tool_use_id: Input should be a valid string"),
    ({"type": "tool_result", "tool_use_id": ""}, ".tool_use_id: String should have at least 1 character"),
    ({"type": "tool_result", "tool_use_id": "a\0"}, ".tool_use_id: String should hold printable characters only"),
    ({"type": "tool_result", "tool_use_id": "a", "is_error": "no"}, ".is_error: Input should be a valid boolean"),
    ({"type": "tool_result", "tool_use_id": "a", "content": 5}, ".content: Input should be a valid list"),
    (
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": 5}]},
        ".content.0.text: Input should be a valid string",
    ),
    (USE | {"id": ""}, ".id: String should have at least 1 character"),
    (USE | {"name": ""}, ".name: String should have at least 1 character"),
    (USE | {"input": "x"}, ".input: Input should be a valid dictionary"),
    (USE | {"input": None}, ".input: Input should be a valid dictionary"),
    ({"type": "tool_use", "id": "a", "name": "n"}, ".input: Field required"),
    ({"type": "thinking"}, ".thinking: Field required"),
    ({"type": "redacted_thinking"}, ".data: Field required"),
    ({"type": "image"}, ".source: Field required"),
    ({"type": "image", "source": "x"}, ".source: Input should be a valid dictionary"),
    ({"type": "image", "source": {"type": "s3"}}, ".source.type: Input tag 's3' is not one of the known tags"),
    ({"type": "image", "source": {"type": "base64", "data": "x"}}, ".source.media_type: Field required"),
    ({"type": "document", "source": {"type": "url"}}, ".source.url: Field required"),
    (
        {"type": "document", "source": {"type": "content", "content": [{"type": "text"}]}},
        ".source.content.0.text: Field required",
    ),
    ({"type": "search_result", "title": "t", "source": "s"}, ".content: Field required"),
    ({"type": "tool_reference"}, ".tool_name: Field required"),
]


@pytest.mark.parametrize(("fields", "message"), TOP_LEVEL + TOOLS)
def test_wrong_field_is_refused_with_its_path(fields: dict[str, Any], message: str) -> None:
    assert refusal(body(**fields)) == message


@pytest.mark.parametrize(("block", "message"), BLOCKS)
def test_wrong_block_is_refused_with_its_path(block: Any, message: str) -> None:
    good = {"type": "text", "text": "good"}
    assert refusal(content(good, block)) == "messages.0.content.1" + message


@pytest.mark.parametrize(("block", "message"), BLOCKS)
def test_wrong_block_is_refused_beside_an_unknown_one(block: Any, message: str) -> None:
    assert refusal(content({"type": "novel", "text": 5}, block)) == "messages.0.content.1" + message


def test_single_wrong_block_as_content_is_refused() -> None:
    message = refusal(body(messages=[{"role": "user", "content": {"type": "text"}}]))
    assert message == "messages.0.content.text: Field required"


HI = b'"messages":[{"role":"user","content":"Hi"}],'

NOT_JSON = [
    (b"", "unexpected end at line 1 column 1 (byte 0)"),
    (b'{"model": "m"', "unexpected end at line 1 column 14 (byte 13)"),
    (b"{\n  model: 1}", "object keys must be strings at line 2 column 3 (byte 4)"),
    (b'{"a": NaN}', "invalid character at line 1 column 7 (byte 6)"),
    (b'{"a": 1} x', "trailing characters at line 1 column 11 (byte 10)"),
    (b'{"a": "\x00"}', "invalid character at line 1 column 8 (byte 7)"),
    (b'{"a": "\x1f"}', "invalid character at line 1 column 8 (byte 7)"),
    (b"\x00", "invalid character at line 1 column 1 (byte 0)"),
    (b'{"a": "\xff"}', "invalid UTF-8 at line 1 column 8 (byte 7)"),
    (b'{"\xc3": 1}', "invalid UTF-8 at line 1 column 3 (byte 2)"),
    (b'{"a": "\xed\xa0\x80"}', "invalid UTF-8 at line 1 column 8 (byte 7)"),
    (b'{"a": "\\ud800"}', "lone surrogate in a string at line 1 column 8 (byte 7)"),
    (b'{"a": "\\\\\\uD83Dx"}', "lone surrogate in a string at line 1 column 10 (byte 9)"),
    (b'{"a": "\\udc00"}', "invalid utf-16 surrogate pair at line 1 column 14 (byte 13)"),
    (b'{"a": "\\ud800\\u0041"}', "invalid utf-16 surrogate pair at line 1 column 20 (byte 19)"),
    (b'{"a":' + b"[" * 10_000 + b"]" * 10_000 + b"}", "it is nested too deeply"),
    (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "it is nested too deeply"),
]


@pytest.mark.parametrize(("text", "message"), NOT_JSON)
def test_what_is_not_json_is_refused_with_the_place(text: bytes, message: str) -> None:
    assert refusal(text) == "The request body is not valid JSON: " + message


def test_escaped_backslash_before_u_is_not_a_surrogate() -> None:
    assert "unexpected end" in refusal(b'{"a": "\\\\ud800"')


@pytest.mark.parametrize("text", [b"[]", b'"x"', b"5", b"null"])
def test_json_that_is_not_an_object_is_refused(text: bytes) -> None:
    assert refusal(text) == "The request body is not a JSON object"


def test_too_many_messages_are_refused() -> None:
    many = b",".join([b'{"role":"user","content":"x"}'] * (MAX_MESSAGES + 1))
    message = refusal(b'{"model":"m","max_tokens":1,"messages":[%b]}' % many)
    assert message == f"messages: List should have at most {MAX_MESSAGES} items"


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"text": '{[\\"'}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_deep_arguments_are_refused_and_less_deep_ones_kept() -> None:
    assert refusal(content(USE | {"input": nested(MAX_DEPTH + 1)})) == (
        f"messages.0.content.0.input: JSON is nested deeper than {MAX_DEPTH} levels"
    )
    assert parse(content(USE | {"input": nested(MAX_DEPTH)}), V1, ()).messages


def test_wide_arguments_are_not_deep() -> None:
    assert parse(content(USE | {"input": {"a": [[{}]] * MAX_DEPTH, "b": "[" * 500}}), V1, ()).messages


@pytest.mark.parametrize("number", ["1e999", "1" * 5000])
def test_number_that_nobody_can_read_is_refused(number: str) -> None:
    text = content(USE | {"input": {"a": 7}}).replace(b"7", number.encode())
    assert refusal(text).startswith("messages.0.content.0.input")
    assert "out of range" in refusal(text)


@pytest.mark.parametrize("version", ["2024-01-01", "latest"])
def test_unknown_version_is_refused(version: str) -> None:
    expected = f"anthropic-version: Input should be '2023-06-01' or '2026-10-21', not '{version}'"
    assert refusal(body(), version) == expected


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_sampling_is_refused_by_the_newer_version(name: str) -> None:
    assert refusal(body(**{name: 1}), V2) == f"{name}: Extra inputs are not permitted in version 2026-10-21"
    assert parse(body(**{name: None}), V2, ()).messages
    assert parse(body(**{name: 1}), V1, ()).messages


def test_too_many_fields_are_refused() -> None:
    """Each would be carried, and told of."""
    many = b",".join(b'"field_%d":1' % number for number in range(MAX_FIELDS))
    assert refusal(b'{"model":"m",%b}' % many) == f"The request body has more than {MAX_FIELDS} fields"


@pytest.mark.parametrize(
    ("field", "item", "message"),
    [
        ("messages", b"1", "messages.0: Input should be a valid dictionary"),
        ("messages", b"{}", "messages.0.role: Field required"),
        ("tools", b"1", "tools.0: Input should be a valid dictionary"),
        ("system", b"1", "system.0: Input should be a valid dictionary"),
        ("system", b"{}", "system.0.type: Field required"),
    ],
)
def test_what_comes_in_millions_is_refused_by_its_first(field: str, item: bytes, message: str) -> None:
    """Whatever else is wrong with so many."""
    many = b",".join([item] * (CROWD + 2))
    rest = {"messages": b"", "tools": HI, "system": HI}[field]
    assert refusal(b'{"model":"m","max_tokens":1,%b"%b":[%b]}' % (rest, field.encode(), many)) == message


def test_what_comes_in_millions_elsewhere_passes() -> None:
    many = b",".join([b"1"] * (CROWD + 2))
    body = b'{"model":"m","max_tokens":1,%b"container":[%b]}' % (HI, many)
    assert parse(body, "", ()).unknown == ("container",)
