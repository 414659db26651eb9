"""OpenAI's strict form of a JSON Schema, to which an upstream can hold a model: asked for only where it is taken."""

from typing import Any

import msgspec

NEVER = frozenset(("oneOf", "allOf", "not", "if", "patternProperties"))


def is_strict(schema: bytes) -> bool:
    """Whether every object in it is closed and requires all that it names."""
    try:
        return _closed(msgspec.json.decode(schema or b"{}"))
    except (msgspec.DecodeError, RecursionError):
        return False


def _closed(node: Any) -> bool:
    if isinstance(node, list):
        return all(map(_closed, node))
    if not isinstance(node, dict):
        return True
    properties = node.get("properties")
    named = properties if isinstance(properties, dict) else {}
    if node.get("type") == "object" or isinstance(properties, dict):
        required = node.get("required")
        names = set(required) if isinstance(required, list) else set()
        if node.get("additionalProperties") is not False or names != set(named):
            return False
    definitions = node.get("$defs")
    inner = [*named.values(), node.get("items"), node.get("anyOf")]
    inner += definitions.values() if isinstance(definitions, dict) else ()
    return not NEVER & node.keys() and all(map(_closed, inner))
