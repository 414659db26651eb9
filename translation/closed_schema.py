"""A JSON Schema as Claude's structured outputs take it: a subset in which every object is closed.

`For 'integer' type, property 'minimum' is not supported`: what the subset has no word for goes into the description,
where the model still reads it, as the official SDKs do. https://platform.claude.com/docs/en/build-with-claude/structured-outputs
"""

from typing import Any

import msgspec

from translation.memo import Memo
from translation.schema_shape import inside, mapping, sequence
from translation.unreadable import UNREADABLE

FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
INNER = frozenset(("properties", "items", "anyOf", "allOf", "$defs", "definitions"))
KEPT = frozenset(("type", "title", "description", "required", *INNER))
SILENT = frozenset(("$schema", "$id", "$comment", "additionalProperties"))
SAID = frozenset(("type", "anyOf", "allOf", "enum", "const"))  # one of them is in every node
_SEEN: Memo[bytes] = Memo(budget=4 * 1024 * 1024, largest=256 * 1024)
ANYTHING = {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "null")]}


def closed(schema: bytes) -> bytes:
    """The same where it is in the subset already, or cannot be read."""
    return _SEEN.get(schema, lambda: _closed(schema))


def _closed(schema: bytes) -> bytes:
    try:
        root = msgspec.json.decode(schema)
        wanted = _node(root)
    except UNREADABLE:
        return schema
    return schema if wanted == root else msgspec.json.encode(wanted)


def _node(node: Any) -> dict[str, Any]:
    if not isinstance(node, dict):
        return ANYTHING
    if isinstance(node.get("$ref"), str):  # beside which nothing may stand
        named = ("$ref", "$defs", "definitions")
        return {keyword: inside(keyword, value, _node) for keyword, value in node.items() if keyword in named}
    if "oneOf" in node and "anyOf" not in node:
        node = {"anyOf" if keyword == "oneOf" else keyword: value for keyword, value in node.items()}
    out = {keyword: inside(keyword, value, _node) for keyword, value in node.items() if _is_kept(keyword, value)}
    if "object" in (node.get("type"), *sequence(node.get("type"))) or "properties" in node:
        out |= {"type": node.get("type", "object"), "properties": mapping(out.get("properties"))}
        out["additionalProperties"] = False
    told = {word: value for word, value in node.items() if word not in out and word not in SILENT}
    if isinstance(node.get("additionalProperties"), dict):
        told["additionalProperties"] = node["additionalProperties"]
    if told:
        words = msgspec.json.encode(told).decode()
        out["description"] = f"{out['description']}\n\n{words}" if "description" in out else words
    return out if SAID & out.keys() else out | ANYTHING


def _is_kept(keyword: str, value: Any) -> bool:
    match keyword:
        case "enum":
            return bool(value) and not any(isinstance(item, dict | list) for item in sequence(value))
        case "const":
            return not isinstance(value, dict | list)
        case "format":
            return value in FORMATS
        case "minItems":
            return value in (0, 1)
        case _:
            return keyword in KEPT
