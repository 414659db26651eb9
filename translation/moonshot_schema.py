"""A tool's JSON Schema as Kimi takes it: the bytes that they are, unless Moonshot's validator would refuse the request
(`tools.function.parameters is not a valid moonshot flavored json schema`).

https://github.com/MoonshotAI/walle/blob/main/docs/mfjs-spec.md
"""

from typing import Any

import msgspec

from translation.schema_shape import inside, mapping
from translation.unreadable import UNREADABLE

SUSPECT = (b'"anyOf"', b'"oneOf"', b'"$ref"', b'"items"')
UNIONS = ("anyOf", "oneOf")
TYPED = frozenset(("type", "$ref", *UNIONS))
BESIDE = ("description", "default")  # what may stand beside a union
OLD, NEW = "#/definitions/", "#/$defs/"


def flavored(schema: bytes) -> bytes:
    if not any(word in schema for word in SUSPECT):
        return schema
    try:
        root = msgspec.json.decode(schema)
        wanted = _node(_defined(root))
        return schema if wanted == root else msgspec.json.encode(wanted)
    except UNREADABLE:  # a number that no computer holds
        return schema


def _defined(root: dict[str, Any]) -> dict[str, Any]:
    """What is referred to has its place in `$defs`."""
    older = root.get("definitions")
    if not isinstance(older, dict):
        return root
    rest = {keyword: value for keyword, value in root.items() if keyword != "definitions"}
    return rest | {"$defs": older | mapping(rest.get("$defs"))}


def _node(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    out = {keyword: inside(keyword, value, _node) for keyword, value in node.items()}
    if isinstance(out.get("$ref"), str):
        return _reference(out)
    if isinstance(out.get("items"), list):
        out["items"] = {"anyOf": [_node(item) for item in out["items"]]} if out["items"] else {}
    unions = [keyword for keyword in UNIONS if isinstance(out.get(keyword), list)]
    if unions and "type" in out:
        kind = out.pop("type")
        out |= {keyword: [_typed(branch, kind) for branch in out[keyword]] for keyword in unions}
    return out


def _reference(node: dict[str, Any]) -> dict[str, Any]:
    """Nothing may stand beside a reference."""
    alone = {"$ref": node["$ref"].replace(OLD, NEW, 1) if node["$ref"].startswith(OLD) else node["$ref"]}
    rest = {keyword: node[keyword] for keyword in BESIDE if keyword in node}
    return rest | {"anyOf": [alone]} if rest else alone


def _typed(branch: Any, kind: Any) -> Any:
    """The type of a union is its branches'."""
    return branch if not isinstance(branch, dict) or TYPED & branch.keys() else {"type": kind} | branch
