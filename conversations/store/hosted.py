"""Tools that the bridge runs, in the store: what is registered, and what became of each run."""

from collections.abc import Sequence
from typing import Any

import msgspec
import zstandard
from msgspec import Struct
from msgspec.structs import replace

from conversations.store.database import Database, seconds
from conversations.store.packing import unpacked
from conversations.store.writes import ConversationRow
from translation.errors import ConversationEnded
from translation.values import Origin

SMALL = 400
PROGRESS_SIZE = 200

EXECUTION = """
INSERT INTO conversations_toolexecution (id, conversation_id, api_key_id, turn_id, tool_id, tool_use_id, server_name, tool_name,
  round_number, arguments, state, status, long_running, result, result_size, is_error, error, progress, attempts, created_at,
  duration_ms)
SELECT %s, %s, %s, %s, CAST(%s AS bigint), %s, %s, %s, %s, %s, %s, %s, %s, %s, 0, FALSE, '', '', 0, NOW(), 0
WHERE EXISTS (SELECT 1 FROM conversations_conversation WHERE id = %s AND ended_at IS NULL)"""
FINISHED = """
UPDATE conversations_toolexecution SET status = %s, result = %s, result_size = %s, is_error = %s, error = %s, attempts = %s,
  duration_ms = %s, finished_at = NOW() WHERE conversation_id = %s AND tool_use_id = %s AND status IN ('queued', 'running')"""
MAPPED = """
UPDATE conversations_toolmapping SET status = %s, is_error = %s, result_size = %s, answered_at = NOW(), answered_turn = %s
WHERE conversation_id = %s AND tool_use_id = %s AND status IN ('pending', 'streaming', 'repaired')"""
FORGOTTEN = """
UPDATE conversations_toolexecution SET arguments = %s, result = %s WHERE conversation_id = %s AND tool_use_id = %s"""
SEEN = """
UPDATE conversations_toolexecution SET seen_at = NOW() WHERE conversation_id = %s AND tool_use_id = %s AND status = 'running'"""
# Whether it was stored is not always known: then it comes again with the end of its turn, which it must not keep.
ROUND = """
INSERT INTO conversations_round (conversation_id, turn_id, number, sent_prefix, sent_tail, answer, answer_meta, created_at)
SELECT c.id, t.id, %s, %s, %s, %s, %s, NOW() FROM conversations_turn t
JOIN conversations_conversation c ON c.id = t.conversation_id AND c.ended_at IS NULL WHERE t.id = %s
ON CONFLICT (turn_id, number) DO NOTHING"""
# What a tool says on its way is content: a key below full storage keeps the numbers only.
PROGRESS = """
UPDATE conversations_toolexecution SET progress = CASE WHEN
  (SELECT storage FROM conversations_apikey WHERE id = conversations_toolexecution.api_key_id) = 'full' THEN %s ELSE %s END
WHERE conversation_id = %s AND tool_use_id = %s AND status = 'running'"""
BREAKER = """
UPDATE conversations_hostedtool SET failures = %s, open_until = %s, last_error = %s WHERE id = %s"""
TURNED = "INSERT INTO conversations_change (kind, ref, created_at) VALUES ('breaker', '', NOW())"
TOOLS = """
SELECT id, owner_id, name, kind, description, url, method, schema, headers, timeout, long_running, for_models,
  failures, open_until FROM conversations_hostedtool WHERE enabled = %s ORDER BY name, id"""


class ExecutionRow(Struct, frozen=True, kw_only=True):
    id: int
    tool: int | None
    tool_use_id: str
    server_name: str
    tool_name: str
    round_number: int
    arguments: bytes
    state: bytes
    status: str
    long_running: bool


