"""Call, execute, tell the model, go on: inside one request of the client's."""

import json
from typing import Any

import psycopg
import pytest
from openai import BadRequestError, OpenAI

from tests.api.conftest import Serve
from tests.hosted.anthropic_peer import AnthropicPeer, answered
from tests.hosted.conftest import Tools
from tests.servers import chat
from tests.servers.client import CLOCK, Client, folded, names, result
from tests.servers.script import Answer, Gate, Pause, json_answer, sse_answer
from tests.servers.upstream import ScriptedUpstream

SUNNY = {"weather": "sunny"}


def kinds(blocks: list[dict[str, Any]]) -> list[str]:
    return [block["type"] for block in blocks]


def held(gate: Gate, body: bytes) -> Answer:
    return Answer((gate, body), headers={"content-type": "application/json"})


@pytest.mark.parametrize("stream", [True, False])
def test_hosted_tool_is_run_and_the_model_goes_on(tools: Tools, stream: bool) -> None:
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    if stream:
        tools.served.chat(
            chat.streamed_calls(("call_1", "weather", {"city": "Berlin"})), chat.streamed_text("It ", "is.")
        )
        events = tools.client.events("How is the weather?")
        blocks = folded(events)
        stop = next(data for name, data in events if name == "message_delta")
        assert stop["delta"]["stop_reason"] == "end_turn"
        assert stop["usage"]["input_tokens"] == 22
    else:
        tools.served.chat(chat.calls(("call_1", "weather", {"city": "Berlin"})), chat.text("It is."))
        answer = tools.client.ask("How is the weather?").json()
        blocks = answer["content"]
        assert (answer["stop_reason"], answer["usage"]["input_tokens"]) == ("end_turn", 22)
    assert kinds(blocks) == ["mcp_tool_use", "mcp_tool_result", "text"]
    use, found, said = blocks
    assert (use["name"], use["server_name"]) == ("weather", "toolbridge")
    assert (use["input"] or {"city": "Berlin"}) == {"city": "Berlin"}
    assert (found["tool_use_id"], found["is_error"]) == (use["id"], False)
    assert json.loads(found["content"][0]["text"]) == SUNNY
    assert said["text"] == "It is."
    called = tools.server.requests[0]
    assert (called.method, called.json()) == ("POST", {"city": "Berlin"})


def test_round_whose_end_comes_alone_is_over(tools: Tools, claude: AnthropicPeer) -> None:
    """Its last read shows nothing new: to read on would be to wait for nothing, for ever."""
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    use = {"type": "tool_use", "id": "toolu_01", "name": "weather", "input": {"city": "Berlin"}}
    *said, end = answered([use], "tool_use", stream=True).steps
    claude.queue("/messages", sse_answer(*said, Pause(0.2), end))
    claude.queue("/messages", answered([{"type": "text", "text": "Sunny."}], "end_turn", stream=True))
    answer = tools.client.ask("How is the weather?", model="claude/claude-x").json()
    assert kinds(answer["content"]) == ["mcp_tool_use", "mcp_tool_result", "text"]


