"""The ASGI entry: HTTP through Django, and lifespan."""

import os

from asgiref.typing import ASGIReceiveCallable, ASGISendCallable, Scope
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")

django_application = get_asgi_application()


async def application(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    match scope["type"]:
        case "http":
            await django_application(scope, receive, send)
        case "lifespan":
            await _lifespan(receive, send)
        case kind:
            raise ValueError(f"nothing here speaks {kind}")


async def _lifespan(receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    await receive()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await send({"type": "lifespan.shutdown.complete"})
