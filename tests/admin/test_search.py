"""Words that were said are found, by those who may read them, for as long as they are kept."""

import datetime as dt

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from conversations import contents, ids, retention, search
from conversations.deleting import Pieces
from conversations.models import ApiKey, Conversation, Message, SearchedTurn, Turn
from conversations.store.packing import compress, messages, pack
from conversations.words import document, phrases, words
from tests.admin import rows
from tests.admin.test_lists import found
from translation.values import Role

SAID = [
    {"type": "text", "text": "The café's test_half_cents FAILS: 你好世界"},
    {"type": "tool_use", "id": "toolu_9", "name": "Bash", "input": {"command": "ls /srv/billing/core.py"}},
    {"type": "tool_result", "tool_use_id": "toolu_9", "content": [{"type": "text", "text": "ENOENT: no such file"}]},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGlkZGVu"}},
]


@pytest.fixture
def spoken(db: None) -> Turn:
    """A turn that said something, with an id from a clock."""
    conversation = rows.a_conversation(rows.a_key(), 1)
    conversation.save(force_insert=True)
    turn = rows.a_turn(conversation, 7, id=ids.RowIds(1).mint(), error_message="the engine is overloaded")
    turn.save(force_insert=True)
    rows.an_answer(turn, content=rows.encoded(SAID)).save()
    rows.a_mapping(turn).save()
    rows.an_entry(turn, conversation).save()
    assert search.index() == 1
    return turn


FOUND = ["half cents", "test_half_cents", '"no such file"', "CAFÉ'S fails", "billing", "世界", "overlo*", "such ENOENT",
         "Bash core.py"]  # fmt: skip
NOT_FOUND = ["cents half_x", '"such no file"', "aGlkZGVu", "overlo", "nowhere", "toolu_9", "*", '""']


@pytest.mark.parametrize("name", ["conversation", "turn", "toolmapping", "usageentry"])
def test_what_was_said_is_found(browser: Client, spoken: Turn, name: str) -> None:
    assert [term for term in FOUND if len(found(browser, name, term)) != 1] == []
    assert [term for term in NOT_FOUND if found(browser, name, term)] == []


def test_messages_that_share_a_row_are_read_like_others(browser: Client, spoken: Turn) -> None:
    earlier: list[tuple[Role, bytes, bytes]] = [
        ("user", b"1" * 16, b'[{"type":"text","text":"Once upon a time"}]'),
        ("assistant", b"2" * 16, b"[]"),
    ]
    search.forget([spoken.conversation_id], Pieces())
    rows.an_answer(spoken, 2, content=compress(pack(earlier)), span=2, message_id="").save()
    assert search.index() == 1
    assert search.turns('"upon a time"') == [spoken.pk]
    page = f"/admin/conversations/conversation/{spoken.conversation_id}/toolchain/"
    assert "Once upon a time" in browser.get(page).text
    assert "#turn-" in browser.get(page, {"q": "UPON A"}).text
    assert spoken.conversation.message_total == 3
    contents.purge(spoken.conversation)
    row = Message.objects.get(span=2)
    assert messages(row.role, row.span, row.content) == [("user", b'[{"type":"text","size":41}]'), ("assistant", b"[]")]


def test_a_message_that_is_kept_compressed_is_read_like_others(browser: Client, spoken: Turn) -> None:
    content = b'[{"type":"text","text":"Once upon a time%b"}]' % (b"." * 1000)
    search.forget([spoken.conversation_id], Pieces())
    rows.an_answer(spoken, 2, content=compress(content), message_id="").save()
    assert search.index() == 1
    assert search.turns('"upon a time"') == [spoken.pk]
    page = f"/admin/conversations/conversation/{spoken.conversation_id}/toolchain/"
    assert "Once upon a time" in browser.get(page).text
    contents.purge(spoken.conversation)
    assert bytes(Message.objects.get(chain_hash=(2).to_bytes(16)).content) == b'[{"type":"text","size":1041}]'


def test_only_those_who_may_read_it_find_it(outsider: Client, spoken: Turn) -> None:
    assert found(outsider, "turn", "billing") == []
    assert len(found(outsider, "turn", spoken.request_id)) == 1


