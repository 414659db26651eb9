"""What the hot path makes durable, one class per operation. Each is applied inside one transaction of the writer."""

from msgspec import Struct

from conversations.store.claims import CLAIM, AlreadyClaimed, ClaimRow
from conversations.store.database import Database
from conversations.store.others import before_now
from conversations.store.usage import UsageRow, account
from translation.errors import ConversationEnded, OwnFault

CONVERSATION_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s, NOW(), FALSE, 1, %s, %s, %s)"
CONVERSATION = f"""
INSERT INTO conversations_conversation (id, api_key_id, external_id, recognised, session_id, agent_id, parent_agent_id,
  created_at, last_activity, held, turn_count, tool_count, last_model, last_status)
VALUES {CONVERSATION_ROW}
ON CONFLICT (id) DO UPDATE SET last_activity = NOW(), turn_count = conversations_conversation.turn_count + 1,
  tool_count = conversations_conversation.tool_count + excluded.tool_count, last_model = excluded.last_model,
  last_status = excluded.last_status WHERE conversations_conversation.ended_at IS NULL"""  # noqa: S608 - our own text
ACTIVITY = """
UPDATE conversations_conversation SET last_activity = NOW(), turn_count = turn_count + 1, tool_count = tool_count + %s,
  last_model = %s, last_status = %s
WHERE id = %s AND ended_at IS NULL"""
# A turn's columns: those that are known when it begins, and those that its end has the last word on.
BEGUN = (
    *("id", "conversation_id", "api_key_id", "process", "request_id", "started_at", "requested_model", "params"),
    *("headers", "stream", "head_hash", "system_digest", "tools_digest"),
    *("sent_parent", "sent_prefix", "sent_tail", "sent_meta", "sent_depth", "state_ms"),
)
ENDED = (
    *("status", "message_id", "upstream", "resolved_model", "notes", "note_count", "returned_model", "attempts"),
    *("answer", "answer_meta", "answer_hash", "stop_reason", "http_status", "error_type", "error_message"),
    *("input_tokens", "output_tokens", "cache_read", "cache_write", "thinking_tokens"),
    *("usage_estimated", "cost_micros", "tool_count", "first_byte_ms", "first_token_ms", "duration_ms"),
)
NOT_ENDED = (  # from `returned_model` on
    *("", b"[]", b"", b"{}", b"", "", 0, "", ""),
    *(0, 0, 0, 0, 0, False, 0, 0, 0.0, 0.0, 0.0),
)
# Nothing is 0, and a time that is not known 0.0: with values of always the same types it is one statement to PostgreSQL.
PLACES = {"sent_parent": "NULLIF(%s, 0)"}
TURN_ROW = f"({', '.join(PLACES.get(column, '%s') for column in BEGUN + ENDED)})"
TURN = f"INSERT INTO conversations_turn ({', '.join(BEGUN + ENDED)}) VALUES {TURN_ROW}"  # noqa: S608 - our own names
CLOSE = f"UPDATE conversations_turn SET {', '.join(f'{column} = %s' for column in ENDED)} WHERE id = %s"  # noqa: S608 - our own names
MESSAGE_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, NOW())"
MESSAGE = f"""
INSERT INTO conversations_message (conversation_id, api_key_id, chain_hash, parent_hash, depth, answers, span, role, content, turn_id,
  message_id, upstream, model, state, created_at)
VALUES {MESSAGE_ROW}
ON CONFLICT (conversation_id, chain_hash) DO NOTHING"""  # noqa: S608 - our own text
MESSAGE_OF_TURN = MESSAGE.replace("VALUES (", "SELECT ").replace(
    ")\nON CONFLICT", " WHERE EXISTS (SELECT 1 FROM conversations_turn WHERE id = %s)\nON CONFLICT"
)
BLOB_ROW = "(%s, %s, %s)"
BLOB = f"""
INSERT INTO conversations_blob (conversation_id, digest, data) VALUES {BLOB_ROW}
ON CONFLICT (conversation_id, digest) DO NOTHING"""  # noqa: S608 - our own text
ANSWERED = """
UPDATE conversations_toolmapping SET status = %s, is_error = %s, result_size = %s, answered_at = %s, answered_turn = %s
WHERE conversation_id = %s AND tool_use_id = %s AND status IN ('pending', 'streaming', 'repaired')"""
COUNTED = "SELECT 1 FROM conversations_usageentry WHERE request_id = %s LIMIT 1"
SENT = """
UPDATE conversations_turn SET sent_parent = NULL, sent_prefix = 0, sent_depth = 0, sent_tail = %s, sent_meta = %s WHERE id = %s"""
TOUCH = """
UPDATE conversations_conversation SET last_activity = NOW(), last_status = %s, tool_count = tool_count + %s
WHERE id = %s AND ended_at IS NULL"""
# Of a turn that was taken for lost, calls are counted already. A statement of its own: one that has waited for the
# conversation would see the turn as it was before that.
UNCOUNT = """
UPDATE conversations_conversation SET
  tool_count = tool_count - (SELECT tool_count FROM conversations_turn WHERE id = %s)
WHERE id = %s AND EXISTS (SELECT 1 FROM conversations_turn WHERE id = %s AND tool_count > 0)"""
UNSEEN = "DELETE FROM conversations_toolmapping WHERE conversation_id = %s AND tool_use_id = %s"


