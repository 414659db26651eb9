"""What has been kept long enough, by its key's period or else the bridge's: conversations, their text, the ledger."""

import datetime as dt

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from conversations import conf
from conversations.models import ApiKey, Conversation, Process, ToolEntry, Turn, TurnStatus, UsageEntry
from conversations.store import others

HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
LONGEST = 36_500 * DAY  # "for ever": databases cannot tell a time that is much longer ago
DEAD_AFTER = dt.timedelta(seconds=others.DEAD_AFTER)
LEDGER: tuple[type[UsageEntry] | type[ToolEntry], ...] = (UsageEntry, ToolEntry)


def living() -> "models.QuerySet[Process, int]":
    return Process.objects.filter(seen_at__gt=Now() - DEAD_AFTER).values_list("pk", flat=True)


def inactive() -> "models.QuerySet[Conversation]":
    """To be deleted. Never one that is held, or that a living process is working on."""
    return _idle().filter(_due("last_activity", "inactivity_hours", HOUR, conf.current().inactivity))


def with_old_content() -> "models.QuerySet[Conversation]":
    """Whose text is to be deleted: what was said since the last time, and is old enough by now."""
    unpurged = Q(content_purged_at=None) | Q(content_purged_at__lt=models.F("last_activity"))
    return _idle().filter(unpurged, _due("last_activity", "content_hours", HOUR, conf.current().content))


def old_entries(model: type[UsageEntry] | type[ToolEntry]) -> "models.QuerySet[UsageEntry | ToolEntry]":
    rows: models.QuerySet[UsageEntry | ToolEntry] = model._default_manager.all()
    return rows.filter(_due("created_at", "ledger_days", DAY, conf.current().ledger))


def _idle() -> "models.QuerySet[Conversation]":
    running = Turn.objects.filter(conversation=models.OuterRef("pk"), status=TurnStatus.RUNNING, process__in=living())
    return Conversation.objects.filter(~models.Exists(running), ended_at=None, held=False)


def _due(column: str, own: str, unit: dt.timedelta, default: dt.timedelta | None) -> Q:
    """Older than the period that the key has for itself in `own`, or than the bridge's."""
    periods = list(ApiKey.objects.exclude(**{own: None}).values_list(own, flat=True).distinct())
    others = {f"api_key__{own}": None} if periods else {}
    due = Q(pk__in=()) if default is None else Q(**others, **{f"{column}__lt": Now() - min(default, LONGEST)})
    for period in periods:
        due |= Q(**{f"api_key__{own}": period, f"{column}__lt": Now() - min(LONGEST / unit, period) * unit})
    return due
