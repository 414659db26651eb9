"""`POST /v1/messages` from end to end: what the client sees, and what the upstream saw."""

import json

import httpx
import pytest

from tests.api.conftest import BOTH, Served
from tests.servers import chat
from tests.servers.client import CLOCK, TOOL, Client, body, folded, names, read_events, result
from tests.servers.script import Silence, json_answer, sse_answer

WEATHER = ("call_1", "get_weather", {"city": "Oslo"})
TIME = ("call_2", "get_time", {"zone": "CET"})


def test_a_whole_answer(client: Client, served: Served) -> None:
    served.chat(chat.text("Hello."))
    response = client.ask("Hi", system="Be brief.")
    assert response.status_code == 200
    answer = response.json()
    assert (answer["type"], answer["role"], answer["model"]) == ("message", "assistant", "claude-sonnet-4-5")
    assert answer["content"] == [{"type": "text", "text": "Hello."}]
    assert (answer["stop_reason"], answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]) == (
        "end_turn",
        11,
        7,
    )
    sent = served.sent()
    assert sent["model"] == "gpt-test"
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert served.upstream.requests[0].headers["authorization"] == "Bearer sk-upstream-secret"


def test_a_stream_has_the_grammar_of_the_api(client: Client, served: Served) -> None:
    served.chat(chat.streamed_text("Hel", "lo."))
    events = client.events("Hi")
    assert folded(events) == [{"type": "text", "text": "Hello."}]
    assert names(events)[0] == "message_start"
    assert events[0].data["message"]["usage"]["input_tokens"] > 0
    delta = next(event.data for event in events if event.name == "message_delta")
    assert delta["delta"]["stop_reason"] == "end_turn"
    assert (delta["usage"]["input_tokens"], delta["usage"]["output_tokens"]) == (11, 7)


def test_an_answer_stops_at_a_sequence_that_the_model_cannot_be_told(client: Client, served: Served) -> None:
    """The upstream, which would go on, is left: what is not wanted need not be paid for."""
    served.chat(chat.streamed_text("One E", "ND two", Silence()))
    events = client.events("Count.", model="openai/gpt-5-mini", stop_sequences=["END"])
    assert folded(events) == [{"type": "text", "text": "One "}]
    delta = next(event.data["delta"] for event in events if event.name == "message_delta")
    assert (delta["stop_reason"], delta["stop_sequence"]) == ("stop_sequence", "END")
    assert "stop" not in served.sent()
    assert served.upstream.requests[-1].abandoned.wait(5)


def test_a_model_that_takes_no_tools_in_chat_is_asked_in_the_responses_api(client: Client, served: Served) -> None:
    """At the same address, with the same key: `Function tools ... are not supported for gpt-6-astra in chat`."""
    arguments = json.dumps({"city": "Oslo"})
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "get_weather", "arguments": arguments}
    said = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Cold."}]}
    answers = ({"id": f"resp_{item['id']}", "status": "completed", "output": [item]} for item in (call, said))
    served.upstream.queue("/openai/v1/responses", *map(json_answer, answers))
    first = client.ask("How is Oslo?", model="gpt-6-astra", tools=[TOOL]).json()
    history = ("How is Oslo?", {"role": "assistant", "content": first["content"]}, result(first["content"][0]["id"]))
    answer = client.ask(*history, model="gpt-6-astra", tools=[TOOL])
    assert answer.json()["content"] == [{"type": "text", "text": "Cold."}]
    assert [item["type"] for item in served.sent()["input"]] == ["message", "function_call", "function_call_output"]
    assert served.sent()["input"][1]["call_id"] == "call_1"
    assert served.upstream.requests[-1].headers["authorization"] == "Bearer sk-upstream-secret"


@pytest.mark.parametrize("header", ["x-api-key", "authorization", "authorization lower case"])
def test_both_ways_to_send_a_key(client: Client, served: Served, header: str) -> None:
    served.chat(chat.text("ok"))
    credentials = {
        "x-api-key": {"x-api-key": client.api_key},
        "authorization": {"Authorization": f"Bearer {client.api_key}"},
        "authorization lower case": {"authorization": f"bearer {client.api_key}"},
    }[header]
    assert httpx.post(f"{served.bridge.url}/v1/messages", json=body("Hi"), headers=credentials).status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1/messages?beta=true", "/anthropic/v1/messages", "/anthropic/v1/messages?beta=true"]
)
def test_the_query_is_ignored_and_the_prefix_leads_to_the_same(client: Client, served: Served, path: str) -> None:
    served.chat(chat.text("ok"))
    assert client.http.post(path, json=body("Hi")).json()["content"] == [{"type": "text", "text": "ok"}]


@pytest.mark.parametrize("version", ["2023-06-01", "2026-10-21"])
def test_both_versions_are_served_with_unknown_betas_and_fields(client: Client, served: Served, version: str) -> None:
    served.chat(chat.text("ok"))
    headers = {"anthropic-version": version, "anthropic-beta": "never-heard-of-2031-01-01, another"}
    assert client.ask("Hi", headers=headers, some_future_field={"a": 1}).status_code == 200


