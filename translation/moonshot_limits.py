"""How large a tool's schema may be for Kimi, whose validator refuses the whole request for one that is larger.

`schema depth exceeds maximum limit of 10`, `schema exceeds maximum allowed size`, `enum array cannot have more than 500
items`, `property name 'required' is reserved for JSON Schema keywords`: https://github.com/MoonshotAI/walle, `conf.go`.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from translation.moonshot_types import split_by_type
from translation.schema_shape import inside, mapping, sequence, strings

Node = dict[str, Any]
DEEPEST, LARGEST, MOST_PROPERTIES = 10, 15_000, 1_000
MOST_VALUES, MANY, LONGEST = 500, 250, 7_500  # of an enumeration; characters of one with many
MOST_BRANCHES = 100
RESERVED = frozenset(("$defs", "$ref", "anyOf", "required", "additionalProperties"))  # no property may be called so
SAID = ("description", "title", "default", "examples")  # what the tool's description says as well, then
OF_OBJECTS = ("properties", "required", "additionalProperties")
UNIONS = ("anyOf", "oneOf")
EVERYTHING: Node = {"type": "object", "properties": {}}
DEFINITION = "#/$defs/"
ESCAPED = re.compile(rb"[<>&]")  # of which Go, that counts, writes six characters


def limited(schema: bytes) -> bytes:
    """The same where it is small enough; else what of it is, without a word that only describes."""
    root = msgspec.json.decode(schema)
    return schema if _fits(root) else msgspec.json.encode(_cut(root))


def _cut(root: Node) -> Node:
    """All of its shape, or as many levels as there is room for: from the first on, so that a huge one costs little."""
    bare: Node = _bare(root)
    if _fits(bare):
        return bare
    kept = EVERYTHING
    for levels in range(1, DEEPEST + 1):
        shallow = _shallow(bare, levels, mapping(root.get("$defs")))
        if not _fits(shallow):
            break
        kept = shallow
    return kept


def _bare(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    node = {keyword: value for keyword, value in given.items() if keyword not in SAID and _is_short(keyword, value)}
    if RESERVED & mapping(node.get("properties")).keys():
        node["properties"] = {name: value for name, value in node["properties"].items() if name not in RESERVED}
        node["required"] = [name for name in strings(node.get("required")) if name not in RESERVED]
        node.pop("additionalProperties", None)
    kept = {keyword: inside(keyword, value, _bare) for keyword, value in node.items()}
    # What its values were an exception for; apart by types it would repeat what is below it, at each level again.
    return kept if split_by_type(kept) is kept else {"type": kept["type"]}


def _is_short(keyword: str, value: object) -> bool:
    if keyword == "enum":
        length = sum([len(str(item).encode()) for item in sequence(value)])
        return len(sequence(value)) <= (MOST_VALUES if length <= LONGEST else MANY)
    return keyword not in UNIONS or len(sequence(value)) <= MOST_BRANCHES


def _shallow(given: Any, levels: int, definitions: Node) -> Any:
    """With so many levels of properties, and the type alone of what it refers to."""
    if not isinstance(given, dict):
        return given
    if "$ref" in given:
        kind = mapping(definitions.get(str(given["$ref"]).removeprefix(DEFINITION))).get("type")
        return {"type": kind} if kind else {}
    left = levels - ("properties" in given)
    node = {keyword: value for keyword, value in given.items() if keyword != "$defs"}
    if left < 0:
        node = {keyword: value for keyword, value in node.items() if keyword not in OF_OBJECTS}
    return {
        keyword: inside(keyword, value, lambda inner: _shallow(inner, left, definitions))
        for keyword, value in node.items()
    }


# ---------------------------------------------------------------- measuring


def _fits(root: Node) -> bool:
    told = msgspec.json.encode(root)
    if len(told) + 5 * len(ESCAPED.findall(told)) > LARGEST:
        return False
    nodes = [*_nodes(root)]
    properties = [name for node in nodes for name in mapping(node.get("properties"))]
    short = all(_is_short(keyword, value) for node in nodes for keyword, value in node.items())
    legal = RESERVED.isdisjoint(properties) and not _is_slashed(root.get("$defs"))
    return short and legal and len(properties) <= MOST_PROPERTIES and _depth_of(root) <= DEEPEST


def _is_slashed(definitions: object) -> bool:
    """`$defs property name 'a/b' cannot contain '/' character`, which is said of whatever stands below it, too."""
    inner: list[Any] = [definitions]
    while inner:
        each = inner.pop()
        if isinstance(each, dict) and any("/" in name for name in each):
            return True
        inner += each.values() if isinstance(each, dict) else sequence(each)
    return False


def _nodes(node: object) -> Iterator[Node]:
    found: list[Any] = [node]
    while found:
        if isinstance(each := found.pop(), dict):
            yield each
            for keyword, value in each.items():
                inside(keyword, value, found.append)


def _depth_of(root: Node) -> int:
    """In levels of properties. A definition that refers to itself is unrolled once, as the validator does it."""
    once: dict[str, int] = {}
    again: dict[str, int] = {}
    definitions = mapping(root.get("$defs"))

    def first(ref: str) -> int:
        return _known(ref, once, lambda: 0, first)

    def second(ref: str) -> int:
        return _known(ref, again, lambda: first(ref), second)

    def _known(ref: str, known: dict[str, int], start: Callable[[], int], refer: Callable[[str], int]) -> int:
        if ref not in known:
            known[ref] = start()
            known[ref] = _depth(root if ref == "#" else definitions.get(ref.removeprefix(DEFINITION)), refer)
        return known[ref]

    return max(_depth(node, second) for node in (root, *definitions.values()))


def _depth(node: object, refer: Callable[[str], int]) -> int:
    if not isinstance(node, dict):
        return 0
    found = [refer(ref) for ref in strings([node.get("$ref")])]
    found += [1 + _depth(inner, refer) for inner in mapping(node.get("properties")).values()]
    others = (node.get("items"), node.get("additionalProperties"), *sequence(node.get("anyOf")))
    return max([0, *found, *(_depth(inner, refer) for inner in others)])
