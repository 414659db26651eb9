"""The group-committing writer: durable when it says so, whole or not at all, one bad write fails one turn."""

import asyncio
import gc
import socket
import sqlite3
import sys
import threading
from functools import partial

import psycopg
import pytest
from django.db import connections

from conversations.models import ApiKey, Claim, Conversation, Message, ToolEntry, ToolMapping, Turn, UsageEntry
from conversations.store import Store, answers, patience, reads
from conversations.store import writer as writer_module
from conversations.store.claims import NO_TIME, AlreadyClaimed, ClaimRow
from conversations.store.database import Database
from conversations.store.pipeline import PREPARE_AFTER
from conversations.store.writes import Answered, StaleConversation, WholeTurn
from tests.store.rows import closing, conversation, links, message, opening
from translation.errors import CallForgotten, ConversationEnded, StoreUnavailable

pytestmark = pytest.mark.usefixtures("migrated")


class Bad:
    """A write that no database takes."""

    def apply(self, db: Database) -> None:
        db.execute("INSERT INTO no_such_table VALUES (1)")


class Odd:
    """A write that fails in a way that is nobody's error class."""

    def apply(self, db: Database) -> None:
        raise KeyError("surprise")


class Waits:
    """A transaction that takes as long as the test wants."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()

    def apply(self, db: Database) -> None:
        self.begun.set()
        assert self.go.wait(30)


def counted(model: type, **filters: object) -> int:
    try:
        return model._default_manager.filter(**filters).count()  # type: ignore[attr-defined, no-any-return]
    finally:
        connections["default"].close()


async def test_what_is_submitted_together_is_one_commit(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    before = store.writer.commits
    writes = [opening(row, created=number == 0) for number in range(50)]
    await asyncio.gather(*(store.write(write) for write in writes))
    assert store.writer.commits == before + 1
    assert await asyncio.to_thread(counted, Turn, conversation=row.id) == 50


async def test_after_a_batch_that_had_company_the_next_waits_for_more(
    store: Store, key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MOMENT", 0.5)
    row = conversation(key.pk)
    await asyncio.gather(*(store.write(opening(row)) for _ in range(writer_module.COMPANY)))
    before = store.writer.commits
    first = store.write(opening(row))
    for _ in range(20):
        await asyncio.sleep(0)
    await asyncio.gather(first, store.write(opening(row)))
    assert store.writer.commits == before + 1


async def test_once_those_are_there_who_are_to_be_expected_nobody_waits(
    store: Store, key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MOMENT", 3600)
    row = conversation(key.pk)
    before = store.writer.commits
    for _ in range(3):
        async with asyncio.timeout(60):
            await asyncio.gather(*(store.write(opening(row)) for _ in range(writer_module.COMPANY)))
    assert store.writer.commits == before + 3


async def test_a_write_that_comes_alone_does_not_wait(
    store: Store, key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "MOMENT", 3600)
    row = conversation(key.pk)
    for _ in range(3):
        await store.write(opening(row))
    assert await asyncio.to_thread(counted, Turn, conversation=row.id) == 3


async def test_a_conversation_that_begins_with_several_turns_at_once_is_one_commit(store: Store, key: ApiKey) -> None:
    rows = [conversation(key.pk) for _ in range(20)]
    before = store.writer.commits
    await asyncio.gather(*(store.write(opening(row)) for row in rows for _ in range(2)))
    assert store.writer.commits == before + 1
    for row in rows:
        assert await asyncio.to_thread(counted, Turn, conversation=row.id) == 2
        assert await asyncio.to_thread(counted, Conversation, pk=row.id, turn_count=2) == 1


async def test_among_new_conversations_one_that_has_ended_fails_alone(store: Store, key: ApiKey) -> None:
    rows = [conversation(key.pk) for _ in range(5)]
    await store.write(opening(rows[2]))

    def end() -> None:
        Conversation.objects.filter(pk=rows[2].id).update(ended_at="2026-01-01T00:00:00Z")
        connections["default"].close()

    await asyncio.to_thread(end)
    outcomes = await asyncio.gather(*(store.write(opening(row)) for row in rows), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None)] * 2 + [StaleConversation] + [type(None)] * 2


async def test_of_new_conversations_that_claim_the_same_the_first_has_it(store: Store, key: ApiKey) -> None:
    claim = ClaimRow("request", "same")
    writes = [opening(conversation(key.pk), claims=(claim,)) for _ in range(3)]
    outcomes = await asyncio.gather(*map(store.write, writes), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [type(None), AlreadyClaimed, AlreadyClaimed]


@pytest.mark.parametrize("bad", [Bad(), Odd()])
async def test_one_bad_write_fails_one_turn(store: Store, key: ApiKey, bad: Bad | Odd) -> None:
    row = conversation(key.pk)
    outcomes = await asyncio.gather(
        store.write(opening(row)), store.write(bad), store.write(opening(row)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), StoreUnavailable, type(None)]
    assert await asyncio.to_thread(counted, Turn, conversation=row.id) == 2


async def test_a_turn_is_stored_whole_or_not_at_all(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    taken = ClaimRow("request", "token")
    await store.write(opening(row, claims=(taken,)))
    with pytest.raises(AlreadyClaimed):
        await store.write(opening(row, created=False, claims=(taken,), messages=(message(b"1" * 16, b"", 1),)))
    assert await asyncio.to_thread(counted, Turn, conversation=row.id) == 1
    assert await asyncio.to_thread(counted, Message, conversation=row.id) == 0


async def test_an_ended_conversation_takes_nothing_any_more(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    first = opening(row)
    await store.write(first)
    await store.write(links(row, first.turn, "toolu_1"))

    def end() -> None:
        Conversation.objects.filter(pk=row.id).update(ended_at="2026-01-01T00:00:00Z", external_id=f"ended:{row.id}")
        ToolMapping.objects.filter(conversation=row.id).delete()
        Turn.objects.filter(conversation=row.id).delete()
        connections["default"].close()

    await asyncio.to_thread(end)
    with pytest.raises(StaleConversation):
        await store.write(opening(row, created=False))
    with pytest.raises(StaleConversation):
        await store.write(opening(row))
    with pytest.raises(ConversationEnded):
        await store.write(links(row, first.turn, "toolu_2"))
    with pytest.raises(CallForgotten):
        await store.write(links(row, first.turn, "toolu_1", fresh=False, status="pending"))
    with pytest.raises(ConversationEnded):
        await store.write(closing(row, first.turn))
    await store.write(closing(row, first.turn, late=True))  # only the ledger hears of it
    assert await asyncio.to_thread(counted, Turn, conversation=row.id) == 0
    assert await asyncio.to_thread(counted, UsageEntry, request_id=f"req_{first.turn}") == 1
    fresh = conversation(key.pk, row.external_id)
    await store.write(opening(fresh))
    assert await store.read(partial(reads.conversation, key=key.pk, external_id=row.external_id), None) == reads.Found(
        fresh.id, row.external_id
    )


async def test_two_processes_that_make_the_same_conversation_agree_on_one(store: Store, key: ApiKey) -> None:
    one, other = conversation(key.pk, "same"), conversation(key.pk, "same")
    await store.write(opening(one))
    with pytest.raises(StaleConversation):
        await store.write(opening(other))
    assert await asyncio.to_thread(counted, Conversation, api_key=key.pk) == 1


async def test_two_processes_in_the_same_conversations_do_not_lock_each_other_out(store: Store, key: ApiKey) -> None:
    """Each has turns of all of them in one batch, in whatever order they came."""
    rows = [conversation(key.pk) for _ in range(8)]
    await asyncio.gather(*(store.write(opening(row)) for row in rows))
    other = Store()
    other.start()
    try:
        for _ in range(10):
            ways = ((store, rows), (other, rows[::-1]))
            await asyncio.gather(*(way.write(opening(row, created=False)) for way, those in ways for row in those))
    finally:
        await other.stop()


async def test_a_claim_has_one_owner_until_it_is_given_back_or_expires(store: Store, key: ApiKey) -> None:
    row, claim = conversation(key.pk), ClaimRow("thread", "msg_1")
    first = opening(row, claims=(claim,))
    outcomes = await asyncio.gather(
        store.write(first), *(store.write(opening(row, claims=(claim,))) for _ in range(5)), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), *[AlreadyClaimed] * 5]
    await store.write(closing(row, first.turn, status="error", release=(claim,)))
    second = opening(row, claims=(claim,))
    await store.write(second)
    with pytest.raises(AlreadyClaimed):
        await store.write(opening(row, claims=(claim,)))
    await store.write(opening(row, claims=(ClaimRow("thread", "msg_1", NO_TIME),)))
    assert await asyncio.to_thread(counted, Claim, api_key=key.pk) == 1


async def test_a_mapping_is_answered_once(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    first = opening(row)
    await asyncio.gather(store.write(first), store.write(links(row, first.turn, "toolu_1", status="pending")))
    for status in ("failed", "answered"):
        answer = Answered("toolu_1", status, status == "failed", 5)
        await store.write(opening(row, created=False, answered=(answer,)))

    def look() -> tuple[str, bool]:
        found = ToolMapping.objects.get(conversation=row.id)
        connections["default"].close()
        return found.status, found.is_error

    assert await asyncio.to_thread(look) == ("failed", True)


async def test_a_stalled_transaction_fails_its_waiters_and_nobody_queues_behind_it(
    store: Store, key: ApiKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "PATIENCE", 0.1)
    row, stuck = conversation(key.pk), Waits()
    waiting = store.write(stuck)
    await asyncio.to_thread(stuck.begun.wait, 10)
    behind = store.write(opening(row))
    with pytest.raises(StoreUnavailable):
        await waiting
    with pytest.raises(StoreUnavailable):
        await behind
    with pytest.raises(StoreUnavailable):
        await store.write(opening(row))
    stuck.go.set()
    while True:  # it heals when the transaction has ended
        try:
            await store.write(opening(row))
        except StoreUnavailable:
            await asyncio.sleep(0.01)
        else:
            break
    assert await asyncio.to_thread(counted, Turn, conversation=row.id) == 1


async def test_a_request_that_has_waited_before_waits_less_behind_the_same_transaction(store: Store) -> None:
    async def ask(stuck: Waits, spent: float) -> float:
        patience.begin()
        now = asyncio.get_running_loop().time()
        patience.current().waited(now - spent, now)
        with pytest.raises(StoreUnavailable):
            await store.write(stuck)
        return asyncio.get_running_loop().time() - now

    stuck, other = Waits(), Waits()
    waiting = store.write(stuck)
    await asyncio.to_thread(stuck.begun.wait, 10)
    try:
        late, early = await asyncio.gather(ask(other, 1.0), ask(other, 0.0))
        assert late < early
        with pytest.raises(StoreUnavailable):
            await waiting
    finally:
        stuck.go.set()
        other.go.set()
    await store.writer.drain()


async def test_a_request_without_patience_does_not_speak_for_the_store(store: Store) -> None:
    go = threading.Event()

    async def ask() -> None:
        patience.begin()
        now = asyncio.get_running_loop().time()
        patience.current().waited(now - patience.WHOLE, now)
        await store.read(lambda _: go.wait(10), None)

    with pytest.raises(StoreUnavailable):
        await asyncio.create_task(ask())
    go.set()
    assert await store.read(lambda _: "at once", None) == "at once"


def test_a_request_has_one_patience_for_all_its_waits() -> None:
    whole, least = patience.WHOLE, patience.LEAST
    asked = patience.Patience()
    asked.waited(100.0, 100.05)  # which is no wait
    assert asked.left(100.05) == whole
    asked.waited(100.0, 100.5)
    asked.waited(100.2, 100.6)  # at the same time
    assert asked.left(100.6) == pytest.approx(whole - 0.6)
    asked.waited(100.6, 102.0)
    assert asked.left(102.0) == least
    assert asked.left(102.1 + patience.FORGIVEN) == whole
    asked.waited(110.0, 110.5)
    assert asked.left(110.5) == pytest.approx(whole - 0.5)


def test_a_store_that_is_only_slow_has_all_the_time_again_when_the_upstream_goes_on() -> None:
    slow, away = patience.Patience(), patience.Patience()
    slow.waited(100.0, 100.4)
    away.waited(100.0, 100.6)
    for asked in (slow, away):
        asked.went_on()
    assert slow.left(101.0) == patience.WHOLE
    assert away.left(101.0) == pytest.approx(patience.WHOLE - 0.6)


async def test_an_outage_between_the_members_of_a_failed_batch_fails_the_rest_at_once(
    store: Store, migrated: str
) -> None:
    kind = sqlite3.OperationalError if migrated.startswith("sqlite") else psycopg.OperationalError

    class Away:
        tries = 0

        def apply(self, db: Database) -> None:
            Away.tries += 1
            raise KeyError("the batch fails") if Away.tries == 1 else kind("the server is gone")

    outcomes = await asyncio.gather(*(store.write(Away()) for _ in range(5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 5
    assert Away.tries == 2


async def test_after_an_outage_a_refusal_shows_that_the_store_is_back(store: Store, key: ApiKey) -> None:
    row, claim = conversation(key.pk), ClaimRow("request", "token")
    await store.write(opening(row, claims=(claim,)))
    store.writer.healthy = False  # as the outage left it
    with pytest.raises(AlreadyClaimed):
        await store.write(opening(row, claims=(claim,)))
    await store.write(opening(row))


async def test_an_answer_that_was_stored_late_is_not_taken_back(store: Store, key: ApiKey) -> None:
    """Its request had given up by then, and says so to the store, too."""
    row, claim = conversation(key.pk), ClaimRow("request", "again")
    first = opening(row, claims=(claim,))
    await store.write(first)
    await store.write(closing(row, first.turn, message=message(b"s" * 16, b"", 1, role="assistant")))
    await store.write(closing(row, first.turn, status="error", release=(claim,), late=True))
    await store.write(closing(row, first.turn, late=True))
    found = await store.read(partial(answers.last_answer, conversation_id=row.id), None)
    assert found is not None
    assert (found.turn, found.answer_hash) == (first.turn, b"s" * 16)
    assert await asyncio.to_thread(counted, Claim, turn=first.turn) == 1
    assert await asyncio.to_thread(counted, UsageEntry, request_id=first.request_id) == 1


@pytest.mark.parametrize("whole", [False, True])
async def test_a_failure_that_was_stored_late_is_counted_once(store: Store, key: ApiKey, whole: bool) -> None:
    """Nobody knew whether the first try was stored, so there was a second one."""
    row = conversation(key.pk)
    first = opening(row)
    end = closing(row, first.turn, status="aborted", late=True, tools=(("get_weather", 1),))
    if not whole:
        await store.write(first)
    await store.write(WholeTurn(first, end) if whole else end)
    await store.write(end)
    assert await asyncio.to_thread(counted, UsageEntry, request_id=first.request_id) == 1
    assert await asyncio.to_thread(counted, ToolEntry, request_id=first.request_id) == 1


@pytest.mark.parametrize("migrated", ["postgres"], indirect=True)
def test_a_server_that_does_not_answer_is_not_left_with_half_open_connections(migrated: str) -> None:
    options = connections.settings["default"]["OPTIONS"]
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.MonkeyPatch.context() as patch:
        patch.setitem(connections.settings["default"], "PORT", str(silent.getsockname()[1]))
        patch.setitem(options, "connect_timeout", 2)
        gc.disable()
        try:
            with pytest.raises(psycopg.OperationalError):
                Database().query("SELECT 1")
            with silent.accept()[0] as ours:
                ours.settimeout(5)
                while ours.recv(1024):  # its greeting, then the end
                    pass
        finally:
            gc.enable()


@pytest.mark.parametrize("migrated", ["postgres"], indirect=True)
async def test_a_transaction_that_nobody_ends_does_not_keep_its_conversation(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    await store.write(opening(row))
    gone = Database()

    def begun() -> None:
        gone.begin()
        opening(row, created=False).apply(gone)
        assert gone._pipeline is not None
        gone._pipeline.sync()  # here its machine loses power

    await asyncio.to_thread(begun)
    async with asyncio.timeout(20):
        while True:
            try:
                await store.write(opening(row, created=False))
            except StoreUnavailable:
                await asyncio.sleep(0.2)
            else:
                break
    await asyncio.to_thread(gone.close)


async def test_a_lost_connection_is_retried(store: Store, key: ApiKey, migrated: str) -> None:
    row = conversation(key.pk)
    await store.write(opening(row))
    if migrated.startswith("sqlite"):
        lost: Exception = sqlite3.OperationalError("database is locked")
    else:
        lost = psycopg.OperationalError("server closed the connection unexpectedly")

    class Flaky:
        failures = 2

        def apply(self, db: Database) -> None:
            if self.failures:
                self.failures -= 1
                raise lost

    before = store.writer.retries
    await store.write(Flaky())
    assert store.writer.retries == before + 2
    Flaky.failures = 3
    with pytest.raises(StoreUnavailable):
        await store.write(Flaky())
    with pytest.raises(StoreUnavailable):  # nobody waits to see it again
        await store.write(opening(row, created=False))
    await asyncio.sleep(writer_module.REST)
    await store.write(opening(row, created=False))


async def test_a_full_queue_refuses(store: Store, key: ApiKey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "QUEUE_LIMIT", 3)
    stuck = Waits()
    flying = store.write(stuck)
    await asyncio.to_thread(stuck.begun.wait, 10)
    row = conversation(key.pk)
    queued = [store.write(opening(row)) for _ in range(3)]
    with pytest.raises(StoreUnavailable):
        await store.write(opening(row))
    stuck.go.set()
    await asyncio.gather(flying, *queued)


def test_a_turn_of_sixteen_that_commit_together_costs_so_many_calls(key: ApiKey) -> None:
    db, calls = Database(), 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    for _ in range(PREPARE_AFTER + 2):  # what is asked often gets cheaper
        rows = [conversation(key.pk) for _ in range(16)]
        begun = [opening(row) for row in rows]
        turns = [WholeTurn(first, closing(row, first.turn)) for row, first in zip(rows, begun, strict=True)]
        calls = 0
        sys.setprofile(count)
        db.begin()
        for turn in turns:
            turn.apply(db)
        db.commit()
        sys.setprofile(None)
    db.close()
    assert calls / 16 <= (42 if db.sqlite else 46)


@pytest.mark.parametrize("migrated", ["sqlite"], indirect=True)
@pytest.mark.parametrize(("turns", "statements"), [(1, 4), (3, 4), (7, 8), (8, 4), (14, 8), (16, 5)])
def test_so_many_turns_that_begin_conversations_are_so_many_statements(
    key: ApiKey, turns: int, statements: int
) -> None:
    """Conversations, turns, messages (two each) and what was used."""
    db, seen = Database(), list[str]()
    said = [message(b"%016d" % number, b"", 1) for number in range(2)]
    db.begin()
    db._connection().set_trace_callback(seen.append)
    for _ in range(turns):
        row = conversation(key.pk)
        first = opening(row, messages=(said[0],))
        WholeTurn(first, closing(row, first.turn, message=said[1])).apply(db)
    db.flush()
    db.close()
    assert len(seen) == statements


@pytest.mark.parametrize("migrated", ["sqlite"], indirect=True)
def test_what_a_statement_may_have_to_take_back_stays_in_memory(migrated: str) -> None:
    db = Database(*writer_module.PRAGMAS)
    assert db.query("PRAGMA temp_store") == [(2,)]
    db.close()


async def test_percent_signs_and_places_mean_the_same_to_both_databases(store: Store) -> None:
    sql = "SELECT CASE WHEN 'by hand' LIKE 'by%%' THEN %s ELSE %s END"
    none: list[tuple[int]] = []
    assert await store.read(lambda db: db.query(sql, (1, 2)), none) == [(1,)]
