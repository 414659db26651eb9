"""The ninja API: operations, and how each error becomes an HTTP answer."""

import logging
from typing import Any

from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from django.views.csrf import csrf_failure
from ninja import NinjaAPI
from ninja.errors import ValidationError

from conversations.api import conversations, hosted_tools, messages, models, openai
from conversations.api.cold import refusal
from conversations.api.exchange import LeanRequest
from translation.errors import BridgeError, Forbidden, InvalidRequest, NotFound, OwnFault, StoreUnavailable

log = logging.getLogger(__name__)


class BridgeAPI(NinjaAPI):
    def create_temporal_response(self, request: HttpRequest) -> HttpResponse:
        """Where an operation could leave headers: those of the lean handler make their own response, and need none."""
        return UNUSED if isinstance(request, LeanRequest) else super().create_temporal_response(request)


UNUSED = HttpResponse()
api = BridgeAPI(title="Toolbridge", version="1", docs_url="/docs", openapi_url="/openapi.json", urls_namespace="bridge")
api.add_router("/v1", messages.router)
api.add_router("/v1", openai.router)
api.add_router("/v1", models.router)
api.add_router("/v1", conversations.router)
api.add_router("/v1", hosted_tools.router)


@api.exception_handler(BridgeError)
def refused(request: HttpRequest, error: BridgeError) -> HttpResponse:
    if isinstance(request, LeanRequest):
        raise error
    return refusal(request, error)


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    first: dict[str, Any] = error.errors[0] if error.errors else {}
    path = ".".join(str(part) for part in first.get("loc", ())[1:])
    return refusal(request, InvalidRequest(f"{path}: {first.get('msg', 'invalid')}"))


@api.exception_handler(DatabaseError)
def unavailable(request: HttpRequest, error: DatabaseError) -> HttpResponse:
    log.error("state.unavailable: %s", error)
    return refusal(request, StoreUnavailable())


@api.exception_handler(Http404)
def missing(request: HttpRequest, error: Http404) -> HttpResponse:
    return refusal(request, NotFound(f"{request.method} {request.path} not found"))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler404`."""
    return refusal(request, NotFound(f"{request.method} {request.path} not found"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler400`: a host name that is not ours, a body that is no form."""
    return refusal(request, InvalidRequest(f"{request.method} was refused: {type(exception).__name__}"))


def forged(request: HttpRequest, reason: str = "") -> HttpResponse:
    """`CSRF_FAILURE_VIEW`: people get Django's page, clients the API's words."""
    if request.path.startswith("/admin/"):
        return csrf_failure(request, reason=reason)
    return refusal(request, Forbidden(f"{request.method} is not allowed for {request.path}"))


def failed(request: HttpRequest) -> HttpResponse:
    """Django's `handler500`."""
    return refusal(request, OwnFault("internal error"))
