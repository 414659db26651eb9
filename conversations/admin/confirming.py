"""A page that asks before something is done. Nothing is ever done by following a link."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from msgspec import Struct

from translation.errors import BridgeError


class Choice(Struct, frozen=True):
    """Something to be chosen before it is done."""

    name: str
    label: str
    options: tuple[tuple[str, str], ...]
    chosen: str = ""


class Question(Struct, frozen=True):
    title: str
    text: str  # what will happen, in plain words
    button: str
    facts: tuple[tuple[str, str], ...] = ()  # what it concerns
    danger: bool = False
    back: str = ""  # where "cancel" leads
    choices: tuple[Choice, ...] = ()


def confirmed(
    admin: Any, request: HttpRequest, question: Question, act: Callable[[], str], then: str = ""
) -> HttpResponse:
    """Ask on GET, act on POST; `act` returns what to tell the operator, and may refuse with a BridgeError."""
    if not request.user.is_active or not request.user.is_staff:
        raise PermissionDenied
    if request.method == "POST":
        try:
            messages.success(request, act())
        except BridgeError as refused:
            messages.error(request, refused.message)
            return HttpResponseRedirect(question.back)
        return HttpResponseRedirect(then or question.back)
    context = admin.admin_site.each_context(request) | {
        "title": question.title,
        "question": question,
        "opts": admin.model._meta,
    }
    return TemplateResponse(request, "admin/conversations/confirm.html", context)
