"""One turn, hop by hop: from its rows to what the page shows. Pure."""

import shlex
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from conversations import wording
from conversations.admin.content import Shown, pretty, shown
from conversations.models import Message, ToolMapping, Turn, TurnStatus, UsageEntry
from conversations.records import AttemptRecord
from translation.unreadable import UNREADABLE

Facts = tuple[tuple[str, str], ...]


class Hop(Struct, frozen=True):
    """One side of the bridge, as bytes and as shown."""

    name: str
    title: str
    about: str
    raw: bytes
    size: int
    value: Shown | None
    facts: Facts = ()

    @property
    def words(self) -> str:
        return wording.size(self.size)

    @property
    def round(self) -> int:
        """Which further call of the upstream it is the request of; 0 for none."""
        return int(self.name.removeprefix("sent-")) if self.name.startswith("sent-") else 0


class Segment(Struct, frozen=True):
    name: str
    start: float  # percent of the whole
    width: float
    words: str
    kind: str


class Attempt(Struct, frozen=True):
    """One call of an upstream."""

    entry: int  # in the ledger; 0 for none
    path: str
    status: str
    error: str
    cost_micros: int
    ms: float


class Context(Struct, frozen=True):
    """What a turn's request was made of."""

    messages: Sequence[tuple[str, bytes]]
    system: bytes
    tools: bytes


def received(turn: Turn, context: Context) -> bytes:
    """The request as the client's history has it: in the form that it is stored in, one for whatever a client wrote."""
    body: dict[str, Any] = {"model": turn.requested_model, **_parameters(_json(bytes(turn.params)))}
    if turn.stream:
        body["stream"] = True
    for name, raw in (("system", context.system), ("tools", context.tools)):
        if raw:
            body[name] = msgspec.Raw(raw)
    body["messages"] = [{"role": role, "content": msgspec.Raw(content or b"[]")} for role, content in context.messages]
    return msgspec.json.encode(body)


def _parameters(kept: dict[str, Any]) -> dict[str, Any]:
    """From the form that the bridge keeps parameters in to the API's."""
    plain = ("max_tokens", "temperature", "top_p", "top_k", "stop_sequences")
    body = {name: kept[name] for name in plain if name in kept}
    if choice := kept.get("tool_choice"):
        body["tool_choice"] = {"type": choice["kind"]} | ({"name": choice["name"]} if choice.get("name") else {})
        if not choice.get("parallel", True):
            body["tool_choice"]["disable_parallel_tool_use"] = True
    if thinking := kept.get("thinking"):
        given = {"type": thinking["kind"], "budget_tokens": thinking["budget_tokens"], "display": thinking["display"]}
        body["thinking"] = {name: value for name, value in given.items() if value}
    output = {"effort": kept.get("effort"), "format": _format(kept.get("output_schema"))}
    if any(output.values()):
        body["output_config"] = {name: value for name, value in output.items() if value}
    return body


def _format(schema: object) -> dict[str, object] | None:
    return {"type": "json_schema", "schema": schema} if schema else None


def delivered(turn: Turn, answer: Message | None) -> bytes:
    if answer is None and not turn.error_type:
        return b""
    if answer is None:
        error = {"type": turn.error_type, "message": turn.error_message}
        return msgspec.json.encode({"type": "error", "error": error, "request_id": turn.request_id})
    return msgspec.json.encode(
        {
            "id": turn.message_id,
            "type": "message",
            "role": "assistant",
            "model": turn.requested_model,
            "content": msgspec.Raw(bytes(answer.content)),
            "stop_reason": turn.stop_reason,
            "stop_sequence": _json(bytes(turn.answer_meta)).get("sequence"),
            "usage": {
                "input_tokens": turn.input_tokens,
                "cache_creation_input_tokens": turn.cache_write,
                "cache_read_input_tokens": turn.cache_read,
                "output_tokens": turn.output_tokens,
            },
        }
    )


