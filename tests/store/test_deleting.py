"""How many rows the purge deletes at once, and what is stored while it does."""

import asyncio
import threading
from typing import Any

import pytest
from django.db import connections, transaction

from conversations import retention
from conversations.deleting import LEAST, MOST, PACES, Pieces
from conversations.models import ApiKey, Conversation, ToolMapping, Turn
from conversations.store import Store
from conversations.store.usage import UsageRow
from tests.store.rows import closing, conversation, links, opening


def test_the_first_piece_is_small_and_the_next_ones_follow_the_time_that_it_took() -> None:
    pieces = Pieces(hurried=True)
    assert pieces.size("turns") == PACES["sqlite"].first
    assert PACES["postgresql"].first == LEAST  # there a first piece may wait for the disk
    seconds = PACES["sqlite"].seconds
    pieces.took("turns", 200, seconds / 10)
    assert pieces.size("turns") == 400  # never more than twice as many
    pieces.took("turns", 400, seconds * 2)
    assert pieces.size("turns") == 200
    pieces.took("turns", 200, seconds * 100)
    assert pieces.size("turns") == 50  # nor less than a quarter
    pieces.took("turns", 50, seconds * 100)
    assert pieces.size("turns") == LEAST
    pieces.took("turns", 0, seconds * 100)  # a last piece tells nothing
    for _ in range(10):
        pieces.took("turns", pieces.size("turns"), 0.0)
    assert pieces.size("turns") == MOST
    assert pieces.size("messages") == PACES["sqlite"].first
    assert (pieces.longest, pieces.slowest) == (seconds * 100, "turns")


async def test_a_call_that_is_stored_while_its_conversation_is_deleted_goes_with_it(
    store: Store, key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its transaction began before the conversation was hidden, and ended after the other calls were deleted."""
    row = conversation(key.pk)
    turn = opening(row)
    await store.write(turn)
    await store.write(links(row, turn.turn, "toolu_1"))
    delete = Pieces.delete

    def overtaken(pieces: Pieces, rows: Any) -> int:
        late = list(rows.all()) if rows.model is ToolMapping else []
        count = delete(pieces, rows)
        ToolMapping.objects.bulk_create(late)
        monkeypatch.setattr(Pieces, "delete", overtaken if not late else delete)
        return count

    def terminate() -> int:
        retention.terminate(Conversation.objects.get(pk=row.id))
        left = Turn.objects.filter(pk=turn.turn).count() + Conversation.objects.filter(pk=row.id).count()
        connections["default"].close()
        return left

    monkeypatch.setattr(Pieces, "delete", overtaken)
    assert await asyncio.to_thread(terminate) == 0


@pytest.mark.parametrize("migrated", ["postgres"], indirect=True)  # SQLite has one writer
async def test_what_somebody_else_has_locked_is_deleted_last(store: Store, key: ApiKey) -> None:
    """Two purges that wait for each other's rows are a deadlock, and everybody who writes waits with them."""
    row = conversation(key.pk)
    turns = [opening(row) for _ in range(5)]
    for turn in turns:
        await store.write(turn)
    locked = turns[2].turn
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Turn.objects.select_for_update().get(pk=locked)
            held.set()
            let_go.wait(30)
        connections["default"].close()

    pieces = Pieces()

    def delete() -> int:
        count = pieces.delete(Turn.objects.filter(conversation=row.id))
        connections["default"].close()
        return count

    def left() -> set[int]:
        """In a thread of this test's: the one that serves Django's own async may still know another database."""
        found = set(Turn.objects.values_list("pk", flat=True))
        connections["default"].close()
        return found

    async with asyncio.timeout(30):
        holder = asyncio.create_task(asyncio.to_thread(hold))
        await asyncio.to_thread(held.wait, 30)
        deleter = asyncio.create_task(asyncio.to_thread(delete))
        while await asyncio.to_thread(left) != {locked} or pieces.count < 3:
            assert not deleter.done()
        let_go.set()
        await holder
        assert await deleter == len(turns)


async def test_a_call_that_is_forgotten_before_its_turn_ends_is_not_counted(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    turn = opening(row)
    await store.write(turn)
    await store.write(links(row, turn.turn, "toolu_1", "toolu_2"))

    def counted() -> int:
        try:
            return Conversation.objects.get(pk=row.id).tool_count
        finally:
            connections["default"].close()

    def forget(tool_use_id: str) -> int:
        retention.forget(ToolMapping.objects.get(conversation=row.id, tool_use_id=tool_use_id))
        return counted()

    assert await asyncio.to_thread(forget, "toolu_1") == 0
    usage = UsageRow(attempt=1, upstream="openai", model="m", status="complete", tool_count=2)
    await store.write(closing(row, turn.turn, usage=(usage,)))
    assert await asyncio.to_thread(counted) == 1
    assert await asyncio.to_thread(forget, "toolu_2") == 0
