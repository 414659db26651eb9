"""The ASGI entry: HTTP through Django, and lifespan."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

django_application = get_asgi_application()


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    match scope["type"]:
        case "http":
            await django_application(scope, receive, send)
        case "lifespan":
            await _lifespan(receive, send)
        case kind:
            raise ValueError(f"nothing here speaks {kind}")


async def _lifespan(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})
