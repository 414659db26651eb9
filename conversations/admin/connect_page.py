"""`/admin/connect/`: the exact lines for each client, with this server's address, a chosen key and a chosen model."""

import asyncio
from concurrent.futures import TimeoutError as Late

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from conversations import replay
from conversations.admin.connect import CLAUDE_CODE, PLACEHOLDER, snippets
from conversations.models import ApiKey
from conversations.process import current
from conversations.routing import Offer, Router
from translation.errors import NotFound

PATIENCE = 4.0  # seconds for upstreams to list their models
KEYS = 200
DEFAULT = "claude-sonnet-5-5"


def connect_page(request: HttpRequest) -> HttpResponse:
    router = _router()
    model = request.GET.get("model", "").strip()[:256] or DEFAULT
    keys = list(ApiKey.objects.usable().order_by("name")[:KEYS]) if _may_see_keys(request) else []
    server = f"{request.scheme}://{request.get_host()}"
    leads_to, refused = _leads_to(router, model)
    values = admin.site.each_context(request) | {
        "title": "Connect",
        "server": server,
        "model": model,
        "leads_to": leads_to,
        "refused": refused,
        "offers": [offer.id for offer in _offers(router)],
        "keys": keys,
        "key": next((key for key in keys if str(key.pk) == request.GET.get("key")), None),
        "placeholder": PLACEHOLDER,
        "snippets": snippets(server, model),
        "helpful": CLAUDE_CODE,
    }
    return TemplateResponse(request, "admin/conversations/connect.html", values)


def _may_see_keys(request: HttpRequest) -> bool:
    return request.user.has_perm("conversations.view_apikey")


def _router() -> Router:
    bridge = current().bridge
    return bridge.router if bridge is not None else replay.means().router


def upstream_names() -> tuple[str, ...]:
    return tuple(sorted(upstream.name for upstream in _router().upstreams))


def _leads_to(router: Router, model: str) -> tuple[str, str]:
    try:
        return router.resolve(model).name, ""
    except NotFound as error:
        return "", error.message


def _offers(router: Router) -> tuple[Offer, ...]:
    """With what upstreams say that they have, if they say it in time."""
    process = current()
    if process.bridge is None or process.loop is None:
        return router.offers()
    asked = asyncio.run_coroutine_threadsafe(process.bridge.catalog.offers(), process.loop)
    try:
        return asked.result(PATIENCE)
    except Late:
        asked.cancel()
        return router.offers()
