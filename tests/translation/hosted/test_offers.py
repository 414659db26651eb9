"""Hosted tools beside the client's own, and the blocks that the client sees of them."""

import json
import re

import msgspec
import pytest

from translation.errors import InvalidRequest
from translation.hosted import (
    OWN,
    Offer,
    call_block,
    check_choice,
    offer,
    offered_name,
    relaxed,
    result_block,
    result_of,
    server_of,
)
from translation.values import Message, Other, Request, ServerToolResult, ServerToolUse, Text, Tool, ToolChoice

WEATHER = Offer("weather", OWN, "weather", "The weather", b'{"type":"object"}')
ASK = Request(model="m", messages=(Message("user", (Text("hi"),)),), max_tokens=10)


def test_tools_come_after_the_clients_own() -> None:
    own = Tool("own", raw=b'{"name":"own"}')
    asked = msgspec.structs.replace(ASK, tools=(own,), raw_tools=b'[{"name":"own"}]')
    request, kept, notes = offer(asked, [WEATHER, Offer("bare", "s", "bare")])
    assert [tool.name for tool in request.tools] == ["own", "weather", "bare"]
    assert json.loads(request.tools[2].schema) == {"type": "object", "properties": {}}
    assert (request.raw_tools, list(kept), notes) == (b"", ["weather", "bare"], ())


def test_clients_tool_of_the_same_name_wins() -> None:
    asked = msgspec.structs.replace(ASK, tools=(Tool("weather"),))
    request, kept, notes = offer(asked, [WEATHER])
    assert request is asked
    assert kept == {}
    assert [note.rule for note in notes] == ["hosted-tool-hidden"]


def test_first_of_two_hosted_tools_of_one_name_wins() -> None:
    second = Offer("weather", "maps", "weather")
    request, kept, notes = offer(ASK, [WEATHER, second])
    assert [tool.name for tool in request.tools] == ["weather"]
    assert kept["weather"] is WEATHER
    assert [note.what for note in notes] == ["two hosted tools are called weather"]


def test_deferred_tools_are_loaded_where_nothing_searches() -> None:
    late = Offer("maps__route", "maps", "route", defer_loading=True)
    request, _, notes = offer(ASK, [WEATHER, late])
    assert [tool.defer_loading for tool in request.tools] == [False, False]
    assert [note.rule for note in notes] == ["deferred-loaded"]
    request, _, notes = offer(ASK, [WEATHER, late], searches=True)
    assert ([tool.defer_loading for tool in request.tools], notes) == ([False, True], ())


def test_a_choice_is_of_what_anybody_offers() -> None:
    def check(name: str, *tools: Tool) -> None:
        choice = ToolChoice("tool", name)
        check_choice(msgspec.structs.replace(ASK, tools=tools, tool_choice=choice), [WEATHER])

    own, toolset = Tool("own"), Tool("browser_toolset_20260801", type="browser_toolset_20260801")
    check_choice(ASK, [])
    check("own", own)
    check("weather", own)
    check("weather")
    check("navigate", own, toolset)
    for tools in ((own,), ()):
        with pytest.raises(InvalidRequest, match="tool_choice: Tool 'write' not found in provided tools"):
            check("write", *tools)


def test_a_tool_that_the_conversation_has_added_can_be_chosen() -> None:
    block = Other("tool_addition", b'{"type":"tool_addition","tool":{"type":"tool_reference","name":"late"}}')
    said = (Message("system", (block,)), *ASK.messages)
    check_choice(msgspec.structs.replace(ASK, messages=said, tool_choice=ToolChoice("tool", "late")), [])


def test_single_endpoints_keep_their_name_and_servers_prefix_theirs() -> None:
    assert offered_name(OWN, "weather") == "weather"
    assert offered_name("maps", "route") == "maps__route"
    odd = {offered_name("my maps", "find.route"), offered_name("my maps", "find/route"), offered_name("m" * 128, "x")}
    assert len(odd) == 3
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", name) for name in odd)


def test_forced_choice_is_for_the_first_round_only() -> None:
    body = b'{"model":"m","tool_choice":{"type":"any"}}'
    forced = msgspec.structs.replace(ASK, tool_choice=ToolChoice("any", parallel=False), body=body)
    free = relaxed(forced)
    assert (free.tool_choice, free.body) == (ToolChoice("auto", "", parallel=False), b'{"model":"m"}')
    assert relaxed(msgspec.structs.replace(forced, body=b"")).body == b""
    assert relaxed(free) is free
    assert relaxed(ASK) is ASK


def test_blocks_are_the_apis_own() -> None:
    assert json.loads(call_block("mcptoolu_1", WEATHER)) == {
        "type": "mcp_tool_use",
        "id": "mcptoolu_1",
        "name": "weather",
        "server_name": OWN,
        "input": {},
    }
    assert json.loads(result_block("mcptoolu_1", "sun \ud800", is_error=True)) == {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_1",
        "is_error": True,
        "content": [{"type": "text", "text": "sun \ufffd"}],
    }


def test_results_are_read_in_each_shape() -> None:
    texts = result_of(ServerToolResult("mcp_tool_result", "a", b'{"content":"one","is_error":true}'))
    assert (texts.blocks, texts.is_error) == ((Text("one"),), True)
    raw = b'{"content":[{"type":"text","text":"one"},{"type":"image"},{"type":"text","text":""}]}'
    assert result_of(ServerToolResult("mcp_tool_result", "a", raw)).blocks == (Text("one"),)
    nothing = result_of(ServerToolResult("mcp_tool_result", "a", b'{"content":null,"is_error":null}'))
    assert (nothing.blocks, nothing.is_error) == ((), False)


def test_result_that_is_none_is_told_in_words() -> None:
    odd = result_of(ServerToolResult("mcp_tool_result", "a", b'{"content":["one"]}'))
    assert odd.blocks == (Text('[mcp_tool_result: {"content":["one"]}]'),)


def test_server_is_told_by_the_block() -> None:
    assert server_of(ServerToolUse("a", "t", b"{}", "mcp_tool_use", b'{"server_name":"maps"}')) == "maps"
    assert server_of(ServerToolUse("a", "t", b"{}", "mcp_tool_use")) == ""
    assert server_of(ServerToolUse("a", "t", b"{}", "mcp_tool_use", b'{"server_name":null}')) == ""
