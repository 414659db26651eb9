"""Pages of other origins that may call the API: those that the operator names, nobody else. Cookies never count."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

API = "/v1/"
METHODS = b"GET, POST, DELETE, OPTIONS"
EXPOSED = b"request-id, x-request-id, x-conversation-id, x-bridge-warning, retry-after, x-should-retry"
REMEMBER_SECONDS = b"600"


def origin_of(scope: Mapping[str, Any], origins: tuple[str, ...]) -> bytes:
    """The page's origin when it may call this path; b"" for everything else."""
    if not origins or not scope["path"].startswith(API):
        return b""
    origin = _header(scope, b"origin")
    return origin if origin.decode("latin-1") in origins else b""


def is_preflight(scope: Mapping[str, Any]) -> bool:
    return scope["method"] == "OPTIONS" and bool(_header(scope, b"access-control-request-method"))


async def answer_preflight(scope: Mapping[str, Any], origin: bytes, send: Send) -> None:
    headers = [
        *_allowed(origin),
        (b"access-control-allow-methods", METHODS),
        (b"access-control-allow-headers", _header(scope, b"access-control-request-headers")),
        (b"access-control-max-age", REMEMBER_SECONDS),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def exposing(send: Send, origin: bytes) -> Send:
    """Sends the same, readable for the page."""

    async def exposed(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            more = [*_allowed(origin), (b"access-control-expose-headers", EXPOSED)]
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return exposed


def _allowed(origin: bytes) -> Headers:
    return [(b"access-control-allow-origin", origin), (b"vary", b"origin")]


def _header(scope: Mapping[str, Any], wanted: bytes) -> bytes:
    headers: Headers = scope["headers"]
    return next((value for name, value in headers if name == wanted), b"")
