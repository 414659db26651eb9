"""Who serves the `mcp_servers` of a request: Anthropic's own connector, or the bridge in front of it."""

from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import Anthropic, BadRequestError

from tests.hosted.anthropic_peer import BLOCKS, AnthropicPeer, answered
from tests.hosted.conftest import Tools
from tests.hosted.test_loop import kinds
from tests.hosted.test_mcp import NEW, offered, server, toolset
from tests.servers import chat
from tests.servers.client import Client, folded, result

CLAUDE = "anthropic/claude-opus-4-1"
SUMS = {"mcp_servers": [server("https://sums.example/mcp", "sums", authorization_token="t0ken-s3cret")],
        "tools": [toolset("sums")]}  # fmt: skip
ADD = {"type": "tool_use", "id": "toolu_01", "name": "odd__add", "input": {"a": 1, "b": 2}}


@pytest.fixture
def plain(tools: Tools) -> Iterator[Client]:
    """A client whose key may not bring tools."""
    client = Client(tools.served.bridge.url, tools.served.records.issue())
    yield client
    client.close()


@pytest.mark.parametrize("stream", [True, False])
def test_key_that_may_bring_no_tools_is_served_by_anthropic(
    tools: Tools, plain: Client, claude: AnthropicPeer, stream: bool
) -> None:
    ask: dict[str, Any] = {"model": CLAUDE, **SUMS}
    headers = {"anthropic-beta": f"other-2025-01-01,{NEW}"}
    if stream:
        blocks = folded(plain.events("1 + 2?", headers=headers, **ask))
        blocks = [{**block, "input": {"a": 1, "b": 2}} if "input" in block else block for block in blocks]
    else:
        blocks = plain.ask("1 + 2?", headers=headers, **ask).json()["content"]
    assert blocks == BLOCKS
    (request,) = claude.requests
    assert request.headers["anthropic-beta"] == f"other-2025-01-01,{NEW}"
    assert request.json()["mcp_servers"] == SUMS["mcp_servers"]
    assert request.json()["tools"] == SUMS["tools"]
    assert list(tools.served.records.executions(plain.api_key)) == []
    assert b"t0ken-s3cret" not in tools.served.records.everything(plain.api_key)
    # The blocks of Anthropic's run go back to it as they are.
    said = {"role": "assistant", "content": blocks}
    assert plain.ask("1 + 2?", said, "And?", headers=headers, **ask).status_code == 200
    assert claude.requests[1].json()["messages"][1] == said


