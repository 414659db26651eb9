"""Arguments get the types that the tool's schema names."""

import msgspec
import pytest

from translation.coercion import ArgumentSchema
from translation.invocations import Parameter

NULLABLE = {"anyOf": [{"type": "string"}, {"type": "null"}]}
OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}

FROM_TEXT: list[tuple[object, str, str]] = [
    # strings stay strings
    ({"type": "string"}, "00123", '"00123"'),
    ({"type": "string"}, "true", '"true"'),
    ({"type": "string"}, "null", '"null"'),
    ({"type": "string"}, "  two \n", '"  two \\n"'),
    ({"type": "string"}, '{"a":1}', '"{\\"a\\":1}"'),
    ({"type": "string"}, "", '""'),
    # numbers
    ({"type": "integer"}, "42", "42"),
    ({"type": "integer"}, " -7\n", "-7"),
    ({"type": "integer"}, "007", "7"),
    ({"type": "integer"}, "+5", "5"),
    ({"type": "integer"}, "5.0", "5"),
    ({"type": "integer"}, "5.5", '"5.5"'),
    ({"type": "integer"}, "12345678901234567890123", "12345678901234567890123"),
    ({"type": "integer"}, "five", '"five"'),
    ({"type": "number"}, "1.50", "1.50"),
    ({"type": "number"}, "1e5", "1e5"),
    ({"type": "number"}, "NaN", '"NaN"'),
    # booleans
    ({"type": "boolean"}, "true", "true"),
    ({"type": "boolean"}, " False\n", "false"),
    ({"type": "boolean"}, "yes", '"yes"'),
    # nullable
    ({"type": ["string", "null"]}, "null", "null"),
    ({"type": ["string", "null"]}, "x", '"x"'),
    ({"type": ["integer", "null"]}, "3", "3"),
    ({"type": ["integer", "null"]}, "Null", "null"),
    (NULLABLE, "00123", '"00123"'),
    (NULLABLE, "null", "null"),
    ({"type": "string", "nullable": True}, "null", "null"),
    ({"type": "string", "nullable": True}, "00123", '"00123"'),
    ({"type": "string", "nullable": False}, "null", '"null"'),
    ({"enum": ["a", "b"], "nullable": True}, "null", "null"),
    ({"nullable": True}, "7", "7"),
    # Google's way of writing types
    ({"type": "INTEGER"}, "5", "5"),
    ({"type": "STRING"}, "5", '"5"'),
    # arrays and objects
    ({"type": "array", "items": {"type": "string"}}, "[1, true]", '["1","true"]'),
    ({"type": "array", "items": {"type": "string"}}, '["a"]', '["a"]'),
    ({"type": "array"}, "a, b", '"a, b"'),
    ({"type": "array"}, "", "[]"),
    ({"type": ["array", "null"]}, "\n", "[]"),
    ({"type": "object"}, "", "{}"),
    ({"type": ["integer", "null"]}, "", "null"),
    ({"type": "integer"}, "", '""'),
    ({"type": ["array", "string"]}, "", '""'),
    ({}, "", '""'),
    ({"type": "array"}, "[1,", '"[1,"'),
    ({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}, '[1,"2"]', '["1",2]'),
    (OBJECT, '{"n": "5", "s": 5, "x": [1]}', '{"n":5,"s":"5","x":[1]}'),
    (OBJECT, '\n{"n":5}\n', '{"n":5}'),
    ({"type": "object", "additionalProperties": {"type": "string"}}, '{"a": 1}', '{"a":"1"}'),
    ({"properties": {"n": {"type": "integer"}}}, '{"n":"1"}', '{"n":1}'),
    # enumerations
    ({"enum": ["celsius", "kelvin"]}, " kelvin\n", '"kelvin"'),
    ({"enum": ["celsius", " kelvin"]}, " kelvin", '" kelvin"'),
    ({"enum": ["1", "2"]}, "1", '"1"'),
    ({"enum": [1, 2]}, "2", "2"),
    ({"enum": [1.5, None, True, ["a"], {}]}, "null", "null"),
    ({"const": "x"}, "x", '"x"'),
    # compositions and references
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "42", "42"),
    ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "042", '"042"'),
    ({"oneOf": [{"type": "boolean"}, OBJECT]}, '{"n":"1"}', '{"n":1}'),
    ({"allOf": [{"type": "integer"}, {"minimum": 1}]}, "4", "4"),
    ({"$ref": "#/$defs/n~1a"}, "7", "7"),
    ({"$ref": "#/$defs/missing"}, "7", "7"),
    ({"$ref": "#"}, '{"p":{"p":1}}', '{"p":{"p":1}}'),
    ({"$ref": "#/$defs/loop"}, "7", "7"),
    # no type at all: what JSON would write is that, the rest is text
    ({}, "42", "42"),
    ({}, "042", '"042"'),
    ({}, "true", "true"),
    ({}, '{"a": [1]}', '{"a": [1]}'),
    ({}, "hello", '"hello"'),
    (True, "hello", '"hello"'),
    ({"type": 5}, "hello", '"hello"'),
    ({"type": ["null", 5]}, "null", "null"),
    ({"enum": "x", "anyOf": "y"}, "a", '"a"'),
]