@pytest.mark.parametrize("breaks_in", ["text", "call"])
def test_later_round_that_breaks_is_asked_for_again_while_nothing_was_shown(
    serve: Serve, tool_server: ScriptedUpstream, claude: AnthropicPeer, breaks_in: str
) -> None:
    """Who asked for no stream has seen nothing before the end, whatever the upstream said before it broke."""
    tool_server.reset()
    claude.reset()
    served = serve(BRIDGE_TOOL_HOSTS="127.0.0.1", BRIDGE_UPSTREAM_RETRIES="2", ANTHROPIC_UPSTREAM_URL=claude.url)
    tools = Tools(served, tool_server, Client(served.bridge.url, served.records.issue(hosted_tools=True)))
    tools.register()
    tool_server.queue("/weather", json_answer(SUNNY))
    first, again = ({"type": "tool_use", "id": f"toolu_0{n}", "name": "weather", "input": {"city": "B"}} for n in "12")
    half: list[dict[str, Any]] = [{"type": "text", "text": "It is"}, *([again] if breaks_in == "call" else [])]
    *said, _, _ = answered(half, "end_turn", stream=True).steps
    claude.queue("/messages", answered([first], "tool_use", stream=True))
    claude.queue("/messages", sse_answer(*said[:-1]), sse_answer(*said))
    claude.queue("/messages", answered([{"type": "text", "text": "Sunny."}], "end_turn", stream=True))
    answer = tools.client.ask("How is the weather?", model="claude/claude-x").json()
    assert kinds(answer["content"]) == ["mcp_tool_use", "mcp_tool_result", "text"]
    assert (answer["content"][-1]["text"], answer["stop_reason"]) == ("Sunny.", "end_turn")
    assert len(tool_server.requests) == 1
    assert len({request.body for request in claude.requests[1:]}) == 1
    (turn,) = served.records.turns(tools.client.api_key)
    assert (turn.status, turn.tool_count, turn.rounds.count()) == ("complete", 1, 1)
    tools.client.close()


def test_later_round_that_breaks_after_it_was_shown_ends_the_stream(tools: Tools, claude: AnthropicPeer) -> None:
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    use = {"type": "tool_use", "id": "toolu_01", "name": "weather", "input": {"city": "Berlin"}}
    claude.queue("/messages", answered([use], "tool_use", stream=True))
    *said, _, _ = answered([{"type": "text", "text": "It is"}], "end_turn", stream=True).steps
    claude.queue("/messages", sse_answer(*said))
    events = tools.client.events("How is the weather?", model="claude/claude-x")
    assert names(events)[-1] == "error"
    assert len(claude.requests) == 2


@pytest.mark.parametrize("waits_for", ["tool", "model"])
def test_the_same_request_again_attaches_while_the_turn_waits(tools: Tools, waits_for: str) -> None:
    """For a tool, or for what the model says of its result; the first client leaves meanwhile."""
    gate, headers = Gate(), {"x-conversation-id": f"waits for the {waits_for}"}
    tools.register()
    tools.server.queue("/weather", held(gate, b"{}") if waits_for == "tool" else json_answer({}))
    spoken = ("It ", "is.") if waits_for == "tool" else (gate, "It ", "is.")
    tools.served.chat(chat.streamed_calls(("call_1", "weather", {"city": "Berlin"})), chat.streamed_text(*spoken))
    shown = "mcp_tool_use" if waits_for == "tool" else "mcp_tool_result"
    with tools.client.stream("How is the weather?", headers=headers) as (_, second):
        with tools.client.stream("How is the weather?", headers=headers) as (_, first):
            assert gate.reached.wait(10)
            assert any(event.data.get("content_block", {}).get("type") == shown for event in first)
            seen = [next(second)]
            while seen[-1].data.get("content_block", {}).get("type") != shown:
                seen.append(next(second))
        gate.open()
        seen += second
    blocks = folded([event for event in seen if event.name != "ping"])
    assert kinds(blocks) == ["mcp_tool_use", "mcp_tool_result", "text"]
    assert blocks[-1]["text"] == "It is."
    assert len(tools.server.requests) == 1
    assert len(tools.served.upstream.requests) == 2


def test_model_is_offered_the_tool_and_told_its_result(tools: Tools) -> None:
    tools.register(description="The weather of a city")
    tools.server.queue("/weather", json_answer(SUNNY))
    tools.served.chat(chat.streamed_calls(("call_1", "weather", {"city": "Berlin"})), chat.streamed_text("ok"))
    tools.client.events("How is the weather?")
    first, second = (request.json() for request in tools.served.upstream.requests)
    assert [tool["function"]["name"] for tool in first["tools"]] == ["weather"]
    assert second["messages"][-2]["tool_calls"][0]["id"] == "call_1"
    assert second["messages"][-1]["role"] == "tool"
    assert second["messages"][-1]["tool_call_id"] == "call_1"
    assert json.loads(second["messages"][-1]["content"]) == SUNNY


