"""Full text: what was said, found by its words. Built behind the requests' backs, by a task, turn by turn.

SQLite has an FTS5 table, PostgreSQL a column of word vectors; the table of searched turns is the same in both and says
what there is. It belongs to a conversation as everything does: what is purged or terminated is found no more.
"""

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Collection
from typing import Any

from django.db import connection, transaction
from django.db.models import Exists, Min, OuterRef, QuerySet
from django.utils import timezone

from conversations import ids, tallies
from conversations.deleting import Pieces
from conversations.models import Conversation, Message, SearchedTurn, Tally, Turn, TurnStatus
from conversations.store import packing
from conversations.words import document, phrases

MOST = 500  # turns that a search yields, the newest
SLICE = 25  # turns in one transaction: a few milliseconds in which nobody else writes
WATERMARK = "toolbridge_search_indexed_timestamp_seconds"
SETTLED = 30.0  # seconds after which a turn that is not there has never been
AGE = 60.0  # seconds: what has just been said is read when whoever said it has gone on
LATE = 180.0  # seconds
NEVER = dt.datetime.fromtimestamp(0, dt.UTC)
FORGET = 50  # turns in one transaction


# ------------------------------------------------------------ asking


def turns(asked: str) -> list[int]:
    """The newest turns in which every phrase occurs."""
    wanted = phrases(asked)
    if not wanted:
        return []
    if connection.vendor == "sqlite":
        sql = "SELECT rowid FROM conversations_searchwords WHERE conversations_searchwords MATCH %s ORDER BY rowid DESC"
        term = " AND ".join(f'"{" ".join(one.words)}"{" *" if one.prefix else ""}' for one in wanted)
    else:
        sql = "SELECT turn FROM conversations_searchedturn WHERE words @@ to_tsquery('simple', %s) ORDER BY turn DESC"
        term = " & ".join(f"({' <-> '.join(one.words)}{':*' if one.prefix else ''})" for one in wanted)
    with connection.cursor() as cursor:
        cursor.execute(f"{sql} LIMIT {MOST}", [term])
        return [row[0] for row in cursor.fetchall()]


def up_to() -> dt.datetime | None:
    """Everything that ended before can be found; None when nothing was read yet."""
    value = Tally.objects.filter(name=tallies.named(WATERMARK)).values_list("value", flat=True).first()
    return dt.datetime.fromtimestamp(value, dt.UTC) if value else None


def behind() -> dt.datetime | None:
    """Up to when, if there are turns since that have not been read for longer than it should take."""
    newest = Turn.objects.order_by("-pk").values_list("pk", flat=True).first()
    until = up_to() or NEVER
    return until if newest and ids.seconds(newest) - until.timestamp() > LATE else None


# ------------------------------------------------------------ reading


def index(budget: float = 1.0, age: float = 0.0) -> int:
    """Read what is new but at least this old, for so many seconds; the next run goes on. How many turns that were."""
    started, count = time.monotonic(), 0
    while time.monotonic() - started < budget:
        asked, after = time.time(), _watermark()
        some = list(_unread(after, asked - age)[:SLICE])
        if some:
            _add(some)
            count += len(some)
        reached = ids.seconds(some[-1].pk) if len(some) == SLICE else asked - max(age, SETTLED)
        tallies.put(WATERMARK, max(after, min(reached, *_oldest_running())))
        if len(some) < SLICE:
            break
    return count


def _watermark() -> float:
    found = up_to()
    return found.timestamp() if found else 0.0


def _unread(after: float, until: float) -> "QuerySet[Turn]":
    read = SearchedTurn.objects.filter(turn=OuterRef("pk"))
    begun = Turn.objects.filter(pk__gte=ids.least(after), pk__lt=ids.least(until + 0.001))
    ended = begun.filter(conversation__ended_at=None)
    ended = ended.exclude(status=TurnStatus.RUNNING).exclude(Exists(read))
    return ended.only("conversation", "error_message").order_by("pk")


def _oldest_running() -> list[float]:
    oldest = Turn.objects.filter(status=TurnStatus.RUNNING).aggregate(pk=Min("pk"))["pk"]
    return [ids.seconds(oldest)] if oldest else [time.time()]


def _add(some: list[Turn]) -> None:
    contents: dict[int, list[bytes]] = defaultdict(list)
    brought = Message.objects.filter(turn__in=[turn.pk for turn in some])
    for turn, role, span, content in brought.values_list("turn", "role", "span", "content"):
        contents[turn] += [said for _, said in packing.messages(role, span, content)]
    read_at = timezone.now()
    found = {turn.pk: (turn.conversation_id, document(contents[turn.pk], turn.error_message)) for turn in some}
    with transaction.atomic():
        alive = _locked({conversation for conversation, _ in found.values()}, read_at)
        there = set(SearchedTurn.objects.filter(turn__in=found).values_list("turn", flat=True))
        rows = [(turn, *row) for turn, row in found.items() if row[0] in alive and turn not in there]
        _write(rows)


def _locked(conversations: set[int], read_at: dt.datetime) -> set[int]:
    """Those that have not ended, nor lost their text since it was read. None of them can end until this is done."""
    held: Any = Conversation.objects.filter(pk__in=conversations, ended_at=None).order_by("pk")
    sql, parameters = held.values("pk", "content_purged_at").query.sql_with_params()
    if connection.vendor == "postgresql":
        # Ending changes the conversation's name and so waits for this; a turn, which only touches it, does not.
        sql += " FOR KEY SHARE"
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return {pk for pk, purged in cursor.fetchall() if purged is None or _moment(purged) < read_at}


def _moment(value: Any) -> dt.datetime:
    """SQLite gives text."""
    found = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(value)
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _write(rows: list[tuple[int, int, str]]) -> None:
    if not rows:
        return
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            SearchedTurn.objects.bulk_create(
                [SearchedTurn(turn=turn, conversation_id=owner) for turn, owner, _ in rows]
            )
            sql = "INSERT INTO conversations_searchwords (rowid, words) VALUES (%s, %s)"
            cursor.executemany(sql, [(turn, text) for turn, _, text in rows])
        else:
            sql = (
                "INSERT INTO conversations_searchedturn (turn, conversation_id, words) "
                "VALUES (%s, %s, to_tsvector('simple', %s)) ON CONFLICT DO NOTHING"
            )
            cursor.executemany(sql, rows)


# ------------------------------------------------------------ forgetting


def forget(conversations: Collection[int], pieces: Pieces) -> int:
    """Piece by piece, as purges do; how many turns that were."""
    searched = SearchedTurn.objects.filter(conversation__in=conversations)
    if connection.vendor != "sqlite":
        return pieces.delete(searched)
    count = 0
    while some := list(searched.values_list("turn", flat=True)[:FORGET]):
        started = time.monotonic()
        with transaction.atomic(), connection.cursor() as cursor:
            sql = "DELETE FROM conversations_searchwords WHERE rowid = %s"
            cursor.executemany(sql, [(turn,) for turn in some])
            SearchedTurn.objects.filter(turn__in=some).delete()
        count += len(some)
        pieces.took("words", 0, time.monotonic() - started)
    return count
