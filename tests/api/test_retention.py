"""Purging and reconciling: what is idle goes, what somebody still needs stays."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.api.conftest import BOTH, CHAT, Connect, Serve, Served
from tests.servers import chat
from tests.servers.bridge import PROJECT
from tests.servers.client import TOOL, Client, folded, result
from tests.servers.ports import wait_until
from tests.servers.script import Answer, Gate, Silence, json_answer, sse_answer
from tests.servers.upstream import ScriptedUpstream

CALL = ("call_1", "get_weather", {"city": "Oslo"})


def manage(served: Served, *command: str) -> str:
    """A management command beside the running bridge."""
    done = subprocess.run(
        [sys.executable, "manage.py", *command],
        cwd=PROJECT, env=served.bridge.environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def talk(client: Client, served: Served, name: str) -> str:
    served.chat(chat.calls(CALL))
    response = client.ask("Weather?", tools=[TOOL], system="S", headers={"x-conversation-id": name})
    return str(response.json()["content"][0]["id"])


def age(served: Served, client: Client, *names: str) -> None:
    long_ago = timezone.now() - timedelta(days=3)
    rows = served.records.conversations(client.api_key).filter(external_id__in=names)
    assert rows.update(last_activity=long_ago) == len(names)


@BOTH
def test_only_what_is_idle_and_nobodys_is_purged(client: Client, served: Served) -> None:
    ids = {name: talk(client, served, name) for name in ("idle", "held", "recent", "looked at", "running")}
    gate = Gate()
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, *chat.ending("stop")))
    with client.stream("Go on", headers={"x-conversation-id": "running"}) as (_, events):
        next(events)
        age(served, client, "idle", "held", "looked at", "running")
        served.records.conversations(client.api_key).filter(external_id="held").update(held=True)
        client.get("/v1/conversations/looked%20at/tool-mappings")
        manage(served, "purge_inactive")
        gate.open()
        assert list(events)[-1].name == "message_stop"
    assert {found["id"] for found in client.conversations()} == {"held", "recent", "looked at", "running"}
    # Also where this process had it in its cache.
    wait_until(
        lambda: client.ask(result(ids["idle"]), tools=[TOOL]).status_code == 400,
        "the bridge has forgotten it",
        seconds=5,
    )
    served.chat(chat.text("ok"))
    assert client.ask(result(ids["recent"]), tools=[TOOL]).status_code == 200
    assert served.records.usage(client.api_key).filter(conversation_id="idle").exists(), "the ledger stays"
    served.chat(chat.text("afresh"))
    assert client.ask("Hi", headers={"x-conversation-id": "idle"}).status_code == 200


@BOTH
@pytest.mark.parametrize("for_ever", [99_999_999, 1e300])
def test_a_key_that_keeps_for_ever_does_not_keep_others_from_being_purged(
    client: Client, served: Served, connect: Connect, for_ever: float
) -> None:
    keeper = connect(served, inactivity_hours=for_ever, content_hours=for_ever, ledger_days=99_999_999)
    for each in (client, keeper):
        talk(each, served, "idle")
        age(served, each, "idle")
    assert "left for next time: 0 conversations" in manage(served, "purge_inactive")
    assert (client.conversations(), len(keeper.conversations())) == ([], 1)


@BOTH
def test_no_name_of_a_client_keeps_others_from_being_purged(
    client: Client, other_client: Client, served: Served
) -> None:
    """What is out of sight has a name of its own until it is gone: that of one's own could be guessed."""
    for each in (client, other_client):
        talk(each, served, "idle")
    row = served.records.conversations(client.api_key).get()
    talk(client, served, f"ended:{row.pk}")
    for each in (client, other_client):
        age(served, each, "idle")
    assert "left for next time: 0 conversations" in manage(served, "purge_inactive")
    assert (other_client.conversations(), len(client.conversations())) == ([], 1)


@BOTH
def test_two_purges_at_once_share_the_work(client: Client, served: Served) -> None:
    names = [f"c-{number}" for number in range(30)]
    for name in names:
        talk(client, served, name)
    age(served, client, *names)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: manage(served, "purge_inactive"), range(2)))
    assert client.conversations() == []
    assert served.records.conversations(client.api_key).count() == 0
    assert served.records.turns(client.api_key).count() == 0


@BOTH
def test_a_purge_that_was_killed_is_finished_by_the_next(client: Client, served: Served) -> None:
    """Killed after it took a conversation out of sight, with some of its rows gone."""
    talk(client, served, "half")
    row = served.records.conversations(client.api_key).get()
    row.tool_mappings.using(served.records.alias).all().delete()
    served.records.conversations(client.api_key).update(ended_at=timezone.now(), external_id=f"ended:{row.pk}")
    assert client.conversations() == []
    manage(served, "purge_inactive")
    assert served.records.conversations(client.api_key).count() == 0
    assert served.records.turns(client.api_key).count() == 0


