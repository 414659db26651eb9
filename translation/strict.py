"""OpenAI's strict form of a JSON Schema, to which an upstream can hold a model: asked for only where it is taken."""

from typing import Any

import msgspec

NEVER = frozenset(
    (
        "oneOf", "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
        "propertyNames", "unevaluatedProperties", "minProperties", "maxProperties", "prefixItems", "contains",
        "uniqueItems", "minLength", "maxLength", "default",
    )
)  # fmt: skip
# Not Anthropic's `uri`.
FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
TYPED = frozenset(("type", "anyOf", "$ref", "enum", "const"))  # one of them is in every node


def is_strict(schema: bytes) -> bool:
    """Whether every value in it has a type, and every object is closed and requires all that it names."""
    try:
        return _closed(msgspec.json.decode(schema or b"{}"))
    except (msgspec.DecodeError, RecursionError):
        return False


def _closed(node: Any) -> bool:
    if isinstance(node, list):
        return all(map(_closed, node))
    if not isinstance(node, dict):
        return True
    kind = node.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if NEVER & node.keys() or not TYPED & node.keys() or ("array" in kinds and "items" not in node):
        return False
    if ("$ref" in node and len(node) > 1) or node.get("format", FORMATS[0]) not in FORMATS:
        return False
    properties = node.get("properties")
    named = properties if isinstance(properties, dict) else {}
    if "object" in kinds or isinstance(properties, dict):
        required = node.get("required")
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        if node.get("additionalProperties") is not False or set(names) != set(named):
            return False
    inner = [*named.values(), node.get("items"), node.get("anyOf")]
    for definitions in (node.get("$defs"), node.get("definitions")):
        inner += definitions.values() if isinstance(definitions, dict) else ()
    return all(map(_closed, inner))
