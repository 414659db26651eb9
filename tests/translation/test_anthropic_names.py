"""Tool names that Anthropic refuses: an alias in tools, choice and history, and the client's own in the answer."""

from typing import Any

import msgspec
import pytest

from translation.accumulator import Accumulator
from translation.adapter import Target, UpstreamRequest
from translation.client import parse as messages
from translation.client.render import message_body, sse
from translation.events import Finished, ToolStarted, WireEvent
from translation.names import ToolNames
from translation.openai_client import parse as chat
from translation.openai_client.render import ChatRenderer
from translation.providers.anthropic import Anthropic
from translation.providers.profiles import PROFILES
from translation.relay import RelayWriter
from translation.sse import frame
from translation.values import Request, Usage

TARGET = Target("anthropic", "claude-opus-4-6", PROFILES["anthropic"])
NAMES = ("ns.tool", "ns_tool", "get weather", "工具")
ALIAS = ToolNames(NAMES, 128).upstream("ns.tool")
Json = dict[str, Any]


def asked(*names: str, **fields: Any) -> Request:
    """Of a chat client, whose history has a call of each tool."""
    functions = [{"name": name, "parameters": {"type": "object"}} for name in names]
    calls = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for place, name in enumerate(names)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in calls]
    history = [{"role": "user", "content": "q"}, {"role": "assistant", "tool_calls": calls}, *results]
    tools = [{"type": "function", "function": function} for function in functions]
    body = {"model": "m", "max_tokens": 9, "messages": history, "tools": tools, **fields}
    return chat.parse(msgspec.json.encode(body)).request


def written(*names: str, **fields: Any) -> Request:
    """The same of a client that speaks the Messages API."""
    calls = [{"type": "tool_use", "id": f"c{place}", "name": name, "input": {}} for place, name in enumerate(names)]
    results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "x"} for call in calls]
    history = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": calls},
        {"role": "user", "content": results},
    ]
    tools = [{"name": name, "input_schema": {"type": "object"}, "future": 1} for name in names]
    body = {"model": TARGET.model, "max_tokens": 9, "messages": history, "tools": tools, **fields}
    return messages.parse(msgspec.json.encode(body), "", ())


def told(request: Request) -> tuple[UpstreamRequest, Json]:
    sent = Anthropic().build(request, TARGET)
    return sent, msgspec.json.decode(sent.body)


@pytest.mark.parametrize(
    ("make", "choice"),
    [
        (asked, {"type": "function", "function": {"name": "ns.tool"}}),
        (written, {"type": "tool", "name": "ns.tool", "disable_parallel_tool_use": True}),
    ],
)
def test_a_name_has_one_alias_in_the_tools_the_choice_and_the_history(make: Any, choice: Json) -> None:
    sent, body = told(make(*NAMES, tool_choice=choice))
    offered = [tool["name"] for tool in body["tools"]]
    called = [block["name"] for block in body["messages"][1]["content"]]
    assert offered == called == [ToolNames(NAMES, 128).upstream(name) for name in NAMES]
    assert all(name.isascii() and name.replace("_", "").isalnum() and len(name) <= 128 for name in offered)
    assert len(set(offered)) == len(NAMES)
    assert body["tool_choice"]["name"] == offered[0]
    assert dict(sent.names) == {alias: name for alias, name in zip(offered, NAMES, strict=True) if alias != name}


def test_what_else_the_client_wrote_of_a_tool_and_of_the_choice_stays() -> None:
    _, body = told(
        written("ns.tool", tool_choice={"type": "tool", "name": "ns.tool", "disable_parallel_tool_use": True})
    )
    assert body["tools"][0] == {"name": ALIAS, "input_schema": {"type": "object"}, "future": 1}
    assert body["tool_choice"] == {"type": "tool", "name": ALIAS, "disable_parallel_tool_use": True}


def test_legal_names_stay_the_clients_own_bytes() -> None:
    request = written("ns_tool", tool_choice={"type": "tool", "name": "ns_tool"})
    sent, _ = told(request)
    assert sent.body == request.body
    assert sent.names == ()


def test_a_choice_of_another_tool_stays() -> None:
    _, body = told(written(*NAMES, tool_choice={"type": "tool", "name": "ns_tool"}))
    assert body["tool_choice"] == {"type": "tool", "name": "ns_tool"}


def test_tools_of_anthropics_own_and_toolsets_keep_their_names() -> None:
    given: list[Json] = [
        {"type": "mcp_toolset", "mcp_server_name": "my server"},
        {"type": "bash_20250124", "name": "bash"},
        {"name": "ns.tool", "input_schema": {"type": "object"}},
    ]
    _, body = told(written(tools=given, messages=[{"role": "user", "content": "q"}]))
    assert body["tools"] == [*given[:2], given[2] | {"name": ALIAS}]


