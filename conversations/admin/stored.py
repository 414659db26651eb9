"""The store's reads on Django's own connection: a page needs no second one."""

from conversations.models import Conversation, Turn, UsageEntry
from conversations.replay import REPLAY
from conversations.store import reads
from conversations.store.packing import unpacked
from conversations.store.page import PageDatabase

ROUNDS = 20  # of one turn, on a page
Buffer = bytes | memoryview  # SQLite gives the one, PostgreSQL the other

# The large columns of a turn.
CONTENT = ("params", "headers", "attempts", "notes", "sent_tail", "sent_meta", "answer", "answer_meta")


def sent(turn: Turn) -> bytes:
    """The request as it was sent, b"" when the key does not keep it."""
    return reads.sent(PageDatabase(), turn.pk)


def rounds(turn: Turn) -> list[tuple[int, bytes, bytes]]:
    """Each further call of the upstream inside the turn: its number, the request as sent, the raw answer."""
    body, found = sent(turn), []
    for row in turn.rounds.order_by("number")[:ROUNDS]:
        body = body[: row.sent_prefix] + unpacked(bytes(row.sent_tail))
        found.append((row.number, body, unpacked(bytes(row.answer))))
    return found


def entries(turn: Turn) -> list[UsageEntry]:
    """Of each call of an upstream that the turn made."""
    return list(UsageEntry.objects.filter(request_id=turn.request_id).exclude(status=REPLAY).order_by("attempt", "pk"))


def path(conversation: Conversation, head: Buffer) -> list[reads.Stored]:
    return reads.path(PageDatabase(), conversation.pk, bytes(head)) if head else []


def blob(conversation: Conversation, digest: Buffer) -> bytes:
    return reads.blob(PageDatabase(), conversation.pk, bytes(digest)) if digest else b""
