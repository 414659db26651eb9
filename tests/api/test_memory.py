"""Which conversation a request belongs to, and what the store adds to it: DESIGN.md section 5."""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from tests.api.conftest import BOTH, CHAT, Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import CLOCK, TOOL, Client, body, folded, names, result, until
from tests.servers.ports import wait_until
from tests.servers.script import Abort, Answer, Gate, Silence, json_answer, sse_answer
from tests.servers.upstream import ScriptedUpstream
from tests.torture.clock import skewed

CALL = ("call_1", "get_weather", {"city": "Oslo"})
SESSION = "9a3f1c52-0d8e-4b51-9d0c-1f2e3d4c5b6a"


def said(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def conversation_of(client: Client, *messages: object, headers: dict[str, str] | None = None, **fields: Any) -> str:
    response = client.ask(*messages, headers=headers, **fields)
    assert response.status_code == 200, response.text
    return response.headers["x-conversation-id"]


# ---------------------------------------------------------------- recognising


@BOTH
def test_a_known_history_is_recognised_without_any_header(client: Client, served: Served) -> None:
    served.chat(chat.text("One."), chat.text("Two."), chat.text("Three."), chat.text("Other."))
    first = conversation_of(client, "Count.", system="Be brief.")
    second = conversation_of(client, "Count.", said("One."), "More.")
    # The same messages in their other spelling.
    blocks = {"role": "user", "content": [{"type": "text", "text": "Count.", "cache_control": {"type": "ephemeral"}}]}
    answer = {"role": "assistant", "content": [{"type": "text", "text": "One."}]}
    third = conversation_of(client, blocks, answer, "More.", said("Two."), "More.")
    assert first == second == third
    assert conversation_of(client, "Count.") != first, "a first message alone is nobody's"
    stored = served.records.conversations(client.api_key).get(external_id=first)
    assert stored.messages.count() == 6, "a resent history adds only its new tail"


def test_two_chats_with_the_same_beginning_part_where_they_differ(client: Client, served: Served) -> None:
    served.chat(chat.text("A."), chat.text("B."), chat.text("A2."), chat.text("B2."))
    one, other = conversation_of(client, "Hi"), conversation_of(client, "Hi")
    assert one != other
    assert conversation_of(client, "Hi", said("A."), "go on") == one
    assert conversation_of(client, "Hi", said("B."), "go on") == other


def test_a_tool_id_of_ours_names_its_conversation(client: Client, served: Served) -> None:
    served.chat(chat.calls(CALL), chat.text("ok"), chat.text("ok"))
    response = client.ask("Weather?", tools=[TOOL], headers={"x-conversation-id": "by name"})
    (block,) = response.json()["content"]
    compacted = ["A summary.", {"role": "assistant", "content": [block]}, result(block["id"])]
    assert conversation_of(client, *compacted, tools=[TOOL]) == "by name"
    # Under another name it is not known there: it passes as any client's own id does.
    assert conversation_of(client, *compacted, tools=[TOOL], headers={"x-conversation-id": "other"}) == "other"
    foreign = client.ask(result(block["id"]), tools=[TOOL], headers={"x-conversation-id": "third"})
    assert foreign.status_code == 400


@BOTH
@pytest.mark.parametrize("fork", [{}, {"x-claude-code-session-id": "a fork"}])
def test_a_result_alone_brings_the_system_and_tools_that_led_to_it(
    client: Client, served: Served, fork: dict[str, str]
) -> None:
    """Without them the model loses its orders, and Anthropic has refused such requests: they "must define tools"."""
    served.chat(chat.calls(CALL), chat.calls(("call_2", "get_weather", {"city": "Rome"})), chat.text("ok"))
    origin = {"x-claude-code-session-id": SESSION} if fork else {}
    (block,) = client.ask("Weather?", system="Be brief.", tools=[TOOL], headers=origin).json()["content"]
    (second,) = client.ask(result(block["id"]), headers=fork).json()["content"]
    assert client.ask(result(second["id"]), headers=fork).status_code == 200
    first, *later = [request.json() for request in served.upstream.requests]
    for sent in later:
        assert (sent["messages"][0], sent["tools"]) == ({"role": "system", "content": "Be brief."}, first["tools"])
    assert [message["role"] for message in later[-1]["messages"]] == [
        "system", "user", "assistant", "tool", "assistant", "tool",
    ]  # fmt: skip


def test_what_a_client_says_beside_a_result_is_its_own(client: Client, served: Served) -> None:
    served.chat(chat.calls(CALL), *[chat.text("ok")] * 2)
    (block,) = client.ask("Weather?", system="Be brief.", tools=[TOOL]).json()["content"]
    client.ask(result(block["id"]), system="Be kind.", tools=[CLOCK])
    sent = served.sent()
    assert (sent["messages"][0]["content"], sent["tools"][0]["function"]["name"]) == ("Be kind.", "get_time")
    # A history of which the beginning was cut off is its client's own, with all that belongs to it.
    client.ask(result(block["id"]), {"role": "assistant", "content": "Sunny."}, "Thanks.")
    sent = served.sent()
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "tool", "assistant", "user"]
    assert "tools" not in sent


@pytest.mark.parametrize("way", ["header", "metadata", "legacy"])
def test_claude_codes_session_and_agents_are_conversations(client: Client, served: Served, way: str) -> None:
    served.upstream.always(CHAT, chat.text("ok"))
    headers, fields = {
        "header": ({"x-claude-code-session-id": SESSION}, {}),
        "metadata": ({}, {"metadata": {"user_id": json.dumps({"device_id": "d", "session_id": SESSION})}}),
        "legacy": ({}, {"metadata": {"user_id": f"user_abc_account__session_{SESSION}"}}),
    }[way]
    main = conversation_of(client, "Hi", headers=headers, **fields)
    assert main == SESSION
    agents = {
        conversation_of(client, "Hi", headers={**headers, "x-claude-code-agent-id": f"agent-{n}"}, **fields)
        for n in range(3)
    }
    assert agents == {f"{SESSION}/agent-{n}" for n in range(3)}
    assert conversation_of(client, "Hi", said("ok"), "more", headers=headers, **fields) == main
    rows = served.records.conversations(client.api_key)
    assert set(rows.values_list("session_id", flat=True)) == {SESSION}


def test_agents_of_a_session_with_a_very_long_id_keep_apart(client: Client, served: Served) -> None:
    served.upstream.always(CHAT, chat.text("ok"))
    session = {"x-claude-code-session-id": "s" * 255}
    agents = [{"x-claude-code-agent-id": id_} for id_ in ("a", "b", "a" * 255)]
    names = [conversation_of(client, "Hi", headers=session | agent) for agent in ({}, *agents)]
    assert len(set(names)) == 4
    assert max(map(len, names)) == 255
    assert conversation_of(client, "Hi", said("ok"), "more", headers=session | agents[0]) == names[1]