def test_history_is_told_with_the_same_bytes_in_the_next_turn(tools: Tools) -> None:
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    tools.served.chat(
        chat.calls(("call_1", "weather", {"city": "Berlin"})), chat.text("It is sunny."), chat.text("You are welcome.")
    )
    answer = tools.client.ask("How is the weather?").json()
    said = {"role": "assistant", "content": answer["content"]}
    tools.client.ask("How is the weather?", said, "Thanks")
    _, second, third = (request.body for request in tools.served.upstream.requests)
    prefix = second.rpartition(b"]")[0]
    assert third[: len(prefix)] == prefix


def test_parallel_calls_run_side_by_side(tools: Tools) -> None:
    tools.register("one", "/one")
    tools.register("two", "/two")
    first, second = Gate(), Gate()
    tools.server.queue("/one", held(first, b'"1"'))
    tools.server.queue("/two", held(second, b'"2"'))
    tools.served.chat(chat.streamed_calls(("a", "one", {}), ("b", "two", {})), chat.streamed_text("done"))
    with tools.client.stream("Go") as (_, events):
        seen = []
        for event in events:
            seen.append(event)
            if event.name == "content_block_stop" and event.data["index"] == 1:
                assert first.reached.wait(5)
                assert second.reached.wait(5)
                second.open()
                first.open()
    assert sorted(kinds(folded(seen))) == ["mcp_tool_result", "mcp_tool_result", "mcp_tool_use", "mcp_tool_use", "text"]


def test_client_tools_are_handed_over_and_the_chain_goes_on(tools: Tools) -> None:
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    tools.served.chat(
        chat.streamed_calls(("a", "weather", {"city": "Rome"}), ("b", "get_time", {"zone": "UTC"})),
        chat.streamed_text("Sunny at noon."),
    )
    events = tools.client.events("Weather and time?", tools=[CLOCK])
    blocks = folded(events)
    assert kinds(blocks) == ["mcp_tool_use", "tool_use", "mcp_tool_result"]
    stop = next(data for name, data in events if name == "message_delta")
    assert stop["delta"]["stop_reason"] == "tool_use"
    said = {"role": "assistant", "content": blocks}
    final = folded(tools.client.events("Weather and time?", said, result(blocks[1]["id"], "noon"), tools=[CLOCK]))
    assert kinds(final) == ["text"]
    sent = tools.served.sent()["messages"]
    assert [call["id"] for call in sent[-3]["tool_calls"]] == ["a", "b"]
    assert [(message["tool_call_id"], message["content"]) for message in sent[-2:]] == [
        ("a", json.dumps(SUNNY)),
        ("b", "noon"),
    ]


def test_lone_result_of_a_mixed_turn_finds_the_hosted_results_in_the_store(tools: Tools) -> None:
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    tools.served.chat(
        chat.calls(("a", "weather", {"city": "Rome"}), ("b", "get_time", {"zone": "UTC"})), chat.text("Sunny at noon.")
    )
    answer = tools.client.ask("Weather and time?", tools=[CLOCK]).json()
    call = next(block for block in answer["content"] if block["type"] == "tool_use")
    tools.client.ask(result(call["id"], "noon"), tools=[CLOCK])
    sent = tools.served.sent()["messages"]
    assert [(message["tool_call_id"], message["content"]) for message in sent[-2:]] == [
        ("a", json.dumps(SUNNY)),
        ("b", "noon"),
    ]


