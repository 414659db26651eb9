"""Ending conversations: terminate one, purge the inactive, and close what a dead process left running.

An ended conversation is first taken out of sight in one small statement: from then on nothing finds it, and a turn
that still believes in it fails. Its rows are then deleted in pieces, each in a short transaction; whoever is killed in
between, the next purge goes on.
"""

import datetime as dt
import logging
import time
from dataclasses import dataclass, field
from typing import Self

from django.db import IntegrityError, connection, models, transaction
from django.db.models.functions import Cast, Concat, Greatest, Now
from msgspec import Struct

from conversations import contents, expiry, search, tallies
from conversations.deleting import Pieces
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
    ToolEntry,
    ToolExecution,
    ToolMapping,
    Turn,
    TurnStatus,
    UsageEntry,
)
from conversations.store import others
from conversations.store.lost import DIED
from translation.errors import Conflict

log = logging.getLogger(__name__)

SLICE = 100  # turns to close, looked for at once
BATCH = 200  # conversations taken out of sight at once
ENTRIES = 5_000
ENDED = "ended\N{DAGGER}"  # before the number of what is out of sight: names of clients are ASCII, none is the same
LATE = 5  # times that what was stored meanwhile may be in the way
REQUEST_CLAIMS = dt.timedelta(minutes=10)
CHANGES = dt.timedelta(hours=1)
DEAD_PROCESSES = dt.timedelta(seconds=others.REMEMBERED)
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
        deleted = Deleted(found.message_total, found.turns.count(), found.tool_mappings.count())
        _hide(Conversation.objects.filter(pk=found.pk))
        Change.objects.create(kind="conversation", ref=str(found.pk), created_at=Now())
    _delete([found.pk], Pieces(hurried=True))
    return deleted


def forget(mapping: ToolMapping) -> None:
    """One tool call: what processes have cached of its conversation is no longer true."""
    home = Conversation.objects.filter(pk=mapping.conversation_id)
    with transaction.atomic():
        home.select_for_update().first()  # before its calls, as turns do: had each one of both, neither would get on
        gone, _ = ToolMapping.objects.filter(pk=mapping.pk).delete()
        # A turn that runs counts its calls when it ends, but for those that it has counted.
        running = Turn.objects.filter(pk=mapping.turn_id, status=TurnStatus.RUNNING)
        if not running.update(tool_count=models.F("tool_count") + gone):
            home.update(tool_count=Greatest(models.F("tool_count") - gone, 0))
        Change.objects.create(kind="forgotten", ref=str(mapping.conversation_id), created_at=Now())


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
    pieces: Pieces = field(default_factory=Pieces)
    started: float = field(default_factory=time.monotonic)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def run(self) -> Self:
        while self.elapsed < self.budget and (ended := _ended() or (self._hide_inactive() and _ended())):
            self.rows += _delete(ended, self.pieces)
            self.conversations += len(ended)
        while self.elapsed < self.budget and (stale := list(expiry.with_old_content()[:BATCH])):
            self.contents += sum(_empty(conversation) for conversation in stale)
        for model in expiry.LEDGER:
            while self.elapsed < self.budget and (deleted := self._delete_entries(model)):
                self.rows += deleted
        return self

    def _hide_inactive(self) -> bool:
        """Whether there were any. They are looked for first: that takes longer than to hide them, and locks nothing."""
        found = list(expiry.inactive().order_by("last_activity").values_list("pk", flat=True)[:BATCH])
        left = found
        while left:
            started, size = time.monotonic(), self.pieces.size("hidden")
            _hide_inactive(left[:size])
            self.pieces.took("hidden", size if len(left) >= size else 0, time.monotonic() - started)
            left = left[size:]
        return bool(found)

    def _delete_entries(self, model: type[UsageEntry] | type[ToolEntry]) -> int:
        """As many as are named in one statement: the time is looked at in between."""
        entries = list(expiry.old_entries(model).values_list("pk", flat=True)[:ENTRIES])
        return self.pieces.delete(model._default_manager.filter(pk__in=entries)) if entries else 0


