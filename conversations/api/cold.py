"""What the operations share that Django's stock handler serves: the caller's key, errors, pages."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db import connection, models
from django.http import HttpRequest, HttpResponse, JsonResponse

from conversations import ids
from conversations.callers import digests_of, unknown
from conversations.models import ApiKey
from conversations.storable import storable
from translation.client.render import MESSAGES
from translation.errors import BridgeError, InvalidRequest, MethodNotAllowed
from translation.openai_client.render import ChatRenderer
from translation.renderer import Renderer

PAGE, MOST = 20, 1000
PATIENCE = 1_000  # milliseconds for another writer; the pages of operators wait longer
OPENAI_PATHS = ("/v1/chat/", "/v1/embeddings")
MODELS = "/v1/models"
CHAT = ChatRenderer(created=0)  # for its errors only
Row = TypeVar("Row", bound=models.Model)


def request_id(request: HttpRequest) -> str:
    """The id that the ASGI entry gave the request."""
    return str(_scope(request).get("request_id") or ids.request_id())


def shown(request: HttpRequest) -> tuple[str, ...]:
    """The digests of the keys that a client shows. Of a header that comes twice the last counts, as on the hot paths:
    Django would make one key of both."""
    lines = _scope(request).get("headers", ())
    return digests_of({name.decode("latin-1"): value.decode("latin-1") for name, value in lines})


def _scope(request: HttpRequest) -> dict[str, Any]:
    scope: dict[str, Any] = getattr(request, "scope", {})
    return scope


def caller(request: HttpRequest) -> ApiKey:
    """For ninja's `auth`: the key, or the API's own 401."""
    _hasten()
    digests = shown(request)
    for digest in digests:
        key = ApiKey.objects.usable().filter(digest=digest).first()
        if key is not None:
            return key
    raise unknown(digests)


def _hasten() -> None:
    """Who holds SQLite for long is an outage, of which a client has to hear soon."""
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA busy_timeout = {PATIENCE}")


def owner(request: HttpRequest) -> ApiKey:
    key: ApiKey = request.auth  # type: ignore[attr-defined]  # ninja puts what `caller` returned there
    return key


def speaks_openai(request: HttpRequest) -> bool:
    """A client of OpenAI's API: by its path or, where both APIs have the same, by what it does not send."""
    if request.path.startswith(OPENAI_PATHS):
        return True
    asked = request.headers
    return request.path.startswith(MODELS) and "anthropic-version" not in asked and "x-api-key" not in asked


def refusal(request: HttpRequest, error: BridgeError) -> HttpResponse:
    renderer: Renderer = CHAT if speaks_openai(request) else MESSAGES
    told = renderer.refusal(error, request_id(request))
    return HttpResponse(told.body, status=told.status, content_type="application/json", headers=dict(told.headers))


def not_allowed(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: the API's own words for a method that a path does not have; ninja's are plain text."""

    def answer(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code != 405 or request.path.startswith("/admin/"):
            return response
        told = refusal(request, MethodNotAllowed(f"{request.method} is not allowed for {request.path}"))
        told["allow"] = response["allow"]
        return told

    return answer


def findable(name: str) -> str:
    """A name of a path or query, as the database can be asked for it: PostgreSQL refuses a NUL, and nothing has one."""
    return storable(name, len(name))


def page(items: Sequence[dict[str, Any]], *, more: bool) -> JsonResponse:
    first, last = (items[0]["id"], items[-1]["id"]) if items else (None, None)
    return JsonResponse({"data": list(items), "has_more": more, "first_id": first, "last_id": last})


def limited(limit: int) -> int:
    if not 1 <= limit <= MOST:
        raise InvalidRequest(f"limit: Input should be from 1 to {MOST}")
    return limit
