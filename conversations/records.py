"""From what happened in a turn to the rows that remember it, at the storage level of its key."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from conversations import message_rows, parameters, secrets, sent_rows, usage_rows
from conversations.conversation import Sent
from conversations.storable import digest, words
from conversations.store.database import timestamp
from conversations.store.links import LinkRow
from conversations.store.packing import compress
from conversations.store.reads import Node
from conversations.store.writes import CloseTurn, MessageRow, OpenTurn, SaveMessages
from translation.adapter import UpstreamRequest
from translation.errors import BridgeError
from translation.memo import Memo
from translation.unicode import well_formed
from translation.values import Note, ToolResult

if TYPE_CHECKING:
    from conversations.attempt import Attempt
    from conversations.stored_turn import StoredTurn

ROWS = 8  # in one write
NO_BLOB = (b"", b"")
_BLOBS: Memo[tuple[bytes, bytes]] = Memo(budget=8 * 1024 * 1024, largest=1024 * 1024)


class AttemptRecord(Struct, frozen=True):
    upstream: str
    model: str
    status: str
    error: str
    ms: float


class Timings(Struct):
    """Milliseconds since the request was received."""

    state: float = 0.0
    first_byte: float = 0.0
    first_token: float = 0.0
    duration: float = 0.0


class Opening(Struct, frozen=True):
    """The opening write, and more writes where a request brings very many messages: no transaction may grow long."""

    write: OpenTurn
    more: tuple[SaveMessages, ...]
    head: Node  # of the request's last message
    depth: int  # of the chain of sent requests
    sent: UpstreamRequest  # as it is stored


def opening(turn: StoredTurn, last: Sent | None) -> Opening:
    ask, prepared, notes = turn.ask, turn.errand.prepared, turn.errand.notes
    asked, storage, received, conversation = ask.request, ask.key.storage, prepared.received, prepared.conversation
    aimed, full = prepared.aimed, storage == "full"
    sent, target = sent_rows.kept(asked, aimed.sent), aimed.route.target
    rows, head = message_rows.messages(conversation, received, prepared.chain, storage, turn.bridge.form)
    change = sent_rows.delta(last, sent.body if full else b"")
    system, tools = (_blob(received.raw_system), _blob(received.raw_tools)) if full else (NO_BLOB, NO_BLOB)
    write = OpenTurn(
        conversation=conversation.row,
        created=not conversation.stored,
        turn=turn.id,
        process=turn.bridge.settings.process,
        request_id=ask.request_id,
        message_id=turn.message_id,
        now=now(),
        requested_model=asked.model[:200],
        params=parameters.dump(asked, texts=full) if storage != "minimal" else b"{}",
        headers=ask.head.stored if storage != "minimal" else b"{}",
        stream=asked.stream,
        head_hash=head.chain_hash,
        system_digest=system[0],
        tools_digest=tools[0],
        upstream=target.upstream,
        resolved_model=target.model[:200],
        notes=_notes(notes),
        note_count=len(notes),
        sent_parent=change.parent,
        sent_prefix=change.prefix,
        sent_tail=change.tail,
        sent_meta=sent_rows.meta(sent),
        sent_depth=change.depth,
        state_ms=turn.timings.state,
        blobs=tuple([blob for blob in (system, tools) if blob[0]]) if system[0] or tools[0] else (),
        messages=rows[:ROWS],
        answered=message_rows.answered(asked) if ToolResult in asked.kinds else (),
        claims=turn.claims,
    )
    more = _more(write, rows) if len(rows) > ROWS else ()
    return Opening(write, more, head, change.depth, sent)


def _more(write: OpenTurn, rows: tuple[MessageRow, ...]) -> tuple[SaveMessages, ...]:
    parts = (rows[start : start + ROWS] for start in range(ROWS, len(rows), ROWS))
    return tuple(SaveMessages(write.conversation, write.turn, part) for part in parts)


def _notes(notes: list[Note]) -> bytes:
    return msgspec.json.encode(notes) if notes else b"[]"


def closing(
    turn: StoredTurn, status: str, error: BridgeError | None, message: MessageRow | None, returned: str, *, late: bool
) -> CloseTurn:
    ask, attempt, timings, full = turn.ask, turn.hop[1], turn.timings, turn.ask.key.storage == "full"
    errand = turn.errand
    return CloseTurn(
        conversation=errand.prepared.conversation.row,
        turn=turn.id,
        request_id=ask.request_id,
        message_id=turn.message_id,
        now=now(),
        requested_model=ask.request.model[:200],
        status=status,
        attempts=msgspec.json.encode(turn.attempts),
        notes=_notes(errand.notes),
        note_count=len(errand.notes),
        answer=compress(b"".join(attempt.raw)) if full else b"",
        answer_meta=_ending(attempt) if full else answer_meta(attempt),
        usage=usage_rows.entries(turn, status, returned),
        tools=_tools(turn),
        unseen=tuple(turn.unseen),
        message=message,
        stop_reason=attempt.accumulator.stop_reason or "",
        http_status=error.status if error else 200,
        error_type=error.type if error else "",
        error_message=words(error, ask.key.storage) if error else "",
        first_byte_ms=timings.first_byte,
        first_token_ms=timings.first_token,
        duration_ms=timings.duration,
        release=turn.claims if status != "complete" else (),
        sent=sent_rows.sent_instead(turn),
        late=late,
    )


def _tools(turn: StoredTurn) -> tuple[tuple[str, int], ...]:
    """How often the answer called each tool."""
    return tuple(Counter(call.name[:200] for call in turn.calls.values()).items()) if turn.calls else ()


class _Ending(Struct, omit_defaults=True):
    """With why it ended, where there are words for it, and its searches: who asks again gets the same end."""

    status: int
    content_type: str
    sequence: str = ""
    explanation: str = ""
    searches: int = 0


def answer_meta(attempt: Attempt) -> bytes:
    return msgspec.json.encode(_Ending(attempt.status, attempt.content_type))


def _ending(attempt: Attempt) -> bytes:
    said = attempt.accumulator
    words = (
        (well_formed(said.sequence), well_formed(said.explanation)) if said.sequence or said.explanation else ("", "")
    )
    return msgspec.json.encode(_Ending(attempt.status, attempt.content_type, *words, said.usage.searches))


def sealed(turn: StoredTurn, links: tuple[LinkRow, ...]) -> tuple[LinkRow, ...]:
    """A key that keeps only what tool mapping needs has that encrypted, where there is a key for it."""
    if turn.ask.key.storage != "minimal" or not secrets.configured():
        return links
    return tuple(
        replace(link, arguments=secrets.seal(link.arguments), state=secrets.seal(link.state)) for link in links
    )


def milliseconds(seconds: float) -> float:
    """To the microsecond. `round` takes the way over decimal digits, which costs ten times as much."""
    return int(seconds * 1_000_000) / 1000


def now() -> str:
    return timestamp(time.time())


def _blob(raw: bytes) -> tuple[bytes, bytes]:
    """Its digest, and how it is kept. Clients send the same system and tools with every turn."""
    return _BLOBS.get(raw, lambda: (digest(raw), compress(raw))) if raw else NO_BLOB
