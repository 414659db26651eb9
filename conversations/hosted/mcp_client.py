"""MCP over Streamable HTTP, through the official SDK, whose every request goes out by our transport: pinned and capped.

Imported when the first MCP server is called: the SDK takes a second to load, and most bridges have none.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
import msgspec
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Implementation
from pydantic import ValidationError

from conversations.hosted.addresses import Pinned
from conversations.hosted.values import Endpoint, Progress, ToolFailed, given
from conversations.store.hosted import Progressed
from conversations.transport import Transport
from translation.mcp_servers import Listed

PAGES = 50
TOOLS = 1_000
CONNECT_SECONDS = 10.0
FRAMING = 256 * 1024  # what a session may cost beyond the result itself
CLIENT = Implementation(name="toolbridge", version="1")
SDK_ERRORS = (MCPError, httpx2.HTTPError, httpx2.InvalidURL, ValidationError, OSError, RuntimeError, ValueError)


async def listing(transport: Transport, endpoint: Endpoint, pinned: Pinned, limit: int) -> tuple[Listed, ...]:
    """The tools of a server. Raises ToolFailed."""
    tools: list[Listed] = []
    with _translated(pinned):
        async with _session(transport, endpoint, pinned, limit) as client:
            cursor: str | None = None
            for _ in range(PAGES):
                page = await client.list_tools(cursor=cursor)
                tools += [_listed(tool) for tool in page.tools]
                cursor = page.next_cursor
                if not cursor or len(tools) > TOOLS:
                    break
    return tuple(tools[:TOOLS])


async def call(
    transport: Transport,
    endpoint: Endpoint,
    pinned: Pinned,
    name: str,
    arguments: bytes,
    limit: int,
    tell: Progress,
) -> str:
    """What a tool answers. Raises ToolFailed, also for an answer that the tool itself calls an error."""

    async def report(progress: float, total: float | None, message: str | None) -> None:
        await tell(Progressed(progress, total, message or ""))

    with _translated(pinned):
        async with _session(transport, endpoint, pinned, limit + FRAMING) as client:
            result = await client.call_tool(name, given(arguments), progress_callback=report)
            return _said(result, limit)


@asynccontextmanager
async def _session(transport: Transport, endpoint: Endpoint, pinned: Pinned, limit: int) -> AsyncIterator[Client]:
    wire = PinnedTransport(transport, pinned, limit)
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
    async with httpx2.AsyncClient(
        transport=wire, headers=dict(endpoint.headers), timeout=timeout, trust_env=False
    ) as http_client:
        streams = streamable_http_client(str(pinned.url), http_client=http_client, max_sse_event_size=limit)
        try:
            async with Client(streams, client_info=CLIENT, cache=None) as client:
                yield client
        finally:
            if wire.failure is not None:  # what the SDK made of it says less
                raise wire.failure


class PinnedTransport(httpx2.AsyncBaseTransport):
    """The SDK's requests, to the one origin and the one address that were judged; so many bytes and no more."""

    def __init__(self, transport: Transport, pinned: Pinned, limit: int) -> None:
        self._transport = transport
        self._pinned = pinned
        self.left = limit
        self.failure: ToolFailed | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = httpx.URL(str(request.url))
        if (url.scheme, url.host, url.port) != (self._pinned.url.scheme, self._pinned.url.host, self._pinned.url.port):
            raise self.failed("refused", f"the tool leads to {url.host}, which is another server")
        headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"accept-encoding"]
        sent = httpx.Request(
            request.method,
            url,
            headers=[*headers, (b"accept-encoding", b"identity")],
            content=await request.aread(),
            extensions={"connect_to": self._pinned.address, "timeout": request.extensions.get("timeout", {})},
        )
        try:
            response = await self._transport.handle_async_request(sent)
        except httpx.HTTPError as error:
            raise _theirs(error) from error
        if response.headers.get("content-encoding", "identity") not in ("", "identity"):
            await response.stream.aclose()  # type: ignore[union-attr]  # the transport's streams are asynchronous
            raise self.failed("protocol", "the server answered in an encoding that was not asked for")
        return httpx2.Response(response.status_code, headers=response.headers.raw, stream=_Body(self, response))

    def failed(self, kind: Any, text: str) -> httpx2.HTTPError:
        """The SDK turns what is raised inside of it into words of its own; ours are kept."""
        self.failure = self.failure or ToolFailed(kind, text)
        return httpx2.ReadError(text)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, wire: PinnedTransport, response: httpx.Response) -> None:
        self._wire = wire
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._response.stream:  # type: ignore[union-attr]
                self._wire.left -= len(chunk)
                if self._wire.left < 0:
                    raise self._wire.failed("too-large", "the tool's answer is too large")
                yield chunk
        except httpx.HTTPError as error:
            raise _theirs(error) from error

    async def aclose(self) -> None:
        await self._response.stream.aclose()  # type: ignore[union-attr]


def _theirs(error: httpx.HTTPError) -> httpx2.HTTPError:
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return httpx2.ConnectError("no connection")
        case httpx.TimeoutException():
            return httpx2.ReadTimeout("no answer in time")
        case _:
            return httpx2.RemoteProtocolError("not HTTP")


class _translated:  # noqa: N801 - reads as what it does
    """What the SDK raises, in our terms. Task groups wrap what happened in them."""

    def __init__(self, pinned: Pinned) -> None:
        self._host = pinned.url.host

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        found = _first(error)
        if isinstance(found, ToolFailed):
            raise found from None
        if isinstance(found, MCPError):
            raise ToolFailed("tool", f"the MCP server answered with an error: {found.message[:2000]}") from error
        if isinstance(found, httpx2.ConnectError):
            raise ToolFailed("unreachable", f"no connection to {self._host}") from error
        if isinstance(found, SDK_ERRORS):
            raise ToolFailed("protocol", f"{self._host} did not answer as MCP asks") from error


def _first(error: BaseException | None) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _listed(tool: Any) -> Listed:
    schema = msgspec.json.encode(tool.input_schema or {"type": "object"})
    return Listed(tool.name, tool.description or "", schema)


def _said(result: CallToolResult, limit: int) -> str:
    text = "\n".join(_words(block) for block in result.content)
    if not text and result.structured_content is not None:
        text = msgspec.json.encode(result.structured_content).decode()
    if len(text.encode("utf-8", "surrogatepass")) > limit:
        raise ToolFailed("too-large", f"the tool's answer is larger than {limit} bytes")
    if result.is_error:
        raise ToolFailed("tool", text or "the tool failed and did not say why")
    return text


def _words(block: Any) -> str:
    """Text is told; what an `mcp_tool_result` cannot hold is named."""
    match block.type:
        case "text":
            return str(block.text)
        case "resource" if getattr(block.resource, "text", None) is not None:
            return str(block.resource.text)
        case "resource_link":
            return f"[{block.name}]({block.uri})"
        case "resource":
            return f"[{block.resource.mime_type or 'binary'} resource left out: {block.resource.uri}]"
        case kind:
            return f"[{getattr(block, 'mime_type', '')} {kind} left out]".replace("[ ", "[")
