"""What is read back is what was written, on both databases."""

from functools import partial
from hashlib import blake2b
from typing import Any

import pytest

from conversations import ids, sent_rows
from conversations.conversation import Sent
from conversations.models import ApiKey
from conversations.state import State
from conversations.store import Store, accounts, answers, reads
from conversations.store.database import Database
from conversations.store.links import TakenId
from conversations.store.usage import UsageRow
from tests.store.rows import closing, conversation, links, message, opening
from translation.errors import StoreUnavailable
from translation.state import Wanted
from translation.values import Link, Origin

NONE: list[reads.Stored] = []
NO_LINKS: list[Link] = []
pytestmark = pytest.mark.usefixtures("migrated")


def hashed(number: int) -> bytes:
    return blake2b(number.to_bytes(4, "big"), digest_size=16).digest()


async def test_requests_as_sent_are_rebuilt_byte_for_byte_over_200_turns(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    last: Sent | None = None
    bodies: dict[int, bytes] = {}
    body = b'{"model":"m","messages":['
    for number in range(200):
        body += b'{"role":"user","content":"%d \xe2\x98\x83 %b"},' % (number, hashed(number).hex().encode())
        if number == 120:
            body = b'{"model":"m","messages":[' + body[-80:]  # compacted
        sent = body[:-1] + b"]}"
        change = sent_rows.delta(last, sent)
        write = opening(
            row, sent_parent=change.parent, sent_prefix=change.prefix, sent_tail=change.tail, sent_depth=change.depth
        )
        await store.write(write)
        bodies[write.turn] = sent
        last = Sent(write.turn, change.depth, sent)
    for turn, sent in bodies.items():
        assert await store.read(partial(reads.sent, turn=turn), b"") == sent
    newest = max(bodies)
    assert last is not None
    # What a running turn sends may still change: nothing is stored by what it adds to that.
    assert await store.read(partial(reads.last_sent, conversation_id=row.id), None) is None
    await store.write(closing(row, newest))
    assert await store.read(partial(reads.last_sent, conversation_id=row.id), None) == (newest, last.depth, last.body)


async def test_a_path_leads_from_the_root_to_its_head_and_past_no_branch(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    trunk = [message(hashed(n), hashed(n - 1) if n else b"", n + 1) for n in range(250)]
    branch = message(b"branch-of-ten...", hashed(10), 12)
    await store.write(opening(row, messages=(*trunk, branch)))
    path = await store.read(partial(reads.path, conversation_id=row.id, head=hashed(249)), NONE)
    assert [stored.chain_hash for stored in path] == [m.chain_hash for m in trunk]
    assert path[0].content == trunk[0].content
    side = await store.read(partial(reads.path, conversation_id=row.id, head=branch.chain_hash), NONE)
    assert [stored.depth for stored in side] == list(range(1, 13))


async def test_links_come_back_with_everything_of_any_number(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    first = opening(row)
    ids = [f"toolu_{n}" for n in range(450)]
    await store.write(first)
    await store.write(links(row, first.turn, *ids, arguments=b'{"a":"\\u0000"}', state=b'{"s":1}', status="pending"))
    known = await store.read(
        partial(reads.known, conversation_id=row.id, tool_use_ids=[*ids, "toolu_unknown"], hashes=[]),
        reads.Known({}, {}, {}, ()),
    )
    assert sorted(known.links) == sorted(ids)
    link = known.links["toolu_7"]
    assert (link.upstream_id, link.arguments, link.origin.state, link.ordinal) == (
        "up_toolu_7", b'{"a":"\\u0000"}', b'{"s":1}', 7,
    )  # fmt: skip
    by_tool = await store.read(partial(reads.by_tool, key=key.pk, tool_use_ids=ids), None)
    assert by_tool == reads.Found(row.id, row.external_id)
    assert await store.read(partial(reads.by_tool, key=key.pk + 1, tool_use_ids=ids), None) is None


async def test_of_conversations_whose_calls_have_one_id_the_history_tells_which_it_is(
    store: Store, key: ApiKey
) -> None:
    """Two processes may have passed it on at the same time."""
    rows = [conversation(key.pk) for _ in range(2)]
    for number, row in enumerate(rows):
        begun = opening(row, messages=(message(hashed(number), b"", 1, answers=1),))
        await store.write(begun)
        await store.write(links(row, begun.turn, "toolu_same"))
    for number, row in enumerate(rows):
        job = partial(reads.by_tool, key=key.pk, tool_use_ids=["toolu_same"], hashes=[hashed(number)])
        assert await store.read(job, None) == reads.Found(row.id, row.external_id)


async def test_an_id_of_an_upstream_that_another_call_of_the_key_has_is_not_stored_again(
    store: Store, key: ApiKey
) -> None:
    one, other = opening(conversation(key.pk)), opening(conversation(key.pk))
    await store.write(one)
    await store.write(other)
    for _ in range(2):  # the same call again is the same call
        await store.write(links(one.conversation, one.turn, "toolu_given", given=True))
    with pytest.raises(TakenId):
        await store.write(links(other.conversation, other.turn, "toolu_given", given=True))
    assert await store.read(partial(reads.turn_links, turn=other.turn), NO_LINKS) == []


async def test_the_longest_stored_prefix_with_an_answer_wins(store: Store, key: ApiKey) -> None:
    short, long = conversation(key.pk), conversation(key.pk)
    shared = message(b"p" * 16, b"", 1)
    for row, depth in ((short, 2), (long, 4)):
        rows = tuple(message(bytes([n]) * 16, b"", n, answers=1) for n in range(2, depth + 1))
        await store.write(opening(row, messages=(shared, *rows)))
    chain = [b"p" * 16, *(bytes([n]) * 16 for n in range(2, 7))]
    found = await store.read(partial(reads.by_prefix, key=key.pk, hashes=chain), None)
    assert found == reads.Found(long.id, long.external_id)
    assert await store.read(partial(reads.by_prefix, key=key.pk, hashes=[b"p" * 16]), None) is None


async def test_a_turn_that_ended_is_what_a_continuation_starts_from(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    first = opening(row, system_digest=b"s" * 16)
    answer = message(b"a" * 16, b"h" * 16, 2, role="assistant", answers=1, message_id=f"msg_{first.turn}")
    await store.write(first)
    usage = UsageRow(attempt=1, upstream="openai", model="m", status="complete", input_tokens=3, thinking_tokens=2)
    await store.write(closing(row, first.turn, message=answer, stop_reason="end_turn", usage=(usage,)))
    found = await store.read(partial(answers.answer_by_message, key=key.pk, message_id=f"msg_{first.turn}"), None)
    assert found is not None
    assert (found.turn, found.answer_hash, found.system_digest, found.stop_reason) == (
        first.turn, b"a" * 16, b"s" * 16, "end_turn",
    )  # fmt: skip
    assert await store.read(partial(answers.last_answer, conversation_id=row.id), None) == found
    foreign = partial(answers.answer_by_message, key=key.pk + 1, message_id=f"msg_{first.turn}")
    assert await store.read(foreign, None) is None
    delivered = await store.read(partial(answers.delivered, turn=first.turn), None)
    assert delivered is not None
    used = delivered.ending.usage
    assert (delivered.content, used.input_tokens, used.thinking_tokens) == (answer.content, 3, 2)


async def test_an_answer_of_another_process_brings_its_state_after_its_history_was_read(
    store: Store, key: ApiKey
) -> None:
    """A thread goes on with what is stored: where its messages lie is known before what made them."""
    row, question, said = conversation(key.pk), message(b"q" * 16, b"", 1), b"s" * 16
    first = opening(row, messages=(question,))
    answer = message(
        said, b"q" * 16, 2, role="assistant", answers=1, message_id="msg_1", upstream="openai", model="m", state=b"{}"
    )
    await store.write(first)
    await store.write(closing(row, first.turn, message=answer))
    state = State(store, ids.RowIds(1))
    known = state._entry(key.pk, reads.Found(row.id, row.external_id))
    assert [stored.chain_hash for stored in await state.path(known, said)] == [b"q" * 16, said]
    snapshot = await state.know(known, Wanted((), (said,)))
    assert snapshot.origins[snapshot.turns[said]] == Origin("openai", "m", b"{}")
    await state.know(known, Wanted((), (said,)))
    assert (state.misses, state.hits) == (1, 1)


async def test_a_read_that_fails_is_an_outage_and_the_next_one_works(store: Store, key: ApiKey) -> None:
    with pytest.raises(StoreUnavailable):
        await store.read(lambda db: len(db.query("SELECT * FROM no_such_table")), 0)
    assert await store.read(partial(accounts.key_by_digest, digest=key.digest), None) is not None


class Migration:
    def __init__(self, sql: str) -> None:
        self._sql = sql

    def apply(self, db: Database) -> None:
        db.execute(self._sql)


@pytest.mark.parametrize("migrated", ["postgres"], indirect=True)  # SQLite's driver looks after that
async def test_what_was_prepared_survives_a_migration_of_its_columns(store: Store, key: ApiKey) -> None:
    row = conversation(key.pk)
    await store.write(opening(row))

    def prepared(db: Database) -> list[tuple[Any, ...]]:
        for _ in range(5):
            assert reads.conversation(db, key.pk, row.external_id) is not None
        return db.query("SELECT 1 FROM pg_prepared_statements")

    none: list[tuple[Any, ...]] = []
    assert await store.read(prepared, none)
    for kind in ("text", "varchar(255)"):
        await store.write(Migration(f"ALTER TABLE conversations_conversation ALTER COLUMN external_id TYPE {kind}"))
        for _ in range(4):  # whichever of the readers
            assert await store.read(prepared, none)
