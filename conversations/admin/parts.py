"""Stored content as the parts that a page shows. The only reader of stored blocks in the admin.

Below full storage a block is its kind and its size; without the permission to read content, so is every block.
"""

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from conversations import wording
from conversations.admin.content import Shown, pretty, shown
from translation.unreadable import UNREADABLE

CALLS = frozenset({"tool_use", "mcp_tool_use"})  # the client's, and those that the bridge answered itself
RESULTS = frozenset({"tool_result", "mcp_tool_result"})
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
IMAGE_LIMIT = 2_000_000  # characters of base64 that are shown as a picture

Json = dict[str, Any]


class Part(Struct, frozen=True):
    """A block of a message."""

    kind: str
    size: int
    text: Shown | None = None  # None: not stored, or not for this reader
    call: str = ""  # the tool call that it is, or answers
    name: str = ""
    is_error: bool = False
    picture: str = ""  # data URL
    who: str = "user"  # that a turn says it is from

    @property
    def words(self) -> str:
        return wording.size(self.size)


def parts(content: bytes, *, readable: bool) -> tuple[Part, ...]:
    """The blocks of a stored message; a result's own blocks follow it."""
    return tuple(part for block in _blocks(content) for part in _parts(block, readable=readable))


def _blocks(content: bytes) -> list[Json]:
    try:
        blocks = msgspec.json.decode(content)
    except UNREADABLE:
        return [{"type": "unreadable", "size": len(content)}]
    return [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []


def _parts(block: Json, *, readable: bool) -> list[Part]:
    kind = str(block.get("type", "other"))
    size = block.get("size") if set(block) == {"type", "size"} else None
    if isinstance(size, int):
        return [Part(kind, size)]
    if kind in RESULTS:
        return _result(block, readable=readable)
    text = _text(kind, block)
    part = Part(
        kind,
        len(text.encode("utf-8", "surrogatepass")),
        shown(text) if readable and kind != "image" else None,
        call=str(block.get("id", "")) if kind in CALLS else "",
        name=str(block.get("name", "")),
        picture=_picture(block) if readable and kind == "image" else "",
    )
    return [part]


def _text(kind: str, block: Json) -> str:
    match kind:
        case "text":
            return str(block.get("text", ""))
        case "thinking":
            return str(block.get("thinking", ""))
        case "redacted_thinking":
            return str(block.get("data", ""))
        case "tool_use":
            return pretty(msgspec.json.encode(block.get("input", {}))).decode()
        case "image":
            return str(_source(block).get("data") or _source(block).get("url", ""))
        case _:
            return pretty(msgspec.json.encode(block)).decode()


def _result(block: Json, *, readable: bool) -> list[Part]:
    call, is_error = str(block.get("tool_use_id", "")), bool(block.get("is_error"))
    inner = block.get("content", [])
    if isinstance(inner, str):
        inner = [{"type": "text", "text": inner}]
    found = [part for item in inner if isinstance(item, dict) for part in _parts(item, readable=readable)]
    if not found:
        return [Part("tool_result", 0, shown("") if readable else None, call, is_error=is_error)]
    return [replace(part, kind=f"tool_result {part.kind}", call=call, is_error=is_error) for part in found]


def _source(block: Json) -> Json:
    source = block.get("source", {})
    return source if isinstance(source, dict) else {}


def _picture(block: Json) -> str:
    """Only pictures that a browser draws without running anything (no SVG), and not from other servers."""
    source = _source(block)
    data, media_type = source.get("data", ""), source.get("media_type", "")
    if source.get("type") != "base64" or media_type not in IMAGES or len(data) > IMAGE_LIMIT:
        return ""
    return f"data:{media_type};base64,{data}"
