"""Rows as the store would write them, in any number."""

import datetime as dt
from itertools import islice

import msgspec
import zstandard
from django.utils import timezone

from conversations import keys
from conversations.models import ApiKey, Conversation, Message, ToolMapping, Turn, UsageEntry

TOOLS = ("Bash", "Read", "Edit", "Grep", "WebSearch")
STATUSES = ("complete", "complete", "complete", "error", "aborted")
MODELS = (("openai", "gpt-5.5"), ("gemini", "gemini-3-pro"), ("demo", "demo"))
BATCH = 2_000


def encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


def a_key(name: str = "tests") -> ApiKey:
    return keys.issue(name)[0]


def a_conversation(key: ApiKey, number: int = 1, **columns: object) -> Conversation:
    moment = timezone.now() - dt.timedelta(seconds=number)
    upstream, model = MODELS[number % 3]
    return Conversation(
        **{
            "id": number, "api_key": key, "external_id": f"conv_{number:032x}", "created_at": moment,
            "last_activity": moment, "turn_count": 1, "tool_count": 1, "last_model": f"{upstream}/{model}",
            "last_status": STATUSES[number % 5], **columns,
        }
    )  # fmt: skip


def a_turn(conversation: Conversation, number: int = 1, **columns: object) -> Turn:
    upstream, model = MODELS[number % 3]
    return Turn(
        **{
            "id": number, "conversation": conversation, "api_key_id": conversation.api_key_id, "process": 1,
            "request_id": f"req_{number:024d}", "message_id": f"msg_{number:024d}", "status": STATUSES[number % 5],
            "started_at": conversation.created_at, "requested_model": "claude-sonnet-4-5", "upstream": upstream,
            "resolved_model": model, "note_count": number % 7 == 0, "tool_count": 1,
            "sent_tail": zstandard.compress(b'{"model":"m","messages":[]}'),
            "answer": zstandard.compress(b"data: x\n\n"),
            "input_tokens": 1_000, "output_tokens": 50, "duration_ms": 1_200, **columns,
        }
    )  # fmt: skip


def a_mapping(turn: Turn, number: int = 1, **columns: object) -> ToolMapping:
    return ToolMapping(
        **{
            "conversation_id": turn.conversation_id, "api_key_id": turn.api_key_id, "turn": turn,
            "tool_use_id": f"toolu_{number:024d}", "tool_name": TOOLS[number % 5], "upstream": turn.upstream,
            "upstream_name": TOOLS[number % 5], "upstream_call_id": f"call_{number}", "status": "answered",
            "model": turn.resolved_model, "arguments": msgspec.json.encode({"command": "ls", "n": number}),
            "created_at": turn.started_at, "answered_at": turn.started_at, **columns,
        }
    )  # fmt: skip


def an_answer(turn: Turn, number: int = 1, **columns: object) -> Message:
    return Message(
        **{
            "conversation_id": turn.conversation_id, "api_key_id": turn.api_key_id, "turn": turn, "depth": 2,
            "chain_hash": number.to_bytes(16), "parent_hash": b"", "answers": 1, "role": "assistant",
            "message_id": turn.message_id, "content": b'[{"type":"text","text":"done"}]',
            "created_at": turn.started_at, **columns,
        }
    )  # fmt: skip


def an_entry(turn: Turn, conversation: Conversation) -> UsageEntry:
    return UsageEntry(
        api_key_id=turn.api_key_id, conversation_id=conversation.external_id, request_id=turn.request_id,
        created_at=turn.started_at, requested_model=turn.requested_model, upstream=turn.upstream,
        model=turn.resolved_model, status=turn.status, input_tokens=1_000,
    )  # fmt: skip


def seed(number: int) -> ApiKey:
    """So many conversations, each with a turn, its answer, a tool call and its line in the ledger."""
    key = a_key()
    conversations = (a_conversation(key, n) for n in range(1, number + 1))
    while some := list(islice(conversations, BATCH)):
        turns = [a_turn(conversation, conversation.pk) for conversation in some]
        Conversation.objects.bulk_create(some)
        Turn.objects.bulk_create(turns)
        ToolMapping.objects.bulk_create([a_mapping(turn, turn.pk) for turn in turns])
        Message.objects.bulk_create([an_answer(turn, turn.pk) for turn in turns])
        UsageEntry.objects.bulk_create([an_entry(turn, one) for turn, one in zip(turns, some, strict=True)])
    return key
