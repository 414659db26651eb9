"""The validators refuse what the providers refuse: each case is a legal request with one thing wrong."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.validators import anthropic, chat, gemini, reasoning, responses

Json = dict[str, Any]


def call(id_: str = "c1", name: str = "Read", arguments: str = "{}") -> Json:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(id_: str = "c1", content: object = "done") -> Json:
    return {"role": "tool", "tool_call_id": id_, "content": content}


USER = {"role": "user", "content": "q"}
CALLS = {"role": "assistant", "content": None, "tool_calls": [call(), call("c2")]}
CHAT: list[Json] = [
    {"role": "system", "content": "s"},
    USER,
    CALLS,
    tool(),
    tool("c2"),
    USER,
    {"role": "assistant", "content": "a"},
]

CHAT_WRONG: list[tuple[str, list[Json]]] = [
    ("System message must be at the beginning", [USER, {"role": "system", "content": "s"}]),
    ("the first message", [{"role": "assistant", "content": "a"}, USER]),
    ("must alternate", [USER, USER]),
    ("content or tool_calls must be set", [USER, {"role": "assistant", "content": None}]),
    ("non-empty content", [USER, {"role": "assistant", "content": ""}]),
    ("non-empty content", [{"role": "user", "content": ""}]),
    ("empty text", [{"role": "user", "content": [{"type": "text", "text": " "}]}]),
    ("must be followed by tool messages", [USER, CALLS, tool(), USER]),
    ("does not follow tool call", [USER, CALLS, tool("c2"), tool()]),
    ("must be a response to a preceeding message", [USER, tool()]),
    ("without results", [USER, CALLS, tool()]),
    ("used twice", [USER, {**CALLS, "tool_calls": [call(), call()]}, tool(), tool()]),
    ("string too long", [USER, {**CALLS, "tool_calls": [call("x" * 41)]}, tool("x" * 41)]),
    ("function.name", [USER, {**CALLS, "tool_calls": [call(name="a.b")]}, tool()]),
    ("arguments", [USER, {**CALLS, "tool_calls": [call(arguments="")]}, tool()]),
    ("image_url", [USER, CALLS, tool(), tool("c2", [{"type": "image_url", "image_url": {"url": "http://x"}}])]),
    ("unknown field", [{**USER, "cache_control": {}}]),
    ("unknown field", [USER, {"role": "assistant", "content": "a", "reasoning_content": "r"}]),
]


def refused(validate: Callable[[bytes], list[str]], body: Json, said: str) -> None:
    found = validate(msgspec.json.encode(body))
    assert any(said in each for each in found), found


@pytest.mark.parametrize(("said", "messages"), CHAT_WRONG)
def test_chat_refuses(said: str, messages: list[Json]) -> None:
    refused(chat.validate, {"model": "m", "messages": messages}, said)


FUNCTION = {"name": "Read", "parameters": {"type": "object", "properties": {}}}


@pytest.mark.parametrize(
    ("said", "fields"),
    [
        ("unknown field", {"top_k": 1}),
        ("only allowed when 'tools'", {"tool_choice": "auto"}),
        ("empty array", {"tools": []}),
        ("only allowed when 'stream'", {"stream_options": {}}),
        ("array too long", {"stop": list("abcde")}),
        ("maximum length 128", {"tools": [{"type": "function", "function": FUNCTION}] * 129}),
        ("set both", {"max_tokens": 1, "max_completion_tokens": 1}),
        (
            "missing properties",
            {"tools": [{"type": "function", "function": {**FUNCTION, "parameters": {"type": "object"}}}]},
        ),
        ("declared twice", {"tools": [{"type": "function", "function": FUNCTION}] * 2}),
        ("function.name", {"tools": [{"type": "function", "function": {**FUNCTION, "name": "x" * 65}}]}),
    ],
)
def test_chat_refuses_parameters(said: str, fields: Json) -> None:
    refused(chat.validate, {"model": "m", "messages": CHAT, **fields}, said)


def test_legal_chat_passes_and_mistral_is_stricter() -> None:
    body = msgspec.json.encode({"model": "m", "messages": CHAT, "tools": [{"type": "function", "function": FUNCTION}]})
    assert chat.validate(body) == []
    roles, *ids = chat.validate(body, id_length=9)
    assert roles == "Unexpected role 'user' after role 'tool'"
    assert all("must be a-z, A-Z, 0-9, with a length of 9" in each for each in ids)


def test_reasoning_has_to_come_back_with_calls() -> None:
    refused(reasoning.validate, {"model": "m", "messages": CHAT}, "Missing reasoning_content")
    thought = [{**m, "reasoning_content": "r"} if "tool_calls" in m else m for m in CHAT]
    assert reasoning.validate(msgspec.json.encode({"model": "m", "messages": thought})) == []
    off = {"model": "m", "messages": CHAT, "thinking": {"type": "disabled"}}
    assert reasoning.validate(msgspec.json.encode(off)) == []
    refused(reasoning.validate, {**off, "reasoning_effort": "low"}, "with thinking disabled")
    refused(reasoning.validate, {"model": "m", "messages": [{**USER, "reasoning_content": "r"}]}, "on a user message")


ASK = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]}
DO = {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": "{}", "id": "fc_1"}
DONE = {"type": "function_call_output", "call_id": "c1", "output": "done"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}


@pytest.mark.parametrize(
    ("said", "items"),
    [
        ("No tool call found", [ASK, DONE]),
        ("No tool output found", [ASK, DO]),
        ("No tool output found", [ASK, DO, ASK, DONE]),
        ("names two calls", [ASK, DO, DONE, {**DO, "id": "fc_2"}, DONE]),
        ("Duplicate item", [ASK, DO, DONE, {**DO, "call_id": "c2"}, {**DONE, "call_id": "c2"}]),
        ("required following item", [ASK, THOUGHT, ASK]),
        ("not persisted", [ASK, {**THOUGHT, "encrypted_content": None}, DO, DONE]),
        ("begins with 'fc'", [ASK, {**DO, "id": "call_1"}, DONE]),
        ("string too long", [ASK, {**DO, "call_id": "x" * 65}, {**DONE, "call_id": "x" * 65}]),
        ("Invalid value: 'input_text'", [ASK, {**ASK, "role": "assistant"}]),
        ("empty text", [ASK, DO, {**DONE, "output": ""}]),
        ("the first item", [DO, DONE]),
        ("unknown field", [{**ASK, "cache_control": {}}]),
    ],
)
def test_responses_refuses(said: str, items: list[Json]) -> None:
    refused(responses.validate, {"model": "m", "store": False, "input": items}, said)


def test_legal_responses_pass() -> None:
    items = [ASK, THOUGHT, DO, DONE, {**ASK, "role": "assistant", "content": [{"type": "output_text", "text": "a"}]}]
    assert responses.validate(msgspec.json.encode({"model": "m", "store": False, "input": items})) == []


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def user(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


SIGNED = {"functionCall": {"name": "Read", "args": {}}, "thoughtSignature": "c2ln"}
UNSIGNED = {"functionCall": {"name": "Bash", "args": {}}}
READ = {"functionResponse": {"name": "Read", "response": {"output": "x"}}}
BASH = {"functionResponse": {"name": "Bash", "response": {"output": "x"}}}
Q = user({"text": "q"})


@pytest.mark.parametrize(
    ("said", "contents"),
    [
        ("missing a thought_signature", [Q, model(UNSIGNED), user(BASH)]),
        ("number of function response parts", [Q, model(SIGNED, UNSIGNED), user(READ)]),
        ("number of function response parts", [Q, model({"text": "a"}), user(READ)]),
        ("to call", [Q, model(SIGNED, UNSIGNED), user(BASH, READ)]),
        ("alternate", [Q, Q]),
        ("end with a user role", [Q, model({"text": "a"})]),
        ("first content", [model({"text": "a"}), Q]),
        ("empty text", [user({"text": ""})]),
        ("at least one parts", [user()]),
        ("exactly one", [user({"text": "a", "inlineData": {}})]),
        ("Invalid function name", [Q, model({**SIGNED, "functionCall": {"name": "1", "args": {}}}), user(READ)]),
        ("in a user content", [user({"text": "a", "thoughtSignature": "c2ln"})]),
        ("Base64", [Q, model({**SIGNED, "thoughtSignature": "?"}), user(READ)]),
        ("unknown field", [user({"text": "a", "signature": "x"})]),
    ],
)
def test_gemini_refuses(said: str, contents: list[Json]) -> None:
    refused(gemini.validate, {"contents": contents}, said)


@pytest.mark.parametrize(
    ("said", "schema"),
    [
        ('Unknown name "exclusiveMinimum"', {"properties": {"a": {"type": "integer", "exclusiveMinimum": 0}}}),
        ('Unknown name "type"', {"properties": {"a": {"type": ["string", "null"]}}}),
        ('Unknown name "$schema"', {"$schema": "x"}),
        ("missing field", {"properties": {"a": {"type": "array"}}}),
        ("not defined", {"required": ["a"]}),
        ("only allowed for STRING", {"properties": {"a": {"anyOf": [{"type": "integer", "enum": [1]}]}}}),
    ],
)
def test_gemini_refuses_schemas(said: str, schema: Json) -> None:
    tools = [{"functionDeclarations": [{"name": "Read", "parameters": {"type": "object", **schema}}]}]
    refused(gemini.validate, {"contents": [Q], "tools": tools}, said)


def test_gemini_takes_so_many_functions() -> None:
    tools = [{"functionDeclarations": [{"name": f"f{index}"} for index in range(513)]}]
    refused(gemini.validate, {"contents": [Q], "tools": tools}, "At most 512")


def test_legal_contents_pass() -> None:
    contents = [Q, model({"text": "a"}, SIGNED, UNSIGNED), user(READ, BASH, {"text": "b"})]
    assert gemini.validate(msgspec.json.encode({"contents": contents})) == []


USE = {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
SAY = {"type": "text", "text": "a"}


def claude(*turns: list[Json]) -> list[Json]:
    return [{"role": "assistant" if n % 2 else "user", "content": content} for n, content in enumerate(turns)]


@pytest.mark.parametrize(
    ("said", "messages"),
    [
        ("without `tool_result` blocks", claude([SAY], [USE], [SAY])),
        ("without `tool_result` blocks", claude([SAY], [USE], [SAY, RESULT])),
        ("without `tool_result` blocks", claude([SAY], [USE])),
        ("unexpected `tool_use_id`", claude([SAY], [SAY], [RESULT])),
        ("Found multiple", claude([SAY], [USE], [RESULT, RESULT])),
        ("must be unique", claude([SAY], [USE], [RESULT], [USE], [RESULT])),
        ("must be non-empty", claude([{"type": "text", "text": ""}])),
        ("non-empty content", claude([SAY], [], [SAY])),
        ("first message", claude([SAY], [SAY])[1:]),
        ("Invalid `signature`", claude([SAY], [{"type": "thinking", "thinking": "h", "signature": ""}, SAY], [SAY])),
        ("cannot be `thinking`", claude([SAY], [{"type": "thinking", "thinking": "h", "signature": "s"}], [SAY])),
        ("cannot be here", claude([USE])),
        ("cannot be here", claude([SAY], [RESULT], [SAY])),
        ("should match pattern", claude([SAY], [{**USE, "id": "a:1"}], [{**RESULT, "tool_use_id": "a:1"}])),
    ],
)
def test_anthropic_refuses(said: str, messages: list[Json]) -> None:
    refused(anthropic.validate, {"model": "m", "max_tokens": 1, "messages": messages}, said)


def test_anthropic_wants_thinking_before_the_calls_of_an_open_loop() -> None:
    body: Json = {"model": "m", "max_tokens": 1, "messages": claude([SAY], [USE], [RESULT])}
    assert anthropic.validate(msgspec.json.encode(body)) == []
    refused(anthropic.validate, {**body, "thinking": {"type": "enabled"}}, "Expected `thinking`")
