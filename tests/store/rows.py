"""Writes as the hot path makes them, with as little in them as a test can do with."""

from itertools import count
from typing import Any

import msgspec

from conversations.store.links import LinkRow, SaveLinks
from conversations.store.usage import UsageRow
from conversations.store.writes import CloseTurn, ConversationRow, MessageRow, OpenTurn

_ids = count(1_000)
NOW = "2026-11-16 12:00:00.000000"


def conversation(api_key: int, name: str = "") -> ConversationRow:
    id_ = next(_ids)
    return ConversationRow(id_, api_key, name or f"conv-{id_}", "header")


def opening(row: ConversationRow, **changes: Any) -> OpenTurn:
    turn = next(_ids)
    write = OpenTurn(
        conversation=row, created=True, turn=turn, process=1, request_id=f"req_{turn}", message_id=f"msg_{turn}",
        now=NOW, requested_model="m", params=b"{}", headers=b"{}", stream=True, head_hash=b"h" * 16, system_digest=b"",
        tools_digest=b"", upstream="openai", resolved_model="m", notes=b"[]", note_count=0, sent_parent=None,
        sent_prefix=0, sent_tail=b"", sent_meta=b"{}", sent_depth=0, state_ms=0.0,
    )  # fmt: skip
    return msgspec.structs.replace(write, **changes)


def links(row: ConversationRow, turn: int, *ids: str, **changes: Any) -> SaveLinks:
    rows = tuple(LinkRow(id_, "get_weather", "get_weather", f"up_{id_}", n, **changes) for n, id_ in enumerate(ids))
    return SaveLinks(row, turn, "openai", "m", rows)


def message(chain_hash: bytes, parent: bytes, depth: int, **changes: Any) -> MessageRow:
    row = MessageRow(chain_hash, parent, depth, 0, "user", b'[{"type":"text","text":"a\\u0000b"}]')
    return msgspec.structs.replace(row, **changes)


def closing(row: ConversationRow, turn: int, **changes: Any) -> CloseTurn:
    write = CloseTurn(
        conversation=row, turn=turn, request_id=f"req_{turn}", message_id=f"msg_{turn}", now=NOW, requested_model="m",
        status="complete", attempts=b"[]", notes=b"[]", note_count=0, answer=b"", answer_meta=b"{}",
        usage=(UsageRow(attempt=1, upstream="openai", model="m", status="complete", input_tokens=3, output_tokens=4),),
    )  # fmt: skip
    return msgspec.structs.replace(write, **changes)
