"""Typed arguments from a tool's JSON Schema, for models that write every value as text and for servers that guess.

Text goes to the type that the schema names: a string stays as it is, white space and all. JSON that already has a type
is changed only where the schema wants another one: a number for a string becomes the text of that number.
"""

import re
from collections.abc import Iterable

import msgspec

from translation.invocations import Parameter
from translation.schema_shape import mapping
from translation.unreadable import UNREADABLE

DEPTH = 32  # of nested values and references; below that, values stay as they came

ANY = frozenset({"null", "boolean", "integer", "number", "array", "object", "string"})
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0+")
LOOSE_INTEGER = re.compile(r"([+-]?)0*([0-9]+)")
BOOLEANS = {"true": b"true", "false": b"false"}
EMPTY = {"array": b"[]", "object": b"{}", "null": b"null"}

Json = dict[str, object]
_objects = msgspec.json.Decoder(dict[str, msgspec.Raw])
_arrays = msgspec.json.Decoder(list[msgspec.Raw])
_texts = msgspec.json.Decoder(str)


class ArgumentSchema:
    """One tool's `input_schema`."""

    def __init__(self, schema: bytes) -> None:
        decoded: object = msgspec.json.decode(schema) if schema else {}
        self._root: Json = decoded if isinstance(decoded, dict) else {}

    @property
    def names(self) -> frozenset[str]:
        """Of all parameters; none when others are welcome."""
        branches = self._branches(self._root)
        if any(branch.get("additionalProperties") for branch in branches):
            return frozenset()
        return frozenset(name for branch in branches for name in mapping(branch.get("properties")))

    def typed(self, parameters: Iterable[Parameter]) -> str:
        """The arguments of a call that came as text, as one JSON object. The last value of a name counts."""
        fields = {item.name: self._parameter(item, self._property(self._root, item.name), 0) for item in parameters}
        return _encode(fields).decode()

    def retyped(self, arguments: str) -> str:
        """The arguments of a call that came as JSON, with the types that the schema wants."""
        raw = arguments.encode()
        return self._json(raw, self._root | {"type": "object"}, 0).decode()

    # ------------------------------------------------------------ values

    def _parameter(self, item: Parameter, schema: Json, depth: int) -> bytes:
        if item.literal and "string" in self._types(schema):
            return msgspec.json.encode(self._member(item.text, schema))
        if not item.children:
            return self._text(item.text, schema, depth)
        schema = self._branch(schema, b"[" if _is_list(item) else b"{")
        types = self._types(schema)
        if "array" in types and ("object" not in types or _is_list(item)):
            items = [
                self._parameter(child, self._item(schema, index), depth + 1)
                for index, child in enumerate(item.children)
            ]
            return b"[" + b",".join(items) + b"]"
        return _encode(
            {
                child.name: self._parameter(child, self._property(schema, child.name), depth + 1)
                for child in item.children
            }
        )

    def _text(self, text: str, schema: Json, depth: int) -> bytes:
        types = self._types(schema)
        if types == {"string"}:
            return msgspec.json.encode(self._member(text, schema))
        exact = "string" in types  # then only what is unmistakably another type becomes one
        token = text if exact else text.strip()
        for candidate in (_scalar(token, types, exact=exact), self._container(token, types, schema, depth)):
            if candidate is not None:
                return candidate
        return msgspec.json.encode(text)

    def _container(self, token: str, types: frozenset[str] | set[str], schema: Json, depth: int) -> bytes | None:
        start = token.lstrip()[:1]
        if not start and "string" not in types:  # how M3 writes an empty one
            return next((empty for name, empty in EMPTY.items() if name in types), None)
        if (start == "{" and "object" in types) or (start == "[" and "array" in types):
            raw = token.strip().encode()
            if _is_json(raw):
                return self._json(raw, schema, depth + 1)
        return None

    def _json(self, raw: bytes, schema: Json, depth: int) -> bytes:
        """The value with the schema's types; the same bytes where nothing is to be changed."""
        if depth > DEPTH:
            return raw
        raw = raw.strip()
        types = self._types(schema)
        start = raw[:1]
        if start == b'"':
            return raw if "string" in types else self._text(_texts.decode(raw), schema, depth + 1)
        if start == b"{" and "object" in types:
            return self._object(raw, self._branch(schema, start), depth)
        if start == b"[" and "array" in types:
            return self._array(raw, self._branch(schema, start), depth)
        text = raw.decode()
        scalar = _scalar(text, types, exact=True)
        if scalar is not None:
            return scalar
        return msgspec.json.encode(text) if "string" in types else raw

    def _object(self, raw: bytes, schema: Json, depth: int) -> bytes:
        fields = {name: bytes(value) for name, value in _objects.decode(raw).items()}
        typed = {name: self._json(value, self._property(schema, name), depth + 1) for name, value in fields.items()}
        return raw if typed == fields else _encode(typed)

    def _array(self, raw: bytes, schema: Json, depth: int) -> bytes:
        items = [bytes(value) for value in _arrays.decode(raw)]
        typed = [self._json(value, self._item(schema, index), depth + 1) for index, value in enumerate(items)]
        return raw if typed == items else b"[" + b",".join(typed) + b"]"

    # ------------------------------------------------------------ schemas

    def _branches(self, schema: Json, depth: int = 0) -> list[Json]:
        """The schema and what it refers to or is composed of."""
        if depth > DEPTH:
            return []
        found = [schema]
        for keyword in ("anyOf", "oneOf", "allOf"):
            parts = schema.get(keyword)
            for part in parts if isinstance(parts, list) else ():
                found += self._branches(mapping(part), depth + 1)
        reference = schema.get("$ref")
        if isinstance(reference, str):
            found += self._branches(self._resolve(reference), depth + 1)
        return found

    def _resolve(self, reference: str) -> Json:
        place: object = self._root
        for step in reference.removeprefix("#").strip("/").split("/"):
            place = mapping(place).get(step.replace("~1", "/").replace("~0", "~")) if step else place
        return mapping(place)

    def _types(self, schema: Json) -> frozenset[str] | set[str]:
        types = {name for branch in self._branches(schema) for name in _own_types(branch)}
        return types or ANY

    def _branch(self, schema: Json, start: bytes) -> Json:
        """The part of the schema that describes objects or arrays."""
        keys = ("properties", "additionalProperties") if start == b"{" else ("items", "prefixItems")
        for branch in self._branches(schema):
            if any(key in branch for key in keys):
                return branch
        return schema

    def _property(self, schema: Json, name: str) -> Json:
        for branch in self._branches(schema):
            properties = mapping(branch.get("properties"))
            if name in properties:
                return mapping(properties[name])
        return mapping(self._branch(schema, b"{").get("additionalProperties"))

    def _item(self, schema: Json, index: int) -> Json:
        prefix = schema.get("prefixItems")
        if isinstance(prefix, list) and index < len(prefix):
            return mapping(prefix[index])
        return mapping(schema.get("items"))

    def _member(self, text: str, schema: Json) -> str:
        """A string of an enumeration, where only the layout around it differs."""
        members = [member for branch in self._branches(schema) for member in _listed(branch)]
        return text.strip() if text not in members and text.strip() in members else text


