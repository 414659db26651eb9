"""Where turns ended, and what they answered. Each is one hop to a reader's thread."""

from typing import Any

import msgspec
from msgspec import Struct

from conversations.store.database import Database
from conversations.store.packing import messages, unpacked
from conversations.store.reads import Found
from translation.events import MessageDelta
from translation.values import Note, Usage


class Answer(Struct, frozen=True):
    """Where a turn ended: what a continuation starts from."""

    conversation: Found
    turn: int
    status: str
    head_hash: bytes
    answer_hash: bytes
    system_digest: bytes
    tools_digest: bytes
    stop_reason: str


class Delivered(Struct, frozen=True):
    message_id: str
    content: bytes
    ending: MessageDelta
    notes: tuple[Note, ...]


class RawAnswer(Struct, frozen=True):
    """What an upstream wrote."""

    answer: bytes
    content_type: str


class _Meta(Struct, frozen=True):
    """Of an answer: what a client is told of its end."""

    sequence: str = ""
    explanation: str = ""
    searches: int = 0
    content_type: str = ""


_META = msgspec.json.Decoder(_Meta)
_NOTES = msgspec.json.Decoder(tuple[Note, ...])
LOOK_AT = 1_000  # turns
BESIDE = 100  # turns of one conversation, after its last answer
ANSWER = """
SELECT c.id, c.external_id, t.id, t.status, t.head_hash, t.answer_hash, t.system_digest, t.tools_digest, t.stop_reason
FROM conversations_turn t JOIN conversations_conversation c ON c.id = t.conversation_id AND c.ended_at IS NULL """


def answer_by_message(db: Database, key: int, message_id: str) -> Answer | None:
    """The complete turn that answered with this msg_… id."""
    where = "WHERE t.api_key_id = %s AND t.message_id = %s AND t.status = 'complete' ORDER BY t.id DESC LIMIT 1"
    return _answer(db.query(ANSWER + where, (key, message_id)))


def answer_of_turn(db: Database, turn: int) -> Answer | None:
    return _answer(db.query(ANSWER + "WHERE t.id = %s", (turn,)))


def last_answer(db: Database, conversation_id: int) -> Answer | None:
    """The newest turn of a conversation that has an answer."""
    where = "WHERE t.conversation_id = %s AND t.status = 'complete' ORDER BY t.id DESC LIMIT 1"
    return _answer(db.query(ANSWER + where, (conversation_id,)))


def last_said(db: Database, conversation_id: int) -> tuple[Answer | None, Answer | None, bool]:
    """The newest turn that has an answer, and the newest after it that was cut off: its question was said all the same.
    And whether others after it run still.

    Not one that was refused before anything was shown: whoever asked knows that it was not taken.
    """
    last = last_answer(db, conversation_id)
    where = """WHERE t.conversation_id = %s AND t.id > %s AND (t.status IN ('running', 'aborted') OR t.status = 'error'
        AND (t.http_status = 0 OR t.stream AND t.first_token_ms > 0)) ORDER BY t.id DESC LIMIT %s"""
    rows = db.query(ANSWER + where, (conversation_id, last.turn if last else 0, BESIDE))
    cut = [row for row in rows if row[3] != "running"]
    return last, _answer(cut), len(cut) < len(rows)


def newest_equal(db: Database, key: int, since: int, asked: tuple[object, ...]) -> Answer | None:
    """The newest of the last turns that asked the same. No index leads to it, so only so many are looked at."""
    columns = ("head_hash", "requested_model", "params", "system_digest", "tools_digest", "stream")
    last = f"SELECT id, api_key_id, {', '.join(columns)} FROM conversations_turn WHERE id >= %s"  # noqa: S608
    same = " AND ".join(f"l.{column} = %s" for column in ("api_key_id", *columns))
    newest = f"SELECT MAX(l.id) FROM ({last} ORDER BY id DESC LIMIT {LOOK_AT}) AS l WHERE {same}"  # noqa: S608
    return _answer(db.query(ANSWER + f"WHERE t.id = ({newest})", (since, key, *asked)))


def claim_holder(db: Database, key: int, kind: str, token: str) -> Answer | None:
    """The turn that holds a claim."""
    where = "JOIN conversations_claim k ON k.turn = t.id WHERE k.api_key_id = %s AND k.kind = %s AND k.token = %s"
    return _answer(db.query(ANSWER + where, (key, kind, token)))


def delivered(db: Database, turn: int) -> Delivered | None:
    """The answer of a complete turn, as it was delivered."""
    # By its hash: what was said before, at the same place, is one row: an earlier turn's, or the end of a packed
    # history.
    sql = """SELECT t.message_id, m.content, t.stop_reason, t.input_tokens, t.output_tokens, t.cache_read,
          t.cache_write, t.thinking_tokens, t.answer_meta, m.role, m.span, t.notes FROM conversations_turn t
        JOIN conversations_message m ON m.conversation_id = t.conversation_id AND m.chain_hash = t.answer_hash
        WHERE t.id = %s AND t.status = 'complete'"""
    for row in db.query(sql, (turn,)):
        meta = _META.decode(bytes(row[8]))
        usage = Usage(row[3], row[4], row[5], row[6], row[7], meta.searches)
        _, content = messages(row[9], row[10], row[1])[-1]
        ending = MessageDelta(row[2], usage, meta.sequence, meta.explanation)
        return Delivered(row[0], content, ending, _NOTES.decode(bytes(row[11])))
    return None


def raw_answer(db: Database, turn: int, upstream: str) -> RawAnswer | None:
    """What this upstream answered in a turn, where that is kept."""
    sql = "SELECT answer, answer_meta FROM conversations_turn WHERE id = %s AND upstream = %s"
    for answer, meta in db.query(sql, (turn, upstream)):
        return RawAnswer(unpacked(bytes(answer)), _META.decode(bytes(meta)).content_type) if answer else None
    return None


def _answer(rows: list[tuple[Any, ...]]) -> Answer | None:
    for row in rows:
        head, answer, system, tools = (bytes(value) for value in row[4:8])
        return Answer(Found(row[0], row[1]), row[2], row[3], head, answer, system, tools, row[8])
    return None
