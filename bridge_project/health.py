"""Health endpoints: `/livez` says that the process answers, `/readyz` that a request would find its database.

Answered before Django: its handler has one thread, which may be waiting for a database that is away.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from conversations import ids, process

Send = Callable[[Mapping[str, Any]], Awaitable[None]]

PATHS = ("/livez", "/readyz")


def asked(scope: Mapping[str, Any]) -> bool:
    """Whether this is a probe. One for a host that is not ours is refused where every other request is."""
    if scope["path"] not in PATHS or scope["method"] not in ("GET", "HEAD"):
        return False
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    return validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)


async def answer(scope: Mapping[str, Any], send: Send) -> None:
    healthy = scope["path"] == "/livez" or await process.current().healthy()
    body = json.dumps({"status": "ok" if healthy else "database unavailable"}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        (b"request-id", ids.request_id().encode()),
    ]
    if not healthy:
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": 200 if healthy else 503, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
