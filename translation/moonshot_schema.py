"""A tool's JSON Schema as Kimi takes it: the bytes that they are, unless Moonshot's validator would refuse the request
(`tools.function.parameters is not a valid moonshot flavored json schema`).

https://github.com/MoonshotAI/walle, at the level that its README calls the server's.
"""

import re
from typing import Any

import msgspec

from translation.moonshot_types import ABOUT, split_by_type, with_legal_enum, with_legal_type
from translation.schema_shape import Flattener, inside, mapping, sequence, strings
from translation.unreadable import UNREADABLE

Node = dict[str, Any]
UNIONS = ("anyOf", "oneOf")
TYPED = frozenset(("type", "$ref", *UNIONS))
BESIDE = ("description", "default")  # what may stand beside a reference's union
MAY_BE_BOOLEAN = ("additionalProperties", "unevaluatedProperties", "unevaluatedItems")
NOTHING: Node = {"not": {}}
OLD, NEW = "#/definitions/", "#/$defs/"
# How much longer a schema may become, by its own length and in bytes: alternatives repeat what is said beside them, and
# those inside of them repeat it again. A few hundred bytes could become gigabytes.
GROWTH, SPARE = 4, 4_000
UNFIT = re.compile(r"[^A-Za-z0-9_]+")  # in the name of a definition
LOST = "tools.{}.input_schema: references that lead nowhere, or to too much, were left out"  # what the turn records


def flavored(schema: bytes) -> tuple[bytes, bool]:
    """And whether something of it is lost."""
    try:
        root = msgspec.json.decode(schema)
        flavoring = _Flavoring(_defined(root), len(schema))
        wanted = flavoring.root()
        return (schema if wanted == root else msgspec.json.encode(wanted)), flavoring.lost
    except UNREADABLE:  # nested too deeply, or a number that no computer holds
        return schema, False


def _defined(root: Node) -> Node:
    """What is referred to has its place in `$defs`."""
    older = root.get("definitions")
    if not isinstance(older, dict):
        return root
    rest = {keyword: value for keyword, value in root.items() if keyword != "definitions"}
    return rest | {"$defs": older | mapping(rest.get("$defs"))}


class _Flavoring:
    def __init__(self, root: Node, size: int) -> None:
        self.lost = False
        self._root = root
        self._flattener = Flattener(root, size, lambda place, what: None)
        self._moved: Node = {}  # definitions that stood elsewhere
        self._names: dict[str, str] = {}  # of those, by the reference
        self._room = GROWTH * size + SPARE

    def root(self) -> Node:
        out: Node = self._node(self._root)
        kept = {name: node for name, node in mapping(out.get("$defs")).items() if "/" not in name}
        return out | {"$defs": kept | self._moved} if "$defs" in out or self._moved else out

    def _node(self, given: Any) -> Any:
        if not isinstance(given, dict):
            return (NOTHING, {})[given] if isinstance(given, bool) else given
        if "$ref" in given:
            return self._reference(given)
        node = self._repeated(given, _spread(given))
        out = {keyword: self._inside(keyword, value) for keyword, value in node.items() if _is_fit(keyword, value)}
        if isinstance(out.get("items"), list):
            out["items"] = {"anyOf": [self._node(item) for item in out["items"]]} if out["items"] else {}
        whole = with_legal_enum(with_legal_type(_with_named(out)))
        return self._repeated(whole, split_by_type(whole))

    def _repeated(self, whole: Node, parts: Node) -> Node:
        """A node in as many parts as its alternatives, unless it would grow too long: then it stays as it is."""
        if parts is whole:
            return whole
        times = max(len(sequence(parts.get(union))) for union in UNIONS)
        return parts if self._has_room(whole, times - 1) else whole

    def _has_room(self, node: Node, times: int) -> bool:
        """Whether it may stand there so many times more. Once one may not, no other is measured."""
        if self._room:
            self._room = max(0, self._room - times * len(msgspec.json.encode(node)))
        return self._room > 0

    def _inside(self, keyword: str, value: Any) -> Any:
        keeps = keyword in MAY_BE_BOOLEAN and isinstance(value, bool)
        return value if keeps else inside(keyword, value, self._node)

    def _reference(self, node: Node) -> Node:
        """Nothing may stand beside a reference, and it has to lead into `$defs`."""
        place = self._place(node["$ref"])
        if not place:
            self.lost = True
            rest = {keyword: value for keyword, value in node.items() if keyword != "$ref"}
            return self._node(rest)  # type: ignore[no-any-return]  # a mapping stays one
        rest = {keyword: node[keyword] for keyword in BESIDE if keyword in node}
        return rest | {"anyOf": [{"$ref": place}]} if rest else {"$ref": place}

    def _place(self, ref: object) -> str:
        """Where among the definitions that is which it refers to; "" where it leads nowhere."""
        if not isinstance(ref, str) or ref == "#":
            return "#" if ref == "#" else ""
        known = mapping(self._root.get("$defs"))
        name = ref.removeprefix(OLD if ref.startswith(OLD) else NEW)
        if name != ref and name in known:
            return NEW + name
        target = self._flattener.resolve(ref)
        if not isinstance(target, dict):
            return ""
        if ref not in self._names:
            if not self._has_room(target, 1):
                return ""
            name = UNFIT.sub("_", ref).strip("_")
            while name in known or name in self._moved:
                name += "_"
            self._names[ref], self._moved[name] = name, {}  # it may refer to itself
            self._moved[name] = self._node(target)
        return NEW + self._names[ref]


def _is_fit(keyword: str, value: object) -> bool:
    match keyword:
        case "description":
            return isinstance(value, str)
        case "properties":
            return isinstance(value, dict)
        case "required":
            return isinstance(value, list)  # before draft 4 it stood in the property itself
        case "anyOf" | "oneOf":
            return bool(sequence(value))
        case _:
            return True


def _with_named(node: Node) -> Node:
    """`required property 'x' is not defined in properties`: it may be anything."""
    known = mapping(node.get("properties"))
    named: Node = {name: {} for name in strings(node.get("required")) if name not in known}
    return node | {"properties": known | named} if named else node


def _spread(node: Node) -> Node:
    """What a union says is its branches' to say: its type, and what they say, too."""
    for union in UNIONS:
        branches = [{} if branch is True else branch for branch in sequence(node.get(union))]
        said = {keyword: value for keyword, value in node.items() if keyword not in ABOUT and keyword not in UNIONS}
        spoken = {"type", "properties"}.union(*(branch for branch in branches if isinstance(branch, dict)))
        if branches and spoken & said.keys():
            rest = {keyword: value for keyword, value in node.items() if keyword not in said}
            node = rest | {union: [_joined(branch, said) for branch in branches]}
    return node


def _joined(branch: Any, said: Node) -> Any:
    if not isinstance(branch, dict) or {"$ref", *UNIONS} & branch.keys():
        return branch
    out = said | branch
    if "properties" in said and isinstance(branch.get("properties"), dict):
        out["properties"] = mapping(said["properties"]) | branch["properties"]
    if "required" in said and "required" in branch:
        out["required"] = list(dict.fromkeys((*strings(said["required"]), *strings(branch["required"]))))
    return out