def test_runs_are_recorded(tools: Tools) -> None:
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    tools.served.chat(chat.calls(("a", "weather", {"city": "Rome"})), chat.text("Sunny."))
    answer = tools.client.ask("Weather?")
    (mapping,) = tools.client.mappings(answer.headers["x-conversation-id"])
    assert (mapping["tool_name"], mapping["status"], mapping["arguments"]) == ("weather", "answered", {"city": "Rome"})
    (run,) = tools.served.records.executions(tools.client.api_key)
    assert (run.status, run.tool_name, run.round_number, run.attempts) == ("complete", "weather", 1, 1)
    assert json.loads(bytes(run.result)) == SUNNY
    (turn,) = tools.served.records.turns(tools.client.api_key)
    assert (turn.input_tokens, turn.output_tokens, turn.tool_count) == (22, 14, 1)
    assert [entry.input_tokens for entry in tools.served.records.usage(tools.client.api_key)] == [11, 11]


def test_stream_is_pinged_while_a_tool_works(tools: Tools) -> None:
    tools.register()
    gate = Gate()
    tools.server.queue("/weather", held(gate, b"1"))
    tools.served.chat(chat.streamed_calls(("a", "weather", {"city": "Rome"})), chat.streamed_text("ok"))
    with tools.client.stream("Weather?") as (_, events):
        seen = []
        for event in events:
            seen.append(event)
            if event.name == "ping":
                gate.open()
    assert "ping" in names(seen)
    folded([event for event in seen if event.name != "ping"])


def test_client_that_leaves_cancels_the_tool(tools: Tools) -> None:
    tools.register()
    gate = Gate()
    tools.server.queue("/weather", held(gate, b"1"))
    tools.served.chat(chat.streamed_calls(("a", "weather", {"city": "Rome"})))
    with tools.client.stream("Weather?") as (_, events):
        for event in events:
            if event.name == "content_block_stop":
                assert gate.reached.wait(5)
                break
    assert tools.server.requests[0].abandoned.wait(5)
    (turn,) = tools.served.records.ended(tools.client.api_key, 1)
    assert turn.status == "aborted"


@pytest.mark.parametrize("stream", [True, False])
def test_openai_client_gets_the_answer_without_the_bridges_calls(tools: Tools, stream: bool) -> None:
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    call = ("call_1", "weather", {"city": "Berlin"})
    streamed = (chat.streamed_calls(call), chat.streamed_text("It is ", "sunny."))
    tools.served.chat(*(streamed if stream else (chat.calls(call), chat.text("It is sunny."))))
    sdk = OpenAI(base_url=f"{tools.served.bridge.url}/v1", api_key=tools.client.api_key, max_retries=0)
    ask: Any = {"model": "claude-sonnet-next", "messages": [{"role": "user", "content": "Weather?"}]}
    if stream:
        chunks = [chunk.choices[0].delta for chunk in sdk.chat.completions.create(**ask, stream=True) if chunk.choices]
        assert not any(delta.tool_calls for delta in chunks)
        assert "".join(delta.content or "" for delta in chunks) == "It is sunny."
    else:
        (choice,) = sdk.chat.completions.create(**ask).choices
        assert (choice.message.content, choice.message.tool_calls, choice.finish_reason) == (
            "It is sunny.",
            None,
            "stop",
        )


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("model", ["claude-sonnet-next", "anthropic/claude-opus-4-1"])
@pytest.mark.parametrize("dialect", ["messages", "chat"])
def test_hosted_tool_can_be_chosen_beside_the_clients_own(
    tools: Tools, claude: AnthropicPeer, dialect: str, model: str, own: bool
) -> None:
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    use = {"type": "tool_use", "id": "toolu_a", "name": "weather", "input": {"city": "Rome"}}
    claude.queue("/messages", answered([use], "tool_use", stream=True))
    claude.queue("/messages", answered([{"type": "text", "text": "Sunny."}], "end_turn", stream=True))
    tools.served.chat(chat.calls(("a", "weather", {"city": "Rome"})), chat.text("Sunny."))
    if dialect == "messages":
        fields: Any = {"tools": [CLOCK]} if own else {}
        choice: Any = {"type": "tool", "name": "weather"}
        assert tools.client.ask("Weather?", model=model, tool_choice=choice, **fields).status_code == 200
        assert tools.client.ask("?", model=model, tool_choice=choice | {"name": "nil"}, **fields).status_code == 400
    else:
        clock = {"type": "function", "function": {"name": "get_time", "parameters": CLOCK["input_schema"]}}
        fields = {"tools": [clock]} if own else {}
        choice = {"type": "function", "function": {"name": "weather"}}
        sdk = OpenAI(base_url=f"{tools.served.bridge.url}/v1", api_key=tools.client.api_key, max_retries=0)
        ask: Any = {"model": model, "messages": [{"role": "user", "content": "Weather?"}], **fields}
        assert sdk.chat.completions.create(**ask, tool_choice=choice).choices[0].message.content == "Sunny."
        with pytest.raises(BadRequestError, match="Tool 'nil' not found"):
            sdk.chat.completions.create(**ask, tool_choice={"type": "function", "function": {"name": "nil"}})
    first, second = (claude if model.startswith("anthropic") else tools.served.upstream).requests
    named = first.json()["tool_choice"]
    assert (named.get("name") or named["function"]["name"]) == "weather"
    assert "weather" not in json.dumps(second.json().get("tool_choice", ""))


