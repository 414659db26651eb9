"""What the hot path asks the database when its cache does not know. Each is one hop to a reader's thread."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from conversations.secrets import Unreadable, unseal
from conversations.store.database import Database
from conversations.store.packing import packed, unpacked
from translation.values import Link, Origin, Role

log = logging.getLogger(__name__)

CHUNK = 200  # values in one IN list
SENT_CHAIN = 256  # a request as sent is kept whole at least every so many turns


class Found(Struct, frozen=True):
    """A conversation's row."""

    id: int
    external_id: str


class Node(Struct, frozen=True):
    """A message of the tree, without its content."""

    chain_hash: bytes
    depth: int
    answers: int


class Known(Struct, frozen=True):
    """What the store knows of the ids and hashes that a request mentions."""

    links: dict[str, Link]
    turns: dict[bytes, int]  # of every message that is stored; 0 is nobody's answer
    origins: dict[int, Origin]
    nodes: tuple[Node, ...]


class Stored(Struct, frozen=True):
    """A stored message, with its content."""

    role: Role
    content: bytes
    chain_hash: bytes
    depth: int
    answers: int
    node: bool = True  # whether a row ends with it, so that others can follow it


def conversation(db: Database, key: int, external_id: str) -> Found | None:
    sql = """SELECT id, external_id FROM conversations_conversation
        WHERE api_key_id = %s AND external_id = %s AND ended_at IS NULL"""
    for row in db.query(sql, (key, external_id)):
        return Found(*row)
    return None


def is_there(db: Database, conversation_id: int) -> bool:
    sql = "SELECT 1 FROM conversations_conversation WHERE id = %s AND ended_at IS NULL"
    return bool(db.query(sql, (conversation_id,)))


def by_tool(db: Database, key: int, tool_use_ids: Sequence[str], hashes: Sequence[bytes] = ()) -> Found | None:
    """The conversation of the newest of these calls; of several that have this id, the one that has been going so."""
    for chunk in _chunks(tool_use_ids):
        sql = f"""SELECT m.tool_use_id, c.id, c.external_id FROM conversations_toolmapping m
            JOIN conversations_conversation c ON c.id = m.conversation_id AND c.ended_at IS NULL
            WHERE m.api_key_id = %s AND m.tool_use_id IN ({_marks(chunk)}) ORDER BY m.id DESC LIMIT {CHUNK}"""
        if rows := db.query(sql, (key, *chunk)):
            homes = [Found(*row[1:]) for row in rows if row[0] == rows[0][0]]
            return (by_prefix(db, key, hashes, homes) if len(homes) > 1 else None) or homes[0]
    return None


def by_prefix(db: Database, key: int, hashes: Sequence[bytes], homes: Sequence[Found] = ()) -> Found | None:
    """The conversation (one of `homes`) that holds the longest of these chains with an answer of ours in it. Longest
    chain last.
    """
    among = f"AND c.id IN ({_marks(homes)})" if homes else ""
    for chunk in _chunks(hashes):
        sql = f"""SELECT c.id, c.external_id FROM conversations_message m
            JOIN conversations_conversation c ON c.id = m.conversation_id AND c.ended_at IS NULL {among}
            WHERE m.api_key_id = %s AND m.answers > 0 AND m.chain_hash IN ({_marks(chunk)})
            ORDER BY m.depth DESC, m.id DESC LIMIT 1"""
        for row in db.query(sql, (*(home.id for home in homes), key, *chunk)):
            return Found(*row)
    return None


def known(db: Database, conversation_id: int, tool_use_ids: Sequence[str], hashes: Sequence[bytes]) -> Known:
    links = _links(db, conversation_id, tool_use_ids)
    nodes: list[Node] = []
    turns: dict[bytes, int] = {}
    for chunk in _chunks(hashes):
        sql = f"""SELECT chain_hash, depth, answers, turn_id, message_id FROM conversations_message
            WHERE conversation_id = %s AND chain_hash IN ({_marks(chunk)})"""
        for chain_hash, depth, answers, turn, message_id in db.query(sql, (conversation_id, *chunk)):
            turns[bytes(chain_hash)] = turn if message_id else 0
            nodes.append(Node(bytes(chain_hash), depth, answers))
    wanted = {link.turn_id for link in links.values()} | set(turns.values()) - {0}
    return Known(links, turns, _origins(db, conversation_id, sorted(wanted)), tuple(nodes))


def known_elsewhere(db: Database, key: int, tool_use_ids: Sequence[str], hashes: Sequence[bytes]) -> Known:
    """What any conversation of the key knows of these calls and answers."""
    homes: dict[int, None] = {}
    for chunk in _chunks(tool_use_ids):
        sql = f"""SELECT DISTINCT m.conversation_id FROM conversations_toolmapping m
            JOIN conversations_conversation c ON c.id = m.conversation_id AND c.ended_at IS NULL
            WHERE m.api_key_id = %s AND m.tool_use_id IN ({_marks(chunk)})"""
        homes |= dict.fromkeys(row[0] for row in db.query(sql, (key, *chunk)))
    links: dict[str, Link] = {}
    origins: dict[int, Origin] = {}
    for home in homes:
        found = known(db, home, tool_use_ids, ())
        links |= found.links
        origins |= found.origins
    turns: dict[bytes, int] = {}
    for chunk in _chunks(hashes):
        # Of several that were the same up to there the first: it stays so when there are more.
        sql = f"""SELECT chain_hash, turn_id, upstream, model, state FROM conversations_message WHERE id IN (
            SELECT MIN(m.id) FROM conversations_message m
            JOIN conversations_conversation c ON c.id = m.conversation_id AND c.ended_at IS NULL
            WHERE m.api_key_id = %s AND m.answers > 0 AND m.message_id <> '' AND m.chain_hash IN ({_marks(chunk)})
            GROUP BY m.chain_hash)"""
        for chain_hash, turn, upstream, model, state in db.query(sql, (key, *chunk)):
            turns[bytes(chain_hash)] = turn
            origins[turn] = Origin(upstream, model, bytes(state))
    return Known(links, turns, origins, ())


