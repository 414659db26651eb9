"""JSON Schema, lowered to the subset of OpenAPI 3.0 that Gemini takes: an allow-list, so no unknown keyword can pass.

What the subset has no word for goes into the description, where the model still reads it, and each such edit is noted.
Time and output are linear in the schema: a `$ref` is paid for from a budget before it is inlined, never inside itself.
"""

import sys
from functools import lru_cache
from typing import TypeAlias

import msgspec
from msgspec import Struct

from translation.schema_patterns import is_portable
from translation.schema_shape import (
    NONE,
    Flattener,
    Node,
    Place,
    Seen,
    branches,
    either,
    is_null,
    poured,
    strings,
    types,
    values,
)
from translation.schema_table import FORMATS, HANDLED, HINTS, KEPT, KINDS, LIMITS, OPEN, TOLD, TYPES
from translation.unreadable import UNREADABLE

MAX_DEPTH = 32
MAX_NOTES = 20
MAX_TOLD = 200  # characters of one keyword's value in a description
CACHED = 32 * 1024  # schemas up to this size are remembered: a client sends the same ones with each request

Lower: TypeAlias = dict[str, object]


class Lowered(Struct, frozen=True):
    schema: bytes
    notes: tuple[str, ...] = ()  # what was lost, as `path: what`
    empty: bool = False  # an object without properties


def lower(schema: bytes, *, parameters: bool = True) -> Lowered:
    """`parameters`: the root has to be an object, as a function's parameters are."""
    if len(schema) > CACHED:
        return _lower(schema, parameters=parameters)
    return _remembered(schema, parameters=parameters)


def _lower(schema: bytes, *, parameters: bool) -> Lowered:
    try:
        root = msgspec.json.decode(schema or b"{}")
    except UNREADABLE:
        return Lowered(b'{"type":"OBJECT","properties":{}}', ("the schema cannot be read as JSON",), empty=True)
    lowering = _Lowering(root, len(schema))
    out = lowering.parameters(root) if parameters else lowering.node(root, NONE, None, 0)
    return Lowered(msgspec.json.encode(out), tuple(lowering.notes), empty=not out.get("properties"))


_remembered = lru_cache(maxsize=1024)(_lower)