@pytest.mark.parametrize("storage", ["full", "metadata"])
@pytest.mark.parametrize("model", ["claude-sonnet-next", "anthropic/claude-opus-4-1"])
def test_openai_client_goes_on_with_a_mixed_turn_and_nothing_is_lost(
    tools: Tools, claude: AnthropicPeer, model: str, storage: str
) -> None:
    """Its history has no place for the hosted call: the store puts it back where it was."""
    if storage != "full":
        tools.client.api_key = tools.served.records.issue(hosted_tools=True, storage=storage)
        tools.client.http.headers["x-api-key"] = tools.client.api_key
    tools.register()
    tools.server.queue("/weather", json_answer(SUNNY))
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_a", "name": "weather", "input": {"city": "Rome"}},
        {"type": "tool_use", "id": "toolu_b", "name": "get_time", "input": {"zone": "UTC"}},
    ]
    claude.queue("/messages", answered(blocks, "tool_use", stream=True))
    claude.queue("/messages", answered([{"type": "text", "text": "Sunny at noon."}], "end_turn", stream=True))
    both = chat.calls(("a", "weather", {"city": "Rome"}), ("b", "get_time", {"zone": "UTC"}))
    tools.served.chat(both, chat.text("Sunny at noon."))
    sdk = OpenAI(base_url=f"{tools.served.bridge.url}/v1", api_key=tools.client.api_key, max_retries=0)
    clock = {"type": "function", "function": {"name": "get_time", "parameters": CLOCK["input_schema"]}}
    history: list[Any] = [{"role": "user", "content": "Weather and time?"}]
    ask: Any = {"model": model, "tools": [clock]}
    (choice,) = sdk.chat.completions.create(messages=history, **ask).choices
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls or []
    history += [choice.message.model_dump(exclude_none=True)]
    history += [{"role": "tool", "tool_call_id": call.id, "content": "noon"}]
    answer = sdk.chat.completions.create(messages=history, **ask)
    assert answer.choices[0].message.content == "Sunny at noon."
    turn = tools.served.records.turns(tools.client.api_key)[1]
    assert (b"hosted-results-lost" in bytes(turn.notes)) == (storage != "full")
    if storage != "full":
        return
    if model.startswith("anthropic"):
        results = claude.requests[-1].json()["messages"][-1]["content"]
        assert [block["tool_use_id"] for block in results] == ["toolu_a", "toolu_b"]
    else:
        told = [message for message in tools.served.sent()["messages"] if message["role"] == "tool"]
        assert [(message["tool_call_id"], message["content"]) for message in told] == [
            ("a", json.dumps(SUNNY)),
            ("b", "noon"),
        ]
    assert turn.conversation_id == tools.served.records.turns(tools.client.api_key)[0].conversation_id


