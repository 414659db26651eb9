"""Schemas of chat clients as Claude's structured outputs take them."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from translation.adapter import Target
from translation.adapters import healed
from translation.client.parse import parse as parse_own
from translation.closed_schema import ANYTHING, closed, is_finite
from translation.errors import UpstreamRefused
from translation.openai_client.parse import parse
from translation.providers.anthropic import Anthropic
from translation.providers.profiles import PROFILES
from translation.remedies import remembered
from translation.values import Message, Request, Text, Tool

CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def lowered(schema: object) -> Any:
    return msgspec.json.decode(closed(msgspec.json.encode(schema)))


@pytest.mark.parametrize(
    "schema",
    [
        CLOSED,
        {**CLOSED, "properties": {"a": {"type": "string", "default": "x"}}},
        {**CLOSED, "title": "T", "$defs": {"N": {"type": ["string", "null"], "enum": ["x", None]}}},
        {"type": "array", "items": {"$ref": "#/$defs/N"}, "minItems": 1, "$defs": {"N": {"const": 5}}},
        {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}], "description": "d"},
    ],
)
def test_what_is_in_the_subset_stays_as_it_is(schema: object) -> None:
    assert lowered(schema) == schema


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        (
            {"type": "integer", "minimum": 1, "description": "n"},
            {"type": "integer", "description": 'n\n\n{"minimum":1}'},
        ),
        ({"type": "string", "format": "uuid7"}, {"type": "string", "description": '{"format":"uuid7"}'}),
        (
            {"type": "array", "items": True, "minItems": 2},
            {"type": "array", "items": ANYTHING, "description": '{"minItems":2}'},
        ),
        (
            {"properties": {"a": {}}},
            {"type": "object", "properties": {"a": ANYTHING}, "additionalProperties": False},
        ),
        (
            {"type": ["object", "null"], "additionalProperties": {"type": "string"}},
            {
                "type": ["object", "null"],
                "properties": {},
                "additionalProperties": False,
                "description": '{"additionalProperties":{"type":"string"}}',
            },
        ),
        (
            {"oneOf": [{"type": "string", "maxLength": 5}]},
            {"anyOf": [{"type": "string", "description": '{"maxLength":5}'}]},
        ),
        (
            {"$ref": "#/$defs/N", "description": "d", "$defs": {"N": False}},
            {"$ref": "#/$defs/N", "$defs": {"N": ANYTHING}},
        ),
        (
            {"type": "object", "oneOf": [{"properties": {"a": {"const": 1}}}]},
            {"anyOf": [{"type": "object", "properties": {"a": {"const": 1}}, "additionalProperties": False}]},
        ),
        (
            {"type": "object", "properties": {"a": {"const": 1}}, "anyOf": [{"required": ["a"]}]},
            {
                "type": "object",
                "properties": {"a": {"const": 1}},
                "additionalProperties": False,
                "description": '{"anyOf":[{"required":["a"]}]}',
            },
        ),
        (
            {"type": "object", "allOf": [{"properties": {"a": {"const": 1}}}, {"required": ["a"]}]},
            {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"], "additionalProperties": False},
        ),
        (
            {"description": "d", "allOf": [{"$ref": "#/$defs/N"}], "$defs": {"N": {"const": 1}}},
            {"$ref": "#/$defs/N", "$defs": {"N": {"const": 1}}},
        ),
        ({"type": "string", "maxLength": 5, "description": None}, {"type": "string", "description": '{"maxLength":5}'}),
        ({"enum": [{"a": 1}]}, {"description": '{"enum":[{"a":1}]}', **ANYTHING}),
        ({"$schema": "s", "const": [1], "type": "array"}, {"type": "array", "description": '{"const":[1]}'}),
    ],
)
def test_what_the_subset_has_no_word_for_is_told(schema: object, wanted: object) -> None:
    assert lowered(schema) == wanted
    assert lowered(wanted) == wanted


def test_what_cannot_be_read_stays_as_it_is() -> None:
    assert closed(b"{") == b"{"


def test_claude_is_held_to_what_it_can_be_held_to() -> None:
    """`output_config.format.schema: For 'integer' type, property 'minimum' is not supported`"""
    bounded = msgspec.json.encode({**CLOSED, "properties": {"a": {"type": "integer", "minimum": 1}}})
    plain = msgspec.json.encode(CLOSED)
    tools = [Tool(name, schema=schema, strict=True) for name, schema in (("kept", plain), ("loose", bounded))]
    spelled = [
        msgspec.json.encode({"name": tool.name, "input_schema": msgspec.Raw(tool.schema), "strict": True})
        for tool in tools
    ]
    request = Request(
        model="m",
        messages=(Message("user", (Text("hi"),)),),
        max_tokens=5,
        output_schema=bounded,
        tools=tuple(replace(tool, raw=raw) for tool, raw in zip(tools, spelled, strict=True)),
        raw_tools=b"[" + b",".join(spelled) + b"]",
    )
    sent = Anthropic().build(request, Target("anthropic", "claude-opus-5", PROFILES["anthropic"]))
    body = msgspec.json.decode(sent.body)
    assert body["output_config"]["format"]["schema"]["properties"] == {
        "a": {"type": "integer", "description": '{"minimum":1}'}
    }
    assert body["tools"] == [
        {"name": "kept", "input_schema": CLOSED, "strict": True},
        {"name": "loose", "input_schema": msgspec.json.decode(bounded)},
    ]
    assert [note.rule for note in sent.notes] == ["schema-lowered", "strict-dropped"]


CLAUDE = Target("anthropic", "claude-opus-5", PROFILES["anthropic"])


def leading(ref: str, **definitions: object) -> dict[str, object]:
    return {**CLOSED, "properties": {"a": {"$ref": ref}}, "$defs": definitions}


TREE = {**CLOSED, "properties": {"a": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
THERE, BACK = {"$ref": "#/$defs/Back"}, {"anyOf": [{"$ref": "#/$defs/There"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "finite"),
    [
        (CLOSED, True),
        (leading("#/$defs/A", A={"$ref": "#/$defs/B"}, B={"const": "$ref"}), True),
        ({**CLOSED, "properties": {"a": {**CLOSED, "properties": {"$ref": {"type": "string"}}, "required": []}}}, True),
        (leading("#/$defs/Tree", Tree=TREE), False),
        (leading("#/$defs/There", There=THERE, Back=BACK), False),
        (leading("#"), False),
        (leading("#/properties/a"), False),
        (leading("https://example.com/schema"), False),
    ],
)
def test_claude_is_asked_in_words_for_what_refers_to_itself(schema: dict[str, Any], finite: bool) -> None:
    """`Circular reference detected in schema definitions: Tree -> Tree. Self-referencing or mutually-referencing
    definitions are not supported.`"""
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    function = {"name": "f", "parameters": schema, "strict": True}
    asked = {"model": "m", "messages": [{"role": "user", "content": "a"}], "response_format": form}
    asked["tools"] = [{"type": "function", "function": function}]
    sent = Anthropic().build(parse(msgspec.json.encode(asked)).request, CLAUDE)
    body = msgspec.json.decode(sent.body)
    assert ("output_config" in body) == finite
    assert body["tools"][0].get("strict", False) == finite
    if not finite:
        words = msgspec.json.encode(schema).decode()
        (system,) = body["system"]
        assert (
            system["text"] == f"Answer with one JSON object that matches this JSON Schema, and nothing else:\n{words}"
        )
        assert [note.rule for note in sent.notes] == ["structured-output", "strict-dropped"]


def test_a_schema_of_an_answer_that_cannot_be_read_is_passed_on() -> None:
    assert is_finite(b'{"items":1e400}')
    assert is_finite(b'{"$ref":5}')


def offering(number: int) -> Request:
    functions = [{"name": f"f{place}", "parameters": CLOSED, "strict": True} for place in range(number)]
    offered = [{"type": "function", "function": function} for function in functions]
    return parse(
        msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": "a"}], "tools": offered})
    ).request


def strict(sent: bytes) -> int:
    return sum(tool.get("strict", False) for tool in msgspec.json.decode(sent)["tools"])


@pytest.mark.parametrize(("number", "held"), [(20, 20), (21, 0)])
def test_claude_is_held_to_twenty_tools_at_once(number: int, held: int) -> None:
    """`Too many strict tools (21). The maximum number of strict tools supported is 20.`"""
    sent = Anthropic().build(offering(number), CLAUDE)
    assert strict(sent.body) == held
    assert [note.rule for note in sent.notes] == ["strict-dropped"] * (not held)


def test_tools_that_are_too_much_together_are_not_strict() -> None:
    words = "The compiled grammar is too large, which would cause performance issues. Simplify your tool schemas or "
    words += "reduce the number of strict tools."
    error = msgspec.json.encode({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    request = offering(2)
    cured = healed(request, CLAUDE, Anthropic().build(request, CLAUDE), UpstreamRefused(words), error)
    assert cured is not None
    assert cured.remedy is not None
    assert strict(cured.sent.body) == 0
    known = replace(CLAUDE, profile=remembered(CLAUDE.profile, cured.remedy))
    assert Anthropic().build(request, known).body == cured.sent.body
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": CLOSED}}
    formed = parse(
        msgspec.json.encode({"model": "m", "messages": [{"role": "user", "content": "a"}], "response_format": schema})
    )
    sent = Anthropic().build(formed.request, CLAUDE)
    assert healed(formed.request, CLAUDE, sent, UpstreamRefused(words), error) is None


def test_a_server_like_anthropic_that_refuses_a_pattern_is_told_it_in_words() -> None:
    """DeepSeek's, of Claude Code's `Artifact`. Until then a schema passes as it is."""
    tools = [
        {"name": name, "input_schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}}
        for name, pattern in (("Artifact", r"[^\p{Cc}]"), ("Read", "^a$"))
    ]
    body = msgspec.json.encode(
        {"model": "m", "max_tokens": 1, "tools": tools, "messages": [{"role": "user", "content": "a"}]}
    )
    request = parse_own(body, "2023-06-01", ())
    sent = Anthropic().build(request, replace(CLAUDE, model="m"))
    assert sent.body == body
    words = 'Invalid schema for function \'Artifact\': "[^\\p{Cc}]" is not a "regex"'
    error = msgspec.json.encode({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    cured = healed(request, replace(CLAUDE, model="m"), sent, UpstreamRefused(words), error)
    assert cured is not None
    changed, kept = msgspec.json.decode(cured.sent.body)["tools"]
    assert changed["input_schema"]["properties"] == {"a": {"type": "string", "description": r"(pattern: [^\p{Cc}])"}}
    assert kept == tools[1]
    assert "schema-lowered" in [note.rule for note in cured.sent.notes]
    assert cured.remedy is not None
