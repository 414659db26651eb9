"""A bridge that may reach tools on loopback, and a server whose tools follow a script."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.api.conftest import (
    Serve,
    Served,
    serve,
    serve_shared,
    shared_upstream,
)
from tests.hosted import mcp_peer
from tests.hosted.anthropic_peer import AnthropicPeer
from tests.servers.client import Client
from tests.servers.upstream import ScriptedUpstream

__all__ = ["serve", "serve_shared", "shared_upstream"]

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Tools:
    """What a client with hosted tools has at hand."""

    def __init__(self, served: Served, server: ScriptedUpstream, client: Client) -> None:
        self.served = served
        self.server = server
        self.client = client

    def register(self, name: str = "weather", path: str = "/weather", **fields: Any) -> dict[str, Any]:
        asked = {"name": name, "url": self.server.url + path, "input_schema": WEATHER, **fields}
        response = self.client.http.post("/v1/hosted-tools", json=asked)
        assert response.status_code == 200, response.text
        return response.json()  # type: ignore[no-any-return]


@pytest.fixture(scope="session")
def tool_server() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as server:
        yield server


@pytest.fixture(scope="session")
def claude() -> Iterator[AnthropicPeer]:
    with AnthropicPeer() as server:
        yield server


@pytest.fixture(scope="session")
def time_url() -> Iterator[str]:
    with mcp_peer.running("time") as url:
        yield url


@pytest.fixture(scope="session")
def odd_url() -> Iterator[str]:
    with mcp_peer.running("odd") as url:
        yield url


@pytest.fixture(scope="session")
def hosting(serve_shared: Serve, claude: AnthropicPeer) -> Served:
    return serve_shared(
        BRIDGE_TOOL_HOSTS="127.0.0.1",
        BRIDGE_TOOL_SECONDS="2",
        BRIDGE_PING_SECONDS="1",
        ANTHROPIC_UPSTREAM_URL=claude.url,
    )


@pytest.fixture
def tools(
    hosting: Served, tool_server: ScriptedUpstream, shared_upstream: ScriptedUpstream, claude: AnthropicPeer
) -> Iterator[Tools]:
    for scripted in (shared_upstream, tool_server, claude):
        scripted.reset()
    client = Client(hosting.bridge.url, hosting.records.issue(hosted_tools=True))
    yield Tools(hosting, tool_server, client)
    client.close()
