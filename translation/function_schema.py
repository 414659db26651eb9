"""A tool's JSON Schema as OpenAI's family takes it: the bytes that the client wrote, unless they would be refused.

OpenAI wants a root of type `object` with `properties`, and one schema as `items` in every array, which neither JSON
Schema nor Anthropic ask for.
"""

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.memo import Memo
from translation.moonshot_limits import limited
from translation.moonshot_schema import LOST, flavored
from translation.schema_patterns import WORDED, with_portable_patterns
from translation.schema_shape import NONE, Flattener, branches, either, inside, poured, strings
from translation.unreadable import UNREADABLE


class Parameters(Struct, frozen=True):
    schema: Raw
    lost: tuple[str, ...] = ()  # what the turn records of it, with a place for the tool's name
    told: str = ""  # what is said of it in the tool's description


_SEEN: Memo[Parameters] = Memo(budget=8 * 1024 * 1024, largest=256 * 1024)
_FLAVORED: Memo[Parameters] = Memo(budget=8 * 1024 * 1024, largest=256 * 1024)
OBJECT = Raw(b'"object"')
NO_PROPERTIES = Raw(b"{}")
HEAD = {"type": OBJECT, "properties": NO_PROPERTIES}
EMPTY = Parameters(Raw(msgspec.json.encode(HEAD)))
# `schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level`; Kimi neither.
NEVER_AT_ROOT = frozenset(("oneOf", "anyOf", "allOf", "enum", "not", "$ref"))
COMBINED = frozenset(("oneOf", "anyOf", "allOf"))
LOST_AT_ROOT = frozenset(("oneOf", "anyOf", "enum", "not"))  # the others are folded without a loss
# `input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'`, of the root's only.
KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
ODD = "further properties: {}"
SCHEMA = "tools.{}.input_schema"
NAMES = f"{SCHEMA}: properties whose names Claude does not take went into the description"
MERGED = f"{SCHEMA}: the alternatives at its root were merged into one object"
PATTERNS = WORDED.format(SCHEMA)
LARGE = f"{SCHEMA}: larger than Kimi takes, so the description has it in full"
WHOLE = "The JSON Schema of its parameters in full: {}"


def function_schema(schema: bytes, *, moonshot: bool = False) -> Parameters:
    if moonshot:
        return _FLAVORED.get(schema, lambda: _flavored(_parameters(schema, moonshot=True)))
    return _SEEN.get(schema, lambda: _parameters(schema, moonshot=False))


def _parameters(schema: bytes, *, moonshot: bool) -> Parameters:
    plain = with_portable_patterns(schema)
    parameters = _object(with_items(plain, moonshot=moonshot))
    return parameters if plain is schema else replace(parameters, lost=(PATTERNS, *parameters.lost))


def object_root(schema: bytes) -> Parameters | None:
    """With a root that Anthropic takes, which has no other demands; None where it has one."""
    members = msgspec.json.decode(schema, type=dict[str, Raw])
    legal = members.get("type") == OBJECT and COMBINED.isdisjoint(members)
    rooted = Parameters(Raw(schema)) if legal else _object(schema)
    told = members if legal else msgspec.json.decode(rooted.schema, type=dict[str, Raw])
    if all(map(KEY.fullmatch, msgspec.json.decode(_properties(told), type=dict[str, Raw]))):
        return None if legal else rooted
    return _with_legal_names(rooted)


def _with_legal_names(parameters: Parameters) -> Parameters:
    root = msgspec.json.decode(parameters.schema)
    odd = {name: schema for name, schema in root["properties"].items() if not KEY.fullmatch(name)}
    words = ODD.format(msgspec.json.encode(odd).decode())
    root["properties"] = {name: schema for name, schema in root["properties"].items() if name not in odd}
    root["required"] = [name for name in strings(root.get("required")) if name not in odd]
    root["description"] = f"{root.get('description', '')} ({words})".lstrip()
    if root.get("additionalProperties") is False:
        del root["additionalProperties"]
    return Parameters(Raw(msgspec.json.encode(root)), (*parameters.lost, NAMES))


