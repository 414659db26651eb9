"""The pages of a conversation and of a turn, on real rows."""

import io
import re
import zipfile

import pytest
import zstandard
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.db.models.functions import Mod
from django.test import Client
from django.test.utils import CaptureQueriesContext

from conversations.admin import toolchain_page
from conversations.admin.live import Tail
from conversations.models import Conversation, Message, Replay, ToolMapping, Turn, UsageEntry
from conversations.store import packing
from tests.admin import rows

pytestmark = pytest.mark.django_db
CHAIN = "/admin/conversations/conversation/1/toolchain/"
HOPS = "/admin/conversations/turn/1/hops/"
LISTS = ("conversation", "turn", "toolmapping", "usageentry")
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x1b[31m</pre></details>{{ 7 }}"


def large(turns: int, calls: int) -> Conversation:
    conversation = rows.a_conversation(rows.a_key(), 1, turn_count=turns, tool_count=turns * calls)
    conversation.save(force_insert=True)
    made = [rows.a_turn(conversation, n, status="complete") for n in range(1, turns + 1)]
    Turn.objects.bulk_create(made)
    mappings = [
        rows.a_mapping(turn, turn.pk * 10 + n, ordinal=n, answered_turn=turn.pk) for turn in made for n in range(calls)
    ]
    ToolMapping.objects.bulk_create(mappings)
    Message.objects.bulk_create([rows.an_answer(turn, turn.pk) for turn in made])
    return conversation


def test_a_conversation_of_three_hundred_turns_opens_at_once(browser: Client) -> None:
    large(300, 4)
    browser.get(CHAIN)
    with CaptureQueriesContext(connection) as queries:
        page = browser.get(CHAIN)
    assert page.status_code == 200
    assert len(queries) <= 20
    assert page.text.count('class="tb-turn"') == 25
    assert len(page.content) < 1_000_000


def test_more_turns_come_as_they_are_needed(browser: Client) -> None:
    large(60, 1)
    assert f'hx-get="{CHAIN}?page=2"' in browser.get(CHAIN).text
    more = browser.get(f"{CHAIN}?page=3", headers={"hx-request": "true"}).text
    assert 'id="turn-60"' in more
    assert "<html" not in more
    assert "hx-get" not in more
    assert 'id="turn-42"' in browser.get(f"{CHAIN}?at=42").text


def test_the_calls_of_old_turns_are_shown_however_many_came_later(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain_page, "CALLS", 10)
    large(30, 2)
    page = browser.get(CHAIN).text
    assert page.count('class="tb-call ') == 50
    assert "Only the newest 10 calls are drawn and counted." in page
    assert browser.get(f"{CHAIN}?page=2", headers={"hx-request": "true"}).text.count('class="tb-call ') == 10


def test_turns_are_found_by_what_was_said_and_called(browser: Client) -> None:
    large(30, 1)
    Message.objects.filter(turn=7).update(content='[{"type":"text","text":"the Straße needle"}]'.encode())
    page = browser.get(CHAIN, {"q": "strasse NEEDLE"})
    assert "1 of 30 turns" in page.text
    assert 'id="turn-7"' in page.text
    assert "Nothing in this conversation" in browser.get(CHAIN, {"q": "no such thing"}).text
    ToolMapping.objects.filter(turn=9).update(arguments=rb'{"text": "\u6f22\u5b57 \"quoted\" \u202e"}')
    for term in ("漢字", '"quoted"'):
        assert 'id="turn-9"' in browser.get(CHAIN, {"q": term}).text


def test_what_every_turn_has_is_no_find(browser: Client) -> None:
    large(3, 1)
    for term in ("text", "type", "tool_use", "command"):
        assert "Nothing in this conversation" in browser.get(CHAIN, {"q": term}).text, term
    ToolMapping.objects.filter(turn=2).update(arguments=b'{"ports": [8080], "id": "ISSUE-7", "force": true}')
    ToolMapping.objects.filter(turn=3).update(arguments=b"cut off in the mid")
    found = {"8080": 2, "issue-7": 2, "true": 2, "off in": 3, ToolMapping.objects.get(turn=1).tool_use_id: 1}
    for term, turn in found.items():
        page = browser.get(CHAIN, {"q": term}).text
        assert ("1 of 3 turns" in page, f'id="turn-{turn}"' in page) == (True, True), term


def test_only_arguments_that_are_shown_or_compared_are_read(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation = large(40, 1)
    ToolMapping.objects.update(tool_name="Bash")
    same, spelled = b'{"command": "ls", "n": 1}', b'{"n": 1, "command": "ls"}'
    ToolMapping.objects.filter(turn__in=(30, 32)).update(arguments=same)
    ToolMapping.objects.filter(turn=31).update(arguments=spelled)
    ToolMapping.objects.filter(turn__gt=32).update(result_size=5)
    ToolMapping.objects.filter(turn__lt=30).update(result_size=Mod("turn_id", 2))
    read = {row.turn_id: row.arguments for row in toolchain_page._mappings(conversation) if row.arguments}
    assert {turn: bytes(read[turn]) for turn in read if turn < 33} == {30: same, 31: spelled, 32: same}
    page = browser.get(CHAIN).text
    assert "The chain goes in circles" in page
    assert "no arguments yet" not in page
    assert "3× the same" in browser.get(f"{CHAIN}?page=2", headers={"hx-request": "true"}).text
    monkeypatch.setattr(toolchain_page, "COMPARED", 10)
    assert not any(row.arguments for row in toolchain_page._mappings(conversation))


def test_arguments_are_shown_in_letters_whatever_way_the_upstream_escaped_them(browser: Client, turn: Turn) -> None:
    ToolMapping.objects.update(arguments=rb'{"text": "\u6f22\u5b57 \u202e", "n": 1.50}')
    for page in (CHAIN, f"/admin/conversations/toolmapping/{ToolMapping.objects.get().pk}/change/"):
        assert "漢字 ⟨U+202E⟩" in browser.get(page).text
    ToolMapping.objects.update(arguments=rb'{"text": "\ud800 half"}')
    assert "\\ud800 half" in browser.get(CHAIN).text


def test_hostile_content_is_inert(browser: Client, conversation: Conversation, turn: Turn) -> None:
    content = rows.encoded([{"type": "text", "text": HOSTILE}, {"type": HOSTILE[:60], "x": HOSTILE}])
    Message.objects.update(content=content)
    ToolMapping.objects.update(
        tool_name=HOSTILE[:100], arguments=rows.encoded({"x": HOSTILE}), upstream_call_id=HOSTILE
    )
    Turn.objects.update(
        answer=zstandard.compress(HOSTILE.encode()), error_type="api_error", error_message=HOSTILE, status="error",
        notes=rows.encoded([{"kind": "repair", "rule": HOSTILE, "what": HOSTILE}]), note_count=1,
        head_hash=Message.objects.get().chain_hash, headers=rows.encoded({"user-agent": HOSTILE}),
        resolved_model=HOSTILE[:100],
    )  # fmt: skip
    Conversation.objects.update(external_id=HOSTILE, last_model=HOSTILE[:100])
    pages = [CHAIN, HOPS, f"{HOPS}?diff=received-sent", f"{HOPS}?diff=answered-delivered",
             "/admin/conversations/turn/1/change/", "/admin/conversations/conversation/1/change/",
             f"/admin/conversations/toolmapping/{ToolMapping.objects.get().pk}/change/",
             *(f"/admin/conversations/{name}/" for name in LISTS)]  # fmt: skip
    for page in pages:
        text = browser.get(page).text
        assert "<script>alert" not in text, page
        assert "<img src=x" not in text, page
        assert "</pre></details>{" not in text, page
    assert "\x1b" not in browser.get(CHAIN).text
    assert "\u202e" not in browser.get(CHAIN).text


def test_raw_bytes_are_text_and_nothing_else(browser: Client, turn: Turn) -> None:
    Turn.objects.update(answer=zstandard.compress(b"<script>alert(1)</script>"))
    answer = browser.get(f"{HOPS}?as=answered")
    assert answer["content-type"] == "text/plain; charset=utf-8"
    assert answer["x-content-type-options"] == "nosniff"


def test_every_hop_is_shown_and_compared(browser: Client, turn: Turn) -> None:
    Turn.objects.update(head_hash=Message.objects.get().chain_hash)
    page = browser.get(HOPS).text
    for title in ("1. Received", "2. Sent", "3. Answered", "4. Delivered"):
        assert title in page
    assert "&quot;messages&quot;" in page
    Turn.objects.filter(pk=1).update(
        sent_tail=b'{"messages":[{"role":"assistant","tool_calls":[{}],"reasoning":"hm"}]}'
    )
    assert "thinking_replayed 1/1" in browser.get(HOPS).text
    assert 'class="tb-diff-added"' in browser.get(f"{HOPS}?diff=received-sent").text
    assert "v1/messages" in browser.get(f"{HOPS}?as=curl-received").text
    assert "$UPSTREAM_BASE_URL" in browser.get(f"{HOPS}?as=curl-sent").text
    assert browser.get(f"{HOPS}?as=nonsense").status_code == 404


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_that_was_given_before_is_each_turns(browser: Client, turn: Turn, packed: bool) -> None:
    """A model that says the same at the same place: the store has it once."""
    said = Message.objects.get()
    again = rows.a_turn(turn.conversation, 2, status="complete", stop_reason="end_turn", answer_hash=said.chain_hash)
    again.save(force_insert=True)
    if packed:  # a client brought a whole history that ends with it
        said.content = packing.pack([("user", b"q", b"[]"), ("assistant", bytes(said.chain_hash), bytes(said.content))])
        said.span, said.message_id = 2, ""
        said.save()
    hops = browser.get(HOPS.replace("/1/", "/2/")).text
    delivered = hops.partition("4. Delivered")[2]
    assert (again.message_id in delivered, "done" in delivered) == (True, True)
    shown = browser.get(CHAIN).text.partition('id="turn-2"')[2]
    assert "done" in shown
    told = Tail(turn.conversation_id, turn.pk).news()
    assert told is not None
    assert b"done" in told
    row = Replay.objects.create(conversation=turn.conversation, turn=again, target="x/y", exact=True)
    assert "done" in browser.get(f"/admin/conversations/replay/{row.pk}/compare/").text


def test_tokens_that_went_in_are_the_same_figure_on_every_page(browser: Client, turn: Turn) -> None:
    figures = {"input_tokens": 240, "cache_read": 959, "cache_write": 1, "output_tokens": 39}
    Turn.objects.filter(pk=turn.pk).update(**figures)
    UsageEntry.objects.update(**figures)
    pages = ("conversations/turn/", HOPS, CHAIN, "conversations/usageentry/", "")
    for path in pages:
        page = browser.get(path if path.startswith("/") else f"/admin/{path}").text
        assert re.search(r"[\s>]1,200[\s<]", page), path


def test_a_call_that_failed_has_the_colour_of_failures(browser: Client, turn: Turn) -> None:
    turn.tool_mappings.update(status="failed")
    page = browser.get(f"{HOPS}?diff=answered-delivered").text
    assert '<span class="tb-badge tb-danger">failed</span>' in page
    assert "Answered with delivered: <span" in page


def test_a_bug_bundle_holds_the_hops_without_their_content(browser: Client, turn: Turn) -> None:
    Message.objects.update(content=rows.encoded([{"type": "text", "text": "hunter2 is my password"}]))
    answer = browser.get(f"{HOPS}?as=bundle")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as files:
        assert {"README.txt", "turn.json", "received.json", "sent.json", "answered.txt", "delivered.json"} == set(
            files.namelist()
        )
        assert not any(b"hunter2" in files.read(name) for name in files.namelist())
        assert b'"type": "text"' in files.read("delivered.json")


def test_without_the_permission_only_structure_is_seen(outsider: Client, turn: Turn) -> None:
    Message.objects.update(content=rows.encoded([{"type": "text", "text": "hunter2"}]))
    Turn.objects.update(head_hash=Message.objects.get().chain_hash, answer=zstandard.compress(b"hunter2"),
                        error_type="api_error", error_message="hunter2")  # fmt: skip
    for page in (CHAIN, HOPS, f"{CHAIN}?q=hunter2", f"{HOPS}?diff=received-sent", f"{HOPS}?as=answered",
                 f"{HOPS}?as=bundle", "/admin/conversations/turn/1/change/"):  # fmt: skip
        answer = outsider.get(page)
        assert answer.status_code == 200
        assert "hunter2" not in answer.text.replace("?q=hunter2", ""), page
    assert "Structure only" in outsider.get(CHAIN).text
    assert not LogEntry.objects.exists()


def test_estimated_tokens_are_marked_wherever_they_stand(browser: Client, turn: Turn) -> None:
    pages = (CHAIN, HOPS, "/admin/conversations/turn/", "/admin/conversations/usageentry/")
    assert not any("~" in browser.get(page).text for page in pages)
    Turn.objects.update(usage_estimated=True)
    UsageEntry.objects.update(estimated=True, output_tokens=50)
    chain, hops, turns, usage = (browser.get(page).text for page in pages)
    assert "<dd>~1,000 / ~50</dd>" in chain
    assert "~1,000 in · ~50 out" in chain
    assert "<dd>~1,000 / ~50</dd>" in hops
    assert "~1,000 / ~50" in turns
    assert all(figure in usage for figure in ("~1,000", "~50"))


def test_the_result_of_a_hosted_tool_stands_with_its_call(browser: Client, turn: Turn) -> None:
    call = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "stock", "server_name": "toolbridge", "input": {}}
    result = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": [{"type": "text", "text": "19 left"}]}
    Message.objects.update(content=rows.encoded([call, result, {"type": "text", "text": "There are some."}]))
    ToolMapping.objects.update(tool_use_id="mcptoolu_1", answered_turn=turn.pk, result_size=7)
    page = browser.get(CHAIN).text
    assert "not stored" not in page
    assert page.count("19 left") == 1
    assert "mcp_tool" not in page
    assert page.index("mcptoolu_1") < page.index("19 left") < page.index("There are some.")
    ToolMapping.objects.all().delete()
    assert browser.get(CHAIN).text.count("19 left") == 1


def test_calls_that_were_made_elsewhere_are_shown_with_the_turn_that_brought_them(browser: Client, turn: Turn) -> None:
    """A history that another server began: no row has its calls."""
    ours = {"type": "tool_result", "tool_use_id": rows.a_mapping(turn).tool_use_id, "content": "known here"}
    history = (
        ("assistant", [{"type": "text", "text": "I look."},
                       {"type": "tool_use", "id": "toolu_away", "name": "Far", "input": {"path": "/elsewhere"}}]),
        ("user", [{"type": "tool_result", "tool_use_id": "toolu_away", "content": "came from away"}, ours]),
    )  # fmt: skip
    for number, (role, content) in enumerate(history, 2):
        rows.an_answer(turn, number, role=role, message_id="", content=rows.encoded(content)).save()
    ToolMapping.objects.update(answered_turn=turn.pk)
    page = browser.get(CHAIN)
    brought = page.context["turns"][0].brought
    assert [(part.who, part.kind) for part in brought] == [
        ("assistant", "text"), ("assistant", "tool_use"), ("user", "tool_result text"),
    ]  # fmt: skip
    for words in ("assistant: tool_use Far", "/elsewhere", "came from away"):
        assert words in page.text
    assert page.text.count("known here") == 1


def test_reading_content_is_written_down_once_an_hour(browser: Client, turn: Turn) -> None:
    browser.get(CHAIN)
    browser.get(HOPS)
    browser.get(CHAIN)
    assert [entry.change_message for entry in LogEntry.objects.all()] == ["Read content"]


def test_a_conversation_without_turns_has_a_page(browser: Client) -> None:
    rows.a_conversation(rows.a_key(), 1, turn_count=0, tool_count=0).save(force_insert=True)
    assert "has no turns yet" in browser.get(CHAIN).text


def test_what_has_ended_has_no_page(browser: Client, turn: Turn) -> None:
    Conversation.objects.update(ended_at="2026-01-01T00:00Z")
    assert browser.get(CHAIN).status_code == 404
    assert browser.get(HOPS).status_code == 404


def test_each_call_of_an_upstream_is_shown_as_the_ledger_has_it(browser: Client, turn: Turn) -> None:
    UsageEntry.objects.all().delete()
    ends = (("error", 0), ("error", 1_500), ("replay", 9_000_000))
    for number, (status, micros) in enumerate(ends, 1):
        entry = rows.an_entry(turn, turn.conversation)
        entry.attempt, entry.status, entry.cost_micros = number, status, micros
        entry.model, entry.duration_ms = f"model-{number}", 900 * number
        entry.save()
    recorded = [{"upstream": "openai", "model": "model-1", "status": "error", "error": "overloaded", "ms": 5}]
    # A refusal is no attempt of the turn's own record, and a stream that broke off is complete there.
    Turn.objects.update(status="error", attempts=rows.encoded(recorded), error_message="prompt is too long",
                        error_type="invalid_request_error", cost_micros=1_500)  # fmt: skip
    page = browser.get(HOPS)
    shown = page.context["attempts"]
    assert [(one.path, one.status, one.error, one.cost_micros) for one in shown] == [
        (f"{turn.upstream}/model-1", "error", "overloaded", 0),
        (f"{turn.upstream}/model-2", "error", "prompt is too long", 1_500),
    ]
    assert [one.ms for one in shown] == [5, 1_800]
    assert page.text.count("$0.0015") == 2
    assert f'href="/admin/conversations/usageentry/{shown[1].entry}/change/"' in page.text


def test_attempts_of_which_the_ledger_knows_nothing_are_shown_as_the_turn_has_them(browser: Client, turn: Turn) -> None:
    UsageEntry.objects.all().delete()
    assert "No upstream was called." in browser.get(HOPS).text
    recorded = [{"upstream": "openai", "model": "m", "status": "error", "error": "overloaded", "ms": 5}]
    Turn.objects.update(attempts=rows.encoded(recorded))
    assert [one.error for one in browser.get(HOPS).context["attempts"]] == ["overloaded"]