class _Lowering:
    def __init__(self, root: object, size: int) -> None:
        self.notes: dict[str, None] = {}
        self._flattener = Flattener(root, size, self._note)

    def parameters(self, root: object) -> Lower:
        flat, seen = self._flattener.flat(root, NONE, None)
        names, _ = types(flat)
        if names and "object" not in names:
            self._note(None, "the root is not an object, as parameters have to be")
            flat = {}
        return self._object(flat, seen, None, 0)

    def node(self, raw: object, seen: Seen, place: Place, depth: int) -> Lower:
        flat, more = self._flattener.flat(raw, seen, place)
        return self._flat(flat, seen | more if more else seen, place, depth)

    def _flat(self, flat: Node, seen: Seen, place: Place, depth: int) -> Lower:
        if depth > MAX_DEPTH:
            self._note(place, "nested too deeply, left open")
            return _any()
        names, nullable = self._types(flat, place)
        if values(flat):
            out = self._enum(flat, names, place)
            nullable = nullable or None in values(flat)
        elif branches(flat) and names != ["object"]:
            out, null = self._union(flat, seen, place, depth)
            nullable = nullable or null
        elif is_null(flat):
            out = _described({"type": "STRING"}, self._description(flat, place, "always null"))
        elif names:
            out = _alternatives([self._typed(flat, name, seen, place, depth) for name in names])
        else:
            out = _any(self._description(flat, place))
        if nullable:
            _head(out)["nullable"] = True
        return out

    def _types(self, flat: Node, place: Place) -> tuple[list[str], bool]:
        names, nullable = types(flat)
        known = [name for name in names if name in TYPES]
        if known != names:
            self._note(place, "an unknown type was ignored")
        if not known and not is_null(flat):
            known = list(dict.fromkeys(hint for keyword, hint in HINTS.items() if keyword in flat))[:1]
        return known, nullable

    # ------------------------------------------------------------ one kind of value each

    def _typed(self, flat: Node, name: str, seen: Seen, place: Place, depth: int) -> Lower:
        if name == "object":
            return self._object(flat, seen, place, depth)
        out = self._start(flat, TYPES[name], place)
        if name == "array":
            items, positions = flat.get("items"), flat.get("prefixItems")
            if isinstance(items, list):
                items, positions = None, items
            if isinstance(positions, list) and positions:
                self._note(place, "the positions of a tuple are lost")
                items = {"anyOf": [*positions, items] if isinstance(items, dict) else positions}
            out["items"] = self.node(items, seen, (place, "[]"), depth + 1)
        return out

    def _object(self, flat: Node, seen: Seen, place: Place, depth: int) -> Lower:
        """Alternatives beside an object's own properties are poured into it: the subset cannot say both."""
        alternatives = [self._flattener.flat(branch, seen, place) for branch in branches(flat)]
        if alternatives:
            self._note(place, "alternatives were merged into one object")
            seen = seen.union(*(more for _, more in alternatives))
        nodes = [node for node, _ in alternatives]
        properties, required = poured(flat, nodes)
        out = self._start(flat, "OBJECT", place, either(nodes))
        out["properties"] = {
            name: self.node(value, seen, (place, name), depth + 1) for name, value in properties.items()
        }
        if required:
            out["required"] = required
        return out

    def _enum(self, flat: Node, names: list[str], place: Place) -> Lower:
        allowed = [value for value in values(flat) if value is not None]
        if allowed and all(isinstance(value, str) and value for value in allowed) and names in ([], ["string"]):
            return _described({"type": "STRING", "enum": list(dict.fromkeys(allowed))}, self._description(flat, place))
        if not allowed:
            return _described({"type": "STRING"}, self._description(flat, place, "always null"))
        self._note(place, "an enum of more than strings went into the description")
        text = self._description(flat, place, f"one of: {_short(allowed)}")
        kinds = [TYPES[name] for name in names] or list(dict.fromkeys(KINDS.get(type(value), "") for value in allowed))
        simple = all(kind in KINDS.values() for kind in kinds)
        return _alternatives([{"type": kind} for kind in kinds], text) if simple else _any(text)

    def _union(self, flat: Node, seen: Seen, place: Place, depth: int) -> tuple[Lower, bool]:
        out: list[Lower] = []
        null = False
        for branch in branches(flat):
            typed = {"allOf": [branch, {"type": flat["type"]}]} if "type" in flat else branch
            node, more = self._flattener.flat(typed, seen, place)
            if is_null(node):
                null = True
                continue
            lowered = self._flat(node, seen | more if more else seen, place, depth + 1)
            nested = lowered.get("anyOf")
            out += nested if isinstance(nested, list) else [lowered]
        return _alternatives(out, self._description(flat, place)), null

    # ------------------------------------------------------------ descriptions and notes

    def _start(self, flat: Node, kind: str, place: Place, more: str = "") -> Lower:
        """Type, title, description, and the limits that this type keeps."""
        kept = {name: flat[name] for name, wanted in KEPT[kind].items() if _fits(flat.get(name), wanted)}
        if flat.get("format") in FORMATS.get(kind, ()):
            kept["format"] = flat["format"]
        out: Lower = {"type": kind}
        if isinstance(flat.get("title"), str):
            out["title"] = flat["title"]
        _described(out, self._description(flat, place, more, kind=kind, kept=kept))
        return out | kept

    def _description(
        self, flat: Node, place: Place, more: str = "", *, kind: str = "", kept: Node | None = None
    ) -> str:
        told = [more] if more else []
        for keyword, value in flat.items():
            if keyword in HANDLED or (kept and keyword in kept) or (keyword in OPEN and isinstance(value, bool)):
                continue
            if keyword in LIMITS and keyword not in KEPT.get(kind, ()):
                continue
            if keyword in TOLD:
                told.append(f"{keyword}: {_short(value)}")
            self._note(place, f"{keyword[:40]} " + ("went into the description" if keyword in TOLD else "was dropped"))
        description = flat.get("description")
        text = description if isinstance(description, str) else ""
        return f"{text} ({'; '.join(told)})".lstrip() if told else text

    def _note(self, place: Place, what: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes[f"{_path(place)}: {what}"] = None
        else:
            self.notes["and more"] = None


def _fits(value: object, wanted: type) -> bool:
    if isinstance(value, bool):
        return False
    if wanted is float:
        return isinstance(value, int | float) and abs(value) <= sys.float_info.max
    if isinstance(value, str):
        return wanted is str and "(?" not in value and is_portable(value)
    return isinstance(value, wanted)


def _any(text: str = "") -> Lower:
    """The subset requires a type, so any value is one of these."""
    kinds: list[Lower] = [
        {"type": "STRING"},
        {"type": "NUMBER"},
        {"type": "BOOLEAN"},
        {"type": "OBJECT", "properties": {}},
    ]
    _described(kinds[0], text)
    return {"anyOf": kinds}


def _alternatives(nodes: list[Lower], text: str = "") -> Lower:
    """One node for several. Where `anyOf` stands, nothing may stand beside it: the rest goes to its first branch."""
    if not nodes:
        return _described({"type": "STRING"}, text)
    if len(nodes) > 1 and all(set(node) == {"type", "enum"} for node in nodes):
        merged = dict.fromkeys(value for node in nodes for value in strings(node["enum"]))
        return _described({"type": "STRING", "enum": list(merged)}, text)
    out: Lower = nodes[0] if len(nodes) == 1 else {"anyOf": nodes}
    head = _head(out)
    _described(head, " ".join(part for part in (text, str(head.get("description", ""))) if part))
    return out


def _head(node: Lower) -> Lower:
    nested = node.get("anyOf")
    return nested[0] if isinstance(nested, list) else node


def _described(node: Lower, text: str) -> Lower:
    if text:
        node["description"] = text
    return node


def _short(value: object) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= MAX_TOLD else text[:MAX_TOLD] + "…"


def _path(place: Place) -> str:
    names: list[str] = []
    while place is not None and len(names) < 8:
        place, name = place
        names.append(name[:40])
    return ".".join(reversed(names)) or "schema"