class StaleConversation(OwnFault):
    """What this process believed about the conversation is no longer so: reload, and open the turn again."""


class ConversationRow(Struct, frozen=True):
    id: int
    api_key: int
    external_id: str
    recognised: str
    session_id: str = ""
    agent_id: str = ""
    parent_agent_id: str = ""


class MessageRow(Struct, frozen=True):
    chain_hash: bytes
    parent_hash: bytes
    depth: int
    answers: int
    role: str
    content: bytes
    span: int = 1  # how many messages it holds
    message_id: str = ""
    upstream: str = ""
    model: str = ""
    state: bytes = b""


class Answered(Struct, frozen=True):
    tool_use_id: str
    status: str
    is_error: bool
    size: int


class OpenTurn(Struct, frozen=True, kw_only=True):
    """A turn begins: the conversation (new or known), what the request brought that was not stored yet, the turn itself."""

    conversation: ConversationRow
    created: bool  # the conversation's row may not exist yet
    turn: int
    process: int
    request_id: str
    message_id: str
    now: str
    requested_model: str
    params: bytes
    headers: bytes
    stream: bool
    head_hash: bytes
    system_digest: bytes
    tools_digest: bytes
    upstream: str
    resolved_model: str
    notes: bytes
    note_count: int
    sent_parent: int | None
    sent_prefix: int
    sent_tail: bytes
    sent_meta: bytes
    sent_depth: int
    state_ms: float
    blobs: tuple[tuple[bytes, bytes], ...] = ()
    messages: tuple[MessageRow, ...] = ()
    answered: tuple[Answered, ...] = ()
    claims: tuple[ClaimRow, ...] = ()

    def apply(self, db: Database) -> None:
        began = (self.message_id, self.upstream, self.resolved_model, self.notes, self.note_count)
        self.insert(db, ("running", *began, *NOT_ENDED), "running", 0, self.messages)

    def insert(
        self, db: Database, end: tuple[object, ...], status: str, calls: int, messages: tuple[MessageRow, ...]
    ) -> None:
        row = self.conversation
        self._touch(db, status, calls)
        for claim in self.claims:
            owner = (row.api_key, row.id, claim.kind, claim.token, self.turn)
            expired, ago = before_now(db, claim.seconds)
            db.expect(CLAIM.format(expired=expired), (*owner, ago), AlreadyClaimed(claim))
        identity = (self.turn, row.id, row.api_key, self.process, self.request_id, self.now)
        asked = (self.requested_model, self.params, self.headers, self.stream)
        context = (self.head_hash, self.system_digest, self.tools_digest)
        sent = (self.sent_parent or 0, self.sent_prefix, self.sent_tail, self.sent_meta, self.sent_depth)
        db.insert(TURN, TURN_ROW, (*identity, *asked, *context, *sent, self.state_ms, *end))
        for digest, data in self.blobs:
            db.insert(BLOB, BLOB_ROW, (row.id, digest, data))
        db.insert(MESSAGE, MESSAGE_ROW, *[message_values(row, self.turn, message) for message in messages])
        for result in self.answered:
            values = (result.status, result.is_error, result.size, self.now, self.turn, row.id, result.tool_use_id)
            db.execute(ANSWERED, values)

    def _touch(self, db: Database, status: str, calls: int) -> None:
        """The conversation has a turn more; that it exists, and that it may have one, is checked with it."""
        row, stale = self.conversation, StaleConversation("the conversation was ended meanwhile")
        activity = (calls, self.resolved_model or self.requested_model, status)
        if self.created:
            who = (row.id, row.api_key, row.external_id, row.recognised)
            session = (row.session_id, row.agent_id, row.parent_agent_id)
            db.ensure(CONVERSATION, CONVERSATION_ROW, (*who, *session, self.now, *activity), stale)
        else:
            db.expect(ACTIVITY, (*activity, row.id), stale)


class SaveMessages(Struct, frozen=True):
    """More of what a request brought than fits into its opening write."""

    conversation: ConversationRow
    turn: int
    messages: tuple[MessageRow, ...]

    def apply(self, db: Database) -> None:
        rows = (message_values(self.conversation, self.turn, message) for message in self.messages)
        db.insert(MESSAGE, MESSAGE_ROW, *rows)


def message_values(row: ConversationRow, turn: int, message: MessageRow) -> tuple[object, ...]:
    place = (message.chain_hash, message.parent_hash, message.depth, message.answers, message.span)
    answer = (message.message_id, message.upstream, message.model, message.state)
    return (row.id, row.api_key, *place, message.role, message.content, turn, *answer)


