"""`/v1/models`: what can be asked for, in Anthropic's shape or, for clients that send none of its headers, OpenAI's."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, JsonResponse
from ninja import Router

from conversations.api.cold import PAGE, limited, page, shown, speaks_openai
from conversations.limits import allowed
from conversations.process import current
from conversations.routing import CLAUDE_FAMILIES, Offer
from conversations.store.accounts import KeyRow
from translation.errors import InvalidRequest, NotFound

router = Router(tags=["Models"])
UNKNOWN = "1970-01-01T00:00:00Z"  # what the API says for a release date that nobody knows
ACTIVE = "active"


@router.get("/models", summary="List models", auth=None)
async def models(request: HttpRequest, limit: int = PAGE, after_id: str = "", before_id: str = "") -> JsonResponse:
    key = await _caller(request)
    offers = [offer for offer in await current().ready().catalog.offers() if _may_use(key, offer.id)]
    if speaks_openai(request):
        return JsonResponse({"object": "list", "data": [_openai(offer) for offer in offers]})
    found, more = _paged(offers if _wants_active(request) else (), limited(limit), after_id, before_id)
    return page([_anthropic(offer) for offer in found], more=more)


@router.get("/models/{path:model_id}", summary="Retrieve a model", auth=None)
async def model(request: HttpRequest, model_id: str) -> JsonResponse:
    key = await _caller(request)
    offer = current().ready().router.offer(model_id)
    if offer is None or not _may_use(key, model_id):
        raise NotFound(f"model: {model_id}")
    return JsonResponse(_openai(offer) if speaks_openai(request) else _anthropic(offer))


async def _caller(request: HttpRequest) -> KeyRow:
    return await current().callers.authenticate(shown(request))


def _may_use(key: KeyRow, model: str) -> bool:
    return key.limits is None or not key.limits.routes or allowed(key.limits.routes, model)


def _wants_active(request: HttpRequest) -> bool:
    """`lifecycle` names the stages that are listed; here is nothing but what can be used."""
    stages = request.GET.getlist("lifecycle[]") + request.GET.getlist("lifecycle")
    return not stages or ACTIVE in stages


def _paged(offers: Sequence[Offer], limit: int, after_id: str, before_id: str) -> tuple[Sequence[Offer], bool]:
    """One page, and whether there are more in the direction that was asked for."""
    if before_id:
        rest = offers[: _place(offers, before_id, "before_id")]
        return rest[-limit:], len(rest) > limit
    rest = offers[_place(offers, after_id, "after_id") + 1 :] if after_id else offers
    return rest[:limit], len(rest) > limit


def _place(offers: Sequence[Offer], model_id: str, parameter: str) -> int:
    for index, offer in enumerate(offers):
        if offer.id == model_id:
            return index
    raise InvalidRequest(f"{parameter}: {model_id} is not in the list")


def _anthropic(offer: Offer) -> dict[str, Any]:
    where = f"{offer.upstream}/{offer.model}"
    name = offer.id if offer.id == where else f"{offer.id} ({where})"
    line = next((family for family in CLAUDE_FAMILIES if family in offer.id.lower()), None)
    return {
        "type": "model",
        "id": offer.id,
        "display_name": name,
        "created_at": UNKNOWN,
        "lifecycle": ACTIVE,
        "line": line,
    }


def _openai(offer: Offer) -> dict[str, Any]:
    return {"id": offer.id, "object": "model", "created": 0, "owned_by": offer.upstream}
