"""What the demo does to the database itself: keys, and the times of what has happened."""

import datetime as dt
from typing import Any

from django.db.models import F

from conversations import keys
from conversations.models import Conversation, Message, ToolEntry, ToolExecution, ToolMapping, Turn, UsageEntry

TIMES: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    (Message, "turn__in", ("created_at",)),
    (ToolMapping, "turn__in", ("created_at", "answered_at")),
    (ToolExecution, "turn__in", ("created_at", "seen_at", "finished_at")),
    (Turn, "pk__in", ("started_at",)),
)


def a_key(name: str) -> str:
    return keys.issue(name, hosted_tools=True)[1]


def spread(hours: float) -> None:
    """Everything happened within a minute; moved back, in order, plots and filters have something to show."""
    found = list(Conversation.objects.order_by("created_at").values_list("pk", flat=True))
    for place, pk in enumerate(found):
        back = dt.timedelta(hours=hours * (1 - (place + 1) / len(found)) ** 1.4)
        _move(pk, back)


def _move(pk: int, back: dt.timedelta) -> None:
    turns = dict(Turn.objects.filter(conversation=pk).values_list("pk", "request_id"))
    for model, lookup, columns in TIMES:
        model.objects.filter(**{lookup: list(turns)}).update(**{column: F(column) - back for column in columns})
    for ledger in (UsageEntry, ToolEntry):
        ledger._default_manager.filter(request_id__in=list(turns.values())).update(created_at=F("created_at") - back)
    moved = {column: F(column) - back for column in ("created_at", "last_activity")}
    Conversation.objects.filter(pk=pk).update(**moved)
