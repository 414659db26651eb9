"""Tables. Cold code uses them through the ORM; the hot path reads and writes them through `conversations.store`."""

from conversations.models.configuration import ApiKey, Price, StorageLevel
from conversations.models.history import (
    Blob,
    Conversation,
    Message,
    SearchedTurn,
    ToolMapping,
    ToolStatus,
    Turn,
    TurnStatus,
)
from conversations.models.hosted import ExecutionStatus, HostedTool, Round, ToolExecution, ToolSecret
from conversations.models.ledger import ToolEntry, UsageEntry
from conversations.models.processes import Change, Claim, LiveSnapshot, Process, Tally
from conversations.models.replays import Replay
from conversations.models.routing import Learned, Rest, Route, Upstream

__all__ = [
    "ApiKey",
    "Blob",
    "Change",
    "Claim",
    "Conversation",
    "ExecutionStatus",
    "HostedTool",
    "Learned",
    "LiveSnapshot",
    "Message",
    "Price",
    "Process",
    "Replay",
    "Rest",
    "Round",
    "Route",
    "SearchedTurn",
    "StorageLevel",
    "Tally",
    "ToolEntry",
    "ToolExecution",
    "ToolMapping",
    "ToolSecret",
    "ToolStatus",
    "Turn",
    "TurnStatus",
    "Upstream",
    "UsageEntry",
]
