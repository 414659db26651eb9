"""What an operator can do with a conversation: each asked first, each written down."""

import json
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from conversations.contents import outline, purge
from conversations.models import ApiKey, Change, Conversation, Message, ToolMapping, Turn, UsageEntry
from tests.admin import rows

pytestmark = pytest.mark.django_db
PAGE = "/admin/conversations/conversation/1"


def test_a_held_conversation_is_released_before_it_can_be_terminated(
    browser: Client, conversation: Conversation
) -> None:
    assert "/terminate/" in browser.get(f"{PAGE}/change/").text
    browser.post(f"{PAGE}/hold/")
    page = browser.get(f"{PAGE}/change/").text
    assert "/release/" in page
    assert "/terminate/" not in page
    answer = browser.post(f"{PAGE}/terminate/", follow=True)
    assert "held by an operator" in answer.text
    browser.post(f"{PAGE}/release/")
    conversation.refresh_from_db()
    assert not conversation.held
    assert [entry.change_message for entry in LogEntry.objects.order_by("id")] == ["Held", "Released"]


def test_terminate_asks_then_deletes_everything_but_the_ledger(browser: Client, conversation: Conversation) -> None:
    asked = browser.get(f"{PAGE}/terminate/").text
    assert "session/one" in asked
    assert Turn.objects.exists()
    answer = browser.post(f"{PAGE}/terminate/", follow=True)
    assert "was terminated: 1 turn, 1 tool mapping deleted." in answer.text
    assert not Conversation.objects.exists()
    assert not Turn.objects.exists()
    assert UsageEntry.objects.exists()
    assert Change.objects.filter(kind="conversation", ref="1").exists()
    assert LogEntry.objects.filter(change_message="Terminated session/one").exists()


@pytest.mark.parametrize(
    "page", ["conversation/1/change/", "conversation/1/toolchain/", "turn/1/hops/", "turn/1/change/"]
)
def test_times_are_to_the_second_and_name_their_zone(browser: Client, conversation: Conversation, page: str) -> None:
    moment = conversation.created_at.strftime("%Y-%m-%d %H:%M:%S UTC")
    assert moment in browser.get(f"/admin/conversations/{page}").text


def test_whether_a_call_failed_is_said_in_words(browser: Client, conversation: Conversation) -> None:
    call = f"/admin/conversations/toolmapping/{ToolMapping.objects.get().pk}/change/"
    assert shown(browser.get(call).text, "Is error") == "no"
    ToolMapping.objects.update(is_error=True)
    assert shown(browser.get(call).text, "Is error") == "yes"
    assert shown(browser.get("/admin/conversations/turn/1/change/").text, "Usage estimated") == "no"


def test_the_title_of_a_row_is_its_id_as_it_is(browser: Client, conversation: Conversation) -> None:
    for page, name in (("conversation", "session/one"), ("turn", "req_000000000000000000000001")):
        text = browser.get(f"/admin/conversations/{page}/1/change/").text
        assert re.search(rf"truncate tracking-tight\">\s*{name}\s*</a", text), page


def shown(page: str, label: str) -> str:
    """What a page says of a field."""
    found = re.search(rf"{label}\s*</label>.*?readonly[^>]*>\s*([^<]*?)\s*<", page, re.DOTALL)
    assert found is not None, label
    return found[1]


def test_who_may_only_look_can_do_nothing(outsider: Client, conversation: Conversation) -> None:
    for verb in ("hold", "release", "terminate"):
        assert outsider.post(f"{PAGE}/{verb}/").status_code == 403
    assert Conversation.objects.filter(held=False).count() == 1


def test_rows_are_linked_both_ways(browser: Client, conversation: Conversation) -> None:
    mapping = conversation.tool_mappings.get()
    page = browser.get(f"{PAGE}/change/").text
    assert "turn/?conversation=1" in page
    assert "toolmapping/?conversation=1" in page
    assert "/conversation/1/toolchain/" in browser.get("/admin/conversations/turn/1/change/").text
    call = browser.get(f"/admin/conversations/toolmapping/{mapping.pk}/change/").text
    assert "/conversation/1/toolchain/" in call
    assert "/turn/1/hops/" in call
    entry = UsageEntry.objects.get()
    used = browser.get(f"/admin/conversations/usageentry/{entry.pk}/change/").text
    assert "/conversation/1/toolchain/" in used
    assert "/turn/1/hops/" in used