@pytest.mark.parametrize("before", ["count", "refused"])
def test_a_name_that_led_nowhere_leads_to_what_another_process_stored(
    serve: Serve, connect: Connect, before: str
) -> None:
    served = serve()
    here = connect(served)
    there = Client(serve(served.database_url).bridge.url, here.api_key)
    named = {"x-conversation-id": "one", "x-conversation-mode": "append"}
    if before == "count":
        counted = here.http.post("/v1/messages/count_tokens", json=body("Weather?"), headers=named)
        assert counted.status_code == 200
    else:
        assert here.ask(result("toolu_nobodys"), tools=[TOOL], headers=named).status_code == 400
    served.chat(chat.calls(CALL), chat.text("sunny"))
    (call,) = there.ask("Weather?", tools=[TOOL], headers=named).json()["content"]
    assert here.ask(result(call["id"]), headers=named).status_code == 200
    assert [message["role"] for message in served.sent()["messages"]] == ["user", "assistant", "tool"]
    there.close()


@BOTH
@pytest.mark.parametrize("fork", [{"session-id": "another"}, {"session-id": SESSION, "agent-id": "inherits"}])
def test_a_forked_session_brings_what_its_calls_need(client: Client, served: Served, fork: dict[str, str]) -> None:
    origin = {"x-claude-code-session-id": SESSION}
    headers = {f"x-claude-code-{name}": value for name, value in fork.items()}
    served.chat(chat.calls(CALL), chat.text("ok"), chat.text("ok"))
    content = client.ask("Weather?", tools=[TOOL], headers=origin).json()["content"]
    answered = result(content[0]["id"])
    forked = client.ask("Weather?", {"role": "assistant", "content": content}, answered, tools=[TOOL], headers=headers)
    assert forked.headers["x-conversation-id"] != SESSION
    whole = served.sent()["messages"]
    assert (whole[1]["tool_calls"][0]["id"], whole[2]["tool_call_id"]) == ("call_1", "call_1")
    # The result alone is enough here, too, as long as the call is known.
    assert client.ask(answered, tools=[TOOL], max_tokens=9, headers=headers).status_code == 200
    assert [message["role"] for message in served.sent()["messages"]] == ["user", "assistant", "tool"]
    client.http.post(f"/v1/conversations/{SESSION}/terminate")
    gone = {"x-claude-code-session-id": "a third"}
    assert client.ask(answered, tools=[TOOL], headers=gone).status_code == 400


@BOTH
def test_twenty_agents_interleaved_under_one_session(client: Client, served: Served) -> None:
    served.upstream.always(CHAT, chat.streamed_calls(CALL))

    def run(agent: int) -> tuple[str, list[str]]:
        headers = {"x-claude-code-session-id": SESSION}
        headers |= {"x-claude-code-agent-id": f"agent-{agent}"} if agent else {}
        history: list[Any] = ["Do it."]
        ids = []
        for _ in range(3):
            blocks = folded(client.events(*history, tools=[TOOL], headers=headers))
            ids.append(blocks[0]["id"])
            history += [{"role": "assistant", "content": blocks}, result(blocks[0]["id"])]
        return f"{SESSION}/agent-{agent}" if agent else SESSION, ids

    with ThreadPoolExecutor(20) as pool:
        ran = dict(pool.map(run, range(20)))
    for name, ids in ran.items():
        mappings = client.mappings(name.replace("/", "%2F"))
        assert [mapping["tool_use_id"] for mapping in mappings] == ids
        assert [mapping["status"] for mapping in mappings] == ["answered", "answered", "pending"]


# ---------------------------------------------------------------- continuing


@BOTH
def test_append_puts_the_history_system_and_tools_before_what_is_new(client: Client, served: Served) -> None:
    served.upstream.always(CHAT, chat.text("ok"))
    headers = {"x-conversation-id": "appended"}
    client.ask("First.", system="Be brief.", tools=[TOOL], headers=headers)
    append = {**headers, "x-conversation-mode": "append"}
    assert client.ask("Second.", headers=append).status_code == 200
    assert client.ask("Third.", headers=append).status_code == 200
    sent = served.sent()
    told = [(message["role"], message["content"]) for message in sent["messages"]]
    assert told == [
        ("system", "Be brief."), ("user", "First."), ("assistant", "ok"), ("user", "Second."), ("assistant", "ok"),
        ("user", "Third."),
    ]  # fmt: skip
    assert sent["tools"][0]["function"]["name"] == "get_weather"
    assert client.ask("x", headers={"x-conversation-mode": "append"}).status_code == 400


def test_the_same_words_can_be_appended_again_once_the_conversation_has_gone_on(client: Client, served: Served) -> None:
    """Until then they are the same request again, as is one that says that it is a retry."""
    served.chat(*(chat.text(f"Answer {number}.") for number in range(4)))
    append = {"x-conversation-id": "yes", "x-conversation-mode": "append"}
    retry = {**append, "x-stainless-retry-count": "1"}
    said = [
        client.ask(words, headers=headers).json()["content"][0]["text"].split()[1]
        for words, headers in (("Yes", append), ("Yes", append), ("No", append), ("Yes", retry), ("Yes", append))
    ]
    assert said == ["0.", "0.", "1.", "0.", "2."]
    told = [message["content"] for message in served.sent()["messages"]]
    assert told == ["Yes", "Answer 0.", "No", "Answer 1.", "Yes"]


def test_the_same_body_appended_is_not_the_request_that_was_sent_in_full(client: Client, served: Served) -> None:
    served.chat(chat.text("One."), chat.text("Two."))
    headers = {"x-conversation-id": "modes"}
    append = {**headers, "x-conversation-mode": "append"}
    said = [client.ask("Hi", headers=how).json()["content"][0]["text"] for how in (headers, append, headers, append)]
    assert said == ["One.", "Two.", "One.", "Two."]
    assert [message["content"] for message in served.sent()["messages"]] == ["Hi", "One.", "Hi"]


@pytest.mark.parametrize("before", [False, True])
def test_the_result_of_a_call_that_a_crash_cut_off_can_be_appended(
    serve: Serve, connect: Connect, before: bool
) -> None:
    """With what had been asked when the call was made, not only what had been answered before."""
    served = serve()
    client = connect(served)
    append = {"x-conversation-id": "cut", "x-conversation-mode": "append"}
    context: dict[str, Any] = {"system": "Be brief.", "tools": [TOOL]}
    if before:
        served.chat(chat.text("Hello."))
        client.ask("Hi.", headers=append, **context)
    served.chat(sse_answer(*chat.call_chunks(CALL), Silence()))
    with client.stream("Weather?", headers=append, **({} if before else context)) as (_, events):
        call = next(event.data["content_block"] for event in events if event.name == "content_block_start")
        served.bridge.crash()
    served.bridge.start()
    served.chat(chat.text("Sunny."), chat.text("Dark."))
    assert client.ask(result(call["id"]), headers=append).status_code == 200
    assert client.ask("Tonight?", headers=append).status_code == 200
    told = [message["role"] for message in served.sent()["messages"]]
    earlier = ["user", "assistant"] if before else []
    assert told == ["system", *earlier, "user", "assistant", "tool", "assistant", "user"]
    assert served.sent()["tools"][0]["function"]["name"] == "get_weather"