def hop(name: str, title: str, about: str, raw: bytes, facts: Facts, *, readable: bool) -> Hop:
    return Hop(name, title, about, raw, len(raw), shown(pretty(raw)) if raw and readable else None, facts)


def attempts(turn: Turn, entries: Sequence[UsageEntry]) -> tuple[Attempt, ...]:
    """The ledger knows how each of them ended, the turn in which words. The newest have no entries yet."""
    told = _told(turn)
    if not entries:
        return tuple(Attempt(0, f"{one.upstream}/{one.model}", one.status, one.error, 0, one.ms) for one in told)
    return tuple(_attempt(turn, row, told, entries) for row in entries)


def _attempt(turn: Turn, row: UsageEntry, told: tuple[AttemptRecord, ...], entries: Sequence[UsageEntry]) -> Attempt:
    own = told[row.attempt - 1] if 0 < row.attempt <= len(told) else None
    error = (own and own.error) or (turn.error_message if row is entries[-1] else "")
    # The ledger gives the last one the time of the whole turn, with the pauses and those before it.
    ms = own.ms if own and len(entries) > 1 else row.duration_ms
    return Attempt(
        row.pk, f"{row.upstream}/{row.model}", row.status, error if row.status == "error" else "", row.cost_micros, ms
    )


def _told(turn: Turn) -> tuple[AttemptRecord, ...]:
    try:
        return msgspec.json.decode(bytes(turn.attempts), type=tuple[AttemptRecord, ...])
    except UNREADABLE:
        return ()


def headers(raw: bytes) -> tuple[tuple[str, str], ...]:
    return tuple((str(name), str(value)) for name, value in sorted(_json(raw).items()))


def waterfall(turn: Turn, calls: Sequence[ToolMapping]) -> tuple[Segment, ...]:
    """Where the time went; calls are the moments at which they were made durable."""
    total = max(turn.duration_ms, turn.first_token_ms, 0.001)
    began = turn.first_token_ms or turn.first_byte_ms
    unanswered = not began and turn.status in {TurnStatus.ERROR, TurnStatus.ABORTED}
    steps = (
        ("In the bridge", 0.0, turn.state_ms, "bridge"),
        ("To the first byte", turn.state_ms, turn.first_byte_ms, "wait"),
        ("To the first token", turn.first_byte_ms, turn.first_token_ms, "token"),
        ("No answer", turn.state_ms, turn.duration_ms, "wait")
        if unanswered
        else ("Answer", began, turn.duration_ms, "stream"),
    )
    segments = [_segment(name, start, end, total, kind) for name, start, end, kind in steps if end > 0 and end >= start]
    for row in calls:
        at = (row.created_at - turn.started_at).total_seconds() * 1_000
        segments.append(_segment(f"Call of {row.tool_name}", max(at, 0), max(at, 0), total, "call"))
    return tuple(segments)


def _segment(name: str, start: float, end: float, total: float, kind: str) -> Segment:
    left = min(99.5, 100 * start / total)
    width = max(0.5, min(100 - left, 100 * (end - start) / total))
    words = wording.milliseconds(end - start) if kind != "call" else f"at {wording.milliseconds(start)}"
    return Segment(name, round(left, 2), round(width, 2), words, kind)


def curl(url: str, headers: Sequence[tuple[str, str]], body: bytes) -> str:
    """A line to paste; secrets are variables of the shell."""
    # A variable is expanded between double quotes only, and every other text must not be.
    lines = [f"curl {url}"]
    for name, value in headers:
        lines.append(f'-H "{name}: {value}"' if "$" in value else f"-H {shlex.quote(f'{name}: {value}')}")
    lines += [f"--data-raw {shlex.quote(body.decode('utf-8', 'replace'))}"]
    return " \\\n  ".join(lines) + "\n"


def _json(raw: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except UNREADABLE:
        return {}
    return value if isinstance(value, dict) else {}
