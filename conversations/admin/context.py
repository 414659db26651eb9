"""What fills the context of a request, by kind, and what each tool took of it. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec
from msgspec import Struct

from conversations import wording
from conversations.models import ToolMapping
from translation.unreadable import UNREADABLE

KINDS = {
    "system": "System prompt",
    "tools": "Tool definitions",
    "results": "Tool results",
    "calls": "Tool calls",
    "thinking": "Thinking",
    "assistant": "Answers",
    "user": "What the user said",
    "media": "Images and documents",
}


class Fill(Struct, frozen=True):
    kind: str
    name: str
    size: int
    percent: float

    @property
    def words(self) -> str:
        return wording.size(self.size)


class ToolFigures(Struct, frozen=True):
    name: str
    calls: int
    failed: int
    waiting: int
    result_size: int
    latency: str  # median

    @property
    def words(self) -> str:
        return wording.size(self.result_size)


def fills(system: int, tools: int, messages: Iterable[tuple[str, bytes]]) -> tuple[Fill, ...]:
    """Bytes by kind, of one request: the sizes of its system prompt and tools, and its messages as stored."""
    sizes = Counter({"system": system, "tools": tools})
    for role, content in messages:
        for kind, size in _sizes(role, content):
            sizes[kind] += size
    total = sum(sizes.values()) or 1
    found = ((kind, name, sizes[kind]) for kind, name in KINDS.items())
    return tuple(Fill(kind, name, size, round(100 * size / total, 1)) for kind, name, size in found if size)


def figures(mappings: Sequence[ToolMapping], states: Mapping[int, str]) -> tuple[ToolFigures, ...]:
    by_name: dict[str, list[ToolMapping]] = {}
    for row in mappings:
        by_name.setdefault(row.tool_name, []).append(row)
    found = [_figures(name, rows, states) for name, rows in by_name.items()]
    return tuple(sorted(found, key=lambda item: (-item.result_size, -item.calls)))


def _figures(name: str, rows: list[ToolMapping], states: Mapping[int, str]) -> ToolFigures:
    times = [(row.answered_at - row.created_at).total_seconds() * 1_000 for row in rows if row.answered_at]
    return ToolFigures(
        name,
        len(rows),
        sum(row.is_error for row in rows),
        sum(states[row.pk] == "pending" for row in rows),
        sum(row.result_size for row in rows),
        wording.milliseconds(median(times)) if times else wording.NONE,
    )


def _sizes(role: str, content: bytes) -> list[tuple[str, int]]:
    try:
        blocks = msgspec.json.decode(content, type=list[msgspec.Raw])
    except UNREADABLE:
        return [("user" if role == "user" else "assistant", len(content))]
    return [_size(role, bytes(raw)) for raw in blocks]


class _Kind(Struct):
    type: str = ""
    size: int = -1


def _size(role: str, raw: bytes) -> tuple[str, int]:
    """Below full storage a block is its kind and its size."""
    try:
        block = msgspec.json.decode(raw, type=_Kind)
    except UNREADABLE:
        block = _Kind()
    size = block.size if block.size >= 0 else len(raw)
    match block.type:
        case "tool_result":
            return "results", size
        case "tool_use" | "server_tool_use":
            return "calls", size
        case "thinking" | "redacted_thinking":
            return "thinking", size
        case "image" | "document":
            return "media", size
        case _:
            return ("assistant" if role == "assistant" else "user"), size
