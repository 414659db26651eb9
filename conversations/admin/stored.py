"""The store's reads on Django's own connection: a page needs no second one."""

from conversations.models import Conversation, Turn
from conversations.store import reads
from conversations.store.page import PageDatabase

Buffer = bytes | memoryview  # SQLite gives the one, PostgreSQL the other

# The large columns of a turn.
CONTENT = ("params", "headers", "attempts", "notes", "sent_tail", "sent_meta", "answer", "answer_meta")


def sent(turn: Turn) -> bytes:
    """The request as it was sent, b"" when the key does not keep it."""
    return reads.sent(PageDatabase(), turn.pk)


def path(conversation: Conversation, head: Buffer) -> list[reads.Stored]:
    return reads.path(PageDatabase(), conversation.pk, bytes(head)) if head else []


def blob(conversation: Conversation, digest: Buffer) -> bytes:
    return reads.blob(PageDatabase(), conversation.pk, bytes(digest)) if digest else b""