class StartExecutions(Struct, frozen=True):
    """The calls of one round, before they are run."""

    conversation: ConversationRow
    turn: int
    rows: tuple[ExecutionRow, ...]

    def apply(self, db: Database) -> None:
        owner, ended = self.conversation, ConversationEnded("the conversation was ended while this turn ran")
        for row in self.rows:
            who = (
                row.id,
                owner.id,
                owner.api_key,
                self.turn,
                row.tool,
                row.tool_use_id,
                row.server_name,
                row.tool_name,
            )
            what = (row.round_number, row.arguments, row.state, row.status, row.long_running, b"")
            db.expect(EXECUTION, (*who, *what, owner.id), ended)


class FinishExecution(Struct, frozen=True, kw_only=True):
    """What became of a call: to be stored before anybody sees it."""

    conversation: int
    turn: int = 0  # that tells it; 0 while nobody does
    tool_use_id: str
    status: str  # complete, failed, cancelled
    result: bytes = b""
    size: int = 0
    is_error: bool = False
    error: str = ""
    attempts: int = 1
    duration_ms: float = 0
    forget: bool = False  # its key keeps no content, and a worker needed it until now

    def apply(self, db: Database) -> None:
        outcome = (self.status, self.result, self.size, self.is_error, self.error, self.attempts, self.duration_ms)
        db.execute(FINISHED, (*outcome, self.conversation, self.tool_use_id))
        if self.turn and self.status != "cancelled":
            told = ("failed" if self.is_error else "answered", self.is_error, self.size, self.turn)
            db.execute(MAPPED, (*told, self.conversation, self.tool_use_id))
        if self.forget:
            db.execute(FORGOTTEN, (b"", b"", self.conversation, self.tool_use_id))


class SaveRound(Struct, frozen=True):
    """A further call of the upstream inside one turn."""

    turn: int
    number: int
    sent_prefix: int
    sent_tail: bytes
    answer: bytes
    answer_meta: bytes

    def apply(self, db: Database) -> None:
        sent = (self.sent_prefix, self.sent_tail, self.answer, self.answer_meta)
        db.execute(ROUND, (self.number, *sent, self.turn))


