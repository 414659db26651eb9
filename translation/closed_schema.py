"""A JSON Schema as Claude's structured outputs take it: a subset in which every object is closed.

`For 'integer' type, property 'minimum' is not supported`: what the subset has no word for goes into the description,
where the model still reads it, as the official SDKs do. https://platform.claude.com/docs/en/build-with-claude/structured-outputs
"""

from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from translation.memo import Memo
from translation.schema_shape import NONE, Flattener, inside, mapping, sequence, strings
from translation.unreadable import UNREADABLE

FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid")
INNER = frozenset(("properties", "items", "anyOf", "allOf", "$defs", "definitions"))
KEPT = frozenset(("type", "title", "description", "default", "required", *INNER))
SILENT = frozenset(("$schema", "$id", "$comment", "additionalProperties"))
SAID = frozenset(("type", "anyOf", "allOf", "enum", "const"))  # one of them is in every node
DEFINITIONS = ("$defs", "definitions")
_SEEN: Memo[bytes] = Memo(budget=4 * 1024 * 1024, largest=256 * 1024)
ANYTHING = {"anyOf": [{"type": kind} for kind in ("string", "number", "boolean", "null")]}


def closed(schema: bytes) -> bytes:
    """The same where it is in the subset already, or cannot be read."""
    return _SEEN.get(schema, lambda: _closed(schema))


def _closed(schema: bytes) -> bytes:
    try:
        root = msgspec.json.decode(schema)
        wanted = _Closing(root, len(schema)).node(root)
    except UNREADABLE:
        return schema
    return schema if wanted == root else msgspec.json.encode(wanted)


def is_finite(schema: bytes) -> bool:
    """Whether all that it refers to are definitions at its root, and none of them refers back to itself.

    `Circular reference detected in schema definitions: Node -> Node`, and `External $ref not supported`.
    """
    try:
        root = msgspec.json.decode(schema)
        graph = {
            f"#/{key}/{name}": _references(definition)
            for key in DEFINITIONS
            for name, definition in mapping(mapping(root).get(key)).items()
        }
        TopologicalSorter(graph).prepare()
    except CycleError:
        return False
    except UNREADABLE:
        return True
    return _references(root).union(*graph.values()) <= graph.keys()


def _references(node: object) -> set[str]:
    """What a node refers to, its definitions left aside."""
    found: set[str] = set()

    def look(inner: Any) -> None:
        if isinstance(inner, dict):
            found.update(strings([inner.get("$ref")]))
            for keyword, value in inner.items():
                if keyword not in DEFINITIONS:
                    inside(keyword, value, look)

    look(node)
    return found


class _Closing:
    def __init__(self, root: object, size: int) -> None:
        self._flattener = Flattener(root, size, lambda place, what: None)

    def node(self, given: Any) -> dict[str, Any]:
        if not isinstance(given, dict):
            return ANYTHING
        given = _referred(given)
        if isinstance(given.get("$ref"), str):  # beside which nothing may stand
            named = ("$ref", "$defs", "definitions")
            return {word: inside(word, value, self.node) for word, value in given.items() if word in named}
        node = self._one(given)
        kept = {word: value for word, value in node.items() if _is_kept(word, value)}
        is_object = "object" in (node.get("type"), *sequence(node.get("type"))) or "properties" in node
        if is_object and "properties" in node:
            kept.pop("anyOf", None)  # an object closed here and in its alternatives would hold nothing
        elif is_object and "anyOf" in node:
            kept.pop("type", None)
        out = {word: inside(word, value, self.node) for word, value in kept.items()}
        if is_object and "anyOf" not in out:
            out |= {"type": node.get("type", "object"), "properties": mapping(out.get("properties"))}
            out["additionalProperties"] = False
        return _told(node, out)

    def _one(self, node: dict[str, Any]) -> dict[str, Any]:
        """With `oneOf` as `anyOf`, and several in `allOf` folded."""
        if len(sequence(node.get("allOf"))) > 1:
            node = self._flattener.flat(node, NONE, None)[0]
        if "oneOf" not in node or "anyOf" in node:
            return node
        return {"anyOf" if word == "oneOf" else word: value for word, value in node.items()}


def _referred(node: dict[str, Any]) -> dict[str, Any]:
    """One reference in `allOf`, as pydantic 1 writes described fields, is the reference: none may stand there."""
    parts = sequence(node.get("allOf"))
    alone = parts[0] if len(parts) == 1 else None
    return node | alone if isinstance(alone, dict) and "$ref" in alone else node


def _told(node: dict[str, Any], out: dict[str, Any]) -> dict[str, Any]:
    """With what is lost of the node in its description."""
    told = {word: value for word, value in node.items() if word not in out and word not in SILENT}
    if "anyOf" in out:
        told.pop("type", None)
    if isinstance(node.get("additionalProperties"), dict):
        told["additionalProperties"] = node["additionalProperties"]
    if told:
        words = msgspec.json.encode(told).decode()
        said = out.get("description")
        out["description"] = f"{said}\n\n{words}" if isinstance(said, str) and said else words
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
