"""A tool's JSON Schema as OpenAI's family takes it: the bytes that the client wrote, unless they would be refused.

OpenAI wants a root of type `object` with `properties`, and `items` in every array, which neither JSON Schema nor
Anthropic ask for.
"""

from typing import Any

import msgspec
from msgspec import Raw

from translation.memo import Memo
from translation.unreadable import UNREADABLE

_SEEN: Memo[Raw] = Memo(budget=8 * 1024 * 1024, largest=256 * 1024)
EMPTY = Raw(b'{"type":"object","properties":{}}')
MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
LISTS = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
NODES = frozenset(
    ("items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else", "unevaluatedItems")
)


def function_schema(schema: bytes) -> Raw:
    return _SEEN.get(schema, lambda: _object(_with_items(schema)))


def _object(schema: bytes) -> Raw:
    try:
        members = msgspec.json.decode(schema, type=dict[str, Raw])
    except UNREADABLE:
        return EMPTY
    if "properties" in members and bytes(members.get("type", b"")) == b'"object"':
        return Raw(schema)
    members = {"type": Raw(b'"object"'), "properties": Raw(b"{}")} | members
    members["type"] = Raw(b'"object"')
    return Raw(msgspec.json.encode(members))


def _with_items(schema: bytes) -> bytes:
    if b'"array"' not in schema:
        return schema
    try:
        root = msgspec.json.decode(schema)
        filled = _filled(root)
        return schema if filled == root else msgspec.json.encode(filled)
    except UNREADABLE:  # nested too deeply, or a number that no computer holds
        return schema


def _filled(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    out = {keyword: _inside(keyword, value) for keyword, value in node.items()}
    kind = node.get("type")
    if (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in node:
        out["items"] = {}
    return out


def _inside(keyword: str, value: Any) -> Any:
    """A keyword's value; only where it holds schemas is there anything to fill in."""
    if keyword in MAPS and isinstance(value, dict):
        return {name: _filled(inner) for name, inner in value.items()}
    if keyword in LISTS and isinstance(value, list):
        return [_filled(inner) for inner in value]
    return _filled(value) if keyword in NODES else value