def test_postgres_keeps_what_sqlite_keeps(serve: Serve, postgres_url: str, tool_server: ScriptedUpstream) -> None:
    tool_server.reset()
    served = serve(postgres_url, BRIDGE_TOOL_HOSTS="127.0.0.1")
    tools = Tools(served, tool_server, Client(served.bridge.url, served.records.issue(hosted_tools=True)))
    tools.register(headers={"X-Key": "s3cret"})
    tool_server.queue("/weather", json_answer({"nul": "a\0b"}), json_answer({}, 500))
    served.chat(
        chat.calls(("a", "weather", {"city": "Rome"})),
        chat.calls(("b", "weather", {"city": "Bari"})),
        chat.text("Sunny."),
    )
    answer = tools.client.ask("Weather?").json()
    assert kinds(answer["content"]) == ["mcp_tool_use", "mcp_tool_result", "mcp_tool_use", "mcp_tool_result", "text"]
    runs = list(served.records.executions(tools.client.api_key))
    assert [(run.status, run.round_number) for run in runs] == [("complete", 1), ("failed", 2)]
    (turn,) = served.records.turns(tools.client.api_key)
    assert (turn.input_tokens, turn.tool_count, [row.number for row in turn.rounds.order_by("number")]) == (
        33,
        2,
        [2, 3],
    )
    tools.client.close()


def test_turn_whose_end_could_not_be_stored_at_first_is_stored_and_counted(
    serve: Serve, postgres_url: str, tool_server: ScriptedUpstream
) -> None:
    """Its last round was: that is not in the way of the second try."""
    tool_server.reset()
    served = serve(postgres_url, BRIDGE_TOOL_HOSTS="127.0.0.1")
    tools = Tools(served, tool_server, Client(served.bridge.url, served.records.issue(hosted_tools=True)))
    tools.register()
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("CREATE SEQUENCE tries")  # it counts on, whatever is rolled back
        db.execute("""CREATE FUNCTION away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF nextval('tries') <= 3 THEN RAISE EXCEPTION 'away' USING ERRCODE = 'lock_not_available'; END IF;
            RETURN NEW; END $$""")
        db.execute("CREATE TRIGGER away BEFORE UPDATE ON conversations_turn FOR EACH ROW EXECUTE FUNCTION away()")
    tool_server.queue("/weather", json_answer(SUNNY))
    served.chat(chat.calls(("a", "weather", {"city": "Rome"})), chat.text("Sunny."))
    assert tools.client.ask("Weather?").status_code == 529
    (turn,) = served.records.ended(tools.client.api_key, 1)
    assert (turn.status, turn.rounds.count()) == ("error", 1)
    assert served.records.usage(tools.client.api_key).count() == 2
    tools.client.close()


def test_turn_that_the_process_did_not_survive_goes_on_in_the_next(serve: Serve, tool_server: ScriptedUpstream) -> None:
    tool_server.reset()
    served = serve(BRIDGE_TOOL_HOSTS="127.0.0.1")
    tools = Tools(served, tool_server, Client(served.bridge.url, served.records.issue(hosted_tools=True)))
    tools.register()
    gate = Gate()
    tool_server.queue("/weather", held(gate, b"1"))
    served.chat(chat.streamed_calls(("a", "weather", {"city": "Rome"}), ("b", "get_time", {"zone": "UTC"})))
    with tools.client.stream("Weather and time?", tools=[CLOCK]) as (_, events):
        seen = []
        for event in events:
            seen.append(event)
            if event.name == "content_block_stop" and event.data["index"] == 1:
                assert gate.reached.wait(5)
                break
        served.bridge.crash()
    served.bridge.start()
    calls = [event.data["content_block"] for event in seen if event.name == "content_block_start"]
    served.chat(chat.text("I know the time only."))
    answer = tools.client.ask(result(calls[1]["id"], "noon"), tools=[CLOCK])
    assert answer.status_code == 200, answer.text
    told = [message for message in served.sent()["messages"] if message["role"] == "tool"]
    assert [message["tool_call_id"] for message in told] == ["a", "b"]
    assert "interrupted" in told[0]["content"]
    tools.client.close()
