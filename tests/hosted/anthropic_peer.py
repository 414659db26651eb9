"""Anthropic with its MCP connector, as strict as its documentation: what it would refuse, it refuses."""

import json
from typing import Any

from tests.servers.script import Answer, Recorded, json_answer, sse_answer
from tests.servers.upstream import ScriptedUpstream
from tests.validators.anthropic import validate

SERVER = {"type", "url", "name", "authorization_token", "tool_configuration"}
TOOLSET = {"type", "mcp_server_name", "default_config", "configs", "cache_control", "tools"}
CONNECTOR_BLOCKS = {"mcp_tool_use", "mcp_tool_result", "mcp_tool_listing"}
BLOCKS: list[dict[str, Any]] = [
    {"type": "mcp_tool_use", "id": "mcptoolu_01", "name": "add", "server_name": "sums", "input": {"a": 1, "b": 2}},
    {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_01",
        "is_error": False,
        "content": [{"type": "text", "text": "3"}],
    },
    {"type": "text", "text": "It is 3."},
]
USAGE = {"input_tokens": 10, "output_tokens": 4}


class AnthropicPeer(ScriptedUpstream):
    """Runs the servers of a request itself (it says so); a plain one gets what the test has queued."""

    def _answer_for(self, request: Recorded) -> Answer:
        asked = request.json()
        wrong = [*_connector(asked, request.headers.get("anthropic-beta", "")), *_rest(asked)]
        if wrong:
            self.requests.append(request)
            return json_answer({"type": "error", "error": {"type": "invalid_request_error", "message": wrong[0]}}, 400)
        if not asked.get("mcp_servers"):
            answer = super()._answer_for(request)
            assert isinstance(answer, Answer)
            return answer
        self.requests.append(request)
        return answered(BLOCKS, "end_turn", stream=asked.get("stream", False))


def answered(blocks: list[dict[str, Any]], stop: str, *, stream: bool) -> Answer:
    message = {"id": "msg_01", "type": "message", "role": "assistant", "model": "claude", "usage": USAGE}
    if not stream:
        return json_answer(message | {"content": blocks, "stop_reason": stop, "stop_sequence": None})
    events: list[dict[str, Any]] = [{"type": "message_start", "message": message | {"content": []}}]
    for index, block in enumerate(blocks):
        events += _streamed(index, block)
    delta = {"stop_reason": stop, "stop_sequence": None}
    events += [{"type": "message_delta", "delta": delta, "usage": USAGE}, {"type": "message_stop"}]
    return sse_answer(*(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events))


def _streamed(index: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    match block["type"]:
        case "text":
            first, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        case "mcp_tool_use" | "tool_use":
            first = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        case _:
            first, delta = block, {}
    start = {"type": "content_block_start", "index": index, "content_block": first}
    middle = [{"type": "content_block_delta", "index": index, "delta": delta}] if delta else []
    return [start, *middle, {"type": "content_block_stop", "index": index}]


def _connector(asked: dict[str, Any], betas: str) -> list[str]:
    servers, tools = asked.get("mcp_servers", []), asked.get("tools", [])
    toolsets = [tool for tool in tools if tool.get("type") == "mcp_toolset"]
    if (servers or toolsets) and "mcp-client-" not in betas:
        return ["mcp_servers: Extra inputs are not permitted"]
    names = [server["name"] for server in servers]
    wanted = [toolset["mcp_server_name"] for toolset in toolsets]
    wrong = [f"mcp_servers: {extra}: Extra inputs" for server in servers for extra in server.keys() - SERVER]
    wrong += [f"tools: {extra}: Extra inputs" for toolset in toolsets for extra in toolset.keys() - TOOLSET]
    wrong += [f"MCP server {name!r} not found" for name in wanted if name not in names]
    if "mcp-client-2025-04-04" not in betas:
        wrong += [f"MCP server {name!r} is defined but not referenced" for name in names if wanted.count(name) != 1]
    listings = "mcp-client-2026-09-15" in betas
    for block in _blocks(asked):
        if block["type"] == "mcp_tool_listing" and not (listings and block["mcp_server_name"] in names):
            wrong.append("messages: mcp_tool_listing of a server that is not there")
    return wrong


def _rest(asked: dict[str, Any]) -> list[str]:
    """The connector's blocks have been looked at; the other rules do not know them."""
    plain = [tool for tool in asked.get("tools", []) if tool.get("type") != "mcp_toolset"]
    messages = [
        {**message, "content": [block for block in message["content"] if block["type"] not in CONNECTOR_BLOCKS]}
        if isinstance(message["content"], list)
        else message
        for message in asked["messages"]
    ]
    return validate(json.dumps({**asked, "messages": messages, "tools": plain}).encode())


def _blocks(asked: dict[str, Any]) -> list[dict[str, Any]]:
    contents = [message["content"] for message in asked["messages"]]
    return [block for content in contents if isinstance(content, list) for block in content]
