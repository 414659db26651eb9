"""Who looks at a page. Cells know their row only, and must not lead to where this operator gets a 403."""

from collections.abc import Callable
from contextvars import ContextVar

from django.db.models import Model
from django.http import HttpRequest, HttpResponse

# The request, not its user: asgiref compares what context variables hold, and the event loop must not load a user.
_viewing: ContextVar[HttpRequest | None] = ContextVar("viewing", default=None)


def remembered(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: who asks, for as long as the page is made."""

    def answer(request: HttpRequest) -> HttpResponse:
        token = _viewing.set(request)
        try:
            return get_response(request)
        finally:
            _viewing.reset(token)

    return answer


def may_open(model: type[Model]) -> bool:
    """Whether its pages are for this operator, as Django's admin decides it."""
    request, options = _viewing.get(), model._meta
    names = (f"{options.app_label}.{what}_{options.model_name}" for what in ("view", "change"))
    return request is not None and any(request.user.has_perm(name) for name in names)
