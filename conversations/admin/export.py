"""A conversation to take away: requests that can be sent again, and its tool calls as a table; the ledger as another.
Rows in, text out."""

import csv
import io
from collections.abc import Iterable, Iterator

from conversations.admin import hops, stored
from conversations.admin.toolchain import Index
from conversations.models import Conversation, ToolMapping, Turn, UsageEntry
from conversations.store.reads import Stored
from translation.client.stored import is_content

COLUMNS = ("tool_use_id", "tool_name", "status", "request_id", "upstream", "model", "upstream_call_id", "is_error",
           "result_size", "created_at", "answered_at", "latency_ms", "arguments")  # fmt: skip
LEDGER = ("created_at", "api_key", "conversation_id", "request_id", "attempt", "status", "requested_model", "upstream",
          "model", "returned_model", "input_tokens", "output_tokens", "cache_read", "cache_write", "thinking_tokens",
          "estimated", "cost_dollars", "tool_count", "duration_ms", "first_token_ms")  # fmt: skip
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run what begins like this


def requests(conversation: Conversation, index: Index) -> Iterator[bytes]:
    """The last request of each branch, a line of JSON each: everything that was said is in one of them. One of which
    not all is kept (any more), could not be sent again."""
    continued = set(index.follows.values())
    tips = [turn for turn in index.numbers if turn not in continued]
    for turn in conversation.turns.filter(pk__in=tips).order_by("pk").iterator(chunk_size=20):
        path = stored.path(conversation, turn.head_hash)
        if _is_kept(turn, path):
            yield _request(conversation, turn, path) + b"\n"


def _is_kept(turn: Turn, path: list[Stored]) -> bool:
    return all(is_content(item.content) for item in path) if path else not turn.head_hash


def _request(conversation: Conversation, turn: Turn, path: list[Stored]) -> bytes:
    system, tools = stored.blob(conversation, turn.system_digest), stored.blob(conversation, turn.tools_digest)
    return hops.received(turn, hops.Context([(item.role, item.content) for item in path], system, tools))


def table(mappings: Iterable[ToolMapping], *, readable: bool) -> Iterator[str]:
    yield _line(COLUMNS)
    for row in mappings:
        latency = (row.answered_at - row.created_at).total_seconds() * 1_000 if row.answered_at else ""
        arguments = row.call_arguments.decode("utf-8", "replace") if readable else ""
        values = (row.tool_use_id, row.tool_name, row.status, row.turn.request_id, row.upstream, row.model,
                  row.upstream_call_id, row.is_error, row.result_size, row.created_at.isoformat(),
                  row.answered_at.isoformat() if row.answered_at else "", latency, arguments)  # fmt: skip
        yield _line(values)


def ledger(pieces: Iterable[Iterable[UsageEntry]]) -> Iterator[str]:
    yield _line(LEDGER)
    for piece in pieces:
        yield "".join([_line(_entry(row)) for row in piece])


def _entry(row: UsageEntry) -> Iterator[object]:
    special = {
        "created_at": row.created_at.isoformat(),
        "api_key": row.api_key.name,
        "cost_dollars": f"{row.cost_micros / 1_000_000:.6f}",
    }
    return (special[name] if name in special else getattr(row, name) for name in LEDGER)


def _line(values: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow([_cell(value) for value in values])
    return line.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
