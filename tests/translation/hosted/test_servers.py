"""`mcp_servers` and `mcp_toolset`: what a client may write, and which tools it means."""

from typing import Any

import msgspec
import pytest

from translation.client.parse import parse
from translation.errors import InvalidRequest
from translation.mcp_servers import MOST, Listed, Server, servers, without_connector
from translation.values import Request

LISTING = (Listed("read", "Reads", b"{}"), Listed("write"), Listed("drop"))


def asked(*given: dict[str, Any], tools: list[dict[str, Any]] | None = None) -> Request:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "mcp_servers": list(given)}
    if tools is not None:
        body["tools"] = tools
    return parse(msgspec.json.encode(body), "2023-06-01", ())


def server(**more: Any) -> dict[str, Any]:
    return {"type": "url", "name": "files", "url": "https://files.example/mcp", **more}


def wanted(request: Request) -> list[str]:
    (one,) = servers(request)
    return [offer.tool for offer in one.offers(LISTING)]


def test_every_tool_of_a_server_is_offered_under_its_name() -> None:
    (one,) = servers(asked(server(authorization_token="s3cret")))
    offers = one.offers(LISTING)
    assert (offers[0].name, offers[0].server, offers[0].tool) == ("files__read", "files", "read")
    assert (offers[0].description, offers[0].schema, one.token) == ("Reads", b"{}", "s3cret")
    assert "s3cret" not in repr(one)


def test_tool_configuration_narrows_the_tools() -> None:
    assert wanted(asked(server(tool_configuration={"allowed_tools": ["read"]}))) == ["read"]
    assert wanted(asked(server(tool_configuration={"enabled": False, "allowed_tools": ["read"]}))) == []
    assert wanted(asked(server(tool_configuration={}))) == ["read", "write", "drop"]


def test_toolset_switches_tools_on_and_off() -> None:
    def toolset(**more: Any) -> list[dict[str, Any]]:
        return [{"type": "mcp_toolset", "mcp_server_name": "files", **more}]

    own = {"name": "own", "input_schema": {"type": "object"}}
    assert wanted(asked(server(), tools=[own, *toolset()])) == ["read", "write", "drop"]
    off = toolset(configs={"drop": {"enabled": False}, "read": {"enabled": True}, "write": {"defer_loading": True}})
    assert wanted(asked(server(), tools=off)) == ["read", "write"]
    on = toolset(default_config={"enabled": False}, configs={"read": {"enabled": True}})
    assert wanted(asked(server(), tools=on)) == ["read"]


def test_pinned_listing_is_taken_from_the_toolset() -> None:
    tools = [
        {"name": "read", "input_schema": {"type": "object"}},
        {"name": "x", "description": "d", "input_schema": {}},
    ]
    toolset = {"type": "mcp_toolset", "mcp_server_name": "files", "tools": tools}
    (one,) = servers(asked(server(), tools=[toolset]))
    assert one.listing == (Listed("read", "", b'{"type":"object"}'), Listed("x", "d", b"{}"))


def test_request_without_servers_has_none() -> None:
    assert servers(Request(model="m", messages=(), max_tokens=1)) == ()


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ([{"name": "files"}], "mcp_servers"),
        ([server(type="stdio")], "mcp_servers.0.type"),
        ([server(name="")], "mcp_servers.0.name"),
        ([server(url="file:///etc/passwd")], "mcp_servers.0.url"),
        ([server(), server()], "mcp_servers: Server names must be unique"),
        ([server(name=str(number)) for number in range(MOST + 1)], "mcp_servers: at most"),
    ],
)
def test_wrong_server_is_named(given: list[dict[str, Any]], path: str) -> None:
    with pytest.raises(InvalidRequest, match=path):
        servers(asked(*given))


def test_toolset_of_a_server_that_is_not_there_is_named() -> None:
    toolset = {"type": "mcp_toolset", "mcp_server_name": "other"}
    with pytest.raises(InvalidRequest, match=r"tools\.0\.mcp_server_name: MCP server 'other' not found"):
        servers(asked(server(), tools=[toolset]))


def test_other_upstreams_get_the_request_without_the_connector() -> None:
    toolset = {"type": "mcp_toolset", "mcp_server_name": "files"}
    own = {"name": "own", "input_schema": {"type": "object"}}
    plain = without_connector(asked(server(), tools=[toolset, own]))
    assert ([tool.name for tool in plain.tools], plain.mcp_servers, plain.raw_tools) == (["own"], b"", b"")
    bare = without_connector(asked(server()))
    assert (bare.tools, bare.mcp_servers) == ((), b"")
    assert without_connector(bare) is bare


def test_servers_show_no_secret() -> None:
    assert repr(Server("files", "https://x/?key=1", "s3cret")) == "Server('files')"