@BOTH
@pytest.mark.parametrize("before", [False, True])
def test_a_question_whose_answer_broke_off_stays_said(client: Client, served: Served, before: bool) -> None:
    """The same words once more are a retry; what was refused before anything was shown has not been said."""
    append = {"x-conversation-id": "cut", "x-conversation-mode": "append"}
    context: dict[str, Any] = {"system": "Be brief.", "tools": [TOOL]}
    turns = 0
    if before:
        served.chat(chat.text("Hello."))
        client.ask("Hi.", headers=append, **context)
        turns = 1
    served.chat(chat.streamed_text("It is", Silence()))
    with client.stream("Weather?", headers=append, **({} if before else context)) as (_, events):
        assert next(event for event in events if event.name == "content_block_delta")
    served.records.ended(client.api_key, turns + 1)
    served.chat(chat.streamed_text("Bro", Abort()))
    assert client.events("Weather?", headers=append)[-1].name == "error"
    served.records.ended(client.api_key, turns + 2)
    served.chat(chat.error(400, "too long"), chat.text("Of the sea."), chat.text("Dark."))
    assert client.ask("Of what?", headers=append).status_code == 400
    assert client.ask("In Oslo.", headers=append).status_code == 200
    assert client.ask("Tonight?", headers=append).status_code == 200
    earlier = ["Hi.", "Hello."] if before else []
    asked = ["Be brief.", *earlier, "Weather?\nIn Oslo.", "Of the sea.", "Tonight?"]
    assert [message["content"] for message in served.sent()["messages"]] == asked
    assert served.sent()["tools"][0]["function"]["name"] == "get_weather"


def test_text_after_a_call_that_was_cut_off_follows_that_call(client: Client, served: Served) -> None:
    append = {"x-conversation-id": "cut", "x-conversation-mode": "append"}
    served.chat(sse_answer(*chat.call_chunks(CALL), Silence()))
    with client.stream("Weather?", headers=append, tools=[TOOL]) as (_, events):
        assert next(event for event in events if event.name == "content_block_start")
    served.records.ended(client.api_key, 1)
    served.chat(chat.text("Of course."))
    assert client.ask("Leave it.", headers=append).status_code == 200
    told = [message["role"] for message in served.sent()["messages"]]
    assert told == ["user", "assistant", "tool", "user"]


def test_append_goes_on_from_the_last_answer_whatever_its_processs_clock_said(
    serve: Serve, connect: Connect, postgres_url: str, tmp_path: Path
) -> None:
    """One process is an hour fast: turns that follow its own follow them in the store, too."""
    fast, right = serve(postgres_url, **skewed(tmp_path, 3600)), serve(postgres_url)
    here = connect(fast)
    there = Client(right.bridge.url, here.api_key)
    fast.upstream.always(CHAT, chat.text("ok"))
    headers = {"x-conversation-id": "clocks"}
    append = {**headers, "x-conversation-mode": "append"}
    for client, words in ((here, "One."), (there, "Two."), (there, "Three."), (here, "Four."), (there, "Five.")):
        assert client.ask(words, headers=append).status_code == 200
    told = [message["content"] for message in fast.sent()["messages"]]
    assert told == ["One.", "ok", "Two.", "ok", "Three.", "ok", "Four.", "ok", "Five."]
    there.close()


@BOTH
@pytest.mark.parametrize("gone", ["Blob", "Message"])
@pytest.mark.parametrize("thread", [False, True])
def test_what_is_deleted_while_it_is_put_together_is_no_fault_of_ours(
    client: Client, served: Served, thread: bool, gone: str
) -> None:
    """A conversation that ends between two reads: its answer was found, its tools or messages no more."""
    served.upstream.always(CHAT, chat.text("ok"))
    headers = {"x-conversation-id": "deleted"}
    create: dict[str, Any] = {"thread": {"type": "create"}} if thread else {}
    first = client.ask("First.", tools=[TOOL], headers=headers, **create).json()
    served.records.rows(gone).filter(conversation__in=served.records.conversations(client.api_key)).delete()
    go_on = {"thread": {"type": "continue", "previous_message_id": first["id"]}} if thread else {}
    response = client.ask("Second.", headers={**headers, "x-conversation-mode": "append"}, **go_on)
    assert (response.status_code, "terminated" in response.json()["error"]["message"]) == (409, True), response.text
    assert "Traceback" not in served.bridge.log.read_text()


def test_requests_only_append(client: Client, served: Served) -> None:
    """Promise 5: request n is a byte prefix of request n+1, up to its closing brackets."""
    served.upstream.always(CHAT, chat.text("ok"))
    history: list[Any] = ["First."]
    for turn in range(5):
        assert client.ask(*history, system="Be brief.", tools=[TOOL]).status_code == 200
        history += [said("ok"), f"Question {turn}."]
    bodies = [request.body for request in served.upstream.requests]
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.rstrip(b"}]"))


def threaded(previous: str = "") -> dict[str, Any]:
    thread = {"type": "continue", "previous_message_id": previous} if previous else {"type": "create"}
    return {"thread": thread}


BETA = {"anthropic-beta": "message-threads-2026-08-12"}


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_a_thread_goes_on_with_only_what_is_new(client: Client, served: Served, stream: bool) -> None:
    served.chat(chat.streamed_calls(CALL), chat.text("It is sunny."))
    asked = {"system": "Be brief.", "tools": [TOOL], "headers": BETA, **threaded()}
    if stream:
        events = client.events("Weather?", **asked)
        message_id, blocks = events[0].data["message"]["id"], folded(events)
    else:
        answer = client.ask("Weather?", **asked).json()
        message_id, blocks = answer["id"], answer["content"]
    answer = client.ask(result(blocks[0]["id"]), headers=BETA, **threaded(message_id)).json()
    assert answer["content"] == [{"type": "text", "text": "It is sunny."}]
    sent = served.sent()
    assert [message["role"] for message in sent["messages"]] == ["system", "user", "assistant", "tool"]
    assert sent["tools"][0]["function"]["name"] == "get_weather"
    assert len(client.conversations()) == 1


ELSEWHERE: list[Any] = [{"role": ("user", "assistant")[n % 2], "content": f"Word {n}."} for n in range(40)]


def test_a_history_is_the_same_bytes_whether_the_client_tells_it_or_the_store(client: Client, served: Served) -> None:
    """The SDKs' tool runners begin each prompt with all of it and go on with only what is new."""
    function = {"name": "get_weather", "arguments": '{"city": "\\u00c5lesund", "days": [1, 2]}'}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    for _ in range(2):
        served.chat(sse_answer(chat.chunk({"tool_calls": [call]}), chat.chunk({}, "tool_calls"), chat.DONE))
    served.chat(chat.text("Rain."))
    threads = {"anthropic-beta": "message-threads-2026-08-12"}
    history: list[object] = ["Hi"]
    blocks = folded(client.events(*history, tools=[TOOL], thread={"type": "create"}, headers=threads))
    history += [{"role": "assistant", "content": blocks}, result(blocks[0]["id"])]
    events = client.events(*history, tools=[TOOL], thread={"type": "create"}, headers=threads)
    last, again = events[0].data["message"]["id"], folded(events)
    on = {"type": "continue", "previous_message_id": last}
    assert client.ask(result(again[0]["id"]), thread=on, headers=threads).status_code == 200
    told, stored = (served.sent(number)["messages"] for number in (1, 2))
    assert stored[: len(told)] == told
    assert stored[len(told)]["tool_calls"][0]["function"]["arguments"] == '{"city":"Ålesund","days":[1,2]}'


