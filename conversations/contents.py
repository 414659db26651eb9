"""Deleting what was said in a conversation, while its structure and its tool calls stay: as for a key that stores
metadata only.
"""

from typing import Any

import msgspec
from django.db import transaction
from django.db.models.functions import Now

from conversations import search
from conversations.deleting import Pieces
from conversations.models import Blob, Change, Claim, Conversation, Message, Replay, Round, ToolExecution, Turn
from conversations.store import packing

SLICE = 200
# No later request may be stored as a continuation of one that is gone: this deep, a request is stored whole.
DEEPEST = 32_767
CALL = b'"tool_use"'  # in an outline


def purge(conversation: Conversation) -> None:
    """Slice by slice; whoever is killed in between, the next purge begins anew. Processes forget what they cached."""
    pk, last = conversation.pk, 0
    while messages := list(Message.objects.filter(conversation=pk, pk__gt=last).order_by("pk")[:SLICE]):
        last = messages[-1].pk
        for message in messages:
            message.content = packing.changed(message.span, bytes(message.content), outline)
            if CALL not in message.content:
                message.state = b""  # reasoning, that no call needs back
        Message.objects.bulk_update(messages, ["content", "state"])
    with transaction.atomic():
        # Before its turns and claims, as every turn takes them: in another order two would wait for each other.
        Conversation.objects.filter(pk=pk).update(content_purged_at=Now())
        Change.objects.create(kind="forgotten", ref=str(pk), created_at=Now())
        Blob.objects.filter(conversation=pk).delete()
        Claim.objects.filter(conversation=pk).delete()
        Replay.objects.filter(conversation=pk).delete()
        Turn.objects.filter(conversation=pk).update(
            sent_parent=None, sent_prefix=0, sent_tail=b"", sent_depth=DEEPEST, answer=b"", answer_meta=b"{}",
            params=b"{}", system_digest=b"", tools_digest=b"",
        )  # fmt: skip
        ToolExecution.objects.filter(conversation=pk).update(arguments=b"", result=b"", state=b"")
        Round.objects.filter(conversation=pk).delete()
    # After the time is set: what is read from now on is the outline.
    search.forget([pk], Pieces())


def outline(content: bytes) -> bytes:
    """Kinds and sizes of blocks."""
    blocks: list[dict[str, Any]] = msgspec.json.decode(content) if content else []
    return msgspec.json.encode([block if is_outline(block) else _outlined(block) for block in blocks])


def is_outline(block: dict[str, Any]) -> bool:
    return "size" in block and len(block) == 2


def _outlined(block: dict[str, Any]) -> dict[str, Any]:
    return {"type": block.get("type", ""), "size": len(msgspec.json.encode(block))}
