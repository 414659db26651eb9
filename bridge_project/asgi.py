"""The ASGI entry: HTTP and lifespan."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")

django_application = get_asgi_application()


async def application(scope, receive, send):
    match scope["type"]:
        case "lifespan":
            await _lifespan(receive, send)
        case "http":
            await django_application(scope, receive, send)
        case kind:
            raise ValueError(f"unknown ASGI scope {kind!r}")


async def _lifespan(receive, send):
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