def _empty(conversation: Conversation) -> bool:
    """Of its text, if that is still due: since it was chosen somebody may have held it, or gone on with it."""
    due = expiry.with_old_content().filter(pk=conversation.pk).exists()
    if due:
        contents.purge(conversation)
    return due


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
    closed = close_abandoned()
    _sweep(Pieces())
    return closed


def close_abandoned() -> int:
    closed = 0
    while turns := list(
        Turn.objects.filter(status=TurnStatus.RUNNING)
        .exclude(process__in=expiry.living())
        .values_list("pk", "conversation_id")[:SLICE]
    ):
        closed += sum(_close(turn, conversation) for turn, conversation in turns)
    tallies.count(toolbridge_reconciled_turns_total=closed)
    return closed


@transaction.atomic
def _close(turn: int, conversation: int) -> int:
    """With the calls that it showed; its conversation stands where it does, unless another turn has ended since."""
    home = Conversation.objects.filter(pk=conversation)
    home.select_for_update().first()  # before the turn, and no other one's beside it: as turns are ended by themselves
    calls = ToolMapping.objects.filter(turn=turn).count()
    error = dict(zip(("error_type", "error_message"), DIED, strict=True))
    lost = Turn.objects.filter(pk=turn, status=TurnStatus.RUNNING)
    if not lost.update(status=TurnStatus.ERROR, tool_count=calls, **error):
        return 0  # it has ended meanwhile
    home.update(tool_count=models.F("tool_count") + calls)
    home.filter(last_status=TurnStatus.RUNNING).update(last_status=TurnStatus.ERROR)
    Claim.objects.filter(conversation=conversation, turn=turn).delete()
    return 1


def _sweep(pieces: Pieces) -> None:
    pieces.delete(Claim.objects.filter(kind="request", created_at__lt=Now() - REQUEST_CLAIMS))
    pieces.delete(Change.objects.filter(created_at__lt=Now() - CHANGES))
    pieces.delete(LiveSnapshot.objects.filter(updated_at__lt=Now() - CHANGES))
    for process in Process.objects.filter(seen_at__lt=Now() - DEAD_PROCESSES):
        tallies.archive(process)


def _hide(conversations: "models.QuerySet[Conversation]") -> int:
    """Out of sight: the name is free again."""
    name = Concat(models.Value(ENDED), Cast("pk", models.CharField()))
    return conversations.update(ended_at=Now(), external_id=name)


def _hide_inactive(pks: list[int]) -> None:
    """Those of them that are still inactive: what became active since they were chosen stays."""
    with transaction.atomic():
        chosen = expiry.inactive().filter(pk__in=pks)
        if connection.features.has_select_for_update_skip_locked:
            # Two purges at once must not wait for each other; SQLite has one writer anyway.
            locked = chosen.select_for_update(skip_locked=True, of=("self",)).values_list("pk", flat=True)
            chosen = expiry.inactive().filter(pk__in=list(locked))
        if _hide(chosen):
            ended = Conversation.objects.filter(pk__in=pks, ended_at__isnull=False).values_list("pk", flat=True)
            # What was purged is not to live on in a process's memory. One row for all: every process reads it.
            Change.objects.create(kind="purged", ref=",".join(map(str, ended)), created_at=Now())


def _ended() -> list[int]:
    return list(Conversation.objects.filter(ended_at__isnull=False).values_list("pk", flat=True)[:BATCH])


def _delete(pks: list[int], pieces: Pieces) -> int:
    """Everything of these conversations, themselves last; how many rows that were."""
    for _ in range(LATE):
        try:
            return _delete_all(pks, pieces)
        except IntegrityError as error:  # a turn that had not heard of the end has just stored something
            log.info("retention: once more, %s", error)
    return _delete_all(pks, pieces)


def _delete_all(pks: list[int], pieces: Pieces) -> int:
    count = search.forget(pks, pieces)
    count += sum(pieces.delete(model._default_manager.filter(conversation__in=pks)) for model in OWNED)
    return count + pieces.delete(Conversation.objects.filter(pk__in=pks))
