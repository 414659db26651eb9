"""A lowered schema, said in JSON Schema again: for servers of Gemini's that refuse an object without properties."""

from functools import lru_cache
from typing import Any

import msgspec

Node = dict[str, Any]  # a schema that `schema.lower` made


@lru_cache(maxsize=1024)
def spelled(lowered: bytes) -> bytes:
    return msgspec.json.encode(_node(msgspec.json.decode(lowered)))


def _node(node: Node) -> Node:
    out = {name: value for name, value in node.items() if name not in ("nullable", "properties")}
    if "type" in node:
        out["type"] = node["type"].lower()
    if node.get("nullable"):
        out["type"] = [out["type"], "null"]
    if node.get("nullable") and "enum" in node:
        out["enum"] = [*node["enum"], None]
    if node.get("properties"):
        out["properties"] = {name: _node(inner) for name, inner in node["properties"].items()}
    if "items" in node:
        out["items"] = _node(node["items"])
    if "anyOf" in node:
        out["anyOf"] = [_node(inner) for inner in node["anyOf"]]
    return out
