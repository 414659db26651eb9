"""Turns run again: against a scripted upstream, from the admin and from the command line."""

import io
import json
import re

import pytest
import zstandard
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.test import Client

from conversations import contents, retention
from conversations.captured import client_stream
from conversations.models import Blob, Conversation, Message, Replay, Round, ToolMapping, Turn, Upstream, UsageEntry
from tests.admin import rows
from tests.servers import chat
from tests.servers.bridge import PROJECT
from tests.servers.upstream import ScriptedUpstream

pytestmark = pytest.mark.django_db
PAGE = "/admin/conversations/turn/1/replay/"
CHAT = "/first/chat/completions"
OTHER = "/second/chat/completions"
SENT = b'{"model":"m","stream":false,  "messages":[{"role":"user","content":"What is the weather?"}]}'
CAPTURES = PROJECT / "tests" / "captures"


@pytest.fixture
def upstreams(upstream: ScriptedUpstream) -> ScriptedUpstream:
    for name in ("first", "second"):
        Upstream.objects.create(name=name, provider="vllm", base_url=f"{upstream.url}/{name}")
    return upstream


@pytest.fixture
def stored(upstreams: ScriptedUpstream, conversation: Conversation) -> Turn:
    """A turn that the upstream `first` answered with a text and a call."""
    asked, answered = (b"q" * 16, b"a" * 16)
    made = conversation.turns.get()
    Message.objects.all().delete()
    Message.objects.bulk_create([
        rows.an_answer(made, chain_hash=asked, role="user", message_id="", depth=1, answers=0,
                       content=rows.encoded([{"type": "text", "text": "What is the weather?"}])),
        rows.an_answer(made, chain_hash=answered, parent_hash=asked,
                       content=rows.encoded([{"type": "text", "text": "I look."},
                                             {"type": "tool_use", "id": "toolu_1", "name": "weather",
                                              "input": {"city": "Rome"}}])),
    ])  # fmt: skip
    Turn.objects.update(
        upstream="first", resolved_model="m", status="complete", head_hash=asked, answer_hash=answered, stream=False,
        params=rows.encoded({"max_tokens": 100, "tool_choice": {"kind": "auto"}, "version": "2023-06-01"}),
        sent_tail=SENT,
        sent_meta=rows.encoded({"path": "/chat/completions", "headers": {"x-kept": "1"}, "stream": False}),
    )  # fmt: skip
    made.refresh_from_db()
    return made


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("replay_turn", *arguments, stdout=out)
    return out.getvalue()


def test_a_turn_is_sent_again_byte_for_byte(stored: Turn, upstreams: ScriptedUpstream) -> None:
    upstreams.queue(CHAT, chat.text("It rains."))
    printed = run(stored.request_id)
    (got,) = upstreams.requests
    assert got.body == SENT
    assert got.headers["x-kept"] == "1"
    row = Replay.objects.get()
    assert (row.status, row.exact, row.target, row.turn_id) == ("complete", True, "first/m", stored.pk)
    assert json.loads(bytes(row.content)) == [{"type": "text", "text": "It rains."}]
    assert (row.input_tokens, row.output_tokens) == (11, 7)
    assert "+It rains." in printed
    assert "-I look." in printed
    assert "weather: not in the replay" in printed


@pytest.mark.parametrize(("chosen", "sent"), [("weather", "auto"), ("clock", {"name": "clock"})])
def test_a_turn_that_had_to_call_a_hosted_tool_can_be_replayed(
    stored: Turn, upstreams: ScriptedUpstream, chosen: str, sent: object
) -> None:
    """A replay runs no tools and offers the client's own only."""
    tools = [{"name": "clock", "input_schema": {"type": "object"}}]
    packed = zstandard.compress(rows.encoded(tools))
    Blob.objects.create(conversation_id=stored.conversation_id, digest=b"d" * 16, data=packed)
    params = {"max_tokens": 100, "tool_choice": {"kind": "tool", "name": chosen}, "version": "2023-06-01"}
    Turn.objects.update(params=rows.encoded(params), tools_digest=b"d" * 16)
    upstreams.queue(CHAT, chat.text("It rains."))
    upstreams.queue(OTHER, chat.text("It rains."))
    run(stored.request_id)
    run(stored.request_id, "--target", "second/m")
    exact, anew = upstreams.requests
    assert exact.body == SENT
    choice = anew.json()["tool_choice"]
    assert (choice if isinstance(choice, str) else choice["function"]) == sent


