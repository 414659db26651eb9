"""How deep a lowered schema is nested, and less of it.

`A FunctionDeclaration in the request exceeds the maximum allowed nesting depth`, with Notion's MCP server and GitLab's.
Gemini does not say how deep that is; with 4 levels of objects and lists it was seen to take what it had refused.
"""

from typing import Any

import msgspec

Node = dict[str, Any]
NESTING = ("OBJECT", "ARRAY")
USUAL = 4


class _Function(msgspec.Struct):
    parameters: Node | None = None
    json: Node | None = msgspec.field(default=None, name="parametersJsonSchema")


class _Tool(msgspec.Struct):
    functions: list[_Function] = msgspec.field(default=[], name="functionDeclarations")


class _Config(msgspec.Struct, frozen=True):
    schema: Node | None = msgspec.field(default=None, name="responseSchema")
    json: Node | None = msgspec.field(default=None, name="responseJsonSchema")


class _Body(msgspec.Struct):
    tools: list[_Tool] = []
    config: _Config = msgspec.field(default=_Config(), name="generationConfig")


def fewer(body: bytes) -> int:
    """As many levels as to try after what this request had was refused; 0 where it has none to spare."""
    sent = msgspec.json.decode(body, type=_Body)
    schemas = [each for tool in sent.tools for one in tool.functions for each in (one.parameters, one.json)]
    deepest = max(map(_levels, (*schemas, sent.config.schema, sent.config.json)))
    return min(deepest - 1, USUAL) if deepest > 1 else 0


def _levels(node: Node | None) -> int:
    if not node:
        return 0
    inner = [*node.get("properties", {}).values(), node.get("items"), *node.get("anyOf", ())]
    return _nests(node) + max(map(_levels, inner), default=0)


def shallow(schema: bytes, levels: int) -> bytes:
    """The same where it has no more; else without the properties, and the alternatives, that nest deeper."""
    root = msgspec.json.decode(schema)
    if _levels(root) <= levels:
        return schema
    cut = _cut(root, levels)
    return schema if cut is None else msgspec.json.encode(cut)


def _cut(node: Node, levels: int) -> Node | None:
    """None where nothing of it is left."""
    left = levels - _nests(node)
    if left < 0:
        return None
    out = dict(node)
    if "properties" in node:
        inner = {name: _cut(each, left) for name, each in node["properties"].items()}
        out["properties"] = {name: each for name, each in inner.items() if each is not None}
        out["required"] = [name for name in node.get("required", ()) if name in out["properties"]]
    if "items" in node:
        out["items"] = _cut(node["items"], left)
    if "anyOf" in node:
        out["anyOf"] = [each for branch in node["anyOf"] if (each := _cut(branch, left)) is not None]
    return None if out.get("items", node) is None or out.get("anyOf") == [] else out


def _nests(node: Node) -> int:
    kind = node.get("type", "")
    return sum(name.upper() in NESTING for name in ([kind] if isinstance(kind, str) else kind))
