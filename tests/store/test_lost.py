"""Turns that are taken for lost, while the process that runs them ends them after all."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable

import pytest
from django.db import connection, connections, transaction

from conversations import retention
from conversations.models import ApiKey, Claim, Conversation, Turn
from conversations.store import Store
from conversations.store.claims import ClaimRow
from conversations.store.lost import CloseLost
from conversations.store.usage import UsageRow
from conversations.store.writes import OpenTurn
from tests.servers.ports import wait_until
from tests.store.rows import closing, conversation, links, opening

Close = Callable[[Store, OpenTurn], Awaitable[None]]


async def by_another_process(store: Store, turn: OpenTurn) -> None:
    await store.write(CloseLost(turn.conversation, turn.turn))


async def by_the_reconciler(store: Store, turn: OpenTurn) -> None:
    await asyncio.to_thread(_reconciled)


def _reconciled() -> None:
    try:
        retention.close_abandoned()
    finally:
        connections["default"].close()


def _waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])


def _until_waiting(count: int) -> None:
    try:
        wait_until(lambda: _waiting() >= count, f"{count} wait")
    finally:
        connections["default"].close()


def _told(turn: OpenTurn) -> list[tuple[str, int]]:
    """What became of it, and of its conversation."""
    try:
        ended = Turn.objects.filter(pk=turn.turn).values_list("status", "tool_count")
        return [*ended, *Conversation.objects.filter(pk=turn.conversation.id).values_list("last_status", "tool_count")]
    finally:
        connections["default"].close()


@pytest.mark.parametrize("migrated", ["postgres"], indirect=True)  # SQLite has one writer
@pytest.mark.parametrize("close", [by_another_process, by_the_reconciler])
async def test_who_closes_a_turn_waits_for_who_ends_it(store: Store, key: ApiKey, close: Close) -> None:
    """Had each taken one of the two rows, the other's first, neither would get on."""
    row = conversation(key.pk)
    turn = opening(row)
    await store.write(turn)
    await store.write(links(row, turn.turn, "toolu_1"))
    held = threading.Event()

    def end() -> None:
        """As `CloseTurn` does: the conversation, then the turn."""
        try:
            with transaction.atomic():
                Conversation.objects.filter(pk=row.id).update(last_status="complete", tool_count=1)
                held.set()
                until = time.monotonic() + 20
                while not _waiting():
                    assert time.monotonic() < until
                Turn.objects.filter(pk=turn.turn).update(status="complete", tool_count=1)
        finally:
            connections["default"].close()

    async with asyncio.timeout(30):
        ending = asyncio.create_task(asyncio.to_thread(end))
        await asyncio.to_thread(held.wait, 30)
        await asyncio.gather(close(store, turn), ending)
    assert await asyncio.to_thread(_told, turn) == [("complete", 1), ("complete", 1)]


@pytest.mark.parametrize("migrated", ["postgres"], indirect=True)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("close", [by_another_process, by_the_reconciler])
async def test_calls_are_counted_once_by_who_ends_a_turn_that_is_just_being_closed(
    store: Store, key: ApiKey, close: Close, late: bool
) -> None:
    """Who waits for a row sees the others as they were before it waited: what the turn has counted already, too."""
    row = conversation(key.pk)
    claim = ClaimRow("request", f"held-{row.id}")
    turn = opening(row, claims=(claim,))
    await store.write(turn)
    await store.write(links(row, turn.turn, "toolu_1"))
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        """The claim, which is the last that they take."""
        try:
            with transaction.atomic():
                Claim.objects.select_for_update().get(token=claim.token)
                held.set()
                release.wait(30)
        finally:
            connections["default"].close()

    usage = UsageRow(attempt=1, upstream="openai", model="m", status="complete", tool_count=1)
    ender = Store()
    ender.start()
    try:
        async with asyncio.timeout(30):
            holding = asyncio.create_task(asyncio.to_thread(hold))
            await asyncio.to_thread(held.wait, 30)
            closed = asyncio.ensure_future(close(store, turn))
            await asyncio.to_thread(_until_waiting, 1)
            ended = asyncio.ensure_future(ender.write(closing(row, turn.turn, usage=(usage,), late=late)))
            await asyncio.to_thread(_until_waiting, 2)
            release.set()
            await asyncio.gather(holding, closed, ended)
    finally:
        release.set()
        await ender.stop()
    assert await asyncio.to_thread(_told, turn) == [("complete", 1), ("complete", 1)]


@pytest.mark.parametrize("migrated", ["postgres"], indirect=True)
async def test_closing_what_an_outage_left_locks_out_nobody_who_goes_on(store: Store, key: ApiKey) -> None:
    """Clients whose turns were lost in one process ask again in another, all of them at once."""
    rows = [conversation(key.pk) for _ in range(40)]
    other = Store()
    other.start()
    try:
        for number in range(10):
            turns = [opening(row, created=not number) for row in rows]
            await asyncio.gather(*map(store.write, turns))
            again = [other.write(opening(row, created=False)) for row in rows]
            lost = [store.write(CloseLost(turn.conversation, turn.turn)) for turn in reversed(turns)]
            await asyncio.gather(*lost, *again)
    finally:
        await other.stop()


@pytest.mark.parametrize(("status", "kept"), [("complete", 1), ("running", 0)])
async def test_a_turn_that_was_not_lost_keeps_its_claims(store: Store, key: ApiKey, status: str, kept: int) -> None:
    row, claim = conversation(key.pk), ClaimRow("request", "token")
    turn = opening(row, claims=(claim,))
    await store.write(turn)
    if status == "complete":
        await store.write(closing(row, turn.turn))
    await store.write(CloseLost(row, turn.turn))
    count = await asyncio.to_thread(_claims, turn)
    assert count == kept


def _claims(turn: OpenTurn) -> int:
    try:
        return Claim.objects.filter(turn=turn.turn).count()
    finally:
        connections["default"].close()
