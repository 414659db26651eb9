"""A turn's answer and a replay's, side by side. Pure: rows in, values out."""

from typing import Any

import msgspec
from msgspec import Struct

from conversations import wording
from conversations.models import Message, Replay, Turn


class Call(Struct, frozen=True):
    name: str
    arguments: str  # JSON with its lines


class Side(Struct, frozen=True):
    title: str
    model: str
    status: str
    stop_reason: str
    error: str
    text: str
    thinking: str
    calls: tuple[Call, ...]


class Figure(Struct, frozen=True):
    """One number of both."""

    name: str
    before: str
    after: str


class Paired(Struct, frozen=True):
    """The calls at the same place of both answers."""

    before: Call | None
    after: Call | None

    @property
    def verdict(self) -> str:
        if self.before is None:
            return "only in the replay"
        if self.after is None:
            return "not in the replay"
        if self.before.name != self.after.name:
            return "another tool"
        return "same" if self.before.arguments == self.after.arguments else "other arguments"


class Comparison(Struct, frozen=True):
    before: Side
    after: Side
    figures: tuple[Figure, ...]
    calls: tuple[Paired, ...]


def compare(turn: Turn, answer: Message | None, replay: Replay) -> Comparison:
    content = bytes(answer.content) if answer is not None else b"[]"
    model = f"{turn.upstream}/{turn.resolved_model}"
    before = _side("Turn", model, turn, content)
    after = _side("Replay", replay.target, replay, bytes(replay.content))
    longest = max(len(before.calls), len(after.calls))
    pairs = tuple(Paired(_at(before.calls, place), _at(after.calls, place)) for place in range(longest))
    return Comparison(before, after, _figures(turn, replay), pairs)


def _side(title: str, model: str, row: Turn | Replay, content: bytes) -> Side:
    blocks = [block for block in msgspec.json.decode(content) if isinstance(block, dict)]
    error = f"{row.error_type}: {row.error_message}" if row.error_type else ""
    calls = tuple(_call(block) for block in blocks if block.get("type") == "tool_use")
    text, thinking = _joined(blocks, "text"), _joined(blocks, "thinking")
    return Side(title, model, row.status, row.stop_reason, error, text, thinking, calls)


def _joined(blocks: list[dict[str, Any]], kind: str) -> str:
    return "\n\n".join(str(block.get(kind, "")) for block in blocks if block.get("type") == kind)


def _call(block: dict[str, Any]) -> Call:
    written = msgspec.json.encode(block.get("input", {}), order="sorted")
    return Call(str(block.get("name", "")), msgspec.json.format(written, indent=2).decode())


def _at(calls: tuple[Call, ...], place: int) -> Call | None:
    return calls[place] if place < len(calls) else None


def _figures(turn: Turn, replay: Replay) -> tuple[Figure, ...]:
    rows: tuple[Turn | Replay, ...] = (turn, replay)
    shown = (
        ("Tokens in", [_count(row.input_tokens + row.cache_read + row.cache_write, row) for row in rows]),
        ("From cache", [_count(row.cache_read, row) for row in rows]),
        ("Tokens out", [_count(row.output_tokens, row) for row in rows]),
        ("Thinking", [_count(row.thinking_tokens, row) for row in rows]),
        ("Cost", [wording.money(row.cost_micros) for row in rows]),
        ("First byte", [wording.milliseconds(row.first_byte_ms) for row in rows]),
        ("First token", [wording.milliseconds(row.first_token_ms) for row in rows]),
        ("Whole answer", [wording.milliseconds(row.duration_ms) for row in rows]),
    )
    return tuple(Figure(name, before, after) for name, (before, after) in shown)


def _count(number: int, row: Turn | Replay) -> str:
    return ("~" if row.usage_estimated else "") + wording.count(number)