@BOTH
def test_a_long_history_from_elsewhere_is_kept_in_few_rows(client: Client, served: Served) -> None:
    served.upstream.always(CHAT, chat.text("ok"))
    first = client.ask(*ELSEWHERE, "Go on.", headers=BETA, **threaded())
    name = first.headers["x-conversation-id"]
    stored = served.records.conversations(client.api_key).get(external_id=name)
    assert [row.span for row in stored.messages.order_by("depth")] == [40, 1, 1]
    # With only what is new, with all of it, with its last word taken back, and with one in the middle said otherwise.
    assert client.ask("More.", headers=BETA, **threaded(first.json()["id"])).headers["x-conversation-id"] == name
    assert [message["content"] for message in served.sent()["messages"]] == [
        *(message["content"] for message in ELSEWHERE), "Go on.", "ok", "More.",
    ]  # fmt: skip
    assert conversation_of(client, *ELSEWHERE, "Go on.", said("ok"), "More.", said("ok"), "Yet more.") == name
    named = {"x-conversation-id": name}
    assert conversation_of(client, *ELSEWHERE, "Go elsewhere.", headers=named) == name
    assert conversation_of(client, *ELSEWHERE[:20], "Otherwise.", headers=named) == name
    spans = [row.span for row in stored.messages.order_by("pk")]
    assert spans == [40, 1, 1, 1, 1, 1, 1, 1, 1, 20, 1, 1]
    deleted = client.http.post(f"/v1/conversations/{name}/terminate").json()["deleted"]
    assert deleted == {"messages": sum(spans), "turns": 5, "tool_mappings": 0}


def test_a_long_history_without_an_answer_is_kept_in_few_rows(client: Client, served: Served) -> None:
    """A row each for all of it would take longer than the store is waited for."""
    served.upstream.always(CHAT, chat.text("ok"))
    asked = [f"Line {number}." for number in range(1_600)]
    name = conversation_of(client, *asked, headers={"x-conversation-id": "lines"})
    stored = served.records.conversations(client.api_key).get(external_id=name)
    assert [row.span for row in stored.messages.order_by("depth")][:3] == [500, 500, 100]
    conversation_of(client, *asked, said("ok"), "More.", headers={"x-conversation-id": "lines"})
    assert sum(row.span for row in stored.messages.all()) == len(asked) + 3


def test_a_retry_whose_answer_ends_a_history_that_was_kept_in_one_row(client: Client, served: Served) -> None:
    served.chat(chat.text("ok"), chat.text("Word 39."))
    headers = {"x-conversation-id": "said again"}
    client.ask(*ELSEWHERE, "Go on.", headers=headers)
    one, again = (client.ask(*ELSEWHERE[:39], headers=headers).json() for _ in range(2))
    assert one == again
    assert one["content"][0]["text"] == "Word 39."
    assert len(served.upstream.requests) == 2


def test_a_thread_keeps_what_its_system_messages_set(client: Client, served: Served) -> None:
    """Beside what they say: the effort from there on, and for Anthropic when they are to be forgotten."""
    served.chat(chat.text("One."), chat.text("Two."))
    note = {"role": "system", "content": "Hurry.", "output_config": {"effort": "low"}, "clear_at": "next_user_message"}
    asked: dict[str, Any] = {"model": "openai/gpt-5.5", "output_config": {"effort": "high"}, "headers": BETA}
    first = client.ask("Count.", note, **asked, **threaded()).json()
    assert client.ask("On.", **asked, **threaded(first["id"])).status_code == 200
    assert [request.json()["reasoning_effort"] for request in served.upstream.requests] == ["low", "low"]
    assert served.sent()["messages"][: len(served.sent(0)["messages"])] == served.sent(0)["messages"]


@pytest.mark.parametrize("answers", [True, False])
def test_a_history_is_kept_once_whoever_changes_its_answers(client: Client, served: Served, answers: bool) -> None:
    """A client that rewrites what was answered, or leaves it out, and asks in two messages."""
    served.upstream.always(CHAT, chat.text("ok"))
    history: list[Any] = ELSEWHERE[:]
    for number in range(4):
        history += [f"Question {number}.", "Answer briefly."]
        name = conversation_of(client, *history, headers={"x-conversation-id": f"rewritten: {answers}"})
        history += [said(f"rewritten {number}")] if answers else []
    stored = served.records.conversations(client.api_key).get(external_id=name)
    brought = sum(row.span for row in stored.messages.filter(message_id=""))
    assert brought == len(history) - answers


@BOTH
def test_no_row_is_written_that_a_process_of_an_older_version_cannot_read(client: Client, served: Served) -> None:
    """While a version is rolled out, and for a day, in which it may be gone back to."""
    served.upstream.always(CHAT, chat.text("ok"))
    tries = count()

    def spans() -> list[int]:
        name = conversation_of(client, f"Try {next(tries)}.", *ELSEWHERE[1:], "Go on.")
        stored = served.records.conversations(client.api_key).get(external_id=name)
        return [row.span for row in stored.messages.order_by("depth")]

    seen = timezone.now() - timedelta(hours=23)
    older = served.records.rows("Process").create(host="older", pid=1, started_at=seen, seen_at=seen)
    try:
        wait_until(lambda: spans() == [1] * 42, "a message in each row")
    finally:
        older.delete()
    wait_until(lambda: spans() == [40, 1, 1], "many messages in a row")


LONG = "All work and no play. " * 50_000


@BOTH
def test_a_long_message_is_kept_compressed_once_every_process_reads_that(client: Client, served: Served) -> None:
    served.upstream.always(CHAT, chat.text("ok"))
    tries = count()

    def kept() -> int:
        """The bytes of the row; what was said is said again when the conversation goes on."""
        first = client.ask(f"{next(tries)}. {LONG}", headers=BETA, **threaded())
        client.ask("More.", headers=BETA, **threaded(first.json()["id"]))
        assert served.sent()["messages"][0]["content"].endswith(LONG)
        name = first.headers["x-conversation-id"]
        return len(served.records.conversations(client.api_key).get(external_id=name).messages.get(depth=1).content)

    seen = timezone.now() - timedelta(hours=23)
    older = served.records.rows("Process").create(host="older", pid=1, started_at=seen, seen_at=seen, form=1)
    try:
        wait_until(lambda: kept() > len(LONG), "as it is")
    finally:
        older.delete()
    wait_until(lambda: kept() < len(LONG) / 100, "compressed")


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["details"]["error_code"]