def test_a_replay_leaves_no_trace_in_the_conversation(stored: Turn, upstreams: ScriptedUpstream) -> None:
    upstreams.queue(CHAT, chat.calls(("call_9", "weather", {"city": "Paris"})))
    before = [list(model.objects.order_by("pk").values()) for model in (Conversation, Turn, Message, ToolMapping)]
    assert "weather / weather: other arguments" in run(str(stored.pk))
    after = [list(model.objects.order_by("pk").values()) for model in (Conversation, Turn, Message, ToolMapping)]
    assert before == after


def test_a_turn_is_made_anew_for_another_target(stored: Turn, upstreams: ScriptedUpstream) -> None:
    upstreams.queue(OTHER, chat.text("I look."))
    assert "The texts are the same." in run(stored.message_id, "--target", "second/big")
    sent = upstreams.requests[0].json()
    assert sent["model"] == "big"
    assert sent["messages"][-1] == {"role": "user", "content": "What is the weather?"}
    row = Replay.objects.get()
    assert (row.exact, row.target) == (False, "second/big")


def test_the_cost_is_said_without_asking_anybody(stored: Turn, upstreams: ScriptedUpstream) -> None:
    assert "first/m: 1,000 tokens in" in run(stored.request_id, "--cost")
    assert upstreams.requests == []
    assert not Replay.objects.exists()


def test_a_round_costs_what_it_cost_and_not_what_the_whole_turn_did(browser: Client, stored: Turn) -> None:
    UsageEntry.objects.all().delete()
    for number, (read, written) in enumerate(((400, 36), (600, 9)), 1):
        entry = rows.an_entry(stored, stored.conversation)
        entry.attempt, entry.input_tokens, entry.output_tokens, entry.status = number, read, written, "complete"
        entry.save()
    Round.objects.create(
        conversation=stored.conversation, turn=stored, number=2, sent_tail=zstandard.compress(SENT),
        created_at=stored.started_at,
    )  # fmt: skip
    for query, told in (({}, ("about 400", "36 as before")), ({"round": "2"}, ("about 600", "9 as before"))):
        facts = dict(browser.get(PAGE, query).context["facts"])
        assert (facts["Tokens in"], facts["Tokens out"]) == (told[0], f"{told[1]}, at most 100")


def test_each_replay_of_the_list_leads_to_its_comparison_and_to_its_turn(browser: Client, stored: Turn) -> None:
    row = Replay.objects.create(conversation=stored.conversation, turn=stored, target="x/y", exact=True)
    page = browser.get("/admin/conversations/replay/").text
    links = dict(re.findall(r'<a [^>]*?href="([^"]+)"[^>]*>(?:<span[^>]*>)?([^<]*)<', page))  # one in another is none
    assert links[f"/admin/conversations/replay/{row.pk}/compare/"] == "x/y"
    assert links["/admin/conversations/turn/1/hops/"] == stored.request_id


def test_a_comparison_says_that_a_turn_had_more_rounds_than_its_replay(browser: Client, stored: Turn) -> None:
    row = Replay.objects.create(conversation=stored.conversation, turn=stored, target="x/y", exact=True)
    page = f"/admin/conversations/replay/{row.pk}/compare/"
    assert "of all its rounds" not in browser.get(page).text
    Round.objects.create(conversation=stored.conversation, turn=stored, number=2, created_at=stored.started_at)
    assert "of all its rounds" in browser.get(page).text


def test_a_failed_replay_is_kept_with_its_error(stored: Turn, upstreams: ScriptedUpstream) -> None:
    upstreams.queue(CHAT, chat.error(400, "no such model"))
    assert "replay failed: invalid_request_error" in run(stored.request_id)
    row = Replay.objects.get()
    assert (row.status, row.error_type, row.cost_micros) == ("error", "invalid_request_error", 0)
    assert len(upstreams.requests) == 1


def test_what_is_not_stored_cannot_be_replayed(stored: Turn, upstreams: ScriptedUpstream) -> None:
    with pytest.raises(CommandError, match="no turn is known"):
        run("req_unknown")
    contents.purge(stored.conversation)
    with pytest.raises(CommandError, match="is not stored"):
        run(stored.request_id)
    with pytest.raises(CommandError, match="is not stored"):
        run(stored.request_id, "--target", "second/big")