def _flavored(parameters: Parameters) -> Parameters:
    schema, dangles = flavored(bytes(parameters.schema))
    lost = (*parameters.lost, LOST) if dangles else parameters.lost
    try:
        told = limited(schema)
    except UNREADABLE:
        told = schema
    if told is schema:
        return Parameters(Raw(schema), lost)
    return Parameters(Raw(told), (*lost, LARGE), WHOLE.format(bytes(parameters.schema).decode()))


def _object(schema: bytes) -> Parameters:
    try:
        members = msgspec.json.decode(schema, type=dict[str, Raw])
        if NEVER_AT_ROOT & members.keys():
            return _merged(schema)
    except UNREADABLE:
        return EMPTY
    wanted = members | {"type": OBJECT, "properties": _properties(members)}
    wanted = {keyword: value for keyword, value in wanted.items() if bytes(value) != b"null"}
    return Parameters(Raw(schema) if wanted == members else Raw(msgspec.json.encode(HEAD | wanted)))


def _properties(members: dict[str, Raw]) -> Raw:
    """Some languages write an empty object as a list, or as null."""
    given = members.get("properties", NO_PROPERTIES)
    return given if bytes(given)[:1] == b"{" else NO_PROPERTIES


def _merged(schema: bytes) -> Parameters:
    """One object, with the properties of what its root refers to and of its alternatives."""
    root = msgspec.json.decode(schema)
    flattener = Flattener(root, len(schema), lambda place, what: None)
    flat, _ = flattener.flat(root, NONE, None)
    alternatives = [flattener.flat(branch, NONE, None)[0] for branch in branches(flat)]
    properties, required = poured(flat, alternatives)
    merged = {keyword: value for keyword, value in flat.items() if keyword not in NEVER_AT_ROOT}
    merged |= {"type": "object", "properties": properties, "required": required}
    if told := either(alternatives):
        merged["description"] = f"{flat.get('description', '')} ({told})".lstrip()
    lost = () if LOST_AT_ROOT.isdisjoint(flat) else (MERGED,)
    return Parameters(Raw(msgspec.json.encode(merged)), lost)


def with_items(schema: bytes, *, moonshot: bool = False) -> bytes:
    """The same object where each array says in one schema what it holds, and limits are in today's spelling."""
    if b'"array"' not in schema and b'"items"' not in schema and b'"exclusiveM' not in schema:
        return schema
    try:
        root = msgspec.json.decode(schema)
        filled = _filled(root if moonshot else _respelled(root))
        return schema if filled == root else msgspec.json.encode(filled)
    except UNREADABLE:  # nested too deeply, or a number that no computer holds
        return schema


def _filled(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    out = {keyword: inside(keyword, value, _filled) for keyword, value in node.items()}
    kind = node.get("type")
    missing = (kind == "array" or (isinstance(kind, list) and "array" in kind)) and "items" not in node
    if missing or isinstance(node.get("items"), bool):  # `array schema items is not an object`: Rust writes `true`
        out["items"] = {}
    return _bounded(out)


def _bounded(node: dict[str, Any]) -> dict[str, Any]:
    """`True is not of type 'number'`: draft 4 says in one keyword how large, in another that it is exclusive."""
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(node.get(exclusive), bool) and node.pop(exclusive) and limit in node:
            node[exclusive] = node.pop(limit)
    return node


def _respelled(node: Any) -> Any:
    """`[{'type': 'number'}] is not of type 'object', 'boolean'`: tuples in the spelling of 2020-12."""
    if not isinstance(node, dict):
        return node
    out = {keyword: inside(keyword, value, _respelled) for keyword, value in node.items()}
    if isinstance(positions := out.get("items"), list):
        more = out.pop("additionalItems", None)
        out |= {"prefixItems": list(map(_respelled, positions))} if positions else {}
        out["items"] = more if isinstance(more, dict) else {}
    return out