@BOTH
def test_the_codes_of_threads(client: Client, other_client: Client, served: Served, connect: Connect) -> None:
    served.chat(chat.text("One."))
    first = client.ask("Hi", system="S", tools=[TOOL], **threaded()).json()["id"]
    assert code(client.ask("x", **threaded("msg_nobody"))) == (404, "thread_not_found")
    assert code(other_client.ask("x", **threaded(first))) == (404, "thread_not_found")
    assert code(client.ask("x", system="T", **threaded(first))) == (400, "thread_fingerprint_mismatch")
    assert code(client.ask("x", tools=[], **threaded(first))) == (400, "thread_fingerprint_mismatch")
    # The same again is no difference; and one that failed may be tried again.
    served.chat(chat.error(400, "no"), chat.text("Two."))
    assert client.ask("go on", system="S", **threaded(first)).status_code == 400
    served.records.ended(client.api_key, 2)
    lost = client.ask(result("toolu_nobody"), **threaded(first)).json()["error"]["message"]
    assert lost.startswith("messages.0.content.0: unexpected `tool_use_id`")  # as the client counts
    cached = {"cache_control": {"type": "ephemeral"}}
    same: dict[str, Any] = {"system": [{"type": "text", "text": "S", **cached}], "tools": [{**TOOL, **cached}]}
    assert client.ask("go on", **same, **threaded(first)).status_code == 200
    assert code(client.ask("another way", **threaded(first))) == (400, "thread_already_continued")
    minimal = connect(served, storage="metadata")
    assert code(minimal.ask("Hi", **threaded())) == (400, "thread_unsupported_request")


@pytest.mark.parametrize("mode", ["full", "append"])
def test_a_new_thread_may_have_another_system_and_other_tools(client: Client, served: Served, mode: str) -> None:
    """Also in a conversation that has gone on for long: only who continues a thread keeps to what it began with."""
    served.upstream.always(CHAT, chat.text("ok"))
    headers = {"x-conversation-id": "of threads", "x-conversation-mode": mode}
    client.ask("Hi", system="Be brief.", tools=[TOOL], headers=headers, **threaded())
    again = client.ask("Now otherwise.", system="Be kind.", tools=[CLOCK], headers=headers, **threaded())
    assert again.status_code == 200, again.text
    sent = served.sent()
    assert (sent["messages"][0]["content"], sent["tools"][0]["function"]["name"]) == ("Be kind.", "get_time")
    assert client.ask("More.", headers=headers, **threaded(again.json()["id"])).status_code == 200


def test_a_thread_that_is_being_continued(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(chat.text("One."), sse_answer(chat.chunk({"content": "T"}), gate, *chat.ending("stop")))
    first = client.ask("Hi", **threaded()).json()["id"]
    with client.stream("go on", **threaded(first)) as (_, events):
        next(events)
        assert code(client.ask("another way", **threaded(first))) == (400, "thread_continue_in_flight")
        gate.open()
        assert names(list(events))[-1] == "message_stop"


def test_a_thread_survives_a_restart(serve: Serve, connect: Connect) -> None:
    served = serve()
    client = connect(served)
    served.chat(chat.calls(CALL), chat.text("sunny"))
    answer = client.ask("Weather?", system="S", tools=[TOOL], **threaded()).json()
    served.bridge.crash()
    served.bridge.start()
    response = client.ask(result(answer["content"][0]["id"]), **threaded(answer["id"]))
    assert response.json()["content"] == [{"type": "text", "text": "sunny"}]
    assert [message["role"] for message in served.sent()["messages"]] == ["system", "user", "assistant", "tool"]


# ---------------------------------------------------------------- the same request again


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_gets_the_stored_answer(client: Client, served: Served, stream: bool) -> None:
    served.chat(chat.streamed_calls(CALL))
    headers = {"x-conversation-id": "again"}
    first = client.ask("Weather?", tools=[TOOL], stream=stream, headers=headers)
    second = client.ask("Weather?", tools=[TOOL], stream=stream, headers=headers)
    assert second.status_code == 200
    assert len(served.upstream.requests) == 1
    if stream:
        assert _tool_ids(first.text) == _tool_ids(second.text)
    else:
        assert first.json() == second.json()
    assert served.records.turns(client.api_key).count() == 1
    assert served.records.usage(client.api_key).count() == 1


def _tool_ids(text: str) -> list[str]:
    payloads = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
    return [payload["content_block"]["id"] for payload in payloads if payload["type"] == "content_block_start"]


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_of_a_running_request_waits_for_it(client: Client, served: Served, stream: bool) -> None:
    gate = Gate()
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, chat.chunk({"content": "lo"}), *chat.ending("stop")))
    headers = {"x-stainless-retry-count": "0"}
    with ThreadPoolExecutor() as pool:
        first = pool.submit(client.ask, "Hi", stream=stream, headers=headers)
        assert gate.reached.wait(10)
        second = pool.submit(client.ask, "Hi", stream=stream, headers={"x-stainless-retry-count": "1"})
        gate.open()
        answers = [first.result(20), second.result(20)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert len(served.upstream.requests) == 1
    if not stream:
        assert answers[0].json() == answers[1].json()


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_is_told_the_conversation_that_its_answer_is_in(client: Client, served: Served, stream: bool) -> None:
    """The client had no name for it, so it can only go on with the one that it is told."""
    served.chat(chat.error(500, "oops"), chat.text("one"), chat.text("two"))
    asked = [client.ask("Hi", stream=stream, headers={"x-stainless-retry-count": str(count)}) for count in range(3)]
    assert [response.status_code for response in asked] == [502, 200, 200]
    _, first, again = (response.headers["x-conversation-id"] for response in asked)
    assert first == again
    append = {"x-conversation-id": again, "x-conversation-mode": "append"}
    assert client.ask("And?", headers=append).status_code == 200
    assert [message["content"] for message in served.sent()["messages"]] == ["Hi", "one", "And?"]


ENDINGS = {"stop_sequence": chat.stopped("Up to here", "END"), "refusal": chat.refused("I must not.")}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_retry_hears_of_the_same_end(client: Client, served: Served, ending: str) -> None:
    served.chat(ENDINGS[ending])
    headers = {"x-conversation-id": f"ended by {ending}"}
    answers = [client.ask("Hi", stop_sequences=["END"], headers=headers).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["stop_reason"] == ending
    assert answers[0]["stop_sequence"] == ("END" if ending == "stop_sequence" else None)
    assert len(served.upstream.requests) == 1


def test_a_retry_is_warned_as_the_first_one_was(client: Client, served: Served) -> None:
    unpaired = {"type": "tool_use", "id": "toolu_from_elsewhere", "name": "get_time", "input": {}}
    asked = ["Hi", {"role": "assistant", "content": [unpaired]}, "Go on"]
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}
    served.chat(json_answer({"id": "c", "choices": [choice]}))
    answers = [client.ask(*asked, headers={"x-conversation-id": "warned"}) for _ in range(2)]
    warned = [answer.headers["x-bridge-warning"] for answer in answers]
    assert warned == ["history-repaired, usage-estimated"] * 2
    assert len(served.upstream.requests) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_gets_all_that_anthropic_said(
    serve: Serve, connect: Connect, shared_upstream: ScriptedUpstream, stream: bool
) -> None:
    """Also what the bridge does not know: its answer is passed on byte for byte, the second time too."""
    served = serve(ANTHROPIC_API_KEY="sk-ant-x", ANTHROPIC_UPSTREAM_URL=f"{shared_upstream.url}/v1")
    client = connect(served)
    usage = {"input_tokens": 5, "output_tokens": 6, "service_tier": "priority", "server_tool_use": {"web_searches": 2}}
    end = {"stop_reason": "stop_sequence", "stop_sequence": "END", "container": {"id": "container_1"}}
    message = {"id": "msg_01", "type": "message", "role": "assistant", "model": "claude-x-20261101", "usage": usage}
    block = {"type": "text", "text": "Hello"}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": usage},
        {"type": "message_stop"},
    ]
    frames = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
    shared_upstream.queue(
        "/v1/messages", sse_answer(*frames) if stream else json_answer({**message, **end, "content": [block]})
    )
    asked: dict[str, Any] = {
        "model": "anthropic/claude-x",
        "stream": stream,
        "headers": {"x-conversation-id": "relayed"},
    }
    first, second = client.ask("Hi", **asked), client.ask("Hi", **asked)
    assert first.text == second.text
    assert ("container_1" in first.text, "priority" in first.text) == (True, True)
    assert len(shared_upstream.requests) == 1