def _links(db: Database, conversation_id: int, tool_use_ids: Sequence[str]) -> dict[str, Link]:
    links: dict[str, Link] = {}
    for chunk in _chunks(tool_use_ids):
        sql = f"""SELECT tool_use_id, tool_name, upstream_name, upstream_call_id, arguments, upstream, model, state, turn_id, ordinal
            FROM conversations_toolmapping WHERE conversation_id = %s AND tool_use_id IN ({_marks(chunk)})"""
        links |= {link.tool_use_id: link for link in _readable(db.query(sql, (conversation_id, *chunk)))}
    return links


def _readable(rows: list[tuple[Any, ...]]) -> Iterator[Link]:
    """A call that was encrypted under a key which is gone is not known any more: who sends it goes on all the same."""
    for row in rows:
        try:
            yield _link(row)
        except Unreadable as error:
            log.error("state.unreadable %s: %s", row[0], error)


def _link(row: Sequence[Any]) -> Link:
    origin = Origin(row[5], row[6], unseal(bytes(row[7])))
    return Link(row[0], row[1], row[2], row[3], unseal(bytes(row[4])), origin, turn_id=row[8], ordinal=row[9])


def _origins(db: Database, conversation_id: int, turns: Sequence[int]) -> dict[int, Origin]:
    origins: dict[int, Origin] = {}
    for chunk in _chunks(turns):
        sql = f"""SELECT turn_id, upstream, model, state FROM conversations_message
            WHERE conversation_id = %s AND message_id <> '' AND turn_id IN ({_marks(chunk)})"""
        for turn, upstream, model, state in db.query(sql, (conversation_id, *chunk)):
            origins[turn] = Origin(upstream, model, bytes(state))
    return origins


def turn_links(db: Database, turn: int) -> list[Link]:
    sql = """SELECT tool_use_id, tool_name, upstream_name, upstream_call_id, arguments, upstream, model, state, turn_id, ordinal
        FROM conversations_toolmapping WHERE turn_id = %s ORDER BY ordinal"""
    return list(_readable(db.query(sql, (turn,))))


def path(db: Database, conversation_id: int, head: bytes) -> list[Stored]:
    """The messages from the root to `head`, in order."""
    sql = """WITH RECURSIVE path (role, span, content, chain_hash, parent_hash, depth, answers) AS (
          SELECT role, span, content, chain_hash, parent_hash, depth, answers FROM conversations_message
          WHERE conversation_id = %s AND chain_hash = %s
          UNION ALL
          SELECT m.role, m.span, m.content, m.chain_hash, m.parent_hash, m.depth, m.answers FROM conversations_message m
          JOIN path p ON m.conversation_id = %s AND m.chain_hash = p.parent_hash)
        SELECT span, role, content, chain_hash, depth, answers FROM path ORDER BY depth"""
    rows = db.query(sql, (conversation_id, head, conversation_id))
    return [message for row in rows for message in _spanned(*row)]


def _spanned(span: int, role: Role, content: Any, chain_hash: Any, depth: int, answers: int) -> Iterator[Stored]:
    if span == 1:
        yield Stored(role, unpacked(bytes(content)), bytes(chain_hash), depth, answers)
        return
    for before, one in enumerate(packed(bytes(content)), 1 - span):
        yield Stored(one.role, bytes(one.content), one.chain_hash, depth + before, answers, node=before == 0)


def blob(db: Database, conversation_id: int, digest: bytes) -> bytes:
    sql = "SELECT data FROM conversations_blob WHERE conversation_id = %s AND digest = %s"
    for (data,) in db.query(sql, (conversation_id, digest)):
        return unpacked(bytes(data))
    return b""


def last_sent(db: Database, conversation_id: int) -> tuple[int, int, bytes] | None:
    """The newest request of a conversation that will not change any more: its turn, its depth in the chain, its bytes."""
    sql = """SELECT id, sent_depth FROM conversations_turn WHERE conversation_id = %s AND status <> 'running'
        ORDER BY id DESC LIMIT 1"""
    for turn, depth in db.query(sql, (conversation_id,)):
        return turn, depth, sent(db, turn)
    return None


def sent(db: Database, turn: int) -> bytes:
    """A request as it was sent: shared prefixes of its ancestors and its own tail."""
    sql = """WITH RECURSIVE chain (parent, prefix, tail, step) AS (
          SELECT sent_parent, sent_prefix, sent_tail, 0 FROM conversations_turn WHERE id = %s
          UNION ALL
          SELECT t.sent_parent, t.sent_prefix, t.sent_tail, c.step + 1 FROM conversations_turn t
          JOIN chain c ON t.id = c.parent WHERE c.step <= %s)
        SELECT parent, prefix, tail FROM chain ORDER BY step DESC"""
    rows = db.query(sql, (turn, SENT_CHAIN))
    if not rows or rows[0][0] is not None:
        return b""  # an ancestor is gone
    body = b""
    for _, prefix, tail in rows:
        body = body[:prefix] + unpacked(bytes(tail))
    return body


def _marks(values: Sequence[Any]) -> str:
    return ", ".join(["%s"] * len(values))


def _chunks(values: Sequence[Any]) -> list[Sequence[Any]]:
    """Newest first: what is looked for is nearly always at the end."""
    return [values[max(end - CHUNK, 0) : end] for end in range(len(values), 0, -CHUNK)]
