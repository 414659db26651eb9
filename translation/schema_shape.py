"""Reading a JSON Schema as it may come: `$ref` and `allOf` folded into the node, odd values treated as absent."""

from collections import deque
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias
from urllib.parse import unquote

import msgspec

Node: TypeAlias = dict[str, object]
Seen: TypeAlias = frozenset[int]  # the targets of `$ref` that are being inlined around a node
Place: TypeAlias = "tuple[Place, str] | None"  # where a node is: its parent's place and its name

MAPS = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
LISTS = frozenset(("anyOf", "oneOf", "allOf", "prefixItems"))
NODES = frozenset(
    ("items", "additionalProperties", "contains", "propertyNames", "not", "if", "then", "else", "unevaluatedItems")
)
FOLDED = ("$ref", "allOf")
DEFINITIONS = ("$defs", "definitions")
MAX_MEASURED = 200  # levels; what is nested deeper is never inlined
MAX_AROUND = 500  # targets around a node; more of them is nobody's tool
TOO_LARGE = 1 << 60
NONE: Seen = frozenset()


class Flattener:
    """Folds `$ref` and `allOf`. Inlining is paid from a budget, so hostile references cannot blow a schema up."""

    def __init__(self, root: object, size: int, note: Callable[[Place, str], None]) -> None:
        self._root = root
        self._note = note
        self._budget = 64 * 1024 + size
        self._sizes: dict[int, int] = {}

    def flat(self, raw: object, seen: Seen, place: Place) -> tuple[Node, Seen]:
        """The node, and the targets that were inlined for it: they may not be inlined again inside it."""
        if not isinstance(raw, dict):
            if raw is False:
                self._note(place, "a schema that allows nothing became one that allows anything")
            return {}, NONE
        if not any(keyword in raw for keyword in FOLDED):
            return raw, NONE
        out: Node = {}
        inlined: set[int] = set()
        queue: deque[object] = deque([raw])
        while queue:
            part = queue.popleft()
            if not isinstance(part, dict):
                continue
            queue.extendleft(reversed(sequence(part.get("allOf"))))
            if "$ref" in part:
                queue.appendleft(self._inline(part["$ref"], seen, inlined, place))
            self._merge(out, part, place)
        return out, frozenset(inlined)

    def _inline(self, ref: object, seen: Seen, inlined: set[int], place: Place) -> Node:
        target = self.resolve(ref)
        if not isinstance(target, dict):
            self._note(place, f"$ref {str(ref)[:80]} leads nowhere")
            return {}
        if id(target) in inlined:
            return {}
        size = self._size(target)
        if id(target) in seen or size > self._budget or len(seen) > MAX_AROUND:
            why = "leads back to itself" if id(target) in seen else "is too large to inline"
            self._note(place, f"$ref {str(ref)[:80]} {why}, left open")
            return sketch(target)
        self._budget -= size
        inlined.add(id(target))
        return target

    def resolve(self, ref: object) -> object:
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        anchor, *steps = [step.replace("~1", "/").replace("~0", "~") for step in unquote(ref[1:]).split("/")]
        if anchor:
            return self._named.get(anchor)
        target = self._root
        for name in steps:
            if isinstance(target, dict):
                target = target.get(name)
            elif isinstance(target, list) and name.isdecimal() and len(name) < 6:
                target = target[int(name)] if int(name) < len(target) else None
            else:
                target = None
        if target is None and len(steps) == 2 and steps[0] in DEFINITIONS:
            return self._named.get(steps[1])
        return target

    @cached_property
    def _named(self) -> Node:
        """Anchors, and definitions that came along with their references when a schema was put below another."""
        found: Node = {}
        queue: deque[object] = deque([self._root])
        while queue:
            part = queue.popleft()
            if isinstance(part, dict):
                named = [each for keyword in DEFINITIONS for each in mapping(part.get(keyword)).items()]
                for name, schema in (*named, (part.get("$anchor"), part)):
                    if isinstance(name, str):
                        found.setdefault(name, schema)
            queue.extend(part.values() if isinstance(part, dict) else sequence(part))
        return found

    def _size(self, target: Node) -> int:
        if not self._sizes:
            self._measure(self._root, 0)
        return self._sizes.get(id(target), TOO_LARGE)

    def _measure(self, value: object, depth: int) -> int:
        if isinstance(value, str):
            return len(value) + 2
        if not isinstance(value, dict | list):
            return 8
        if depth > MAX_MEASURED:
            return TOO_LARGE
        items = value if isinstance(value, list) else value.values()
        size = 2 + sum(self._measure(item, depth + 1) for item in items)
        if isinstance(value, dict):
            size += sum(len(name) + 4 for name in value)
            self._sizes[id(value)] = size
        return size

    def _merge(self, out: Node, part: Node, place: Place) -> None:
        """The nearer schema wins, but properties and required names add up."""
        for keyword, value in part.items():
            if keyword in FOLDED:
                continue
            if keyword == "properties":
                known = mapping(out.setdefault(keyword, {}))  # made here, so it may be changed
                for name, schema in mapping(value).items():
                    known[name] = {"allOf": [known[name], schema]} if name in known else schema
            elif keyword == "required":
                sequence(out.setdefault(keyword, [])).extend(sequence(value))
            elif keyword not in out:
                out[keyword] = value
            elif keyword not in ("description", "title", "$defs", "definitions") and out[keyword] != value:
                self._note(place, f"of two values for {keyword[:40]} the nearer was kept")


