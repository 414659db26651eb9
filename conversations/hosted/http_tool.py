"""One HTTP endpoint as a tool: arguments in, text out."""

import re
from urllib.parse import quote, urlsplit

import httpx
import msgspec

from conversations.hosted.addresses import Allowed, Pinned
from conversations.hosted.values import Endpoint, ToolFailed, given
from conversations.transport import Transport
from translation.unreadable import UNREADABLE

PLACEHOLDER = re.compile(r"\{([^{}/?#]+)\}")
QUERIES = frozenset({"GET", "DELETE"})
TEXTS = (
    "text/",
    "application/json",
    "application/xml",
    "application/x-ndjson",
    "application/yaml",
    "application/javascript",
)
SHOWN_OF_AN_ERROR = 2_000
CONNECT_SECONDS = 10.0


async def call(transport: Transport, allowed: Allowed, endpoint: Endpoint, arguments: bytes, limit: int) -> str:
    """The endpoint's answer. Raises ToolFailed; the caller limits the time."""
    url, rest = _filled(endpoint.url, given(arguments))
    pinned = await allowed.pin(url)
    host = pinned.url.host
    try:
        response = await transport.handle_async_request(_request(endpoint, pinned, rest))
        return await _answer(response, limit)
    except httpx.ConnectError:
        raise ToolFailed("unreachable", f"no connection to {host}") from None
    except httpx.TimeoutException:
        raise ToolFailed("timeout", f"{host} did not answer in time") from None
    except httpx.HTTPError:
        raise ToolFailed("protocol", f"{host} did not answer as HTTP asks") from None


def _request(endpoint: Endpoint, pinned: Pinned, arguments: dict[str, object]) -> httpx.Request:
    """Raises ToolFailed for what no request can hold."""
    target, content = pinned.url, b""
    headers = [("accept", "application/json, text/*;q=0.9"), ("accept-encoding", "identity"), *endpoint.headers]
    timeouts = {"connect": CONNECT_SECONDS, "read": None, "write": None, "pool": None}
    extensions = {"connect_to": pinned.address, "timeout": timeouts}
    if endpoint.method not in QUERIES:
        headers.append(("content-type", "application/json"))
        content = msgspec.json.encode(arguments)
    try:
        if endpoint.method in QUERIES and arguments:
            target = target.copy_merge_params({name: _worded(value) for name, value in arguments.items()})
        return httpx.Request(endpoint.method, target, headers=headers, content=content, extensions=extensions)
    except httpx.InvalidURL:
        raise ToolFailed("arguments", "the arguments are too long for the tool's address") from None
    except UnicodeEncodeError:
        raise ToolFailed("refused", "a header of the tool holds characters that HTTP does not know") from None


async def _answer(response: httpx.Response, limit: int) -> str:
    try:
        status = response.status_code
        if 300 <= status < 400:
            raise ToolFailed("refused", f"the tool redirects (HTTP {status}); redirects are not followed")
        if response.headers.get("content-encoding", "identity") not in ("", "identity"):
            raise ToolFailed("protocol", "the tool answered in an encoding that was not asked for")
        body = await _read(response, limit)
    finally:
        await response.stream.aclose()  # type: ignore[union-attr]  # the transport's streams are asynchronous
    if not 200 <= status < 300:
        said = body[:SHOWN_OF_AN_ERROR].decode("utf-8", "replace")
        raise ToolFailed("status", f"the tool answered HTTP {status}: {said}".rstrip(": "))
    return _text(body, response.headers.get("content-type", ""))


async def _read(response: httpx.Response, limit: int) -> bytes:
    parts, size = [], 0
    async for chunk in response.stream:  # type: ignore[union-attr]
        size += len(chunk)
        if size > limit:
            raise ToolFailed("too-large", f"the tool's answer is larger than {limit} bytes")
        parts.append(chunk)
    return b"".join(parts)


def _text(body: bytes, content_type: str) -> str:
    kind = content_type.partition(";")[0].strip().lower()
    if kind and not kind.startswith(TEXTS) and not kind.endswith(("+json", "+xml")):
        raise ToolFailed("protocol", f"the tool answered {kind[:100]}, which is not text")
    if kind == "application/json" or kind.endswith("+json"):
        try:
            msgspec.json.decode(body)
        except UNREADABLE:
            raise ToolFailed("bad-json", "the tool's answer says that it is JSON, but it is not") from None
    return body.decode("utf-8", "replace")


def _filled(template: str, arguments: dict[str, object]) -> tuple[str, dict[str, object]]:
    """Arguments that the URL names go into it, never into its host; the rest stays."""
    rest = dict(arguments)
    parts = urlsplit(template)
    if "{" in parts.netloc:
        raise ToolFailed("refused", "the tool's host depends on its arguments")

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in arguments:
            raise ToolFailed("arguments", f"the argument {name} is missing")
        rest.pop(name, None)
        return quote(_worded(arguments[name]), safe="")

    return PLACEHOLDER.sub(value, template), rest


def _worded(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
