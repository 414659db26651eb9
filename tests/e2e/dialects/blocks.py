"""Content blocks of every kind, and what became of one on its way to an upstream: seen from the request that it got."""

import base64
import json
from typing import Any, NamedTuple

from tests.e2e.dialects.script import Json

NEEDLE = "canary of the block"
DATA = base64.b64encode(NEEDLE.encode()).decode()
URL = "https://example.com/canary-of-the-block"
FILE = "file_canary_of_the_block"
WORDS = frozenset({"text", "content", "output"})  # the keys under which dialects say plain text


class Kind(NamedTuple):
    name: str  # the column of the table
    block: Json
    in_result: bool = False


def _source(kind: str, media_type: str, suffix: str) -> Json:
    match kind:
        case "base64":
            return {"type": "base64", "media_type": media_type, "data": DATA}
        case "url":
            return {"type": "url", "url": f"{URL}.{suffix}"}
        case "file":
            return {"type": "file", "file_id": FILE}
        case "text":
            return {"type": "text", "media_type": "text/plain", "data": NEEDLE}
        case _:
            return {"type": "content", "content": [{"type": "text", "text": NEEDLE}]}


def _image(kind: str) -> Json:
    return {"type": "image", "source": _source(kind, "image/png", "png")}


def _document(kind: str) -> Json:
    return {"type": "document", "title": "T", "source": _source(kind, "application/pdf", "pdf")}


def _bound(block: Json) -> Json:
    content = [{"type": "text", "text": "See:"}, block]
    return {"type": "document", "title": "T", "source": {"type": "content", "content": content}}


SEARCH = {"type": "search_result", "title": "T", "source": "S", "content": [{"type": "text", "text": NEEDLE}]}
KINDS = (
    Kind("image", _image("base64")),
    Kind("image by URL", _image("url")),
    Kind("image by file id", _image("file")),
    Kind("PDF", _document("base64")),
    Kind("PDF by URL", _document("url")),
    Kind("document by file id", _document("file")),
    Kind("text document", _document("text")),
    Kind("content document", _document("content")),
    Kind("image in a content document", _bound(_image("base64"))),
    Kind("search result", SEARCH),
    Kind("citations", _document("text") | {"citations": {"enabled": True}}),
    Kind("image in a tool result", _image("base64"), in_result=True),
    Kind("PDF in a tool result", _document("base64"), in_result=True),
    Kind("text document in a tool result", _document("text"), in_result=True),
    Kind("search result in a tool result", SEARCH, in_result=True),
)
BY_NAME = {kind.name: kind for kind in KINDS}


def fate(body: Json, kind: Kind) -> str:
    """native, text, lifted (out of the result that it was in) or left out."""
    found = list(_places(body, ()))
    if not found:
        return "left out"
    place = found[0]
    inside = any(_is_result(node) for node in place)
    if kind.block in place or (any(_is_native(node) for node in place) and inside == kind.in_result):
        return "native"
    if kind.in_result and not inside:
        return "lifted"
    return "text"


def _places(node: Any, above: tuple[Any, ...]) -> Any:
    """For each string that holds the block's content, what it stands in."""
    if isinstance(node, str):
        if any(sign in node for sign in (NEEDLE, DATA, URL, FILE)):
            yield above
    elif isinstance(node, dict):
        for key, value in node.items():
            named = {"a value of": key} if isinstance(value, str) else value
            yield from _places(value, (*above, node, named))
    elif isinstance(node, list):
        for value in node:
            yield from _places(value, (*above, value))


def _is_result(node: Any) -> bool:
    """In each dialect's words."""
    return isinstance(node, dict) and (
        node.get("role") == "tool"
        or node.get("type") in ("function_call_output", "tool_result")
        or "functionResponse" in node
    )


def _is_native(node: Any) -> bool:
    return isinstance(node, dict) and "a value of" in node and node["a value of"] not in WORDS


def table(cells: dict[str, dict[str, str]]) -> str:
    names = [kind.name for kind in KINDS]
    lines = [f"| provider | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    lines += [f"| `{name}` | {' | '.join(row[column] for column in names)} |" for name, row in cells.items()]
    return "\n".join(lines)


def documented(page: str) -> dict[str, dict[str, str]]:
    """The table of docs/blocks.md."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if line[:1] == "|"]
    names = rows[0][1:]
    return {row[0].strip("`"): dict(zip(names, row[1:], strict=True)) for row in rows[2:]}


def spoken(body: bytes) -> Json:
    found: Json = json.loads(body)
    return found
