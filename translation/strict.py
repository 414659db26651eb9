"""OpenAI's strict form of a JSON Schema, to which an upstream can hold a model: asked for only where it is taken."""

from typing import Any

import msgspec

from translation.schema_shape import mapping, sequence, strings

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
DEFINITIONS = ("$defs", "definitions")
# `11 levels of nesting exceeds limit of 10`; https://platform.openai.com/docs/guides/structured-outputs has the others.
DEEPEST, MOST_PROPERTIES, MOST_VALUES, MOST_CHARACTERS = 10, 5_000, 1_000, 120_000
MANY, LONGEST = 250, 15_000  # values of one enumeration, and characters that more of them may have


def is_strict(schema: bytes) -> bool:
    """Whether every value in it has a type, every object is closed and requires all that it names, every reference
    leads to a definition at the root, and all of it is no larger than the upstream takes."""
    try:
        root = msgspec.json.decode(schema or b"{}")
        form = _Form(root)
        return form.holds(root, 0) and form.fits()
    except (msgspec.DecodeError, RecursionError):
        return False


class _Form:
    """One schema, measured while it is gone through."""

    def __init__(self, root: Any) -> None:
        self._known = {"#"}
        for name in DEFINITIONS:
            self._known.update(f"#/{name}/{one}" for one in mapping(mapping(root).get(name)))
        self._properties = self._values = self._characters = 0

    def fits(self) -> bool:
        return (
            self._properties <= MOST_PROPERTIES and self._values <= MOST_VALUES and self._characters <= MOST_CHARACTERS
        )

    def holds(self, node: Any, depth: int) -> bool:
        if not isinstance(node, dict) or depth > DEEPEST:
            return False
        kind = node.get("type")
        kinds = kind if isinstance(kind, list) else [kind]
        if NEVER & node.keys() or not TYPED & node.keys() or ("array" in kinds and "items" not in node):
            return False
        if "$ref" in node and (len(node) > 1 or str(node["$ref"]) not in self._known):
            return False
        if node.get("format", FORMATS[0]) not in FORMATS or not self._enumerates(node):
            return False
        named = mapping(node.get("properties"))
        if "object" in kinds or "properties" in node:
            if node.get("additionalProperties") is not False or set(strings(node.get("required"))) != set(named):
                return False
            self._properties += len(named)
        return all(self.holds(inner, depth + 1) for inner in (*named.values(), *_items(node))) and all(
            self.holds(inner, 0) for inner in self._defined(node)
        )

    def _enumerates(self, node: dict[str, Any]) -> bool:
        values = sequence(node.get("enum"))
        length = sum([len(value) for value in values if isinstance(value, str)])
        self._values += len(values)
        self._characters += length + sum(map(len, mapping(node.get("properties"))))
        return len(values) <= MANY or length <= LONGEST

    def _defined(self, node: dict[str, Any]) -> list[Any]:
        found = [each for name in DEFINITIONS for each in mapping(node.get(name)).items()]
        self._characters += sum([len(name) for name, _ in found])
        return [schema for _, schema in found]


def _items(node: dict[str, Any]) -> list[Any]:
    held = [node["items"]] if "items" in node else []
    return held + sequence(node.get("anyOf"))