@BOTH
def test_the_reconciler_closes_turns_of_the_dead_and_never_of_the_living(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, *chat.ending("stop")))
    with client.stream("Hi") as (_, events):
        next(events)
        (living,) = served.records.turns(client.api_key)
        served.chat(chat.text("ok"))
        client.ask("Other")
        dead = served.records.turns(client.api_key).exclude(pk=living.pk)
        assert dead.update(status="running", process=999_999) == 1
        manage(served, "shell", "-c", "from conversations.tasks import reconcile_turns; reconcile_turns()")
        statuses = {turn.pk: turn.status for turn in served.records.turns(client.api_key)}
        assert statuses == {living.pk: "running", dead.get().pk: "error"}
        gate.open()
        assert list(events)[-1].name == "message_stop"
    assert served.records.turns(client.api_key).get(pk=living.pk).status == "complete"


def test_a_turn_that_a_crash_left_running_is_closed_and_its_request_can_be_made_again(
    serve: Serve, connect: Connect
) -> None:
    served = serve()
    client = connect(served)
    headers = {"x-conversation-id": "crashed"}
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), Silence()), chat.text("ok"))
    with client.stream("Hi", headers=headers) as (_, events):
        next(events)
        served.bridge.crash()
    served.bridge.start()
    # Nobody waits thirty seconds for it in a test: the dead process was last seen long ago.
    served.records.age_processes()
    manage(served, "shell", "-c", "from conversations.tasks import reconcile_turns; reconcile_turns()")
    (turn,) = served.records.turns(client.api_key)
    assert (turn.status, turn.error_message) == ("error", "the process that ran this turn died")
    assert client.ask("Hi", headers=headers, stream=True).status_code == 200


@BOTH
@pytest.mark.parametrize("storage", ["metadata", "minimal"])
def test_below_full_no_text_is_stored_and_a_lone_result_still_works(
    served: Served, connect: Connect, storage: str
) -> None:
    client = connect(served, storage=storage)
    served.chat(chat.streamed_calls(("call_1", "get_weather", {"city": "Oslo"})), chat.text("ANSWER"))
    (block,) = folded(client.events("SECRET question", system="SECRET system", tools=[TOOL]))
    response = client.ask(result(block["id"], "SECRET result"), tools=[TOOL])
    assert response.json()["content"][0]["text"] == "ANSWER"
    call, tool = served.sent()["messages"][-2:]
    assert (call["tool_calls"][0]["id"], call["tool_calls"][0]["function"]["name"]) == ("call_1", "get_weather")
    assert (tool["role"], tool["content"]) == ("tool", "SECRET result")
    (conversation,) = client.conversations()
    assert [mapping["status"] for mapping in client.mappings(conversation["id"])] == ["answered"]
    kept = served.records.everything(client.api_key)
    for word in (b"SECRET", b"ANSWER"):
        assert word not in kept
    assert (b'"size"' in kept) == (storage == "metadata")


def test_a_call_whose_encryption_key_is_gone_is_unknown_and_its_conversation_goes_on(
    serve: Serve, connect: Connect
) -> None:
    """A backup that was restored without its keys: it is not the store that is away, and no retry will help."""
    served = serve(BRIDGE_ENCRYPTION_KEYS="the first")
    client, headers = connect(served, storage="minimal"), {"x-conversation-id": "sealed"}
    served.chat(chat.calls(("call_1", "get_weather", {"city": "Oslo"})), chat.text("ok"))
    (call,) = client.ask("Weather?", tools=[TOOL], headers=headers).json()["content"]
    served.bridge.stop()
    served.bridge.environment["BRIDGE_ENCRYPTION_KEYS"] = "another"
    served.bridge.start()
    assert client.ask(result(call["id"]), tools=[TOOL]).status_code == 400
    said = {"role": "assistant", "content": [call]}
    assert client.ask("Weather?", said, result(call["id"]), tools=[TOOL], headers=headers).status_code == 200
    (mapping,) = client.mappings("sealed")
    assert (mapping["tool_name"], mapping["arguments"]) == ("get_weather", None)
    assert "none of BRIDGE_ENCRYPTION_KEYS opens this content" in served.bridge.log.read_text()


@pytest.mark.parametrize("storage", ["metadata", "minimal"])
def test_below_full_what_an_upstream_quotes_is_told_and_not_kept(
    served: Served, connect: Connect, storage: str
) -> None:
    client = connect(served, storage=storage)
    quoting = "Input should be a valid string, not [{'type': 'text', 'text': 'SECRET question'}]"
    served.chat(chat.error(400, quoting))
    assert quoting in client.ask("SECRET question").json()["error"]["message"]
    (turn,) = served.records.ended(client.api_key, 1)
    assert (turn.status, turn.error_type, turn.http_status) == ("error", "invalid_request_error", 400)
    assert b"SECRET" not in served.records.everything(client.api_key)