def test_official_sdk_is_told_what_anthropic_refuses(tools: Tools, plain: Client) -> None:
    sdk = Anthropic(base_url=tools.served.bridge.url, api_key=plain.api_key, max_retries=0)
    ask: Any = {"model": CLAUDE, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    servers: Any = {"mcp_servers": SUMS["mcp_servers"]}
    with pytest.raises(BadRequestError, match="is defined but not referenced"):
        sdk.beta.messages.create(**ask, **servers, betas=[NEW])
    answer = sdk.beta.messages.create(**ask, **servers, betas=["mcp-client-2025-04-04"])
    assert answer.content[0].type == "mcp_tool_use"


def test_history_of_anthropics_connector_is_told_to_other_models(tools: Tools, plain: Client) -> None:
    tools.served.chat(chat.text("As I said."))
    answer = plain.ask("1 + 2?", {"role": "assistant", "content": BLOCKS}, "Sure?")
    assert answer.status_code == 200, answer.text
    sent = tools.served.sent()["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert (sent[1]["tool_calls"][0]["function"]["name"], sent[2]["content"]) == ("sums__add", "3")


@pytest.mark.parametrize("stream", [True, False])
def test_key_that_may_bring_tools_is_served_by_the_bridge(
    tools: Tools, claude: AnthropicPeer, odd_url: str, stream: bool
) -> None:
    """Guarded and recorded as with every other upstream; Anthropic sees ordinary tools and no token."""
    said = {"type": "text", "text": "Three."}
    claude.queue("/messages", answered([ADD], "tool_use", stream=True), answered([said], "end_turn", stream=True))
    ask: dict[str, Any] = {"model": CLAUDE, "headers": {"anthropic-beta": "mcp-client-2026-09-15"},
                           "mcp_servers": [server(odd_url, authorization_token="t0ken-s3cret")],
                           "tools": [toolset()]}  # fmt: skip
    blocks = (
        folded(tools.client.events("1 + 2?", **ask)) if stream else tools.client.ask("1 + 2?", **ask).json()["content"]
    )
    assert kinds(blocks) == ["mcp_tool_listing", "mcp_tool_use", "mcp_tool_result", "text"]
    assert blocks[2]["content"][0]["text"] == "3"
    first, second = (request.json() for request in claude.requests)
    assert "mcp_servers" not in first
    assert "odd__add" in [tool["name"] for tool in first["tools"]]
    assert kinds(second["messages"][1]["content"]) == ["tool_use"]
    assert second["messages"][2]["content"][0]["tool_use_id"] == "toolu_01"
    assert not any(b"t0ken-s3cret" in request.body for request in claude.requests)
    assert tools.served.records.executions(tools.client.api_key).get().status == "complete"


def test_mixed_turn_of_anthropics_model_goes_on_with_the_clients_result(
    tools: Tools, claude: AnthropicPeer, odd_url: str
) -> None:
    own = {"name": "get_time", "input_schema": {"type": "object"}}
    clock = {"type": "tool_use", "id": "toolu_02", "name": "get_time", "input": {}}
    claude.queue("/messages", answered([ADD, clock], "tool_use", stream=True))
    ask: dict[str, Any] = {"model": CLAUDE, "mcp_servers": [server(odd_url)], "tools": [toolset(), own]}
    mixed = tools.client.ask("Both?", **ask).json()
    assert (mixed["stop_reason"], kinds(mixed["content"])) == (
        "tool_use",
        ["mcp_tool_use", "tool_use", "mcp_tool_result"],
    )
    claude.queue("/messages", answered([{"type": "text", "text": "Done."}], "end_turn", stream=True))
    said = {"role": "assistant", "content": mixed["content"]}
    final = tools.client.ask("Both?", said, result("toolu_02", "noon"), **ask)
    assert final.json()["content"][0]["text"] == "Done.", final.text
    results = claude.requests[-1].json()["messages"][-1]["content"]
    assert [block["tool_use_id"] for block in results] == ["toolu_01", "toolu_02"]


# ---------------------------------------------------------------- toolsets and listings


def test_new_beta_wants_a_toolset_and_the_old_one_does_not(tools: Tools, odd_url: str) -> None:
    refused = tools.client.ask("Hi", mcp_servers=[server(odd_url)], headers={"anthropic-beta": NEW})
    words = "MCP server 'odd' is defined but not referenced by any `mcp_toolset` in `tools`."
    assert (refused.status_code, refused.json()["error"]["message"]) == (400, words)
    tools.served.chat(chat.text("hi"))
    old = server(odd_url, tool_configuration={"enabled": True, "allowed_tools": ["add"]})
    answer = tools.client.ask("Hi", mcp_servers=[old], headers={"anthropic-beta": "mcp-client-2025-04-04"})
    assert answer.status_code == 200, answer.text
    assert offered(tools) == ["odd__add"]


def test_listing_begins_the_answer_and_pins_the_tools(tools: Tools, odd_url: str) -> None:
    """The server is away for the second request: nobody asks it."""
    sdk = Anthropic(base_url=tools.served.bridge.url, api_key=tools.client.api_key, max_retries=0)
    ask: Any = {"model": "claude-sonnet-next", "max_tokens": 9, "betas": ["mcp-client-2026-09-15"]}
    ask["tools"] = [toolset(configs={"add": {"defer_loading": True}, "steps": {"enabled": False}, "gone": {}})]
    tools.served.chat(chat.streamed_text("Hello."), chat.text("Again."))
    opening: Any = {"role": "user", "content": "Hi"}
    there: Any = [server(odd_url)]
    with sdk.beta.messages.stream(messages=[opening], mcp_servers=there, **ask) as stream:
        first = stream.get_final_message()
    listing, said = first.content
    assert listing.type == "mcp_tool_listing"
    assert said.type == "text"
    assert "steps" in [tool.name for tool in listing.tools]
    away: Any = [server("http://127.0.0.1:9/mcp")]
    history: Any = [opening, {"role": "assistant", "content": first.content}, {"role": "user", "content": "More"}]
    second = sdk.beta.messages.create(messages=history, mcp_servers=away, **ask)
    assert [block.type for block in second.content] == ["text"]
    assert offered(tools, 0) == offered(tools, 1)
    assert "odd__steps" not in offered(tools)
    assert [message["role"] for message in tools.served.sent()["messages"]] == ["user", "assistant", "user"]
    notes = bytes(tools.served.records.turns(tools.client.api_key)[0].notes)
    assert b"deferred-loaded" in notes
    assert b"odd has no tool gone" in notes