def test_betas_may_come_in_several_lines(client: Client, served: Served) -> None:
    served.chat(chat.streamed_calls(("call_0", "get_weather", {"city": "Oslo"})))
    betas = [("anthropic-beta", "fine-grained-tool-streaming-2025-05-14"), ("anthropic-beta", "another")]
    asked = body("Weather?", stream=True, tools=[TOOL])
    with client.http.stream("POST", "/v1/messages", json=asked, headers=betas) as response:
        events = list(read_events(response))
    assert names(events).count("content_block_delta") == 2  # the arguments as they came


def test_an_unknown_version_is_refused(client: Client) -> None:
    response = client.ask("Hi", headers={"anthropic-version": "2019-01-01"})
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "anthropic-version" in response.json()["error"]["message"]


def test_sampling_belongs_to_the_old_version(client: Client, served: Served) -> None:
    served.chat(chat.text("ok"))
    assert client.ask("Hi", temperature=0.5, top_p=0.9).status_code == 200
    assert (served.sent()["temperature"], served.sent()["top_p"]) == (0.5, 0.9)
    refused = client.ask("Hi", temperature=0.5, headers={"anthropic-version": "2026-10-21"})
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("temperature: ")


@pytest.mark.parametrize("stream", [False, True])
def test_every_answer_names_its_request_and_its_conversation(client: Client, served: Served, stream: bool) -> None:
    served.chat(chat.streamed_text("ok") if stream else chat.text("ok"))
    first = client.ask("Hi", stream=stream)
    assert first.headers["request-id"].startswith("req_")
    conversation = first.headers["x-conversation-id"]
    assert conversation.startswith("conv_")
    assert len(conversation) == len("conv_") + 32
    assert [found["id"] for found in client.conversations()] == [conversation]


def test_an_upstreams_refusal_names_them_too(client: Client, served: Served) -> None:
    served.chat(chat.error(400, "no"))
    response = client.ask("Hi", headers={"x-conversation-id": "mine"})
    assert response.headers["request-id"] == response.json()["request_id"]
    assert response.headers["x-conversation-id"] == "mine"


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/conversations", "/v1/nowhere", "/livez"])
def test_even_a_refused_request_has_an_id(served: Served, path: str) -> None:
    response = httpx.post(served.bridge.url + path, json=body("Hi"))
    assert response.headers["request-id"].startswith("req_")


