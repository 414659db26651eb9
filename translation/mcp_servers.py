"""`mcp_servers` and `mcp_toolset`: the MCP connector of the Messages API, as far as a request says what it wants."""

from collections.abc import Iterable
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.errors import InvalidRequest
from translation.hosted import Offer, offered_name
from translation.values import Request

Value = TypeVar("Value")

TOOLSET = "mcp_toolset"
MOST = 20  # servers of one request, as in the API


class Listed(Struct, frozen=True):
    """A tool as its server lists it."""

    name: str
    description: str = ""
    schema: bytes = b""


class Server(Struct, frozen=True):
    """A server that a client named, and which of its tools it wants. Its token is a secret: nothing shows it."""

    name: str
    url: str
    token: str = ""
    enabled: bool = True
    exceptions: frozenset[str] = frozenset()  # the tools to which `enabled` does not apply
    listing: tuple[Listed, ...] | None = None  # pinned by the client: the server is not asked

    def __repr__(self) -> str:
        return f"Server({self.name!r})"

    def offers(self, listing: Iterable[Listed]) -> tuple[Offer, ...]:
        return tuple(
            Offer(offered_name(self.name, one.name), self.name, one.name, one.description, one.schema)
            for one in listing
            if (one.name in self.exceptions) != self.enabled
        )


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


class _Tool(Struct):
    name: str
    input_schema: Raw
    description: str | None = None


class _Toolset(Struct):
    mcp_server_name: str
    default_config: _Config | None = None
    configs: dict[str, _Config] | None = None
    tools: list[_Tool] | None = None


def servers(request: Request) -> tuple[Server, ...]:
    """The servers of a request, in its order. Raises what the client wrote wrong."""
    if not request.mcp_servers:
        return ()
    wires = _decoded(request.mcp_servers, list[_Server], "mcp_servers")
    if len(wires) > MOST:
        raise InvalidRequest(f"mcp_servers: at most {MOST} servers")
    found = {}
    for index, wire in enumerate(wires):
        found[wire.name] = _server(wire, f"mcp_servers.{index}")
    if len(found) < len(wires):
        raise InvalidRequest("mcp_servers: Server names must be unique.")
    for index, tool in enumerate(request.tools):
        if tool.type == TOOLSET:
            toolset = _decoded(tool.raw, _Toolset, f"tools.{index}")
            if toolset.mcp_server_name not in found:
                name = toolset.mcp_server_name[:100]
                raise InvalidRequest(f"tools.{index}.mcp_server_name: MCP server {name!r} not found in mcp_servers")
            found[toolset.mcp_server_name] = _narrowed(found[toolset.mcp_server_name], toolset)
    return tuple(found.values())


def without_connector(request: Request) -> Request:
    """The request for an upstream that gets the servers' tools as ordinary ones."""
    if not request.mcp_servers and not any(tool.type == TOOLSET for tool in request.tools):
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
    if urlsplit(wire.url).scheme not in ("https", "http"):
        raise InvalidRequest(f"{path}.url: URL must start with https://")
    server = Server(wire.name, wire.url, wire.authorization_token or "")
    configuration = wire.tool_configuration or _Configuration()
    if configuration.enabled is False:
        return replace(server, enabled=False)
    if configuration.allowed_tools is not None:
        return replace(server, enabled=False, exceptions=frozenset(configuration.allowed_tools))
    return server


def _narrowed(server: Server, toolset: _Toolset) -> Server:
    default = (toolset.default_config or _Config()).enabled is not False
    configs = toolset.configs or {}
    differing = {name for name, config in configs.items() if config.enabled is not None and config.enabled != default}
    listing = None
    if toolset.tools is not None:
        listing = tuple(Listed(one.name, one.description or "", bytes(one.input_schema)) for one in toolset.tools)
    return replace(server, enabled=default, exceptions=frozenset(differing), listing=listing)


def _decoded(raw: bytes, kind: type[Value], path: str) -> Value:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"{path}: {error}") from None
