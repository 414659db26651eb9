"""MCP servers over Streamable HTTP in a process of their own: one from the package index, one that misbehaves."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_server_time.server import create_server
from mcp_types import (
    AudioContent,
    BlobResourceContents,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from tests.servers.keeper import kept
from tests.servers.ports import free_port, wait_until

PROJECT = Path(__file__).resolve().parents[2]


def odd() -> MCPServer[object]:  # noqa: C901 - one tool after the other
    """Slow, failing, flooding, and telling how far it is."""
    server: MCPServer[object] = MCPServer("odd")
    cancelled: list[float] = []

    @server.tool()
    async def add(a: int, b: int) -> str:
        """Adds two numbers."""
        return str(a + b)

    @server.tool()
    async def slow(seconds: float) -> str:
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            cancelled.append(seconds)
            raise
        return "at last"

    @server.tool()
    async def cancellations() -> str:
        return str(cancelled)

    @server.tool()
    async def fail() -> str:
        raise ToolError("the disk is on fire")

    @server.tool()
    async def flood(size: int) -> str:
        return "x" * size

    @server.tool()
    async def steps(count: int, context: Context) -> str:
        for number in range(count):
            await context.report_progress(number + 1, count, "working")
            await asyncio.sleep(0.05)
        return "done"

    @server.tool()
    async def repeat(context: Context) -> str:
        """What it was sent: a server that tells its secrets."""
        return str(context.request_context.request.headers.get("authorization"))  # type: ignore[union-attr]

    @server.tool()
    async def die() -> str:
        os._exit(1)

    @server.tool()
    async def vanish() -> str:
        """From now on the list is another one."""
        server.remove_tool("vanish")
        server.add_tool(later)
        return "gone"

    @server.tool("odd.name/with spaces")
    async def oddly_named() -> str:
        return "called"

    @server.tool(structured_output=False)
    async def mixture() -> list[ContentBlock]:
        """Everything that a result may hold."""
        page = TextResourceContents(uri="file:///page.txt", text="a page", mime_type="text/plain")
        blob = BlobResourceContents(uri="file:///b.bin", blob="AAAA", mime_type="application/octet-stream")
        return [
            TextContent(type="text", text="words"),
            ImageContent(type="image", data="AAAA", mime_type="image/png"),
            AudioContent(type="audio", data="AAAA", mime_type="audio/wav"),
            EmbeddedResource(type="resource", resource=page),
            EmbeddedResource(type="resource", resource=blob),
            ResourceLink(type="resource_link", name="more", uri="https://example.com/more"),
        ]

    @server.tool()
    async def shape() -> dict[str, int]:
        return {"sides": 4}

    return server


async def later() -> str:
    """Was not there at first."""
    return "here"


SERVERS = {"time": lambda: create_server("Europe/Berlin"), "odd": odd}


@contextmanager
def running(name: str) -> Iterator[str]:
    """The URL of its endpoint."""
    port = free_port()
    command = [sys.executable, "-m", "tests.hosted.mcp_peer", name, str(port)]
    process = kept(subprocess.Popen(command, cwd=PROJECT, stderr=subprocess.DEVNULL))
    try:
        wait_until(lambda: _answers(port), f"the MCP server {name} answers")
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    app = SERVERS[sys.argv[1]]().streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="error")
