"""Tables. Cold code uses them through the ORM; the hot path reads and writes them through `conversations.store`."""

from conversations.models.configuration import ApiKey, Price, StorageLevel
from conversations.models.history import Blob, Conversation, Message, ToolMapping, ToolStatus, Turn, TurnStatus
from conversations.models.ledger import ToolEntry, UsageEntry
from conversations.models.processes import Change, Claim, Process, Tally
from conversations.models.routing import Learned, Rest, Route, Upstream

__all__ = [
    "ApiKey",
    "Blob",
    "Change",
    "Claim",
    "Conversation",
    "Learned",
    "Message",
    "Price",
    "Process",
    "Rest",
    "Route",
    "StorageLevel",
    "Tally",
    "ToolEntry",
    "ToolMapping",
    "ToolStatus",
    "Turn",
    "TurnStatus",
    "Upstream",
    "UsageEntry",
]
