"""`/v1/hosted-tools`: the tools that a key has registered for the bridge to run."""

from typing import Any
from urllib.parse import unquote

import msgspec
from django.http import HttpRequest, JsonResponse
from ninja import Router

from conversations.api.cold import PAGE, caller, findable, limited, owner, page
from conversations.hosted import registering
from conversations.models import ApiKey, HostedTool
from conversations.process import current
from translation.errors import Forbidden, NotFound

router = Router(tags=["Hosted tools"], auth=caller)


@router.get("/hosted-tools", summary="List your hosted tools, by name")
def hosted_tools(request: HttpRequest, limit: int = PAGE, after_id: str = "") -> JsonResponse:
    rows = _permitted(request).own_tools.filter(name__gt=findable(after_id)).order_by("name")
    found = list(rows[: limited(limit) + 1])
    return page([_shown(row) for row in found[:limit]], more=len(found) > limit)


@router.post("/hosted-tools", summary="Register a tool that the bridge runs, or replace one")
def register(request: HttpRequest) -> JsonResponse:
    tool = registering.register(_permitted(request), registering.parse(request.body))
    current().hear("hosted", "")
    return JsonResponse(_shown(tool))


@router.delete("/hosted-tools/{name}", summary="Remove a hosted tool")
def unregister(request: HttpRequest, name: str) -> JsonResponse:
    if not registering.unregister(_permitted(request), findable(unquote(name))):
        raise NotFound(f"hosted tool {unquote(name)[:100]} not found")
    current().hear("hosted", "")
    return JsonResponse({"id": unquote(name), "type": "hosted_tool_deleted"})


def _permitted(request: HttpRequest) -> ApiKey:
    key = owner(request)
    if not key.hosted_tools:
        raise Forbidden("this API key may not register tools; an operator can allow it")
    return key


def _shown(row: HostedTool) -> dict[str, Any]:
    """Headers by their names only."""
    return {
        "id": row.name,
        "type": "hosted_tool",
        "kind": row.kind,
        "url": row.url,
        "method": row.method,
        "description": row.description,
        "input_schema": msgspec.json.decode(row.schema),
        "headers": [line.partition(":")[0] for line in row.headers.splitlines()],
        "timeout": row.timeout,
        "long_running": row.long_running,
        "enabled": row.enabled,
        "created_at": row.created_at,
    }
