"""Ending conversations: terminate one, purge the inactive, and close what a dead process left running.

An ended conversation is first taken out of sight in one small statement: from then on nothing finds it, and a turn
that still believes in it fails. Its rows are then deleted in slices, each in a short transaction; whoever is killed in
between, the next purge goes on.
"""

import datetime as dt
import logging
import time
from dataclasses import dataclass, field
from typing import Any, Self

from django.db import connection, models, transaction
from django.db.models.functions import Cast, Concat, Now
from django.utils import timezone
from msgspec import Struct

from conversations import contents, expiry, search, tallies
from conversations.models import (
    Blob,
    Change,
    Claim,
    Conversation,
    LiveSnapshot,
    Message,
    Process,
    Replay,
    Round,
    ToolExecution,
    ToolMapping,
    Turn,
    TurnStatus,
)
from translation.errors import Conflict

log = logging.getLogger(__name__)

SLICE = 500  # rows in one transaction: under 50 ms
BATCH = 100  # conversations taken out of sight at once
DEAD_AFTER = expiry.DEAD_AFTER
REQUEST_CLAIMS = dt.timedelta(minutes=10)
CHANGES = dt.timedelta(hours=1)
DEAD_PROCESSES = dt.timedelta(days=1)
OWNED: tuple[type[models.Model], ...] = (
    Claim,
    LiveSnapshot,
    Replay,
    ToolMapping,
    ToolExecution,
    Round,
    Message,
    Blob,
    Turn,
)


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


class Backlog(Struct, frozen=True):
    """What the next purge will delete."""

    conversations: int
    contents: int  # conversations whose text goes
    entries: int  # of the ledger


def backlog() -> Backlog:
    ended = Conversation.objects.filter(ended_at__isnull=False).count()
    entries = sum(expiry.old_entries(model).count() for model in expiry.LEDGER)
    return Backlog(ended + expiry.inactive().count(), expiry.with_old_content().count(), entries)


@dataclass(slots=True)
class Purge:
    """One run, within its time: whatever is left, the next one goes on with."""

    budget: float
    conversations: int = 0
    contents: int = 0
    rows: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def run(self) -> Self:
        while self.elapsed < self.budget and (ended := _ended() or (_hide_inactive() and _ended())):
            for pk in ended:
                self.rows += _delete_rows(pk)
                self.conversations += 1
        while self.elapsed < self.budget and (stale := list(expiry.with_old_content()[:BATCH])):
            for conversation in stale:
                contents.purge(conversation)
                self.contents += 1
        for model in expiry.LEDGER:
            while self.elapsed < self.budget and (deleted := _delete_slice(expiry.old_entries(model))):
                self.rows += deleted
        return self


def purge(budget: float = 240.0) -> Purge:
    """What was kept long enough, and what earlier runs left."""
    done = Purge(budget).run()
    tallies.count(
        toolbridge_purge_runs_total=1,
        toolbridge_purge_seconds_total=done.elapsed,
        toolbridge_purged_conversations_total=done.conversations,
        toolbridge_purged_contents_total=done.contents,
        toolbridge_purged_rows_total=done.rows,
    )
    tallies.put("toolbridge_purge_last_run_timestamp_seconds", time.time())
    return done


def reconcile() -> int:
    """Close the turns of processes that are no longer alive, and sweep what nobody needs any more."""
    closed = 0
    while turns := list(
        Turn.objects.filter(status=TurnStatus.RUNNING)
        .exclude(process__in=expiry.living())
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
    LiveSnapshot.objects.filter(updated_at__lt=Now() - CHANGES).delete()
    for process in Process.objects.filter(seen_at__lt=Now() - DEAD_PROCESSES):
        tallies.archive(process)
    tallies.count(toolbridge_reconciled_turns_total=closed)
    return closed


def _hide(conversations: "models.QuerySet[Conversation]") -> int:
    """Out of sight: the name is free again."""
    name = Concat(models.Value("ended:"), Cast("pk", models.CharField()))
    return conversations.update(ended_at=Now(), external_id=name)


def _hide_inactive() -> int:
    with transaction.atomic():
        # Two purges at once must not wait for each other; SQLite has one writer anyway.
        chosen = expiry.inactive().order_by("last_activity")
        if connection.features.has_select_for_update_skip_locked:
            chosen = chosen.select_for_update(skip_locked=True, of=("self",))
        chosen_pks = list(chosen.values_list("pk", flat=True)[:BATCH])
        # The conditions once more: what became active since it was chosen stays.
        hidden = _hide(expiry.inactive().filter(pk__in=chosen_pks))
        ended = Conversation.objects.filter(pk__in=chosen_pks, ended_at__isnull=False).values_list("pk", flat=True)
        # What was purged is not to live on in a process's memory.
        now = timezone.now()
        Change.objects.bulk_create([Change(kind="forgotten", ref=str(pk), created_at=now) for pk in ended])
        return hidden


def _ended() -> list[int]:
    return list(Conversation.objects.filter(ended_at__isnull=False).values_list("pk", flat=True)[:BATCH])


def _delete_rows(pk: int) -> int:
    """Slice by slice, the conversation itself last; how many rows that were."""
    count = search.forget(pk)
    for model in OWNED:
        while True:
            deleted = _delete_slice(model._default_manager.filter(conversation=pk))
            count += deleted
            if deleted < SLICE:
                break
    return count + Conversation.objects.filter(pk=pk)._raw_delete("default")


def _delete_slice(rows: "models.QuerySet[Any]") -> int:
    with transaction.atomic():
        chosen = list(rows.values_list("pk", flat=True)[:SLICE])
        found = rows.model._default_manager.filter(pk__in=chosen)
        found._raw_delete(found.db)  # the cascade is ours, in this order
    return len(chosen)
