"""JSON Schema lowering: a table of cases, and the allow-list as a property."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.validators.gemini import SCHEMA
from tests.validators.gemini import schema as refusals
from translation.schema import MAX_NOTES, lower

ANY = {"anyOf": [{"type": "STRING"}, {"type": "NUMBER"}, {"type": "BOOLEAN"}, {"type": "OBJECT", "properties": {}}]}
STRING = {"type": "STRING"}


def lowered(schema: object) -> Any:
    return msgspec.json.decode(lower(msgspec.json.encode(schema), parameters=False).schema)


def notes(schema: object) -> tuple[str, ...]:
    return lower(msgspec.json.encode(schema), parameters=False).notes


STRINGS = {"type": "ARRAY", "items": STRING}

CASES: tuple[tuple[str, object, object], ...] = (
    (
        "a type keeps its limits",
        {"type": "string", "minLength": 1, "pattern": "^a"},
        {**STRING, "minLength": 1, "pattern": "^a"},
    ),
    ("upper case types are types", {"type": "STRING"}, STRING),
    ("a limit of another type says nothing", {"type": "boolean", "minLength": 1}, {"type": "BOOLEAN"}),
    (
        "a limit that is no number is told",
        {"type": "integer", "minimum": "x", "maximum": True},
        {"type": "INTEGER", "description": "(minimum: x; maximum: true)"},
    ),
    (
        "a pattern that looks around is told",
        {"type": "string", "pattern": "(?=a)"},
        {**STRING, "description": "(pattern: (?=a))"},
    ),
    (
        "a pattern that not everybody reads is told",
        {"type": "string", "pattern": "\\p{L}"},
        {**STRING, "description": "(pattern: \\p{L})"},
    ),
    (
        "numbers keep limits",
        {"type": "number", "minimum": 0.5, "maximum": 2},
        {"type": "NUMBER", "minimum": 0.5, "maximum": 2},
    ),
    (
        "a limit that no float holds is told",
        {"type": "integer", "maximum": 10**400},
        {"type": "INTEGER", "description": f"(maximum: 1{'0' * 199}…)"},
    ),
    ("a title stays", {"type": "string", "title": "T"}, {**STRING, "title": "T"}),
    ("a known format stays", {"type": "string", "format": "date-time"}, {**STRING, "format": "date-time"}),
    ("another format is told", {"type": "string", "format": "uri"}, {**STRING, "description": "(format: uri)"}),
    (
        "exclusive limits are told",
        {"type": "integer", "description": "Age.", "exclusiveMinimum": 0},
        {"type": "INTEGER", "description": "Age. (exclusiveMinimum: 0)"},
    ),
    (
        "what is told is cut",
        {"type": "string", "default": "x" * 300},
        {**STRING, "description": f"(default: {'x' * 200}…)"},
    ),
    ("an unknown keyword is dropped", {"type": "string", "x-order": 3}, STRING),
    (
        "booleans for more properties say nothing",
        {"type": "object", "additionalProperties": False},
        {"type": "OBJECT", "properties": {}},
    ),
    (
        "a schema for more properties is told",
        {"additionalProperties": {"type": "string"}},
        {"type": "OBJECT", "description": '(additionalProperties: {"type":"string"})', "properties": {}},
    ),
    ("null makes nullable", {"type": ["string", "null"]}, {**STRING, "nullable": True}),
    ("nullable stays", {"type": "string", "nullable": True}, {**STRING, "nullable": True}),
    ("only null", {"type": "null", "description": "D"}, {**STRING, "description": "D (always null)", "nullable": True}),
    ("only the constant null", {"const": None}, {**STRING, "description": "(always null)", "nullable": True}),
    ("several types", {"type": ["string", "integer", "string"]}, {"anyOf": [STRING, {"type": "INTEGER"}]}),
    (
        "several types and null",
        {"type": ["string", "integer", "null"], "description": "D"},
        {"anyOf": [{**STRING, "description": "D", "nullable": True}, {"type": "INTEGER", "description": "D"}]},
    ),
    ("no type is any", {}, ANY),
    ("true is any", True, ANY),
    ("false is any, noted", False, ANY),
    ("an unknown type is any", {"type": "file"}, ANY),
    ("a type that is no word is any", {"type": 3}, ANY),
    ("a type is guessed from its keywords", {"items": {"type": "string"}}, {"type": "ARRAY", "items": STRING}),
    ("any has its description", {"description": "D"}, {"anyOf": [{**STRING, "description": "D"}, *ANY["anyOf"][1:]]}),
    ("const is an enum", {"const": "a"}, {**STRING, "enum": ["a"]}),
    ("an enum", {"type": "string", "enum": ["a", "b", "a"]}, {**STRING, "enum": ["a", "b"]}),
    ("an enum with null", {"enum": ["a", None]}, {**STRING, "enum": ["a"], "nullable": True}),
    (
        "an enum of numbers is told",
        {"type": "integer", "enum": [1, 2]},
        {"type": "INTEGER", "description": "(one of: [1,2])"},
    ),
    ("an enum with an empty string is told", {"enum": ["", "a"]}, {**STRING, "description": '(one of: ["","a"])'}),
    (
        "a mixed enum is told",
        {"enum": [1, "a"]},
        {"anyOf": [{"type": "INTEGER", "description": '(one of: [1,"a"])'}, STRING]},
    ),
    (
        "an enum of numbers keeps its type",
        {"type": "number", "enum": [1, 2.5]},
        {"type": "NUMBER", "description": "(one of: [1,2.5])"},
    ),
    (
        "a mixed enum keeps its types",
        {"type": ["string", "number", "null"], "enum": ["a", 1.5, None]},
        {"anyOf": [{**STRING, "description": '(one of: ["a",1.5])', "nullable": True}, {"type": "NUMBER"}]},
    ),
    (
        "an enum of objects is told",
        {"enum": [{}]},
        {"anyOf": [{**STRING, "description": "(one of: [{}])"}, *ANY["anyOf"][1:]]},
    ),
    ("an enum that is no list is none", {"type": "string", "enum": "a"}, STRING),
    ("an array without items", {"type": "array", "minItems": 1}, {"type": "ARRAY", "minItems": 1, "items": ANY}),
    (
        "a tuple",
        {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "boolean"}},
        {"type": "ARRAY", "items": {"anyOf": [STRING, {"type": "INTEGER"}, {"type": "BOOLEAN"}]}},
    ),
    ("an old tuple", {"type": "array", "items": [{"type": "string"}]}, {"type": "ARRAY", "items": STRING}),
    (
        "required names only what is there, once",
        {"properties": {"a": {"type": "string"}}, "required": ["a", "b", "a", 3]},
        {"type": "OBJECT", "properties": {"a": STRING}, "required": ["a"]},
    ),
    ("properties that are none", {"type": "object", "properties": []}, {"type": "OBJECT", "properties": {}}),
    ("one alternative and null", {"anyOf": [{"type": "string"}, {"type": "null"}]}, {**STRING, "nullable": True}),
    (
        "no alternative but null",
        {"anyOf": [{"type": "null"}], "description": "D"},
        {**STRING, "description": "D", "nullable": True},
    ),
    (
        "a description goes to the first branch",
        {"oneOf": [{"type": "string", "description": "S"}, {"type": "integer"}], "description": "D"},
        {"anyOf": [{**STRING, "description": "D S"}, {"type": "INTEGER"}]},
    ),
    (
        "alternatives take the type beside them",
        {"type": "string", "anyOf": [{"minLength": 1}, {"maxLength": 9}]},
        {"anyOf": [{**STRING, "minLength": 1}, {**STRING, "maxLength": 9}]},
    ),
    ("constants are one enum", {"anyOf": [{"const": "a"}, {"const": "b"}]}, {**STRING, "enum": ["a", "b"]}),
    (
        "nested alternatives are one list",
        {"anyOf": [{"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"type": "boolean"}]},
        {"anyOf": [STRING, {"type": "INTEGER"}, {"type": "BOOLEAN"}]},
    ),
    (
        "alternatives of an object are poured together",
        {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "anyOf": [
                {"properties": {"b": {"type": "string"}}, "required": ["a", "b"]},
                {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            ],
        },
        {
            "type": "OBJECT",
            "description": "(required: a, b | a)",
            "properties": {"a": STRING, "b": STRING},
            "required": ["a"],
        },
    ),
    (
        "what alternatives define differently is either",
        {
            "type": "object",
            "oneOf": [
                {"properties": {"k": {"const": "a"}, "x": {"type": "string"}}, "required": ["k", "x"]},
                {"properties": {"k": {"const": "b"}, "x": {"type": "string"}}, "required": ["k"]},
                {"properties": {"k": {"const": "a"}, "n": {"type": "string"}}, "required": ["k"]},
                {"properties": {"n": {"type": "integer"}, "k": {"const": "c"}}, "required": ["k", "n"]},
            ],
        },
        {
            "type": "OBJECT",
            "description": "(required: k, x | k | k, n)",
            "properties": {
                "k": {"type": "STRING", "enum": ["a", "b", "c"]},
                "x": STRING,
                "n": {"anyOf": [STRING, {"type": "INTEGER"}]},
            },
            "required": ["k"],
        },
    ),
    (
        "allOf adds up",
        {
            "allOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"], "description": "first"},
                {
                    "properties": {"b": {"type": "string"}, "a": {"minLength": 2}},
                    "required": ["b"],
                    "description": "second",
                },
                True,
            ]
        },
        {
            "type": "OBJECT",
            "description": "first",
            "properties": {"a": {**STRING, "minLength": 2}, "b": STRING},
            "required": ["a", "b"],
        },
    ),
    ("of two types the nearer counts", {"type": "string", "allOf": [{"type": "integer"}]}, STRING),
    (
        "a reference is inlined, the words beside it win",
        {"$ref": "#/$defs/a~1b", "description": "near", "$defs": {"a/b": {"type": "string", "description": "far"}}},
        {**STRING, "description": "near"},
    ),
    ("a reference into a list", {"anyOf": [{"$ref": "#/$defs/l/1"}], "$defs": {"l": [{}, {"type": "string"}]}}, STRING),
    (
        "a reference to null",
        {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/n"}], "$defs": {"n": {"type": "null"}}},
        {**STRING, "nullable": True},
    ),
    ("a reference past a list", {"$ref": "#/$defs/l/7", "$defs": {"l": []}}, ANY),
    ("a reference into a word", {"$ref": "#/title/x", "title": "t"}, ANY),
    ("a reference elsewhere", {"$ref": "https://example.com/schema"}, ANY),
    ("a reference that is none", {"$ref": 3}, ANY),
    (
        "a reference to an anchor",
        {"items": {"$ref": "#s"}, "$defs": {"x": {"$anchor": "s", "type": "string"}}},
        STRINGS,
    ),
    ("a reference to no anchor", {"items": {"$ref": "#s"}, "$anchor": 3}, {"type": "ARRAY", "items": ANY}),
    (
        "definitions that came below another schema with their references",
        {"items": {"allOf": [{"$ref": "#/definitions/s"}], "definitions": {"s": {"type": "string"}}}},
        STRINGS,
    ),
    (
        "a reference twice",
        {"allOf": [{"$ref": "#/$defs/s"}, {"$ref": "#/$defs/s"}], "$defs": {"s": {"type": "string"}}},
        STRING,
    ),
    (
        "a tree ends where it begins again",
        {
            "$ref": "#/$defs/t",
            "$defs": {"t": {"properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/t"}}}}},
        },
        {"type": "OBJECT", "properties": {"kids": {"type": "ARRAY", "items": {"type": "OBJECT", "properties": {}}}}},
    ),
    (
        "alternatives that lead to themselves end",
        {
            "$ref": "#/$defs/j",
            "$defs": {"j": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/j"}}]}},
        },
        {"anyOf": [STRING, {"type": "ARRAY", "items": ANY}]},
    ),
)


@pytest.mark.parametrize(("schema", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_lowering(schema: object, expected: Any) -> None:
    assert lowered(schema) == expected
    assert list(refusals(expected, "")) == []


def test_properties_named_like_keywords_are_left_alone() -> None:
    names = sorted({*SCHEMA, "$ref", "const", "default", "allOf", "oneOf", "not", "additionalProperties", "$schema"})
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    assert lowered(schema) == {"type": "OBJECT", "properties": dict.fromkeys(names, STRING), "required": names}
    assert notes(schema) == ()


def test_each_loss_is_noted_with_its_place() -> None:
    schema = {
        "type": "object",
        "properties": {
            "age": {"type": "integer", "exclusiveMinimum": 0},
            "tags": {"type": "array", "items": {"type": "string", "x-mark": 1}},
            "never": False,
        },
    }
    assert notes(schema) == (
        "age: exclusiveMinimum went into the description",
        "tags.[]: x-mark was dropped",
        "never: a schema that allows nothing became one that allows anything",
    )
    assert notes({"type": "file"}) == ("schema: an unknown type was ignored",)


def test_notes_end_somewhere() -> None:
    many = {"properties": {f"p{i}": {"type": "string", "format": "uri"} for i in range(100)}}
    assert len(notes(many)) == MAX_NOTES + 1
    assert notes(many)[-1] == "and more"


def test_parameters_are_an_object_whatever_the_root_is() -> None:
    found = lower(b'{"type":"string"}')
    assert (found.schema, found.empty) == (b'{"type":"OBJECT","properties":{}}', True)
    assert found.notes == ("schema: the root is not an object, as parameters have to be",)


@pytest.mark.parametrize("schema", [b"", b"{}", b"null", b'{"type":"object"}', b'{"type":["object","null"]}'])
def test_missing_properties_are_none(schema: bytes) -> None:
    found = lower(schema)
    assert (found.schema, found.notes, found.empty) == (b'{"type":"OBJECT","properties":{}}', (), True)


def test_alternatives_at_the_root_become_one_object() -> None:
    root = {
        "oneOf": [{"properties": {"a": {"type": "string"}}}, {"$ref": "#/$defs/b"}],
        "$defs": {"b": {"properties": {"b": {}}}},
    }
    assert msgspec.json.decode(lower(msgspec.json.encode(root)).schema) == {
        "type": "OBJECT",
        "properties": {"a": STRING, "b": ANY},
    }


@pytest.mark.parametrize("schema", [b"nonsense", b'{"a":' * 5000 + b"1" + b"}" * 5000])
def test_what_cannot_be_read_is_noted(schema: bytes) -> None:
    assert lower(schema).notes == ("the schema cannot be read as JSON",)


def test_what_is_nested_too_deeply_is_left_open() -> None:
    schema: dict[str, object] = {"type": "string"}
    for _ in range(60):
        schema = {"type": "array", "items": schema}
    assert any("nested too deeply" in note for note in notes(schema))
    assert list(refusals(lowered(schema), "")) == []


def test_a_reference_into_the_deep_is_left_open() -> None:
    deep: object = {"type": "string"}
    for _ in range(250):
        deep = [deep]
    schema = {"$ref": "#/$defs/d", "$defs": {"d": {"type": "array", "examples": deep}}}
    assert lowered(schema) == {"type": "ARRAY", "items": ANY}
    assert notes(schema) == ("schema: $ref #/$defs/d is too large to inline, left open",)


def bomb() -> bytes:
    definitions: dict[str, object] = {
        f"d{i}": {"properties": {name: {"$ref": f"#/$defs/d{i + 1}"} for name in "abcdefgh"}} for i in range(30)
    }
    definitions["d30"] = {"type": "string", "description": "x" * 10_000}
    return msgspec.json.encode({"$ref": "#/$defs/d0", "$defs": definitions})


def wide() -> bytes:
    target = {"properties": {f"p{i}": {"type": "string"} for i in range(5_000)}}
    return msgspec.json.encode(
        {"properties": {f"r{i}": {"$ref": "#/$defs/w"} for i in range(5_000)}, "$defs": {"w": target}}
    )


def unions() -> bytes:
    branches = [{"$ref": f"#/$defs/d{i}"} for i in range(5_000)]
    return msgspec.json.encode(
        {
            "type": "object",
            "anyOf": branches,
            "allOf": branches,
            "$defs": {f"d{i}": {"required": ["a"]} for i in range(5_000)},
        }
    )


@pytest.mark.parametrize("schema", [bomb(), wide(), unions()], ids=["bomb", "wide", "unions"])
def test_a_hostile_schema_costs_no_more_than_its_size(schema: bytes) -> None:
    found = lower(schema)  # without its bounds this would run into the suite's time limit
    assert len(found.schema) < 256 * 1024 + 8 * len(schema)


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
TYPE_NAMES = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null", "file"])
KEYWORDS = [
    "type", "format", "title", "description", "nullable", "enum", "const", "items", "prefixItems", "properties",
    "required", "minLength", "maximum", "minItems", "exclusiveMinimum", "default", "additionalProperties", "anyOf",
    "oneOf", "allOf", "$ref", "$defs", "not", "pattern", "x-unknown",
]  # fmt: skip
NAMES = st.sampled_from([*KEYWORDS, "a", "b"])


def nodes(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    several = st.lists(inner, max_size=3)
    named = st.dictionaries(NAMES, inner, max_size=3)
    shapes: dict[str, st.SearchStrategy[object]] = {
        "type": TYPE_NAMES | st.lists(TYPE_NAMES, max_size=3) | SCALARS,
        "enum": st.lists(SCALARS, max_size=3) | SCALARS,
        "const": SCALARS,
        "required": st.lists(NAMES | SCALARS, max_size=3) | SCALARS,
        "items": inner | several,
        "prefixItems": several,
        "properties": named | SCALARS,
        "additionalProperties": inner,
        "not": inner,
        "anyOf": several | SCALARS,
        "oneOf": several,
        "allOf": several | SCALARS,
        "$defs": named,
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/anyOf/0", "other.json"]),
    }
    return st.fixed_dictionaries({}, optional={name: shapes.get(name, SCALARS) for name in KEYWORDS})


SCHEMAS = st.recursive(st.booleans() | SCALARS, nodes, max_leaves=12)


@settings(max_examples=80, deadline=None)
@given(SCHEMAS, st.booleans())
def test_whatever_comes_in_only_the_allow_list_comes_out(schema: object, parameters: bool) -> None:
    found = lower(msgspec.json.encode(schema), parameters=parameters)
    value = msgspec.json.decode(found.schema)
    assert list(refusals(value, "")) == []
    assert not parameters or value["type"] == "OBJECT"
    assert lower(msgspec.json.encode(schema), parameters=parameters) == found


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(NAMES | st.text(max_size=8), SCHEMAS, min_size=1, max_size=6))
def test_every_property_survives_whatever_its_name(properties: dict[str, object]) -> None:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    found = lowered(schema)
    assert list(found["properties"]) == list(properties)
    assert found["required"] == list(properties)
