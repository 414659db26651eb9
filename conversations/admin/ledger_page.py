"""`.../usageentry/export/`: the ledger as a table, piece by piece, however long it is."""

import datetime as dt
from collections.abc import AsyncIterator, Iterator
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.handlers.asgi import ASGIRequest
from django.db.models import Min, QuerySet
from django.http import Http404, HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header

from conversations.admin import export
from conversations.admin.confirming import Choice, Question, confirmed
from conversations.models import UsageEntry

PIECE = 1_000  # rows
DAYS = (("1", "last 24 hours"), ("7", "last 7 days"), ("31", "last 31 days"), ("92", "last 92 days"), ("", "all"))
TEXT = "A table of every upstream attempt, with its key, models, tokens and cost. It is written down that you did it."


def ledger_page(admin: Any, request: HttpRequest) -> HttpResponseBase:
    if request.method != "POST":
        back, choices = reverse("admin:conversations_usageentry_changelist"), (Choice("days", "Of", DAYS, "31"),)
        return confirmed(
            admin, request, Question("Export the ledger?", TEXT, "Download", back=back, choices=choices), str
        )
    days = request.POST.get("days", "")
    if days not in dict(DAYS):
        raise Http404
    LogEntry.objects.create(
        user_id=request.user.pk or 0, content_type=ContentType.objects.get_for_model(UsageEntry), object_repr="",
        action_flag=CHANGE, change_message=f"Exported as csv: {dict(DAYS)[days]}",
    )  # fmt: skip
    rows = UsageEntry.objects.select_related("api_key")
    if days:
        rows = rows.filter(created_at__gte=timezone.now() - dt.timedelta(days=int(days)))
    pieces = export.ledger(_pieces(rows))
    body = _beside(pieces) if isinstance(request, ASGIRequest) else pieces
    disposition = content_disposition_header(True, "usage.csv")  # noqa: FBT003 - Django's own signature
    headers = {"content-disposition": disposition or ""}
    return StreamingHttpResponse(body, content_type="text/csv; charset=utf-8", headers=headers)


def _pieces(rows: QuerySet[UsageEntry]) -> Iterator[list[UsageEntry]]:
    """No query is open between two of them. The time has an index that finds the first row, and is not asked after."""
    after = (rows.order_by().aggregate(first=Min("pk"))["first"] or 0) - 1
    while piece := list(rows.filter(pk__gt=after).order_by("pk")[:PIECE]):
        yield piece
        after = piece[-1].pk


async def _beside(pieces: Iterator[str]) -> AsyncIterator[str]:
    """Each in the thread that has the database."""
    while piece := await sync_to_async(_next)(pieces):
        yield piece


def _next(pieces: Iterator[str]) -> str:
    return next(pieces, "")
