"""The ninja API: operations, and how each error becomes an HTTP answer."""

import logging
import sys
from typing import Any

from django.contrib import admin
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.db import DatabaseError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.csrf import csrf_failure
from django.views.defaults import server_error
from ninja import NinjaAPI
from ninja.errors import ValidationError

from conversations.api import conversations, hosted_tools, messages, models, openai
from conversations.api.cold import refusal
from conversations.api.incoming import COLD_LIMIT
from translation.errors import BridgeError, Forbidden, InvalidRequest, NotFound, OwnFault, StoreUnavailable, TooLarge

log = logging.getLogger(__name__)

AWAY = (OperationalError, InterfaceError)


api = NinjaAPI(title="Toolbridge", version="1", docs_url="/docs", openapi_url="/openapi.json", urls_namespace="bridge")
api.add_router("/v1", messages.router)
api.add_router("/v1", openai.router)
api.add_router("/v1", models.router)
api.add_router("/v1", conversations.router)
api.add_router("/v1", hosted_tools.router)


@api.exception_handler(BridgeError)
def refused(request: HttpRequest, error: BridgeError) -> HttpResponse:
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
    return _nothing_at(request)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler404`."""
    if _is_for_people(request):
        text = "Conversations are gone once they are purged or terminated. The ledger keeps what they used."
        return _told(request, 404, "There is no such page", text)
    return _nothing_at(request)


def _nothing_at(request: HttpRequest) -> HttpResponse:
    hint = " (the base URL of Anthropic's clients ends before /v1)" if request.path.startswith("/v1/v1/") else ""
    return refusal(request, NotFound(f"{request.method} {request.path} not found{hint}"))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler403`."""
    if _is_for_people(request):
        text = "You are signed in, but may not do this. An operator who may change operators can allow it."
        return _told(request, 403, "This is not for you", text)
    return refusal(request, Forbidden(f"{request.method} is not allowed for {request.path}"))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's `handler400`: a host name that is not ours, a body that is no form, a value that cannot be."""
    if _is_for_people(request) and hasattr(request, "user"):  # nobody is known yet where the host name is not ours
        text = "The address or the form holds a value that cannot be. Nothing was changed."
        return _told(request, 400, "This cannot be", text)
    if isinstance(exception, DisallowedHost):
        text = "the host name that it was sent to is not one of this server's: BRIDGE_ALLOWED_HOSTS names them"
        return refusal(request, InvalidRequest(text))
    if isinstance(exception, RequestDataTooBig):
        return refusal(request, TooLarge(f"request exceeds the maximum size of {COLD_LIMIT} bytes"))
    return refusal(request, InvalidRequest(f"{request.method} was refused: {type(exception).__name__}"))


def forged(request: HttpRequest, reason: str = "") -> HttpResponse:
    """`CSRF_FAILURE_VIEW`: people get Django's page, clients the API's words."""
    if _is_for_people(request):
        return csrf_failure(request, reason=reason)
    return refusal(request, Forbidden(f"{request.method} is not allowed for {request.path}"))


def locked_out(request: HttpRequest, *_: object) -> HttpResponse:
    """`AXES_LOCKOUT_CALLABLE`: too many failures of one user from one address."""
    text = (
        "Too many sign-ins as this user have failed from your address. Wait a quarter of an hour; or whoever has a "
        "shell on the server runs manage.py axes_reset."
    )
    return _told(request, 429, "You are locked out", text)


def failed(request: HttpRequest) -> HttpResponse:
    """Django's `handler500`, which is called while the error is handled. A page could not even say who is signed in
    while the database is away."""
    if isinstance(sys.exc_info()[1], AWAY):
        told = refusal(request, StoreUnavailable())
        if _is_for_people(request):
            text = "<!doctype html><title>Try again</title><h1>The database does not answer</h1>Try again in a moment."
            return HttpResponse(text, status=503, headers={"retry-after": told["retry-after"]})
        return told
    if _is_for_people(request):
        return server_error(request)
    return refusal(request, OwnFault("internal error"))


def _is_for_people(request: HttpRequest) -> bool:
    return request.path.startswith("/admin/")


def _told(request: HttpRequest, status: int, title: str, text: str) -> HttpResponse:
    # The sidebar's layout fails without somebody whose name it can show.
    layout = "admin/base_site.html" if request.user.is_authenticated else "unfold/layouts/unauthenticated.html"
    context = admin.site.each_context(request) | {"title": title, "text": text, "layout": layout}
    return render(request, "admin/conversations/told.html", context, status=status)
