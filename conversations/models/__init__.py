"""Tables. Cold code uses them through the ORM; the hot path reads and writes them through `conversations.store`."""

from conversations.models.configuration import ApiKey, StorageLevel
from conversations.models.history import Blob, Conversation, Message, ToolMapping, ToolStatus, Turn, TurnStatus
from conversations.models.ledger import UsageEntry
from conversations.models.processes import Change, Claim, Process

__all__ = [
    "ApiKey",
    "Blob",
    "Change",
    "Claim",
    "Conversation",
    "Message",
    "Process",
    "StorageLevel",
    "ToolMapping",
    "ToolStatus",
    "Turn",
    "TurnStatus",
    "UsageEntry",
]