@BOTH
@pytest.mark.parametrize("stream", [False, True])
def test_parallel_calls_get_ids_of_our_own_and_the_upstream_its_own_back(
    client: Client, served: Served, stream: bool
) -> None:
    served.chat((chat.streamed_calls if stream else chat.calls)(WEATHER, TIME), chat.text("done"))
    if stream:
        events = client.events("Weather and time?", tools=[TOOL, CLOCK])
        blocks = folded(events)
        assert next(e.data for e in events if e.name == "message_delta")["delta"]["stop_reason"] == "tool_use"
    else:
        answer = client.ask("Weather and time?", tools=[TOOL, CLOCK]).json()
        blocks = answer["content"]
        assert answer["stop_reason"] == "tool_use"
    assert [(block["name"], block["input"]) for block in blocks] == [WEATHER[1:], TIME[1:]]
    ids = [block["id"] for block in blocks]
    assert len(set(ids)) == 2
    assert all(id_.startswith("toolu_") and len(id_) == 30 for id_ in ids)

    results = [{"type": "tool_result", "tool_use_id": id_, "content": f"for {id_}"} for id_ in reversed(ids)]
    history = ["Weather and time?", {"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    assert client.ask(*history, tools=[TOOL, CLOCK]).json()["content"][0]["text"] == "done"
    messages = served.sent()["messages"]
    assert [call["id"] for call in messages[1]["tool_calls"]] == ["call_1", "call_2"]
    assert [(m["tool_call_id"], m["content"]) for m in messages[2:]] == [
        ("call_1", f"for {ids[0]}"), ("call_2", f"for {ids[1]}")
    ]  # fmt: skip


@BOTH
def test_a_lone_result_is_answered_from_the_store(client: Client, served: Served) -> None:
    served.chat(chat.streamed_calls(WEATHER), chat.text("It is sunny."))
    (block,) = folded(client.events("Weather in Oslo?", system="Be brief.", tools=[TOOL]))
    response = client.ask(result(block["id"]), system="Be brief.", tools=[TOOL])
    assert response.json()["content"] == [{"type": "text", "text": "It is sunny."}]
    messages = served.sent()["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
    call = messages[2]["tool_calls"][0]
    assert (call["id"], call["function"]["name"]) == ("call_1", "get_weather")
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}
    assert (messages[3]["tool_call_id"], messages[3]["content"]) == ("call_1", "sunny")
    assert "history-repaired" in response.headers["x-bridge-warning"]
    (conversation,) = client.conversations()
    assert (conversation["turns"], conversation["tool_mappings"]) == (2, 1)
    (mapping,) = client.mappings(conversation["id"])
    assert (mapping["tool_use_id"], mapping["status"], mapping["upstream_call_id"]) == (
        block["id"],
        "answered",
        "call_1",
    )


@BOTH
def test_an_escaped_nul_is_legal_and_survives_the_round_trip(client: Client, served: Served) -> None:
    served.chat(chat.streamed_calls(("c\0", "get_weather", {"city": "a\0b"})), chat.text("x\0y"))
    (block,) = folded(client.events("before\0after", tools=[TOOL]))
    assert block["input"] == {"city": "a\0b"}
    # Only the result: question, call and arguments come from the store.
    answer = client.ask(result(block["id"], "out\0put"), tools=[TOOL])
    assert answer.json()["content"] == [{"type": "text", "text": "x\0y"}]
    user, call, tool = served.sent()["messages"]
    assert user["content"] == "before\0after"
    assert json.loads(call["tool_calls"][0]["function"]["arguments"]) == {"city": "a\0b"}
    assert tool["content"] == "out\0put"


def test_an_unknown_result_is_refused_in_the_apis_words(client: Client, served: Served) -> None:
    response = client.ask(result("toolu_nobody_knows"), tools=[TOOL])
    assert response.status_code == 400
    message = response.json()["error"]["message"]
    assert message.startswith(
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_nobody"
    )
    assert served.upstream.requests == []


def test_a_block_that_the_model_does_not_take_is_named_as_the_client_counts(client: Client, served: Served) -> None:
    """Whatever was merged, or put before it from the store."""
    picture = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    look = {"role": "user", "content": [{"type": "text", "text": "Look:"}, picture]}
    note = {"role": "system", "content": "A note."}
    assert client.ask("Hi", note, look).json()["error"]["message"].startswith("messages.2.content.1: ")
    served.chat(chat.text("Hello."))
    named = {"x-conversation-id": "pictures"}
    assert client.ask("Hi", headers=named).status_code == 200
    refused = client.ask(look, headers=named | {"x-conversation-mode": "append"})
    assert refused.json()["error"]["message"].startswith("messages.0.content.1: ")


def test_an_older_orphan_becomes_text(client: Client, served: Served) -> None:
    served.chat(chat.text("ok"))
    history = [result("toolu_gone", "42 degrees"), {"role": "assistant", "content": "I see."}, "And now?"]
    response = client.ask(*history)
    assert response.status_code == 200
    assert "[result of an earlier tool call toolu_gone] 42 degrees" in json.dumps(served.sent()["messages"][0])
    assert response.headers["x-bridge-warning"] == "history-repaired"


def test_without_usage_it_is_estimated_and_says_so(client: Client, served: Served) -> None:
    served.chat(sse_answer(chat.chunk({"content": "hello"}), chat.chunk({}, "stop"), chat.DONE))
    response = client.ask("Hi")
    assert response.headers["x-bridge-warning"] == "usage-estimated"
    assert response.json()["usage"]["output_tokens"] > 0


@BOTH
@pytest.mark.parametrize("upstream_id", ["", "x" * 1324, "x" * 5000, "sn\0ip", "ünï cödé/☃", "call_1"])
def test_whatever_an_upstream_calls_its_calls_they_are_told_apart(
    client: Client, served: Served, upstream_id: str
) -> None:
    """Missing, too long, of illegal characters, repeated within an answer."""
    same = [(upstream_id, "get_weather", {"city": city}) for city in ("Oslo", "Rome")]
    served.chat(chat.calls(*same), chat.text("ok"))
    blocks = client.ask("Weather?", tools=[TOOL]).json()["content"]
    assert [block["input"]["city"] for block in blocks] == ["Oslo", "Rome"]
    results = [{"type": "tool_result", "tool_use_id": b["id"], "content": b["input"]["city"]} for b in blocks]
    assert client.ask({"role": "user", "content": results}, tools=[TOOL]).status_code == 200
    _, called, *tools = served.sent()["messages"]
    ids = [call["id"] for call in called["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(m["tool_call_id"], m["content"]) for m in tools] == list(zip(ids, ["Oslo", "Rome"], strict=True))
    if upstream_id == "x" * 1324:
        assert ids[0] == upstream_id


@BOTH
def test_absurd_usage_breaks_nothing(client: Client, served: Served) -> None:
    usage = {"prompt_tokens": 10**30, "completion_tokens": -5, "total_tokens": 0}
    answer = {
        "id": "c",
        "choices": [{"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}],
        "usage": usage,
    }
    served.chat(json_answer(answer), chat.text("fine"))
    assert client.ask("Hi").status_code == 200
    assert client.ask("Hi").json()["content"][0]["text"] == "fine"