@pytest.fixture
def like_anthropic(serve: Serve, shared_upstream: ScriptedUpstream) -> Served:
    """In front of a server that only speaks like Anthropic, and calls everything the same."""
    return serve(ANTHROPIC_API_KEY="sk-ant-x", ANTHROPIC_UPSTREAM_URL=f"{shared_upstream.url}/v1")


def always_called_the_same(block: dict[str, Any], *, stream: bool) -> Answer:
    reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [block],
               "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    end = {"stop_reason": reason, "stop_sequence": None}
    if not stream:
        return json_answer({**message, **end})
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**message, **end, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": message["usage"]},
        {"type": "message_stop"},
    ]
    return sse_answer(*(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events))


@pytest.mark.parametrize("way", ["thread", "append", "result"])
def test_stored_messages_go_to_anthropic_with_their_cache_breakpoints(
    like_anthropic: Served, connect: Connect, way: str
) -> None:
    """A document that was marked once is read from the cache whenever the conversation goes on."""
    client, headers = connect(like_anthropic), {"x-conversation-id": "c"} if way == "append" else {}
    asked: dict[str, Any] = {"model": "anthropic/m", "tools": [TOOL]}
    mark = {"cache_control": {"type": "ephemeral"}}
    first = {"role": "user", "content": [{"type": "text", "text": "A long document.", **mark}]}
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}
    for block in (call, {"type": "text", "text": "ok"}):
        like_anthropic.upstream.queue("/v1/messages", always_called_the_same(block, stream=False))
    answer = client.ask(first, headers=headers, **asked, **(threaded() if way == "thread" else {})).json()
    more = threaded(answer["id"]) if way == "thread" else {}
    mode = {"x-conversation-mode": "append"} if way == "append" else {}
    assert client.ask(result(answer["content"][0]["id"]), headers={**headers, **mode}, **asked, **more).is_success
    assert like_anthropic.sent()["messages"][0] == first
    assert len(like_anthropic.sent()["messages"]) == 3


@pytest.mark.parametrize("stream", [False, True])
def test_threads_whose_messages_an_upstream_calls_the_same_are_two(
    like_anthropic: Served, connect: Connect, stream: bool
) -> None:
    client, asked = connect(like_anthropic), {"model": "anthropic/m", "stream": stream}
    for words in ("A1", "B1", "A2", "A3"):
        answer = always_called_the_same({"type": "text", "text": words}, stream=stream)
        like_anthropic.upstream.queue("/v1/messages", answer)

    def ask(words: str, previous: str = "") -> str:
        response = client.ask(words, headers={"x-stainless-retry-count": "1"}, **asked, **threaded(previous))
        assert response.status_code == 200, response.text
        return str(re.findall(r'"id": ?"(msg_\w+)"', response.text)[0])

    one, _ = ask("One."), ask("Other.")
    two = ask("Go on.", one)
    assert ask("Go on.", one) == two, "a retry hears of the same message"
    ask("And on.", two)
    told = [message["content"] for message in like_anthropic.sent()["messages"]]
    assert [said if isinstance(said, str) else said[0]["text"] for said in told] == [
        "One.", "A1", "Go on.", "A2", "And on.",
    ]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
def test_calls_that_an_upstream_calls_the_same_are_two(like_anthropic: Served, connect: Connect, stream: bool) -> None:
    """Claude Code loses the second of two calls with one id."""
    client = connect(like_anthropic)
    asked: dict[str, Any] = {"model": "anthropic/m", "tools": [TOOL], "headers": {"x-conversation-id": "same"}}
    for city in ("Oslo", "Rome"):
        call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": city}}
        like_anthropic.upstream.queue("/v1/messages", always_called_the_same(call, stream=stream))
    history: list[Any] = ["Weather?"]
    for _ in range(2):
        first, again = (
            folded(client.events(*history, **asked)) if stream else client.ask(*history, **asked).json()["content"]
            for _ in range(2)
        )
        assert first == again
        history += [{"role": "assistant", "content": first}, result(first[0]["id"])]
    mappings = client.mappings("same")
    assert [mapping["arguments"] for mapping in mappings] == [{"city": "Oslo"}, {"city": "Rome"}]
    assert [mapping["tool_use_id"] for mapping in mappings] == ["toolu_1", history[-2]["content"][0]["id"]]
    like_anthropic.upstream.queue("/v1/messages", always_called_the_same({"type": "text", "text": "ok"}, stream=False))
    assert client.ask(*history, **asked).status_code == 200
    assert like_anthropic.sent()["messages"][-1] == history[-1]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("restarted", [False, True])
def test_conversations_whose_calls_an_upstream_calls_the_same_are_two(
    like_anthropic: Served, connect: Connect, restarted: bool, stream: bool
) -> None:
    """None of them has a name: its call's id alone tells which it is."""
    client = connect(like_anthropic)
    asked: dict[str, Any] = {"model": "anthropic/m", "tools": [TOOL], "stream": stream}
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}
    like_anthropic.upstream.always("/v1/messages", always_called_the_same(call, stream=stream))

    def ask(*messages: Any) -> tuple[str, str]:
        answer = client.ask(*messages, **asked)
        assert answer.status_code == 200, answer.text
        return answer.headers["x-conversation-id"], str(re.findall(r'"id": ?"(toolu_\w+)"', answer.text)[0])

    begun = {words: ask(words) for words in ("One?", "Two?", "Three?")}
    assert len({name for name, _ in begun.values()}) == len({id_ for _, id_ in begun.values()}) == 3
    assert begun["One?"][1] == "toolu_1", "where nobody else has it, it is passed on"
    if restarted:
        like_anthropic.bridge.crash()
        like_anthropic.bridge.start()
    for words, (conversation, id_) in begun.items():
        assert ask(result(id_))[0] == conversation
        told = like_anthropic.sent()["messages"]
        assert told[0]["content"] == [{"type": "text", "text": words}]
        assert told[-1]["content"][0]["tool_use_id"] == told[1]["content"][0]["id"]
        assert ask(words, {"role": "assistant", "content": [{**call, "id": id_}]}, result(id_))[0] == conversation