@pytest.mark.parametrize("storage", ["metadata", "minimal"])
def test_below_full_only_a_result_can_be_appended(served: Served, connect: Connect, storage: str) -> None:
    client = connect(served, storage=storage)
    headers = {"x-conversation-id": "c", "x-conversation-mode": "append"}
    served.chat(chat.calls(CALL), chat.text("ok"))
    (block,) = client.ask("Weather?", tools=[TOOL], headers=headers).json()["content"]
    refused = client.ask("And tomorrow?", tools=[TOOL], headers=headers)
    assert (refused.status_code, "no longer kept" in refused.json()["error"]["message"]) == (400, True)
    assert client.ask(result(block["id"]), tools=[TOOL], headers=headers).status_code == 200
    assert [message["role"] for message in served.sent()["messages"]] == ["user", "assistant", "tool"]
    assert len(served.upstream.requests) == 2


def test_what_was_said_below_full_is_missing_also_once_the_key_is_full_again(client: Client, served: Served) -> None:
    """Only the middle of it: the conversation began, and goes on, with its text."""
    served.upstream.always(CHAT, chat.text("ok"))
    headers, history = {"x-conversation-id": "c"}, ["One.", {"role": "assistant", "content": "ok"}, "Two."]
    client.ask("One.", headers=headers)
    served.records.change(client.api_key, storage="metadata")
    time.sleep(1)
    client.ask(*history, headers=headers)
    served.records.change(client.api_key, storage="full")
    time.sleep(1)
    appended = client.ask("Three.", headers={**headers, "x-conversation-mode": "append"})
    told = [*history, {"role": "assistant", "content": "ok"}, "Three."]
    create = client.ask(*told, headers=headers, thread={"type": "create"}).json()["id"]
    threaded = client.ask("Four.", thread={"type": "continue", "previous_message_id": create})
    for refused in (appended, threaded):
        error = refused.json()["error"]
        assert (refused.status_code, error["details"]["error_code"]) == (400, "thread_unsupported_request")
        assert "no longer kept" in error["message"]


def reasoned(**message: Any) -> Answer:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", **message}}
    return json_answer({"id": "c", "choices": [choice], "usage": chat.USAGE})


def test_reasoning_goes_with_the_text_unless_a_call_needs_it(
    serve: Serve, connect: Connect, shared_upstream: ScriptedUpstream
) -> None:
    served = serve(VLLM_BASE_URL=f"{shared_upstream.url}/openai/v1", BRIDGE_INACTIVITY_HOURS="100")
    function = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
    called = {"tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
    stops: dict[str, Any] = {"stop_sequences": ["STOP WORD"], "tools": [TOOL], "model": "vllm/m"}
    for settings, full in (
        ({"storage": "metadata"}, False),
        ({"storage": "minimal"}, False),
        ({"content_hours": 1}, True),
    ):
        client = connect(served, **settings)
        served.chat(reasoned(content="Yes.", reasoning_content="FIRST THOUGHT"))
        client.ask("Hi", headers={"x-conversation-id": "c"}, **stops)
        served.chat(reasoned(content=None, reasoning_content="SECOND THOUGHT", **called), reasoned(content="Sunny."))
        (_, call) = client.ask("Weather?", headers={"x-conversation-id": "c"}, **stops).json()["content"]
        kept = served.records.everything(client.api_key)
        assert (b"FIRST THOUGHT" in kept, b"STOP WORD" in kept, b"SECOND THOUGHT" in kept) == (full, full, True)
        if full:
            age(served, client, "c")
            manage(served, "purge_inactive")
        assert client.ask(result(call["id"]), **stops).status_code == 200
        assert served.sent()["messages"][-2]["reasoning_content"] == "SECOND THOUGHT"
        assert b"FIRST THOUGHT" not in served.records.everything(client.api_key)


def test_a_conversation_of_200_turns_stays_within_three_times_what_is_new(client: Client, served: Served) -> None:
    """Promise 8, with everything kept for it: messages, requests as sent, raw answers."""
    served.upstream.always(CHAT, chat.text("An answer of some length, as they are. " * 20))
    history: list[object] = []
    unique = 0
    for turn in range(200):
        history.append({"role": "user", "content": f"Question {turn}: " + "words of a question " * 20})
        answer = client.ask(*history, system="S" * 5000, tools=[TOOL], headers={"x-conversation-id": "long"}).json()
        history.append({"role": "assistant", "content": answer["content"]})
        unique += len(str(history[-1])) + len(str(history[-2]))
    assert len(served.records.everything(client.api_key, opened=False)) < 3 * unique
