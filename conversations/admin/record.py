"""What the admin of every kind of record has in common: it is read-only, large, and found by ids."""

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.contrib.admin.options import IncorrectLookupParameters
from django.db import DataError
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils.formats import date_format
from unfold.admin import ModelAdmin
from unfold.decorators import display
from unfold.views import ChangeList

from conversations import search
from conversations.admin import cells
from conversations.admin.content import reads_content
from conversations.admin.paginator import BoundedPaginator

Rows = QuerySet[Any]


def yes_or_no(field: str) -> Callable[[Model], str]:
    """A column in words. As a mark it would be green for an error, and red for none."""

    def shown(row: Model) -> str:
        return "yes" if getattr(row, field) else "no"

    named: Callable[[Model], str] = display(shown, description=field.replace("_", " "))
    return named


def _still_reading(until: dt.datetime) -> str:
    if until <= search.NEVER:
        return "Ids, tool names and errors are found, text is not yet: the worker has read none of it."
    moment = date_format(until, "DATETIME_FORMAT")
    return f"Text is found up to {moment}: what was said since is still being read."


class RecordList(ChangeList):
    """The number of all rows is not known, and the page's header need not speak of it."""

    def get_results(self, request: HttpRequest) -> None:
        try:
            super().get_results(request)
        except (OverflowError, DataError) as error:  # a value in the address that no column can have
            raise IncorrectLookupParameters(error) from None
        self.full_result_count = self.result_count

    def url_for_result(self, result: Model) -> str:
        return cells.url(result, self.model_admin.row_page)


class RecordAdmin(ModelAdmin):
    """Nothing can be added, changed or deleted here; subclasses offer what can be done as pages of their own."""

    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0
    list_filter_submit = True
    # To count what each choice of each filter would show is to read the table dozens of times.
    show_facets = ShowFacets.NEVER
    actions = None
    # Django asks for fields to show the search box; `find` answers instead of them.
    search_fields: tuple[str, ...] = ("pk",)
    row_page = "change"  # where a row leads
    find: Callable[[str, Sequence[int]], Q]
    # Conversations that ended are out of sight, and so is all that is theirs.
    living: dict[str, None] = {}
    # Content is large and no list shows it.
    deferred: Sequence[str] = ()

    def get_queryset(self, request: HttpRequest) -> Rows:
        rows: Rows = super().get_queryset(request)
        return rows.filter(**self.living).defer(*self.deferred)

    def get_changelist(self, request: HttpRequest, **_: Any) -> type[RecordList]:
        return RecordList

    def get_search_results(self, request: HttpRequest, queryset: Rows, search_term: str) -> tuple[Rows, bool]:
        term = search_term.strip()
        if not term or not self.search_fields:
            return queryset, False
        said = search.turns(term) if reads_content(request) else []
        if reads_content(request) and (until := search.behind()):
            messages.info(request, _still_reading(until))
        return queryset.filter(type(self).find(term, said)), False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False
