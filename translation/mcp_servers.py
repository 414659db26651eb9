"""`mcp_servers` and `mcp_toolset`: the MCP connector of the Messages API, as far as a request says what it wants."""

from collections.abc import Iterable, Mapping
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.client.paths import explained
from translation.errors import InvalidRequest
from translation.hosted import Offer, offered_name
from translation.unicode import well_formed
from translation.values import TYPE, Other, Request

Value = TypeVar("Value")

TOOLSET = "mcp_toolset"
TOOL_LISTING = "mcp_tool_listing"
MOST = 20  # servers of one request, as in the API
# Betas are dated, so later ones compare greater; each includes what the ones before it have.
CLIENT = "mcp-client-"
TOOLSETS = "mcp-client-2025-11-20"  # a server without a toolset is refused; before, it had its own configuration
LISTINGS = "mcp-client-2026-09-15"  # an answer begins with the lists that were asked for, a history pins them


class Listed(Struct, frozen=True):
    """A tool as its server lists it."""

    name: str
    description: str = ""
    schema: bytes = b""


class Wish(Struct, frozen=True):
    """What a client wants of a tool."""

    enabled: bool = True
    defer_loading: bool = False


class Server(Struct, frozen=True):
    """A server that a client named, and which of its tools it wants. Its token is a secret: nothing shows it."""

    name: str
    url: str
    token: str = ""
    default: Wish = Wish()
    wishes: Mapping[str, Wish] = {}  # by the tool's name, where they differ
    listing: tuple[Listed, ...] | None = None  # pinned by the client: the server is not asked

    def __repr__(self) -> str:
        return f"Server({self.name!r})"

    def offers(self, listing: Iterable[Listed]) -> tuple[Offer, ...]:
        wishes = ((one, self.wishes.get(one.name, self.default)) for one in listing)
        return tuple(
            Offer(
                offered_name(self.name, one.name), self.name, one.name, one.description, one.schema, wish.defer_loading
            )
            for one, wish in wishes
            if wish.enabled
        )

    def unknown(self, listing: Iterable[Listed]) -> tuple[str, ...]:
        """The tools that the client has wishes for, and the server has not."""
        return tuple(sorted(set(self.wishes) - {one.name for one in listing}))


class _Configuration(Struct):
    enabled: bool | None = None
    allowed_tools: list[str] | None = None


class _Server(Struct):
    url: str
    name: str
    type: str = "url"
    authorization_token: str | None = None
    tool_configuration: _Configuration | None = None


class _Config(Struct):
    enabled: bool | None = None
    defer_loading: bool | None = None

    def over(self, wish: Wish) -> Wish:
        enabled = wish.enabled if self.enabled is None else self.enabled
        return Wish(enabled, wish.defer_loading if self.defer_loading is None else self.defer_loading)


class _Tool(Struct):
    name: str
    input_schema: Raw
    description: str | None = None


class _Toolset(Struct):
    mcp_server_name: str
    default_config: _Config | None = None
    configs: dict[str, _Config] | None = None
    tools: list[_Tool] | None = None


class _Listing(Struct):
    mcp_server_name: str
    tools: list[_Tool]


# ---------------------------------------------------------------- what a request asks for


def servers(request: Request) -> tuple[Server, ...]:
    """The servers of a request, in its order. Raises what the client wrote wrong, in the API's words."""
    if not request.mcp_servers:
        return ()
    wires = _decoded(request.mcp_servers, list[_Server], "mcp_servers")
    if len(wires) > MOST:
        raise InvalidRequest(f"mcp_servers: at most {MOST} servers")
    found = {wire.name: _server(wire, f"mcp_servers.{index}") for index, wire in enumerate(wires)}
    if len(found) < len(wires):
        raise InvalidRequest("mcp_servers: Server names must be unique.")
    toolsets = _toolsets(request, found)
    if any(beta.startswith(CLIENT) and beta >= TOOLSETS for beta in request.betas):
        for name in found.keys() - toolsets.keys():
            raise InvalidRequest(f"MCP server {name!r} is defined but not referenced by any `mcp_toolset` in `tools`.")
    pinned = _pinned(request)
    return tuple(_configured(server, toolsets.get(name), pinned.get(name)) for name, server in found.items())