def test_a_retry_of_a_failed_request_takes_over(client: Client, served: Served) -> None:
    served.chat(chat.error(500, "oops"), chat.text("ok"))
    headers = {"x-conversation-id": "failed once"}
    assert client.ask("Hi", headers=headers).status_code == 502
    assert client.ask("Hi", headers=headers).json()["content"][0]["text"] == "ok"
    assert len(served.upstream.requests) == 2


def test_a_retry_of_an_aborted_request_takes_over(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, *chat.ending("stop")), chat.text("ok"))
    headers = {"x-conversation-id": "left once"}
    with client.stream("Hi", headers=headers) as (_, events):
        next(events)
    response = client.ask("Hi", stream=True, headers=headers)
    assert response.status_code == 200
    assert '"ok"' in response.text
    gate.open()


@BOTH
def test_a_retry_of_a_request_whose_process_died_takes_over(client: Client, served: Served, serve: Serve) -> None:
    """By itself, without anybody who reconciles: a client is waiting for it."""
    there = Client(serve(served.database_url).bridge.url, client.api_key)
    headers = {"x-conversation-id": "left behind"}
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), Silence()), chat.streamed_text("Hello."))
    with client.stream("Hi", headers=headers) as (_, events):
        next(events)
        turns = served.records.turns(client.api_key)
        assert turns.update(process=999_999) == 1
        assert "Hello." in there.ask("Hi", stream=True, headers=headers).text
        first, second = turns
        assert (first.status, first.error_message) == ("error", "the process that ran this turn died")
        assert second.status == "complete"
    there.close()


def test_who_starts_after_a_crash_closes_what_it_left(serve: Serve, connect: Connect) -> None:
    """At once, whether or not there is a worker; and not what a process has that lives."""
    served = serve()
    client, headers = connect(served), {"x-conversation-id": "crashed"}
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), Silence()), chat.streamed_text("Hello."))
    with client.stream("Hi", headers=headers) as (_, events):
        next(events)
        served.bridge.crash()
    processes = served.records.rows("Process")
    dead = processes.get()
    served.bridge.start()
    assert "Hello." in client.ask("Hi", stream=True, headers=headers).text
    first, second = served.records.turns(client.api_key)
    assert (first.status, first.error_message) == ("error", "the process that ran this turn died")
    assert second.status == "complete"
    dead.refresh_from_db()
    assert dead.seen_at.year == 1970, "nobody waited until it had not been seen for long"
    assert not [row for row in processes.exclude(pk=dead.pk) if row.seen_at.year == 1970]


def test_who_starts_after_a_crash_serves_once_that_is_closed(serve: Serve, connect: Connect) -> None:
    """What is appended at once follows what was asked when it crashed: it was left out until then."""
    served = serve()
    client = connect(served)
    append = {"x-conversation-id": "crashed 0", "x-conversation-mode": "append"}
    served.upstream.always(CHAT, sse_answer(chat.chunk({"content": "Hel"}), Silence()))
    with ExitStack() as streams:
        for number in range(20):
            headers = append | {"x-conversation-id": f"crashed {number}"}
            _, events = streams.enter_context(client.stream("Weather?", headers=headers))
            until(events, "content_block_delta")
        served.bridge.crash()
    served.bridge.start()
    assert not served.records.turns(client.api_key).filter(status="running").exists()
    served.upstream.always(CHAT, chat.text("Dark."))
    assert client.ask("Tonight?", headers=append).status_code == 200
    assert [message["content"] for message in served.sent()["messages"]] == ["Weather?\nTonight?"]


@pytest.mark.parametrize("call", [False, True])
def test_what_is_appended_beside_a_process_that_died_follows_its_question(
    serve: Serve, connect: Connect, call: bool
) -> None:
    """It was left out until a successor had started: whoever lives on the same machine can tell at once."""
    first = serve()
    second = serve(first.database_url, BRIDGE_HOME=str(first.bridge.home))
    here = connect(first)
    there = Client(second.bridge.url, here.api_key)
    append = {"x-conversation-id": "beside", "x-conversation-mode": "append"}
    said = chat.call_chunks(CALL) if call else [chat.chunk({"content": "It is"})]
    first.chat(chat.text("Hello."), sse_answer(*said, Silence()), chat.text("Beside."))
    here.ask("Hi.", headers=append, tools=[TOOL])
    with here.stream("Weather?", headers=append) as (_, events):
        until(events, "content_block_start")
        # One that runs is no reason to wait, or to take it for lost.
        assert there.ask("Beside?", headers=append).status_code == 200
        assert "running" in first.records.turns(here.api_key).values_list("status", flat=True)
    first.records.ended(here.api_key, 3)
    first.chat(sse_answer(*said, Silence()), chat.text("Dark."))
    with here.stream("And in Rome?", headers=append) as (_, events):
        until(events, "content_block_start")
        first.bridge.crash()
    assert there.ask("Tonight?", headers=append).status_code == 200
    told = json.dumps(first.sent()["messages"])
    assert ("And in Rome?" in told, "call_1" in told) == (True, call)
    there.close()


@pytest.mark.parametrize("same", [False, True])
def test_a_thread_goes_on_at_once_beside_a_process_that_died(serve: Serve, connect: Connect, same: bool) -> None:
    """In other words it was "in flight" until a successor had started; in the same ones it waited for that."""
    first = serve()
    second = serve(first.database_url, BRIDGE_HOME=str(first.bridge.home))
    here = connect(first)
    there = Client(second.bridge.url, here.api_key)
    first.chat(chat.text("Hello."), sse_answer(*chat.call_chunks(CALL), Silence()), chat.text("Dark."))
    asked: dict[str, Any] = {"tools": [TOOL], "headers": BETA}
    began = here.ask("Hi.", **asked, **threaded()).json()
    go_on = asked | threaded(began["id"])
    with here.stream("Weather?", **go_on) as (_, events):
        until(events, "content_block_start")
        # One that lives is being continued.
        assert there.ask("Tonight?", **go_on).json()["error"]["details"]["error_code"] == "thread_continue_in_flight"
        first.bridge.crash()
    started = time.monotonic()
    response = there.ask("Weather?" if same else "Tonight?", stream=True, **go_on)
    assert response.status_code == 200, response.text
    assert time.monotonic() - started < 2
    assert [turn.status for turn in first.records.turns(here.api_key)] == ["complete", "error", "complete"]
    assert len(there.mappings(there.conversations()[0]["id"])) == 1, "what was shown is known"
    there.close()


def _counted(client: Client, name: str) -> tuple[int, int]:
    """How many calls a conversation says that it has, and how many it has."""
    return client.get(f"/v1/conversations/{name}")["tool_mappings"], len(client.mappings(name))


