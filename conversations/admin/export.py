"""A conversation to take away: requests that can be sent again, and its tool calls as a table. Rows in, text out."""

import csv
import io
from collections.abc import Iterable, Iterator

from conversations.admin import hops, stored
from conversations.admin.toolchain import Index
from conversations.models import Conversation, ToolMapping, Turn

COLUMNS = ("tool_use_id", "tool_name", "status", "request_id", "upstream", "model", "upstream_call_id", "is_error",
           "result_size", "created_at", "answered_at", "latency_ms", "arguments")  # fmt: skip
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet would run what begins like this


def requests(conversation: Conversation, index: Index) -> Iterator[bytes]:
    """The last request of each branch, a line of JSON each: everything that was said is in one of them."""
    continued = set(index.follows.values())
    tips = [turn for turn in index.numbers if turn not in continued]
    for turn in conversation.turns.filter(pk__in=tips).order_by("pk").iterator(chunk_size=20):
        yield _request(conversation, turn) + b"\n"


def _request(conversation: Conversation, turn: Turn) -> bytes:
    path = stored.path(conversation, turn.head_hash)
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


def _line(values: Iterable[object]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow([_cell(value) for value in values])
    return line.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value