def records_listings(request: Request) -> bool:
    """Whether the answer shall begin with the lists of tools that servers were asked for."""
    return any(beta.startswith(CLIENT) and beta >= LISTINGS for beta in request.betas)


def listing_block(server: str, listing: Iterable[Listed]) -> bytes:
    tools = [
        {"name": one.name, "description": well_formed(one.description), "input_schema": Raw(one.schema or b"{}")}
        for one in listing
    ]
    return msgspec.json.encode({"type": TOOL_LISTING, "mcp_server_name": server, "tools": tools})


def without_connector(request: Request) -> Request:
    """The request for an upstream that gets the servers' tools as ordinary ones."""
    if not request.mcp_servers and TOOLSET not in map(TYPE, request.tools):
        return request
    tools = tuple(tool for tool in request.tools if tool.type != TOOLSET)
    fields = msgspec.json.decode(request.body, type=dict[str, Raw]) if request.body else {}
    kept = {name: value for name, value in fields.items() if name not in ("mcp_servers", "tools")}
    body = msgspec.json.encode(kept) if kept else b""
    return replace(request, mcp_servers=b"", tools=tools, raw_tools=b"", body=body)


def _server(wire: _Server, path: str) -> Server:
    if wire.type != "url":
        raise InvalidRequest(f"{path}.type: Input should be 'url'")
    if not wire.name or len(wire.name) > 128:
        raise InvalidRequest(f"{path}.name: String should have 1 to 128 characters")
    if not _is_address(wire.url):
        raise InvalidRequest(f"{path}.url: URL must start with https://")
    server = Server(wire.name, wire.url, wire.authorization_token or "")
    configuration = wire.tool_configuration or _Configuration()
    if configuration.enabled is False:
        return replace(server, default=Wish(enabled=False))
    if configuration.allowed_tools is not None:
        allowed = dict.fromkeys(configuration.allowed_tools, Wish())
        return replace(server, default=Wish(enabled=False), wishes=allowed)
    return server


def _is_address(url: str) -> bool:
    try:
        return urlsplit(url).scheme in ("https", "http")
    except ValueError:  # half an IPv6 address
        return False


def _toolsets(request: Request, found: Mapping[str, Server]) -> dict[str, _Toolset]:
    toolsets: dict[str, _Toolset] = {}
    for index, tool in enumerate(request.tools):
        if tool.type != TOOLSET:
            continue
        toolset = _decoded(tool.raw, _Toolset, f"tools.{index}")
        name = toolset.mcp_server_name
        if name not in found:
            path = f"tools.{index}.mcp_server_name"
            raise InvalidRequest(f"{path}: MCP server {name[:100]!r} not found in mcp_servers")
        if name in toolsets:
            raise InvalidRequest(f"MCP server {name!r} is referenced by more than one `mcp_toolset` in `tools`.")
        toolsets[name] = toolset
    return toolsets


def _configured(server: Server, toolset: _Toolset | None, pinned: tuple[Listed, ...] | None) -> Server:
    """A tool's own configuration counts before its set's, and that before what the server says."""
    if toolset is None:
        return replace(server, listing=pinned)
    default = (toolset.default_config or _Config()).over(server.default)
    wishes = {name: config.over(server.wishes.get(name, default)) for name, config in (toolset.configs or {}).items()}
    listing = pinned if toolset.tools is None else _listed(toolset.tools)
    return replace(server, default=default, wishes={**server.wishes, **wishes}, listing=listing)


def _pinned(request: Request) -> dict[str, tuple[Listed, ...]]:
    """The lists that earlier answers recorded; the newest of each server counts."""
    blocks = [
        (f"messages.{index}.content.{position}", block)
        for index, message in enumerate(request.messages)
        for position, block in enumerate(message.blocks)
        if type(block) is Other and block.type == TOOL_LISTING
    ]
    wires = [_decoded(block.raw, _Listing, path) for path, block in blocks]
    return {wire.mcp_server_name: _listed(wire.tools) for wire in wires}


def _listed(tools: Iterable[_Tool]) -> tuple[Listed, ...]:
    return tuple(Listed(one.name, one.description or "", bytes(one.input_schema)) for one in tools)


def _decoded(raw: bytes, kind: type[Value], path: str) -> Value:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise explained(error, path) from None