def sketch(target: Node) -> Node:
    """What can be said of a schema without what is inside it."""
    kind = target.get("type", "object" if "properties" in target else None)
    return {"type": kind} if kind else {}


def types(flat: Node) -> tuple[list[str], bool]:
    """The types that a node names, in order, and whether null is one of them."""
    given = flat.get("type")
    names = [name.lower() for name in ([given] if isinstance(given, str) else strings(given))]
    nullable = "null" in names or flat.get("nullable") is True
    return [name for name in dict.fromkeys(names) if name != "null"], nullable


def values(flat: Node) -> list[object]:
    """What `enum` or `const` allows; empty when there is neither."""
    if "const" in flat:
        return [flat["const"]]
    return sequence(flat.get("enum"))


def branches(flat: Node) -> list[object]:
    return sequence(flat.get("anyOf")) or sequence(flat.get("oneOf"))


def poured(flat: Node, alternatives: list[Node]) -> tuple[Node, list[str]]:
    """The properties and required names of an object together with its alternatives'.

    What the object itself does not name may be as any of them says: a discriminator has another value in each.
    """
    properties: Node = dict(mapping(flat.get("properties")))
    found: dict[str, dict[bytes, object]] = {}
    for alternative in alternatives:
        for name, schema in mapping(alternative.get("properties")).items():
            if name not in properties:
                found.setdefault(name, {})[msgspec.json.encode(schema)] = schema
    for name, schemas in found.items():
        several = list(schemas.values())
        properties[name] = several[0] if len(several) == 1 else {"anyOf": several}
    required = strings(flat.get("required"))
    if alternatives:
        required += sorted(set.intersection(*(set(strings(node.get("required"))) for node in alternatives)))
    return properties, [name for name in dict.fromkeys(required) if name in properties]


def either(alternatives: list[Node]) -> str:
    """What one object for all of them cannot say: that each requires other names."""
    sets = dict.fromkeys(", ".join(strings(node.get("required"))) for node in alternatives)
    return f"required: {' | '.join(sets)}" if len(sets) > 1 else ""


def is_null(flat: Node) -> bool:
    names, nullable = types(flat)
    return (nullable and "type" in flat and not names) or values(flat) == [None]


def inside(keyword: str, value: Any, each: Callable[[Any], Any]) -> Any:
    """A keyword's value with every schema in it as `each` makes it; what holds none stays as it is."""
    if keyword in MAPS and isinstance(value, dict):
        return {name: each(inner) for name, inner in value.items()}
    if keyword in LISTS and isinstance(value, list):
        return [each(inner) for inner in value]
    return each(value) if keyword in NODES else value


def mapping(value: object) -> Node:
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def strings(value: object) -> list[str]:
    return [item for item in sequence(value) if isinstance(item, str)]