def test_arguments_are_for_those_who_may_read_content(
    browser: Client, outsider: Client, conversation: Conversation
) -> None:
    page = f"/admin/conversations/toolmapping/{conversation.tool_mappings.get().pk}/change/"
    assert "&quot;command&quot;" in browser.get(page).text
    assert "&quot;command&quot;" not in outsider.get(page).text


def test_an_export_can_be_sent_again(browser: Client, conversation: Conversation) -> None:
    asked = rows.an_answer(
        conversation.turns.get(), 99, role="user", message_id="", content=b'[{"type":"text","text":"hi"}]'
    )
    asked.save()
    Turn.objects.update(head_hash=asked.chain_hash, params=b'{"max_tokens":5}')
    lines = browser.post(f"{PAGE}/export/?form=jsonl").text.splitlines()
    (request,) = [json.loads(line) for line in lines]
    assert request == {"model": "claude-sonnet-4-5", "max_tokens": 5, "messages": [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]}]}  # fmt: skip
    assert LogEntry.objects.filter(change_message="Exported as jsonl").exists()


def test_what_is_no_longer_kept_is_not_exported(browser: Client, conversation: Conversation) -> None:
    """It was lines of kinds and sizes, which nobody can send."""
    turn = conversation.turns.get()
    asked = {"role": "user", "message_id": "", "content": b'[{"type":"text","text":"hi"}]'}
    kept, gone = (rows.an_answer(turn, number, **asked) for number in (98, 99))
    gone.content = outline(bytes(kept.content))
    Message.objects.bulk_create([kept, gone])
    rows.a_turn(conversation, 2, head_hash=kept.chain_hash).save(force_insert=True)
    Turn.objects.filter(pk=turn.pk).update(head_hash=gone.chain_hash)
    (line,) = browser.post(f"{PAGE}/export/?form=jsonl").text.splitlines()
    assert json.loads(line)["messages"][0]["content"] == [{"type": "text", "text": "hi"}]
    purge(conversation)
    assert "What was said is no longer stored." in browser.post(f"{PAGE}/export/?form=jsonl", follow=True).text


def test_a_table_of_tool_calls_runs_no_formula(browser: Client, outsider: Client, conversation: Conversation) -> None:
    ToolMapping.objects.update(tool_name="=HYPERLINK(1)", arguments=b'{"secret":1}')
    header, row = browser.post(f"{PAGE}/export/?form=csv").text.splitlines()
    assert header.startswith("tool_use_id,tool_name,status")
    assert "'=HYPERLINK(1)" in row
    assert "secret" in row
    assert "secret" not in outsider.post(f"{PAGE}/export/?form=csv").text


def test_what_was_said_is_exported_only_to_those_who_may_read_it(outsider: Client, conversation: Conversation) -> None:
    answer = outsider.get(f"{PAGE}/export/?form=jsonl", follow=True)
    assert answer.redirect_chain
    assert "not for you to read" in answer.text


def test_only_what_can_be_had_is_offered_for_export(
    browser: Client, outsider: Client, conversation: Conversation
) -> None:
    assert "form=jsonl" in browser.get(f"{PAGE}/toolchain/").text
    assert "Export the tool calls?" in outsider.get(f"{PAGE}/export/").text
    ApiKey.objects.update(storage="metadata")
    assert "form=jsonl" not in browser.get(f"{PAGE}/toolchain/").text
    assert "Export the tool calls?" in browser.get(f"{PAGE}/export/").text


def test_a_mapping_is_forgotten_and_every_process_hears_of_it(browser: Client, conversation: Conversation) -> None:
    page = f"/admin/conversations/toolmapping/{conversation.tool_mappings.get().pk}/forget/"
    assert "opaque state is lost" in browser.get(page).text
    Conversation.objects.update(tool_count=2)
    browser.post(page)
    assert not ToolMapping.objects.exists()
    assert Conversation.objects.get().tool_count == 1
    assert Change.objects.filter(kind="forgotten", ref="1").exists()
    assert LogEntry.objects.filter(change_message__startswith="Forgot toolu_").exists()


def test_the_purge_runs_after_a_question(browser: Client, conversation: Conversation) -> None:
    Conversation.objects.update(last_activity="2020-01-01T00:00Z")
    page = "/admin/conversations/conversation/purge/"
    assert "Conversations due" in browser.get(page).text
    assert "Purged 1 conversation; still due: 0." in browser.post(page, follow=True).text
    assert not Conversation.objects.exists()
