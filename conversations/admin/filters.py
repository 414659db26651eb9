"""What lists can be narrowed to. No filter counts or sorts a whole table to offer its choices."""

import datetime as dt
from collections.abc import Callable
from typing import Any

from django.contrib.admin import SimpleListFilter
from django.db.models import F, Model, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import DropdownFilter

from conversations import expiry, ids, wording
from conversations.models import ApiKey, ToolMapping, Turn

STUCK = dt.timedelta(minutes=10)
LOOP = b'"rule":"Loop"'  # as notes are stored
RECENT = 2_000  # rows that are looked at for the choices of a filter
SPANS = {
    "15m": ("last 15 minutes", dt.timedelta(minutes=15)),
    "1h": ("last hour", dt.timedelta(hours=1)),
    "24h": ("last 24 hours", dt.timedelta(hours=24)),
    "7d": ("last 7 days", dt.timedelta(days=7)),
    "30d": ("last 30 days", dt.timedelta(days=30)),
}

Rows = QuerySet[Any]
Choices = list[tuple[str, str]]


class KeyFilter(DropdownFilter):
    title = "API key"
    parameter_name = "key"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [(str(key.pk), str(key)) for key in ApiKey.objects.only("name", "prefix").order_by("name")[:500]]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        value = self.value()
        if not value or not value.isdecimal():
            return queryset
        # As an expression, so that no index by key is used: a list's order would have to be sorted for all its rows.
        of_key: Rows = queryset.alias(owner=F("api_key_id") + 0).filter(owner=int(value))
        return of_key


def at(moment: dt.datetime) -> dt.datetime:
    return moment


def minted(moment: dt.datetime) -> int:
    """For rows whose ids tell when they were made."""
    return ids.least(moment.timestamp())


def since(field: str, start: Callable[[dt.datetime], object] = at) -> type[SimpleListFilter]:
    """Rows whose `field` is in a span that ends now; `start` is what its column has where the span begins."""

    class SinceFilter(SimpleListFilter):
        title = "time"
        parameter_name = "since"

        def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
            return [(span, words) for span, (words, _) in SPANS.items()]

        def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
            span = SPANS.get(self.value() or "")
            return queryset.filter(**{f"{field}__gte": start(timezone.now() - span[1])}) if span else queryset

    return SinceFilter


def recent_values(field: str, words: str) -> type[DropdownFilter]:
    """The values that a column has in the newest rows; any other can still be given in the address."""

    class RecentValuesFilter(DropdownFilter):
        title = words
        parameter_name = field

        def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
            model: type[Model] = model_admin.model
            newest = model._default_manager.order_by("-pk").values_list(field, flat=True)[:RECENT]
            values = set(newest) | ({self.value()} if self.value() else set())
            return [(value, value) for value in sorted(filter(None, values))]

        def value(self) -> str | None:
            found: str | None = self.used_parameters.get(self.parameter_name)
            return found

        def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
            return queryset.filter(**{field: self.value()}) if self.value() else queryset

    return RecentValuesFilter


class StuckFilter(SimpleListFilter):
    title = "stuck tool calls"
    parameter_name = "stuck"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [("yes", "no result for ten minutes")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        if self.value() != "yes":
            return queryset
        stuck = ToolMapping.objects.filter(status="pending", created_at__lt=timezone.now() - STUCK)
        if queryset.model is ToolMapping:
            return queryset.filter(status="pending", created_at__lt=timezone.now() - STUCK)
        newest = stuck.order_by("-created_at").values_list("conversation", flat=True)[:RECENT]
        return queryset.filter(pk__in=list(dict.fromkeys(newest)))


class DueFilter(SimpleListFilter):
    title = "retention"
    parameter_name = "due"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [("yes", "due to be purged")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        if self.value() != "yes":
            return queryset
        oldest = expiry.inactive().order_by("last_activity").values_list("pk", flat=True)[:RECENT]
        return queryset.filter(pk__in=list(oldest))


class CostFilter(SimpleListFilter):
    title = "cost"
    parameter_name = "cost"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [(str(micros), f"over {wording.money(micros)}") for micros in (10_000, 100_000, 1_000_000, 10_000_000)]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        value = self.value() or ""
        return queryset.filter(cost_micros__gt=int(value)) if value.isdecimal() else queryset


def looping() -> list[int]:
    """Of the newest turns those in which a tool gave the same result for the same arguments again and again."""
    newest = Turn.objects.order_by("-pk").values_list("pk", "note_count", "notes")[:RECENT]
    return [pk for pk, count, notes in newest if count and LOOP in bytes(notes)]


class NotesFilter(SimpleListFilter):
    title = "repairs and notes"
    parameter_name = "notes"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        return [("yes", "with notes"), ("no", "without"), ("loop", "a loop was found")]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        match self.value():
            case "yes":
                return queryset.filter(note_count__gt=0)
            case "no":
                return queryset.filter(note_count=0)
            case "loop":
                return queryset.filter(pk__in=looping())
            case _:
                return queryset
