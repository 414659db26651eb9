"""`type` and `enum` as Moonshot's validator wants them.

`type is not defined`, `enum value (x) does not match any type in [string]`, `keyword minLength is not allowed in
combination with multiple types`.
"""

from typing import Any

from translation.schema_shape import sequence, strings

Node = dict[str, Any]
TYPES = ("null", "boolean", "object", "array", "number", "integer", "string")
SCALARS = frozenset(("boolean", "number", "integer", "string"))
ABOUT = frozenset(("description", "title", "default", "$defs", "$id", "$schema", "$comment"))  # the node as a whole
ALONE = frozenset(("type", "description", "title", "$defs", "$id"))  # what may stand beside several types
KINDS = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", dict: "object"}


def with_legal_type(node: Node) -> Node:
    """A type that nobody knows is none."""
    if "type" not in node:
        return node
    given = node["type"]
    names = list(dict.fromkeys(name.lower() for name in ([given] if isinstance(given, str) else strings(given))))
    known = [name for name in names if name in TYPES]
    if known and known == (given if isinstance(given, list) else [given]):
        return node
    rest = _without(node, "type")
    return rest | {"type": _one_or_all(known)} if known else rest


def with_legal_enum(node: Node) -> Node:
    """With a type, and nothing that is of another one."""
    if "enum" not in node:
        return node
    types = _types(node)
    kinds = [_kind(value, types) for value in sequence(node["enum"])]
    if kinds and all(kinds) and types and _go_together(types):
        return node
    rest = _without(node, "enum")
    groups: dict[str, list[object]] = {}
    for value, kind in zip(sequence(node["enum"]), kinds, strict=True):
        if kind:
            groups.setdefault(kind, []).append(value)
    if not groups:
        return rest
    if _go_together(list(groups)):
        return rest | {
            "type": _one_or_all(list(groups)),
            "enum": [value for values in groups.values() for value in values],
        }
    return _without(rest, "type") | {"anyOf": [{"type": kind, "enum": values} for kind, values in groups.items()]}


def split_by_type(node: Node) -> Node:
    """Nothing is said of several types at once."""
    types = _types(node)
    if len(types) < 2 or node.keys() <= ALONE or ("enum" in node and _go_together(types)):
        return node
    about = {keyword: value for keyword, value in node.items() if keyword in ABOUT}
    said = {keyword: value for keyword, value in node.items() if keyword not in ABOUT}
    return about | {"anyOf": [{"type": name} if name == "null" else said | {"type": name} for name in types]}


def _one_or_all(types: list[str]) -> str | list[str]:
    return types[0] if len(types) == 1 else types


def _types(node: Node) -> list[str]:
    given = node.get("type")
    return [given] if isinstance(given, str) else strings(given)


def _go_together(types: list[str]) -> bool:
    """In one node with an `enum`."""
    return len(types) == 1 or (len(types) == 2 and "null" in types and not SCALARS.isdisjoint(types))


def _kind(value: object, types: list[str]) -> str:
    """The type of a value, one of these if there are any; "" where it is of another."""
    kind = KINDS.get(type(value), "array")
    if not types or kind in types:
        return kind
    return "number" if kind == "integer" and "number" in types else ""


def _without(node: Node, keyword: str) -> Node:
    return {name: value for name, value in node.items() if name != keyword}