def test_a_crash_does_not_uncount_the_calls_that_were_shown(serve: Serve, connect: Connect) -> None:
    served = serve()
    client = connect(served)
    served.chat(sse_answer(*chat.call_chunks(CALL, ("call_2", "get_time", {})), Silence()))
    with client.stream("Weather?", tools=[TOOL], headers={"x-conversation-id": "crashed"}) as (_, events):
        until(events, "content_block_start")
        served.bridge.crash()
    served.bridge.start()
    (turn,) = served.records.ended(client.api_key, 1)
    assert (turn.status, turn.tool_count) == ("error", 2)
    assert _counted(client, "crashed") == (2, 2)
    assert served.records.conversations(client.api_key).get().last_status == "error"


@BOTH
def test_a_retry_that_closes_a_dead_turn_counts_its_calls_once(client: Client, served: Served, serve: Serve) -> None:
    there = Client(serve(served.database_url).bridge.url, client.api_key)
    headers = {"x-conversation-id": "counted"}
    gate = Gate()
    held = sse_answer(*chat.call_chunks(CALL), gate, *chat.ending("tool_calls"))
    served.chat(held, *[chat.streamed_calls(CALL)] * 2)
    with client.stream("Hi", headers=headers) as (_, events):
        until(events, "content_block_start")
        turns = served.records.turns(client.api_key)
        assert turns.update(process=999_999) == 1
        with ThreadPoolExecutor() as pool:
            again = [pool.submit(there.ask, "Hi", stream=True, headers=headers) for _ in range(2)]
            assert len({tuple(_tool_ids(one.result().text)) for one in again}) == 1
        assert [turn.tool_count for turn in turns] == [1, 1]
        assert _counted(client, "counted") == (2, 2)
        gate.open()  # it had only not been seen for long: a machine that slept, a database that was away
        assert list(events)[-1].name == "message_stop"
        assert [(turn.status, turn.tool_count) for turn in turns.all()] == [("complete", 1)] * 2
        assert _counted(client, "counted") == (2, 2)
    there.close()


@BOTH
def test_a_retry_whose_answer_was_also_an_earlier_ones(client: Client, served: Served) -> None:
    """Two questions that differ only in their settings, and the same answer: one message, two turns."""
    served.upstream.always(CHAT, chat.text("Same."))
    headers = {"x-conversation-id": "twins"}
    one = client.ask("Hi", headers=headers).json()
    other = client.ask("Hi", headers=headers, max_tokens=99).json()
    assert one["id"] != other["id"]
    assert client.ask("Hi", headers=headers, max_tokens=99).json() == other
    assert client.ask("Hi", headers=headers).json() == one
    assert len(served.upstream.requests) == 2


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_of_a_request_that_said_nothing_of_retries(client: Client, served: Served, stream: bool) -> None:
    """The SDKs always send their count; others begin to when they ask again."""
    served.chat(*[chat.streamed_calls(CALL)] * 2)
    asked: dict[str, Any] = {"tools": [TOOL], "system": "Be brief.", "stream": stream}
    first = client.ask("Weather?", **asked)
    again = [client.ask("Weather?", headers={"x-stainless-retry-count": str(count)}, **asked) for count in (1, 2)]
    assert len(served.upstream.requests) == 1
    assert {response.headers["x-conversation-id"] for response in (first, *again)} == {
        first.headers["x-conversation-id"]
    }
    for response in again:
        assert _tool_ids(response.text) == _tool_ids(first.text) if stream else response.json() == first.json()
    # What differs in anything is another request.
    assert client.ask("Weather?", headers={"x-stainless-retry-count": "1"}, **asked, temperature=0.5).status_code == 200
    assert len(served.upstream.requests) == 2


@BOTH
@pytest.mark.parametrize("breaks", [False, True])
def test_a_retry_of_a_request_that_runs_and_said_nothing_of_retries(
    client: Client, served: Served, breaks: bool
) -> None:
    gate = Gate()
    end = (Abort(),) if breaks else tuple(chat.ending("stop"))
    served.chat(sse_answer(gate, chat.chunk({"content": "Hello"}), *end), *[chat.streamed_text("Again.")] * 2)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(client.ask, "Hi")
        assert gate.reached.wait(10)
        wait_until(lambda: served.records.turns(client.api_key).count() == 1, "the turn is stored")
        second = pool.submit(client.ask, "Hi", headers={"x-stainless-retry-count": "1"})
        time.sleep(0.3)
        gate.open()
        answers = [first.result(20), second.result(20)]
    third = client.ask("Hi", headers={"x-stainless-retry-count": "2"})
    assert [answer.status_code for answer in (*answers, third)] == [502 if breaks else 200, 200, 200]
    assert third.json() == answers[1].json()
    assert len(served.upstream.requests) == (2 if breaks else 1)


def test_equal_requests_that_say_nothing_are_two(client: Client, served: Served) -> None:
    served.chat(chat.text("One."), chat.text("Two."))
    assert client.ask("Hi").json()["id"] != client.ask("Hi").json()["id"]
    assert len(served.upstream.requests) == 2


def test_an_agent_without_its_session_is_no_name(client: Client, served: Served) -> None:
    """Agents are told apart within a session: equal requests of one that names none are two."""
    served.chat(chat.text("One."), chat.text("Two."))
    headers = {"x-claude-code-agent-id": "agent-1"}
    assert client.ask("Hi", headers=headers).json()["id"] != client.ask("Hi", headers=headers).json()["id"]
    assert len(served.upstream.requests) == 2


def test_a_first_request_is_never_taken_for_a_retry(client: Client, served: Served) -> None:
    """The SDKs always send their count: 0 is a new request, whatever was asked before."""
    served.chat(chat.text("One."), chat.text("Two."))
    headers = {"x-stainless-retry-count": "0"}
    assert client.ask("Hi", headers=headers).json()["content"][0]["text"] == "One."
    assert client.ask("Hi", headers=headers).json()["content"][0]["text"] == "Two."


@pytest.mark.parametrize("late", [0, 3600])
def test_a_retry_reaches_the_other_process(
    serve: Serve, connect: Connect, postgres_url: str, tmp_path: Path, late: int
) -> None:
    """Also if the clock of the first is slow: how old a claim is, only the database's can tell."""
    first, second = serve(postgres_url, **skewed(tmp_path, -late)), serve(postgres_url)
    here = connect(first)
    there = Client(second.bridge.url, here.api_key)
    gate = Gate()
    first.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, chat.chunk({"content": "lo"}), *chat.ending("stop")))
    headers = {"x-conversation-id": "both"}
    with ThreadPoolExecutor() as pool:
        running = pool.submit(here.ask, "Hi", headers=headers)
        assert gate.reached.wait(10)
        wait_until(lambda: first.records.turns(here.api_key).exists(), "the turn is stored")
        again = pool.submit(there.ask, "Hi", headers=headers)
        gate.open()
        assert running.result(20).json() == again.result(20).json()
    assert len(first.upstream.requests) == 1
    there.close()
