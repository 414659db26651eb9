"""`mcp_servers` and `mcp_toolset`: what a client may write, and which tools it means."""

import json
from typing import Any

import msgspec
import pytest

from translation.client.parse import parse
from translation.errors import InvalidRequest
from translation.mcp_servers import (
    MOST,
    Listed,
    Server,
    listing_block,
    records_listings,
    servers,
    without_connector,
)
from translation.values import Request

LISTING = (Listed("read", "Reads", b"{}"), Listed("write"), Listed("drop"))


def asked(
    *given: dict[str, Any], tools: list[dict[str, Any]] | None = None, said: Any = None, betas: tuple[str, ...] = ()
) -> Request:
    messages = [{"role": "user", "content": "hi"}, *([{"role": "assistant", "content": said}] if said else [])]
    body = {"model": "m", "max_tokens": 9, "messages": messages, "mcp_servers": list(given)}
    if tools is not None:
        body["tools"] = tools
    return parse(msgspec.json.encode(body), "2023-06-01", betas)


def toolset(name: str = "files", **more: Any) -> dict[str, Any]:
    return {"type": "mcp_toolset", "mcp_server_name": name, **more}


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
    own = {"name": "own", "input_schema": {"type": "object"}}
    assert wanted(asked(server(), tools=[own, toolset()])) == ["read", "write", "drop"]
    off = toolset(configs={"drop": {"enabled": False}, "read": {"enabled": True}, "write": {"defer_loading": True}})
    assert wanted(asked(server(), tools=[off])) == ["read", "write"]
    on = toolset(default_config={"enabled": False}, configs={"read": {"enabled": True}})
    assert wanted(asked(server(), tools=[on])) == ["read"]


def test_configurations_are_merged_from_the_tool_to_the_set_to_the_server() -> None:
    mixed = toolset(
        default_config={"enabled": False, "defer_loading": True},
        configs={"read": {"enabled": True, "defer_loading": False}, "write": {"enabled": True}, "gone": {}},
    )
    (one,) = servers(asked(server(), tools=[mixed]))
    assert [(offer.tool, offer.defer_loading) for offer in one.offers(LISTING)] == [("read", False), ("write", True)]
    assert one.unknown(LISTING) == ("gone",)
    old = server(tool_configuration={"allowed_tools": ["read", "write"]})
    assert wanted(asked(old, tools=[toolset()])) == ["read", "write"]
    assert wanted(asked(old, tools=[toolset(configs={"write": {"enabled": False}})])) == ["read"]


@pytest.mark.parametrize("beta", ["mcp-client-2025-11-20", "mcp-client-2026-09-15"])
def test_server_that_no_toolset_names_is_refused_since_there_are_toolsets(beta: str) -> None:
    words = r"^MCP server 'files' is defined but not referenced by any `mcp_toolset` in `tools`\.$"
    with pytest.raises(InvalidRequest, match=words):
        servers(asked(server(), betas=(beta,)))
    assert wanted(asked(server(), tools=[toolset()], betas=(beta,))) == ["read", "write", "drop"]
    assert wanted(asked(server(), betas=("mcp-client-2025-04-04", "other-2027-01-01"))) == ["read", "write", "drop"]


def test_server_has_one_toolset() -> None:
    with pytest.raises(InvalidRequest, match="MCP server 'files' is referenced by more than one `mcp_toolset`"):
        servers(asked(server(), tools=[toolset(), toolset()]))


def test_tool_may_be_called_like_a_server() -> None:
    own = {"name": "files", "input_schema": {"type": "object"}}
    assert wanted(asked(server(), tools=[own, toolset()])) == ["read", "write", "drop"]


def test_recorded_listing_pins_the_tools_of_later_requests() -> None:
    block = json.loads(listing_block("files", [Listed("read", "Reads \ud800", b'{"type":"object"}'), Listed("x")]))
    assert block == {
        "type": "mcp_tool_listing",
        "mcp_server_name": "files",
        "tools": [
            {"name": "read", "description": "Reads \ufffd", "input_schema": {"type": "object"}},
            {"name": "x", "description": "", "input_schema": {}},
        ],
    }
    pinned = (Listed("read", "Reads \ufffd", b'{"type":"object"}'), Listed("x", "", b"{}"))
    said = [block, {"type": "text", "text": "hello"}]
    assert servers(asked(server(), said=said))[0].listing == pinned
    assert servers(asked(server(), tools=[toolset()], said=said))[0].listing == pinned
    own = toolset(tools=[{"name": "mine", "input_schema": {}}])
    assert servers(asked(server(), tools=[own], said=said))[0].listing == (Listed("mine", "", b"{}"),)
    assert servers(asked(server(name="other"), said=said))[0].listing is None
    with pytest.raises(InvalidRequest, match=r"messages\.1\.content\.0\.mcp_server_name: Field required"):
        servers(asked(server(), said=[{"type": "mcp_tool_listing", "tools": []}]))


def test_listings_are_recorded_where_the_beta_says_so() -> None:
    assert not records_listings(asked(server(), betas=("mcp-client-2025-11-20", "zzz-2027-01-01")))
    assert records_listings(asked(server(), betas=("mcp-client-2026-09-15",)))


def test_pinned_listing_is_taken_from_the_toolset() -> None:
    tools = [
        {"name": "read", "input_schema": {"type": "object"}},
        {"name": "x", "description": "d", "input_schema": {}},
    ]
    (one,) = servers(asked(server(), tools=[toolset(tools=tools)]))
    assert one.listing == (Listed("read", "", b'{"type":"object"}'), Listed("x", "d", b"{}"))


def test_request_without_servers_has_none() -> None:
    assert servers(Request(model="m", messages=(), max_tokens=1)) == ()


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ([{"name": "files"}], "mcp_servers.0.url: Field required"),
        ([server(authorization_token=5)], "mcp_servers.0.authorization_token: Input should be a valid string"),
        ([server(tool_configuration=[])], "mcp_servers.0.tool_configuration: Input should be a valid dictionary"),
        ([server(type="stdio")], "mcp_servers.0.type"),
        ([server(name="")], "mcp_servers.0.name"),
        ([server(url="file:///etc/passwd")], "mcp_servers.0.url"),
        ([server(url="https://[::1")], "mcp_servers.0.url"),
        ([server(), server()], "mcp_servers: Server names must be unique"),
        ([server(name=str(number)) for number in range(MOST + 1)], "mcp_servers: at most"),
    ],
)
def test_wrong_server_is_named(given: list[dict[str, Any]], path: str) -> None:
    with pytest.raises(InvalidRequest, match=path):
        servers(asked(*given))


def test_toolset_of_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidRequest, match=r"tools\.0\.mcp_server_name: MCP server 'other' not found"):
        servers(asked(server(), tools=[toolset("other")]))


def test_other_upstreams_get_the_request_without_the_connector() -> None:
    own = {"name": "own", "input_schema": {"type": "object"}}
    plain = without_connector(asked(server(), tools=[toolset(), own]))
    assert ([tool.name for tool in plain.tools], plain.mcp_servers, plain.raw_tools) == (["own"], b"", b"")
    bare = without_connector(asked(server()))
    assert (bare.tools, bare.mcp_servers) == ((), b"")
    assert without_connector(bare) is bare


def test_servers_show_no_secret() -> None:
    assert repr(Server("files", "https://x/?key=1", "s3cret")) == "Server('files')"
