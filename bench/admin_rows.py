"""A large database, made by the database itself: rows as the store writes them, a statement for each table."""

from typing import Any

from django.db import connection
from django.db.models import Field, Model

from conversations import ids, keys, search
from conversations.models import (
    ApiKey,
    Conversation,
    Message,
    SearchedTurn,
    ToolEntry,
    ToolMapping,
    Turn,
    UsageEntry,
)

KEYS = 5
WORDS = 4_000  # different ones, in what the turns say
HOUR = 3600.0


class Seed:
    """`conversations` of them, with `each` turns: an answer, a tool call and a line in the ledger for every turn."""

    def __init__(self, conversations: int, each: int, now: float) -> None:
        self.conversations, self.each, self.turns = conversations, each, conversations * each
        self.keys: list[ApiKey] = [keys.issue(f"bench {number}")[0] for number in range(KEYS)]
        # Spread over a day, so that nothing is due to be purged; ids follow the clock as real ones do.
        self.step = 20 * HOUR * 1000 / self.turns
        self.first = int(now * 1000 - 20 * HOUR * 1000)
        self.sqlite = connection.vendor == "sqlite"

    def fill(self) -> None:
        key = f"{self.keys[0].pk} + n % {KEYS}"
        self._insert(Conversation, self.conversations, self._conversation(key))
        self._insert(Turn, self.turns, self._turn(key))
        self._insert(Message, self.turns, self._message(key))
        self._insert(ToolMapping, self.turns, self._call(key))
        self._insert(UsageEntry, self.turns, self._entry(key))
        self._insert(ToolEntry, self.turns, {**self._common(key), "tool_name": self._one_of("n", TOOLS)})
        self._words()
        if not self.sqlite:
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")

    # ------------------------------------------------------------ columns, as SQL over n

    def _id(self, number: str) -> str:
        return (
            f"(({self.first - ids.EPOCH_MS} + {self._whole(f'{number} * {self.step}')}) * {1 << 22} + {number} % 4096)"
        )

    def _time(self, number: str) -> str:
        seconds = f"({self.first / 1000:.3f} + {number} * {self.step / 1000:.9f})"
        if self.sqlite:
            return f"strftime('%Y-%m-%d %H:%M:%f000', {seconds}, 'unixepoch')"
        return f"to_timestamp({seconds})"

    def _whole(self, expression: str) -> str:
        return f"CAST({expression} AS INTEGER)" if self.sqlite else f"floor({expression})::bigint"

    def _one_of(self, number: str, values: tuple[str, ...]) -> str:
        whens = " ".join(f"WHEN {place} THEN '{value}'" for place, value in enumerate(values))
        return f"CASE {number} % {len(values)} {whens} END"

    def _padded(self, prefix: str, number: str, length: int) -> str:
        if self.sqlite:
            return f"'{prefix}' || printf('%0{length}d', {number})"
        return f"'{prefix}' || lpad(({number})::text, {length}, '0')"

    def _bytes(self, text: str) -> str:
        return f"CAST({text} AS BLOB)" if self.sqlite else f"convert_to({text}, 'UTF8')"

    def _owner(self) -> str:
        """The conversation of a turn: its turns follow each other with others in between."""
        return self._conversation_id(f"((n - 1) % {self.conversations} + 1)")

    def _conversation_id(self, number: str) -> str:
        return f"(1000000 + {number})"

    def _common(self, key: str) -> dict[str, str]:
        return {
            "api_key_id": key, "request_id": self._padded("req_", "n", 24), "created_at": self._time("n"),
            "upstream": self._one_of("n", UPSTREAMS), "model": self._one_of("n", MODELS),
        }  # fmt: skip

    def _conversation(self, key: str) -> dict[str, str]:
        last = f"(n + {self.turns - self.conversations})"
        return {
            "id": self._conversation_id("n"), "api_key_id": key, "external_id": self._padded("conv_", "n", 32),
            "created_at": self._time("n"), "last_activity": self._time(last), "turn_count": str(self.each),
            "tool_count": str(self.each), "last_model": self._one_of("n", MODELS),
            "last_status": self._one_of("n", STATUSES),
        }  # fmt: skip

    def _turn(self, key: str) -> dict[str, str]:
        return {
            "id": self._id("n"), "conversation_id": self._owner(), "api_key_id": key, "process": "1",
            "request_id": self._padded("req_", "n", 24), "message_id": self._padded("msg_", "n", 24),
            "status": self._one_of("n", STATUSES), "started_at": self._time("n"), "requested_model": ASKED,
            "upstream": self._one_of("n", UPSTREAMS), "resolved_model": self._one_of("n", MODELS),
            "note_count": "CASE WHEN n % 7 = 0 THEN 1 ELSE 0 END", "tool_count": "1", "input_tokens": "1000 + n % 900",
            "output_tokens": "50 + n % 90", "cost_micros": "n % 40000", "duration_ms": "1200 + n % 999",
            "first_token_ms": "300 + n % 99", "state_ms": "0.6", "http_status": "200", "error_message": "''",
            "error_type": "CASE WHEN n % 50 = 3 THEN 'rate_limit_error' WHEN n % 5 = 3 THEN 'api_error' ELSE '' END",
        }  # fmt: skip

    def _text(self) -> str:
        """Sixty words: a few that are everywhere, many that are rare, one that only this turn has."""
        rare = " || ' ' || ".join(f"'w' || ((n * {factor} + {factor}) % {WORDS})" for factor in FACTORS)
        return f"'the service failed and the test of order' || n || ' ' || {rare}"

    def _message(self, key: str) -> dict[str, str]:
        blocks = f'\'[{{"type":"text","text":"\' || {self._text()} || \'"}}]\''
        return {
            "conversation_id": self._owner(), "api_key_id": key, "turn_id": self._id("n"), "depth": "2", "answers": "1",
            "role": "'assistant'", "message_id": self._padded("msg_", "n", 24), "content": self._bytes(blocks),
            "chain_hash": self._bytes(self._padded("", "n", 16)), "parent_hash": self._bytes("''"),
            "created_at": self._time("n"),
        }  # fmt: skip

    def _call(self, key: str) -> dict[str, str]:
        tool = self._one_of("n", TOOLS)
        return {
            "conversation_id": self._owner(), "api_key_id": key, "turn_id": self._id("n"), "tool_name": tool,
            "tool_use_id": self._padded("toolu_", "n", 24), "upstream": self._one_of("n", UPSTREAMS),
            "model": self._one_of("n", MODELS), "upstream_name": tool, "upstream_call_id": "'call_' || n",
            "arguments": self._bytes("'{\"command\":\"ls\"}'"), "result_size": "n % 5000",
            "status": "CASE WHEN n % 200 = 0 THEN 'pending' ELSE 'answered' END", "created_at": self._time("n"),
            "answered_at": self._time("n"),
        }  # fmt: skip

    def _entry(self, key: str) -> dict[str, str]:
        owner = self._padded("conv_", f"((n - 1) % {self.conversations} + 1)", 32)
        return {
            **self._common(key), "conversation_id": owner, "requested_model": ASKED,
            "status": self._one_of("n", STATUSES), "input_tokens": "1000", "output_tokens": "50",
            "cost_micros": "n % 40000", "duration_ms": "1200",
        }  # fmt: skip

    # ------------------------------------------------------------ statements

    def _insert(self, model: type[Model], number: int, given: dict[str, str]) -> None:
        fields = [field for field in model._meta.concrete_fields if field.column in given or not field.primary_key]
        columns = ", ".join(f'"{field.column}"' for field in fields)
        values = ", ".join(given.get(str(field.column)) or self._default(field) for field in fields)
        series = (
            f"(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {number}) SELECT n FROM s)"  # noqa: S608
            if self.sqlite
            else f"generate_series(1, {number}::bigint)"
        )
        source = f"FROM {series}" if self.sqlite else f"FROM {series} AS n"
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO {model._meta.db_table} ({columns}) SELECT {values} {source}")

    def _default(self, field: "Field[Any, Any]") -> str:
        if field.null:
            return "NULL"
        value = field.get_default()
        match value:
            case bytes():
                return f"X'{value.hex()}'" if self.sqlite else f"'\\x{value.hex()}'::bytea"
            case bool():
                return str(int(value)) if self.sqlite else str(value).lower()
            case int() | float():
                return str(value)
            case _:
                return f"'{value}'"

    def _words(self) -> None:
        """SQLite's are read by the real reader; a million turns get theirs from one statement."""
        if self.sqlite:
            search.index(budget=3_600)
            return
        with connection.cursor() as cursor:
            cursor.execute("DROP INDEX searched_words")
            values = f"{self._id('n')}, {self._owner()}, to_tsvector('simple', {self._text()})"
            cursor.execute(
                f"INSERT INTO {SearchedTurn._meta.db_table} (turn, conversation_id, words) "  # noqa: S608
                f"SELECT {values} FROM generate_series(1, {self.turns}::bigint) AS n"
            )
            cursor.execute("CREATE INDEX searched_words ON conversations_searchedturn USING gin (words)")


ASKED = "'claude-sonnet-5-5'"
TOOLS = ("Bash", "Read", "Edit", "Grep", "WebSearch")
STATUSES = ("complete", "complete", "complete", "error", "aborted")
UPSTREAMS = ("openai", "gemini", "demo")
MODELS = ("gpt-5.5", "gemini-3-pro", "demo")
FACTORS = (7, 31, 101, 211, 499, 887, 1103, 1409, 1723, 2089, 2503, 2917, 3301, 3671, 3989) * 3
