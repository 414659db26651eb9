"""The ledger's rows: what each call of an upstream used, how often each tool was called. They outlive conversations."""

from collections.abc import Iterable
from typing import Protocol

from msgspec import Struct

from conversations.store.database import Database

USAGE_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
USAGE = f"""
INSERT INTO conversations_usageentry (api_key_id, conversation_id, request_id, attempt, created_at, requested_model,
  upstream, model, returned_model, status, input_tokens, output_tokens, cache_read, cache_write, thinking_tokens,
  estimated, cost_micros, tool_count, duration_ms, first_token_ms)
VALUES {USAGE_ROW}"""  # noqa: S608 - our own text
TOOL_ROW = "(%s, %s, %s, %s, %s, %s, %s)"
TOOL = f"""
INSERT INTO conversations_toolentry (api_key_id, request_id, created_at, upstream, model, tool_name, calls)
VALUES {TOOL_ROW}"""  # noqa: S608 - our own text


class UsageRow(Struct, frozen=True, kw_only=True):
    attempt: int
    upstream: str
    model: str
    returned_model: str = ""
    status: str
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    thinking_tokens: int = 0
    estimated: bool = False
    cost_micros: int = 0
    tool_count: int = 0
    duration_ms: float = 0.0
    first_token_ms: float = 0.0

    @property
    def tokens(self) -> tuple[int, ...]:
        return self.input_tokens, self.output_tokens, self.cache_read, self.cache_write, self.thinking_tokens


class Asked(Protocol):
    """The request that something was used for."""

    @property
    def request_id(self) -> str: ...
    @property
    def now(self) -> str: ...
    @property
    def requested_model(self) -> str: ...


class RecordUsage(Struct, frozen=True):
    """What was used without a conversation."""

    api_key: int
    request_id: str
    now: str
    requested_model: str
    usage: tuple[UsageRow, ...]

    def apply(self, db: Database) -> None:
        account(db, self.api_key, "", self, self.usage)


def account(
    db: Database,
    api_key: int,
    conversation: str,
    asked: Asked,
    usage: tuple[UsageRow, ...],
    tools: Iterable[tuple[str, int]] = (),
) -> None:
    who = (api_key, conversation, asked.request_id)
    for entry in usage:
        what = (entry.upstream, entry.model, entry.returned_model, entry.status)
        more = (entry.estimated, entry.cost_micros, entry.tool_count, entry.duration_ms, entry.first_token_ms)
        db.insert(
            USAGE, USAGE_ROW, (*who, entry.attempt, asked.now, asked.requested_model, *what, *entry.tokens, *more)
        )
    for name, calls in tools:
        last = usage[-1]
        db.insert(TOOL, TOOL_ROW, (api_key, asked.request_id, asked.now, last.upstream, last.model, name, calls))
