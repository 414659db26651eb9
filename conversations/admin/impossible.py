"""What an address or a form says that no column can hold. Django's admin looks at most of it, and fails at the rest."""

from collections.abc import Callable

from django.core.exceptions import BadRequest, FieldDoesNotExist
from django.db import DataError
from django.http import HttpRequest, HttpResponse

COLUMNS = ("django.db.models.fields", "psycopg", "ipaddress")  # who turns values into those of columns


class Impossible:
    """Middleware: a page that says so, instead of one that looks like a fault of the bridge."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self._get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> None:
        if request.path.startswith("/admin/") and _is_impossible(error):
            raise BadRequest(str(error)) from error


def _is_impossible(error: Exception) -> bool:
    if isinstance(error, (FieldDoesNotExist, OverflowError, DataError)):
        return True
    return isinstance(error, (ValueError, TypeError)) and _raised_in(error).startswith(COLUMNS)


def _raised_in(error: Exception) -> str:
    """The module's name."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return str(trace.tb_frame.f_globals.get("__name__", "")) if trace is not None else ""
