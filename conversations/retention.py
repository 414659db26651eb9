"""Ending conversations: terminate one, purge the inactive, and close what a dead process left running.

An ended conversation is first taken out of sight in one small statement: from then on nothing finds it, and a turn
that still believes in it fails. Its rows are then deleted in slices, each in a short transaction; whoever is killed in
between, the next purge goes on.
"""

import datetime as dt
import logging
import time

from django.db import connection, models, transaction
from django.db.models.functions import Cast, Concat, Now
from django.utils import timezone
from msgspec import Struct

from conversations import conf
from conversations.models import Blob, Change, Claim, Conversation, Message, Process, ToolMapping, Turn, TurnStatus
from translation.errors import Conflict

log = logging.getLogger(__name__)

SLICE = 500  # rows in one transaction: under 50 ms
BATCH = 100  # conversations taken out of sight at once
DEAD_AFTER = dt.timedelta(seconds=30)
REQUEST_CLAIMS = dt.timedelta(minutes=10)
CHANGES = dt.timedelta(hours=1)
DEAD_PROCESSES = dt.timedelta(days=1)
OWNED: tuple[type[models.Model], ...] = (Claim, ToolMapping, Message, Blob, Turn)


class Deleted(Struct, frozen=True):
    messages: int = 0
    turns: int = 0
    tool_mappings: int = 0


def terminate(conversation: Conversation) -> Deleted:
    """All state of it, now. Other processes hear of it within a second and end its running turns."""
    with transaction.atomic():
        found = Conversation.objects.select_for_update().filter(pk=conversation.pk, ended_at=None).first()
        if found is None:
            return Deleted()
        if found.held:
            raise Conflict("the conversation is held by an operator and cannot be terminated")
        deleted = Deleted(found.messages.count(), found.turns.count(), found.tool_mappings.count())
        _hide(Conversation.objects.filter(pk=found.pk))
        Change.objects.create(kind="conversation", ref=str(found.pk), created_at=timezone.now())
    _delete_rows(found.pk)
    return deleted


def announce_forgotten(conversation: Conversation) -> None:
    """A mapping of it was deleted: what processes have cached of it is no longer true."""
    Change.objects.create(kind="forgotten", ref=str(conversation.pk), created_at=timezone.now())


def purge(budget: float = 240.0) -> int:
    """The conversations that were idle for too long, and what earlier runs left. How many were deleted."""
    started, count = time.monotonic(), 0
    while time.monotonic() - started < budget:
        ended = _ended() or (_hide_inactive() and _ended())
        if not ended:
            break
        for pk in ended:
            count += _delete_rows(pk)
    return count


def backlog() -> int:
    """Conversations that the next purge will delete."""
    return Conversation.objects.filter(ended_at__isnull=False).count() + _inactive().count()


def reconcile() -> int:
    """Close the turns of processes that are no longer alive, and sweep what nobody needs any more."""
    closed = 0
    while turns := list(
        Turn.objects.filter(status=TurnStatus.RUNNING)
        .exclude(process__in=_living())
        .values_list("pk", flat=True)[:SLICE]
    ):
        with transaction.atomic():
            error = {"error_type": "api_error", "error_message": "the process that ran this turn died"}
            closed += Turn.objects.filter(pk__in=turns, status=TurnStatus.RUNNING).update(
                status=TurnStatus.ERROR, **error
            )
            Claim.objects.filter(turn__in=turns).delete()
    Claim.objects.filter(kind="request", created_at__lt=Now() - REQUEST_CLAIMS).delete()
    Change.objects.filter(created_at__lt=Now() - CHANGES).delete()
    Process.objects.filter(seen_at__lt=Now() - DEAD_PROCESSES).delete()
    return closed


def _living() -> "models.QuerySet[Process, int]":
    return Process.objects.filter(seen_at__gt=Now() - DEAD_AFTER).values_list("pk", flat=True)


def _inactive() -> "models.QuerySet[Conversation]":
    running = Turn.objects.filter(conversation=models.OuterRef("pk"), status=TurnStatus.RUNNING, process__in=_living())
    idle = Conversation.objects.filter(ended_at=None, held=False, last_activity__lt=Now() - conf.current().inactivity)
    return idle.filter(~models.Exists(running))


def _hide(conversations: "models.QuerySet[Conversation]") -> int:
    """Out of sight: the name is free again."""
    name = Concat(models.Value("ended:"), Cast("pk", models.CharField()))
    return conversations.update(ended_at=Now(), external_id=name)


def _hide_inactive() -> int:
    with transaction.atomic():
        # Two purges at once must not wait for each other; SQLite has one writer anyway.
        chosen = _inactive().order_by("last_activity")
        if connection.features.has_select_for_update_skip_locked:
            chosen = chosen.select_for_update(skip_locked=True, of=("self",))
        chosen_pks = list(chosen.values_list("pk", flat=True)[:BATCH])
        # The conditions once more: what became active since it was chosen stays.
        return _hide(_inactive().filter(pk__in=chosen_pks))


def _ended() -> list[int]:
    return list(Conversation.objects.filter(ended_at__isnull=False).values_list("pk", flat=True)[:BATCH])


def _delete_rows(pk: int) -> int:
    """Slice by slice, the conversation itself last; 1 if this call deleted it."""
    for model in OWNED:
        while True:
            with transaction.atomic():
                rows = list(model._default_manager.filter(conversation=pk).values_list("pk", flat=True)[:SLICE])
                manager = model._default_manager.filter(pk__in=rows)
                manager._raw_delete(manager.db)  # the cascade is ours, in this order
            if len(rows) < SLICE:
                break
    return Conversation.objects.filter(pk=pk)._raw_delete("default")