def test_an_error_is_found_by_its_type(outsider: Client, spoken: Turn) -> None:
    Turn.objects.update(status="error", error_type="rate_limit_error")
    assert len(found(outsider, "turn", "rate_limit_error")) == 1
    assert found(outsider, "turn", "api_error") == []


def test_what_is_deleted_is_found_no_more(spoken: Turn) -> None:
    conversation = spoken.conversation
    contents.purge(conversation)
    assert search.turns("billing") == []
    assert not SearchedTurn.objects.exists()
    assert search.index() in {0, 1}  # its outline says nothing
    assert search.turns("billing") == []
    retention.terminate(conversation)
    assert not SearchedTurn.objects.exists()
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM conversations_searchwords")
        assert cursor.fetchone()[0] == 0


@pytest.mark.parametrize("since", [{"held": True}, {"last_activity": timezone.now()}])
def test_text_that_is_no_longer_due_when_its_turn_comes_is_kept(
    spoken: Turn, monkeypatch: pytest.MonkeyPatch, since: dict[str, object]
) -> None:
    """The purge chooses 200 conversations at once: meanwhile one is held, or goes on."""
    rows.a_conversation(spoken.api_key, 2).save(force_insert=True)
    ApiKey.objects.update(content_hours=1)
    Conversation.objects.update(last_activity=timezone.now() - dt.timedelta(hours=2))
    real = contents.purge

    def purge(conversation: Conversation) -> None:
        Conversation.objects.exclude(pk=conversation.pk).update(**since)
        real(conversation)

    monkeypatch.setattr(contents, "purge", purge)
    assert retention.purge().contents == 1
    assert Conversation.objects.filter(content_purged_at=None).count() == 1


def test_a_conversation_that_ended_meanwhile_is_not_read(spoken: Turn) -> None:
    search.forget([spoken.conversation_id], Pieces())
    assert search._locked({spoken.conversation_id}, timezone.now()) == {spoken.conversation_id}
    Conversation.objects.update(content_purged_at=timezone.now() + dt.timedelta(seconds=5))
    assert search._locked({spoken.conversation_id}, timezone.now()) == set()
    Conversation.objects.update(ended_at=timezone.now())
    assert search.index() == 0


def test_a_running_turn_is_read_when_it_has_ended(db: None) -> None:
    conversation = rows.a_conversation(rows.a_key(), 1)
    conversation.save(force_insert=True)
    minted = ids.RowIds(1)
    slow, quick = (rows.a_turn(conversation, number, id=minted.mint()) for number in (1, 2))
    slow.status = "running"
    for turn in (slow, quick):
        turn.save(force_insert=True)
        rows.an_answer(turn, turn.pk % 1000, content=rows.encoded([{"type": "text", "text": "hello there"}])).save()
    assert search.index() == 1
    assert search.turns("hello") == [quick.pk]
    until = search.up_to()
    assert until is not None
    assert until.timestamp() <= ids.seconds(slow.pk)
    Turn.objects.update(status="complete")
    assert search.index() == 1
    assert search.turns("hello") == [quick.pk, slow.pk]
    assert search.index() == 0


def test_a_reader_that_is_behind_says_so(browser: Client, spoken: Turn) -> None:
    assert "still being read" not in browser.get("/admin/conversations/turn/", {"q": "x"}).text
    conversation = spoken.conversation
    later = ids.least(timezone.now().timestamp() + 600)
    rows.a_turn(conversation, 8, id=later, status="complete").save(force_insert=True)
    assert "still being read" in browser.get("/admin/conversations/turn/", {"q": "x"}).text


def test_a_reader_that_has_read_nothing_names_no_moment(browser: Client, turn: Turn) -> None:
    Turn.objects.filter(pk=turn.pk).delete()
    now = ids.least(timezone.now().timestamp())
    rows.a_turn(turn.conversation, 8, id=now, status="complete").save(force_insert=True)
    page = browser.get("/admin/conversations/turn/", {"q": "x"}).text
    assert "the worker has read none of it" in page
    assert "1970" not in page


def test_a_long_turn_is_read_at_both_ends() -> None:
    text = f"first {'filling ' * 20_000} last"
    found = document([rows.encoded([{"type": "text", "text": text}]), b"not JSON"]).split()
    assert (found[0], found[-1]) == ("first", "last")
    assert len(found) < 10_000
    assert words("x" * 100) == ""
    assert len(phrases("word " * 50)) == 16
