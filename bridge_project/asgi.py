"""The ASGI entry: the hot paths through the lean handler, everything else through Django, sockets, and lifespan."""

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bridge_project.settings")

django_application = get_asgi_application()

from bridge_project import health  # noqa: E402 - Django has to be set up first
from conversations import ids, process  # noqa: E402 - Django has to be set up first
from conversations.admin.live_socket import websocket  # noqa: E402
from conversations.api import cors, messages, openai  # noqa: E402
from conversations.api.cycle import CYCLE  # noqa: E402
from conversations.api.incoming import bounded  # noqa: E402
from conversations.api.lean import refused, serve  # noqa: E402
from conversations.api.paths import API, canonical  # noqa: E402
from translation.client.render import MESSAGES  # noqa: E402
from translation.errors import TooSlow  # noqa: E402
from translation.openai_client.render import ChatRenderer  # noqa: E402

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

CHAT = ChatRenderer(created=0)
# The ninja operations that the lean handler runs itself, and how an error is told there. They take a request as it
# came, and answer it as it goes out: there is nothing that ninja would have to do before or after.
HOT = {
    "/v1/messages": (messages.messages, MESSAGES.refusal),
    "/v1/messages/count_tokens": (messages.count_tokens, MESSAGES.refusal),
    "/v1/chat/completions": (openai.chat_completions, CHAT.refusal),
    "/v1/embeddings": (openai.embeddings, CHAT.refusal),
}


async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    match scope["type"]:
        case "http":
            current = process.current()
            if not current.started:
                await current.start_once()  # daphne has no lifespan
            scope = canonical(scope)
            if current.conf.cors_origins and (origin := cors.origin_of(scope, current.conf.cors_origins)):
                if cors.is_preflight(scope):
                    await cors.answer_preflight(scope, origin, send)
                    return
                send = cors.exposing(send, origin)
                scope = {**scope, CYCLE: None}  # what is sent has to go through it
            hot = HOT.get(scope["path"]) if scope["method"] == "POST" else None
            if hot is not None:
                await serve(*hot, scope, receive, send)
            elif health.asked(scope):
                await health.answer(scope, send)
            else:
                await COLD(scope, receive, send)
        case "websocket":
            await SOCKETS(scope, receive, send)
        case "lifespan":
            await _lifespan(receive, send)
        case kind:
            raise ValueError(f"nothing here speaks {kind}")


async def _cold(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Django's stock handler; every answer has its request id. Who asks for a head gets the one that GET would give."""
    request_id = ids.request_id()
    if scope["method"] == "HEAD" and scope["path"].startswith(API):
        scope = {**scope, "method": "GET"}  # the server itself leaves the body out

    async def identified(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start" and all(
            name.lower() != b"request-id" for name, _ in message["headers"]
        ):
            message = {**message, "headers": [*message["headers"], (b"request-id", request_id.encode())]}
        await send(message)

    scope, receive = bounded(scope, receive)
    try:
        await django_application({**scope, "request_id": request_id}, receive, identified)
    except TooSlow as error:  # before Django had heard of the request
        told = refused(MESSAGES.refusal(error, request_id))
        await send({"type": "http.response.start", "status": told.lean_status, "headers": told.lean_headers})
        await send({"type": "http.response.body", "body": told.lean_body})


def _proxied(application: Any) -> Any:
    """Who called, and how, when a proxy did: pages and logins ask for it, the hot paths do not."""
    return ProxyHeadersMiddleware(application, settings.FORWARDED_ALLOW_IPS)


COLD, SOCKETS = _proxied(_cold), _proxied(websocket)


async def _lifespan(receive: Receive, send: Send) -> None:
    await receive()
    current = process.current()
    await current.start_once()
    await send({"type": "lifespan.startup.complete"})
    await receive()
    await current.stop()
    process.discard()
    await send({"type": "lifespan.shutdown.complete"})