class SentRow(Struct, frozen=True):
    """A request as sent, kept whole."""

    body: bytes
    meta: bytes


class CloseTurn(Struct, frozen=True, kw_only=True):
    """A turn has ended, well or not: what came back, what was used, and the answer as a message of the tree."""

    conversation: ConversationRow
    turn: int
    request_id: str
    message_id: str
    now: str
    requested_model: str
    status: str
    attempts: bytes
    notes: bytes
    note_count: int
    answer: bytes
    answer_meta: bytes
    usage: tuple[UsageRow, ...]
    tools: tuple[tuple[str, int], ...] = ()  # names, and how often the answer calls them
    unseen: tuple[str, ...] = ()  # calls that no client was shown
    message: MessageRow | None = None
    stop_reason: str = ""
    http_status: int = 0
    error_type: str = ""
    error_message: str = ""
    first_byte_ms: float = 0.0
    first_token_ms: float = 0.0
    duration_ms: float = 0.0
    release: tuple[ClaimRow, ...] = ()  # a turn that failed gives its claims back
    sent: SentRow | None = None  # what was sent instead of the request that the turn was opened with
    late: bool = False  # nobody waits for it; an earlier try may have been stored after all

    def apply(self, db: Database) -> None:
        # An end may have been stored after all when nobody waited for that any more: it counts, and once. If it was an
        # answer, who asks again gets it.
        if self.late and db.query(COUNTED, (self.request_id,)):
            return
        # A conversation that was terminated meanwhile has no rows to change; the ledger still counts what was used.
        row = self.conversation
        touched = (self.status, self.calls, row.id)
        if self.late:
            db.execute(TOUCH, touched)
        else:
            db.expect(TOUCH, touched, ConversationEnded("the conversation was terminated"))
        if self.late or self.calls:
            db.execute(UNCOUNT, (self.turn, row.id, self.turn))
        db.execute(CLOSE, (*self.end(), self.turn))
        if self.sent is not None:
            db.execute(SENT, (self.sent.body, self.sent.meta, self.turn))
        if self.message is not None:
            db.execute(MESSAGE_OF_TURN, (*message_values(row, self.turn, self.message), self.turn))
        for tool_use_id in self.unseen:
            db.execute(UNSEEN, (row.id, tool_use_id))
        for claim in self.release:
            sql = "DELETE FROM conversations_claim WHERE api_key_id = %s AND kind = %s AND token = %s AND turn = %s"
            db.execute(sql, (row.api_key, claim.kind, claim.token, self.turn))
        self.account(db)

    def end(self) -> tuple[object, ...]:
        """The values of the columns that are `ENDED`."""
        last = self.usage[-1]
        answer_hash = self.message.chain_hash if self.message else b""
        where = (self.status, self.message_id, last.upstream, last.model, self.notes, self.note_count)
        came = (last.returned_model, self.attempts, self.answer, self.answer_meta, answer_hash, self.stop_reason)
        error = (self.http_status, self.error_type, self.error_message)
        figures = (last.estimated, sum([entry.cost_micros for entry in self.usage]), self.calls)
        times = (self.first_byte_ms, self.first_token_ms, self.duration_ms)
        return (*where, *came, *error, *self._tokens(), *figures, *times)

    def account(self, db: Database) -> None:
        row = self.conversation
        account(db, row.api_key, row.external_id, self, self.usage, self.tools)

    @property
    def calls(self) -> int:
        return sum([entry.tool_count for entry in self.usage])

    def _tokens(self) -> tuple[int, ...]:
        """Of the attempts that the answer is made of: one, or as many as there were rounds."""
        if len(self.usage) == 1:
            return self.usage[0].tokens
        told = [entry.tokens for entry in self.usage if entry.status != "error"] or [self.usage[-1].tokens]
        return tuple(map(sum, zip(*told, strict=True)))


class WholeTurn(Struct, frozen=True):
    """A turn that was over before its opening was written: the rows of both, as they are in the end."""

    opening: OpenTurn
    closing: CloseTurn

    @property
    def conversation(self) -> ConversationRow:
        return self.opening.conversation

    def apply(self, db: Database) -> None:
        begun, ended = self.opening, self.closing
        messages = begun.messages if ended.message is None else (*begun.messages, ended.message)
        begun.insert(db, ended.end(), ended.status, ended.calls, messages)
        if ended.sent is not None:
            db.execute(SENT, (ended.sent.body, ended.sent.meta, begun.turn))
        ended.account(db)


class Heartbeat(Struct, frozen=True):
    """The process lives, and this is what it has counted."""

    process: int
    figures: bytes

    def apply(self, db: Database) -> None:
        sql = "UPDATE conversations_process SET seen_at = NOW(), figures = %s WHERE id = %s"
        db.execute(sql, (self.figures, self.process))