FROM_JSON: list[tuple[object, str, str]] = [
    ({"type": "string"}, "42", '"42"'),
    ({"type": "string"}, "1.50", '"1.50"'),
    ({"type": "string"}, "true", '"true"'),
    ({"type": "string"}, "null", '"null"'),
    ({"type": "string"}, '{"a": 1}', '"{\\"a\\": 1}"'),
    ({"type": "string"}, '"\\u00e9 "', '"\\u00e9 "'),
    ({"type": ["string", "null"]}, "null", "null"),
    ({"type": "string", "nullable": True}, "null", "null"),
    ({"type": "integer"}, '"42"', "42"),
    ({"type": "integer"}, "42.0", "42"),
    ({"type": "integer"}, "true", "true"),
    ({"type": "boolean"}, '"true"', "true"),
    ({"type": "number"}, "1", "1"),
    ({"type": "array", "items": {"type": "integer"}}, '"[1, \\"2\\"]"', "[1,2]"),
    ({"type": "array", "items": {"type": "integer"}}, "[1, 2]", "[1, 2]"),
    (OBJECT, '"{}"', "{}"),
    (OBJECT, "[1]", "[1]"),
    ({}, "42", "42"),
]


def schema(of: object) -> ArgumentSchema:
    defs = {"n/a": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}}
    return ArgumentSchema(msgspec.json.encode({"type": "object", "properties": {"p": of}, "$defs": defs}))


@pytest.mark.parametrize(("of", "text", "expected"), FROM_TEXT)
def test_text_becomes_what_the_schema_names(of: object, text: str, expected: str) -> None:
    assert schema(of).typed([Parameter("p", text)]) == f'{{"p":{expected}}}'


@pytest.mark.parametrize(("of", "value", "expected"), FROM_JSON)
def test_json_becomes_what_the_schema_names(of: object, value: str, expected: str) -> None:
    assert schema(of).retyped(f'{{"p":{value}}}') == f'{{"p":{expected}}}'


def test_arguments_that_are_right_keep_their_bytes() -> None:
    assert schema({"type": "string"}).retyped('{ "p" : "a",  "q": 1 }') == '{ "p" : "a",  "q": 1 }'


def test_the_last_value_of_a_name_counts() -> None:
    assert schema({"type": "integer"}).typed([Parameter("p", "1"), Parameter("p", "2")]) == '{"p":2}'


def test_a_parameter_that_the_schema_does_not_have_is_kept() -> None:
    assert schema({}).typed([Parameter("q", "x")]) == '{"q":"x"}'


@pytest.mark.parametrize("text", [b"", b"true", b'{"type":"object"}'])
def test_a_tool_without_a_schema_takes_anything(text: bytes) -> None:
    assert ArgumentSchema(text).typed([Parameter("p", "1"), Parameter("q", "x")]) == '{"p":1,"q":"x"}'


def test_nested_parameters_become_objects_and_arrays() -> None:
    item = Parameter("p", children=(Parameter("item", "1"), Parameter("item", "02")))
    fields = Parameter("p", children=(Parameter("n", "1"), Parameter("s", "2")))
    assert schema({"type": "array", "items": {"type": "string"}}).typed([item]) == '{"p":["1","02"]}'
    assert schema({}).typed([item]) == '{"p":[1,"02"]}'
    assert schema(OBJECT).typed([fields]) == '{"p":{"n":1,"s":"2"}}'
    assert schema({}).typed([fields]) == '{"p":{"n":1,"s":2}}'
    assert schema({"type": "array", "items": OBJECT}).typed([Parameter("p", children=(fields,))]) == (
        '{"p":[{"n":1,"s":"2"}]}'
    )
    assert schema({"type": "object", "properties": {"item": {"type": "string"}}}).typed([item]) == '{"p":{"item":"02"}}'


def test_values_deeper_than_any_schema_stay_as_they_came() -> None:
    deep = "[" * 100 + "1" + "]" * 100
    of = {"$ref": "#/$defs/tree"}
    root = {"type": "object", "properties": {"p": of}, "$defs": {"tree": {"type": ["array", "string"], "items": of}}}
    assert ArgumentSchema(msgspec.json.encode(root)).retyped(f'{{"p":{deep}}}') == f'{{"p":{deep}}}'


def test_the_names_of_parameters_are_told_unless_others_are_welcome() -> None:
    parts = {"allOf": [{"properties": {"a": {}}}, {"$ref": "#/$defs/b"}], "$defs": {"b": {"properties": {"b": {}}}}}
    assert ArgumentSchema(msgspec.json.encode(parts)).names == {"a", "b"}
    closed = parts | {"additionalProperties": False}
    assert ArgumentSchema(msgspec.json.encode(closed)).names == {"a", "b"}
    for welcome in (True, {"type": "string"}):
        assert ArgumentSchema(msgspec.json.encode(parts | {"additionalProperties": welcome})).names == frozenset()