def _own_types(schema: Json) -> set[str]:
    named = schema.get("type")
    names = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    found = {name.lower() for name in names if isinstance(name, str)} or _implied(schema)
    return found | {"null"} if found and schema.get("nullable") is True else found  # OpenAPI's word


def _implied(schema: Json) -> set[str]:
    listed = _listed(schema)
    if listed:
        return {_type_of(member) for member in listed}
    if "properties" in schema:
        return {"object"}
    return {"array"} if "items" in schema or "prefixItems" in schema else set()


def _listed(schema: Json) -> list[object]:
    if "const" in schema:
        return [schema["const"]]
    members = schema.get("enum")
    return members if isinstance(members, list) else []


def _type_of(value: object) -> str:
    names = {str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}
    return names.get(type(value), "null")


def _scalar(token: str, types: frozenset[str] | set[str], *, exact: bool) -> bytes | None:
    """The token as one of the types that are not strings; `exact` takes only what JSON itself would write."""
    if "null" in types and (token if exact else token.lower()) == "null":
        return b"null"
    if "boolean" in types:
        found = BOOLEANS.get(token if exact else token.lower())
        if found is not None:
            return found
    if "number" in types and NUMBER.fullmatch(token):
        return token.encode()
    if "integer" in types:
        return _integer(token, exact=exact)
    return None


def _integer(token: str, *, exact: bool) -> bytes | None:
    whole = WHOLE.fullmatch(token)
    if whole is not None:
        return whole[1].encode()
    if INTEGER.fullmatch(token):
        return token.encode()
    loose = None if exact else LOOSE_INTEGER.fullmatch(token)
    return None if loose is None else (loose[1].replace("+", "") + loose[2]).encode()


def _is_list(item: Parameter) -> bool:
    return all(child.name == "item" for child in item.children)


def _is_json(raw: bytes) -> bool:
    try:
        msgspec.json.decode(raw)
    except UNREADABLE:
        return False
    return True


def _encode(fields: dict[str, bytes]) -> bytes:
    return msgspec.json.encode({name: msgspec.Raw(value) for name, value in fields.items()})
