"""`.../conversation/<pk>/export/`: downloads, each written down."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponse, HttpResponseBase
from django.utils.http import content_disposition_header

from conversations import wording
from conversations.admin import cells, export
from conversations.admin.confirming import Question, confirmed
from conversations.admin.content import reads_content
from conversations.admin.toolchain_page import index_of
from conversations.models import Conversation, StorageLevel

FORMS = {
    "jsonl": ("Export what was said?", "The last request of each branch as a line of JSON, which can be sent again."),
    "csv": ("Export the tool calls?", "A table of all its tool calls, with their arguments if you may read them."),
}


def export_page(admin: Any, request: HttpRequest, row: Conversation) -> HttpResponseBase:
    readable = reads_content(request)
    sayable = readable and row.api_key.storage == StorageLevel.FULL
    form = request.GET.get("form", "jsonl" if sayable else "csv")
    if form == "jsonl" and not sayable:
        messages.error(request, "What was said is not stored for this key, or not for you to read.")
        return HttpResponseRedirect(cells.url(row, "toolchain_page"))
    if form in FORMS and request.method != "POST":
        title, text = FORMS[form]
        facts = (("Conversation", row.external_id), ("Turns", wording.count(row.turn_count)))
        question = Question(title, f"{text} It is written down that you did it.", "Download", facts,
                            back=cells.url(row, "toolchain_page"))  # fmt: skip
        return confirmed(admin, request, question, str)
    body = b"".join(export.requests(row, index_of(row))) if form == "jsonl" else b""
    if form == "jsonl" and not body:
        messages.error(request, "What was said is no longer stored.")
        return HttpResponseRedirect(cells.url(row, "toolchain_page"))
    admin.log_change(request, row, f"Exported as {form}")
    match form:
        case "jsonl":
            return _file(HttpResponse(body, content_type="application/x-ndjson"), f"conversation-{row.pk}.jsonl")
        case "csv":
            mappings = row.tool_mappings.select_related("turn").only(*_columns()).order_by("pk")
            lines = "".join(export.table(mappings, readable=readable))
            return _file(HttpResponse(lines, content_type="text/csv; charset=utf-8"), f"tool-calls-{row.pk}.csv")
        case _:
            raise Http404


def _columns() -> tuple[str, ...]:
    own = [name for name in export.COLUMNS if name not in {"request_id", "latency_ms"}]
    return (*own, "turn__request_id")


def _file(response: HttpResponse, name: str) -> HttpResponse:
    response["content-disposition"] = content_disposition_header(True, name)  # noqa: FBT003 - Django's own signature
    return response