class Progressed(Struct, frozen=True, omit_defaults=True):
    """How far a tool says that it is."""

    progress: float
    total: float | None = None
    message: str = ""

    def __str__(self) -> str:
        share = f"{self.progress:g}/{self.total:g}" if self.total else f"{self.progress:g}"
        return f"{share} {self.message}".rstrip()

    def written(self) -> str:
        """JSON that fits its column, however much of it has to be escaped."""
        said = "".join(character for character in self.message[:PROGRESS_SIZE] if character.isprintable())
        while len(text := msgspec.json.encode(replace(self, message=said)).decode()) > PROGRESS_SIZE:
            said = said[: len(said) // 2]
        return text


class SaveProgress(Struct, frozen=True):
    conversation: int
    tool_use_id: str
    progress: Progressed

    def apply(self, db: Database) -> None:
        texts = (self.progress.written(), replace(self.progress, message="").written())
        db.execute(PROGRESS, (*texts, self.conversation, self.tool_use_id))


class SaveSeen(Struct, frozen=True):
    """A worker still works on it."""

    conversation: int
    tool_use_id: str

    def apply(self, db: Database) -> None:
        db.execute(SEEN, (self.conversation, self.tool_use_id))


class SaveBreaker(Struct, frozen=True):
    """The state of a tool's circuit breaker, for the operator and the other processes."""

    tool: int
    failures: int
    open_until: str | None
    last_error: str
    turned: bool = False  # it has opened or closed: every process is told

    def apply(self, db: Database) -> None:
        db.execute(BREAKER, (self.failures, self.open_until, self.last_error[:500], self.tool))
        if self.turned:
            db.execute(TURNED, ())


# ---------------------------------------------------------------- reads


class ToolRow(Struct, frozen=True):
    id: int
    owner: int | None
    name: str
    kind: str
    description: str
    url: str
    method: str
    schema: str
    headers: str
    timeout: float | None
    long_running: bool
    for_models: str
    failures: int = 0
    open_until: float | None = None  # seconds: until then no process calls it
    api_keys: frozenset[int] = frozenset()


class SecretRow(Struct, frozen=True):
    owner: int | None
    name: str
    host: str
    value: bytes

    def __repr__(self) -> str:
        return f"SecretRow({self.name!r})"


class Registered(Struct, frozen=True):
    tools: tuple[ToolRow, ...] = ()
    secrets: tuple[SecretRow, ...] = ()


class Ran(Struct, frozen=True):
    """A run as the store knows it."""

    tool_use_id: str
    status: str
    result: str
    is_error: bool
    long_running: bool
    tool: int | None
    server_name: str
    tool_name: str
    arguments: bytes

    @property
    def over(self) -> bool:
        return self.status in ("complete", "failed")


RAN = """
SELECT tool_use_id, status, result, is_error, long_running, tool_id, server_name, tool_name, arguments
FROM conversations_toolexecution """


def registered(db: Database) -> Registered:
    keys: dict[int, set[int]] = {}
    for tool, key in db.query("SELECT hostedtool_id, apikey_id FROM conversations_hostedtool_api_keys"):
        keys.setdefault(tool, set()).add(key)
    rows = db.query(TOOLS, (True,))
    tools = tuple(_tool(row, frozenset(keys.get(row[0], ()))) for row in rows)
    secrets = db.query("SELECT owner_id, name, host, value FROM conversations_toolsecret") if tools else []
    return Registered(tools, tuple(SecretRow(row[0], row[1], row[2], bytes(row[3])) for row in secrets))


def ran(db: Database, conversation_id: int, tool_use_ids: Sequence[str]) -> list[Ran]:
    marks = ", ".join(["%s"] * len(tool_use_ids))
    sql = RAN + f"WHERE conversation_id = %s AND tool_use_id IN ({marks}) ORDER BY id"
    return [_ran(row) for row in db.query(sql, (conversation_id, *tool_use_ids))]


def ran_in_turn(db: Database, turn: int) -> list[Ran]:
    return [_ran(row) for row in db.query(RAN + "WHERE turn_id = %s ORDER BY id", (turn,))]


def turns_with_runs(db: Database, turns: Sequence[int]) -> set[int]:
    marks = ", ".join(["%s"] * len(turns))
    sql = f"SELECT DISTINCT turn_id FROM conversations_toolexecution WHERE turn_id IN ({marks})"
    return {row[0] for row in db.query(sql, tuple(turns))}


def round_origins(db: Database, conversation_id: int, tool_use_ids: Sequence[str]) -> dict[str, Origin]:
    """The opaque state of the rounds that these calls were part of, by the first call of each."""
    marks = ", ".join(["%s"] * len(tool_use_ids))
    sql = f"""SELECT e.tool_use_id, m.upstream, m.model, e.state FROM conversations_toolexecution e
        JOIN conversations_toolmapping m ON m.conversation_id = e.conversation_id AND m.tool_use_id = e.tool_use_id
        WHERE e.conversation_id = %s AND e.tool_use_id IN ({marks})"""
    rows = db.query(sql, (conversation_id, *tool_use_ids))
    return {row[0]: Origin(row[1], row[2], bytes(row[3])) for row in rows}


def _tool(row: Sequence[Any], api_keys: frozenset[int]) -> ToolRow:
    texts = (row[2], row[3], row[4], row[5], row[6], row[7], row[8])
    return ToolRow(row[0], row[1], *texts, row[9], bool(row[10]), row[11], row[12], seconds(row[13]), api_keys)


def progressed(written: str) -> Progressed | None:
    return msgspec.json.decode(written, type=Progressed) if written else None


def packed(result: bytes) -> bytes:
    """`unpacked` tells by the magic number of a frame: what only looks like one is packed, too."""
    return zstandard.compress(result, 1) if len(result) > SMALL or result.startswith(zstandard.FRAME_HEADER) else result


def _ran(row: Sequence[Any]) -> Ran:
    result = unpacked(bytes(row[2])).decode("utf-8", "replace")
    return Ran(row[0], row[1], result, bool(row[3]), bool(row[4]), row[5], row[6], row[7], bytes(row[8]))
