"""What the validators share: JSON walking, names, JSON Schema keywords."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

Json = dict[str, Any]
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def decode(body: bytes) -> Json:
    value = msgspec.json.decode(body)
    assert isinstance(value, dict), "the body is not an object"
    return value


def unknown(value: Json, allowed: frozenset[str], path: str) -> Iterator[str]:
    for key in value:
        if key not in allowed:
            yield f"{path}: unknown field {key!r}"


def is_object(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        return isinstance(msgspec.json.decode(text), dict)
    except msgspec.DecodeError:
        return False


def blank(text: object) -> bool:
    return not isinstance(text, str) or not text.strip()


def schema_object(schema: object, path: str) -> Iterator[str]:
    """A function's parameters: an object schema with its properties written out."""
    if not isinstance(schema, dict):
        yield f"{path}: parameters are not an object"
        return
    if schema.get("type") != "object":
        yield f"{path}: schema must be of type object, got {schema.get('type')!r}"
    if refused := schema.keys() & {"oneOf", "anyOf", "allOf", "enum", "not"}:
        yield f"{path}: schema must not have {sorted(refused)} at the top level"
    if not isinstance(schema.get("properties"), dict):
        yield f"{path}: object schema missing properties"
    for name, inner in (schema.get("properties") or {}).items():
        if isinstance(inner, dict) and inner.get("type") == "array" and "items" not in inner:
            yield f"{path}: In context=('properties', {name!r}), array schema missing items"
        if isinstance(inner, dict) and isinstance(inner.get("items"), list):
            yield f"{path}: {inner['items']} is not of type 'object', 'boolean'"


def duplicates(values: list[str]) -> set[str]:
    return {value for value in values if values.count(value) > 1}