def test_a_reference_to_a_tool_that_was_searched_for_has_the_alias_too() -> None:
    found = [{"type": "tool_reference", "tool_name": name} for name in ("ns.tool", "ns_tool")]
    history = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "ToolSearch", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": found}]},
    ]
    _, body = told(written("ns.tool", "ns_tool", messages=history))
    (result,) = body["messages"][2]["content"]
    assert [block["tool_name"] for block in result["content"]] == [ALIAS, "ns_tool"]
    legal = {"type": "tool_result", "tool_use_id": "c1", "content": found[1:]}
    request = written("ns_tool", messages=[*history[:2], {"role": "user", "content": [legal]}])
    assert told(request)[0].body == request.body


# ---------------------------------------------------------------- the answer


CALL = {"type": "tool_use", "id": "toolu_1", "name": ALIAS, "input": {}}
OTHER = {"type": "tool_use", "id": "toolu_2", "name": "ns_tool", "input": {}}
MESSAGE: Json = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [],
    "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1},
}  # fmt: skip


def streamed(*blocks: Json) -> bytes:
    events: list[Json] = [{"type": "message_start", "message": MESSAGE}]
    for index, block in enumerate(blocks):
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": "input_json_delta", "partial_json": "{}"},
            },
            {"type": "content_block_stop", "index": index},
        ]
    delta = {"stop_reason": "tool_use", "stop_sequence": None}
    events += [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]
    return b"".join(frame(event["type"], msgspec.json.encode(event)) for event in events)


def whole(*blocks: Json) -> bytes:
    return msgspec.json.encode(MESSAGE | {"content": blocks, "stop_reason": "tool_use", "container": {"id": "c"}})


def answered(request: Request, data: bytes) -> tuple[list[ToolStarted], list[WireEvent], Accumulator]:
    adapter = Anthropic()
    sent = adapter.build(request, TARGET)
    decoder, writer, kept = adapter.decoder(request, TARGET, sent, ""), RelayWriter(), Accumulator()
    events = [*decoder.feed(data), *decoder.close()]
    finished = events[-1]
    assert isinstance(finished, Finished)
    wire = [*writer.feed(events), *writer.finish(finished, Usage(3, 5))]
    kept.feed(wire)
    return [event for event in events if isinstance(event, ToolStarted)], wire, kept


def test_a_streamed_call_bears_the_clients_own_name() -> None:
    started, wire, kept = answered(written(*NAMES, stream=True), streamed(CALL, OTHER))
    assert [(call.name, call.upstream_name) for call in started] == [("ns.tool", ALIAS), ("ns_tool", "ns_tool")]
    assert ALIAS.encode() not in sse(wire)
    assert sse(wire).count(b'"name":"ns.tool"') == 1
    assert [block["name"] for block in msgspec.json.decode(kept.content)] == ["ns.tool", "ns_tool"]


def test_a_call_of_a_whole_answer_does_and_what_else_the_answer_says_stays() -> None:
    started, _, kept = answered(written(*NAMES), whole(CALL, {"type": "text", "text": ALIAS}))
    assert [(call.name, call.upstream_name) for call in started] == [("ns.tool", ALIAS)]
    body = msgspec.json.decode(message_body(kept))
    assert body["content"] == [CALL | {"name": "ns.tool"}, {"type": "text", "text": ALIAS}]
    assert body["container"] == {"id": "c"}


def test_chat_clients_read_their_own_name() -> None:
    _, wire, _ = answered(asked(*NAMES, stream=True), streamed(CALL))
    out = ChatRenderer(1).events(wire)
    assert b'"name":"ns.tool"' in out
    assert ALIAS.encode() not in out


def test_the_model_may_call_a_tool_by_the_clients_own_name() -> None:
    started, _, _ = answered(written(*NAMES, stream=True), streamed(CALL | {"name": "ns.tool"}))
    assert [call.name for call in started] == ["ns.tool"]


def test_who_asked_for_arguments_as_they_come_gets_them_under_an_alias_too() -> None:
    tools = [{"name": "ns.tool", "input_schema": {"type": "object"}, "eager_input_streaming": True}]
    broken = streamed(CALL).replace(b'"partial_json":"{}"', b'"partial_json":"{x"')
    started, wire, _ = answered(written("ns.tool", tools=tools, stream=True), broken)
    assert [call.name for call in started] == ["ns.tool"]
    assert b"{x" in sse(wire)


# ---------------------------------------------------------------- tools that only the history knows


def test_tools_that_a_chat_client_no_longer_offers_are_declared_and_may_not_be_called() -> None:
    """Requests which include `tool_use` or `tool_result` blocks must define tools."""
    given = asked("ns.tool", "f", tools=None)
    sent, body = told(given)
    parameters = {"type": "object", "properties": {}}
    assert body["tools"] == [{"name": name, "description": "", "input_schema": parameters} for name in (ALIAS, "f")]
    assert body["tool_choice"] == {"type": "none"}
    assert [note.rule for note in sent.notes if note.kind == "degradation"] == ["tools-declared"]


def test_a_client_of_the_messages_api_says_itself_what_it_offers() -> None:
    request = written("f", tools=[])
    assert told(request)[0].body == request.body