def test_replays_go_with_their_text_and_their_conversation(stored: Turn, upstreams: ScriptedUpstream) -> None:
    upstreams.always(CHAT, chat.text("It rains."))
    run(stored.request_id)
    contents.purge(stored.conversation)
    assert not Replay.objects.exists()
    Replay.objects.create(conversation=stored.conversation, turn=stored, target="x/y", exact=True)
    retention.terminate(stored.conversation)
    assert not Replay.objects.exists()


def test_an_operator_is_told_the_cost_then_replays_and_compares(
    browser: Client, stored: Turn, upstreams: ScriptedUpstream
) -> None:
    asked = browser.get(PAGE, {"target": "second/big"})
    assert "made anew" in asked.text
    assert "Cost" in asked.text
    assert upstreams.requests == []
    upstreams.queue(OTHER, chat.text("<script>alert(1)</script> It rains."))
    page = browser.post(PAGE, {"target": "second/big"}, follow=True)
    assert page.redirect_chain[0][0].endswith("/compare/")
    assert "second/big" in page.text
    assert "&lt;script&gt;" in page.text
    assert "<script>alert" not in page.text
    assert "tb-diff-added" in page.text
    assert "not in the replay" in page.text
    assert LogEntry.objects.filter(change_message__contains="through second/big").exists()
    assert "second/big" in browser.get(PAGE).text
    assert "second/big" in browser.get("/admin/conversations/replay/").text
    assert PAGE in browser.get("/admin/conversations/turn/1/hops/").text


def test_a_target_that_is_not_there_is_refused_on_the_page(browser: Client, stored: Turn) -> None:
    page = browser.post(PAGE, {"target": "gemini/x"})
    assert "gemini is not configured" in page.text
    assert not Replay.objects.exists()


def test_replaying_needs_the_content_permission_and_its_own(outsider: Client, stored: Turn) -> None:
    user = User.objects.get(username="outsider")
    assert outsider.get(PAGE).status_code == 403
    user.user_permissions.add(Permission.objects.get(codename="add_replay"))
    assert outsider.get(PAGE).status_code == 403
    assert PAGE not in outsider.get("/admin/conversations/turn/1/hops/").text
    user.user_permissions.add(Permission.objects.get(codename="view_content"))
    assert outsider.get(PAGE).status_code == 200


def test_without_the_content_permission_a_comparison_has_no_text(outsider: Client, stored: Turn) -> None:
    row = Replay.objects.create(
        conversation=stored.conversation, turn=stored, target="x/y", exact=True, status="complete",
        content=rows.encoded([{"type": "text", "text": "It pours."}]), error_type="api_error", error_message="hushed",
    )  # fmt: skip
    page = outsider.get(f"/admin/conversations/replay/{row.pk}/compare/")
    assert page.status_code == 200
    for words in ("It pours", "I look", "Rome", "hushed"):
        assert words not in page.text


@pytest.mark.parametrize(
    ("provider", "name"),
    [("openai", "text"), ("openai", "parallel_interleaved"), ("openai", "whole_text"), ("anthropic", "text")],
)
def test_a_captured_answer_becomes_the_clients_stream(provider: str, name: str) -> None:
    captured = next((CAPTURES / provider / name).glob("upstream.*"))
    out = io.StringIO()
    call_command("replay_stream", str(captured), "--provider", provider, stdout=out)
    printed = out.getvalue()
    assert printed.startswith("event: message_start\n")
    assert printed.count("event: message_stop\n") == 1
    assert printed.encode() == client_stream(captured.read_bytes(), provider)


def test_a_captured_answer_that_breaks_off_ends_in_an_error() -> None:
    stream = client_stream((CAPTURES / "openai/truncated/upstream.sse").read_bytes(), "openai")
    assert stream.count(b"event: error\n") == 1
    assert b"event: message_stop" not in stream


def test_the_request_of_a_capture_gives_tools_their_names() -> None:
    folder = CAPTURES / "openai/long_tool_name"
    request = json.loads((folder / "request.json").read_bytes())
    out = io.StringIO()
    call_command("replay_stream", str(folder / "upstream.sse"), "--provider", "openai", "--request",
                 str(folder / "request.json"), stdout=out)  # fmt: skip
    assert request["tools"][0]["name"] in out.getvalue()


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(CommandError, match=r"nowhere\.sse"):
        call_command("replay_stream", "nowhere.sse", "--provider", "openai")
