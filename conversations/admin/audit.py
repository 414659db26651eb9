"""The audit: which operator changed, read, exported or replayed what. Entries outlive what they are about."""

from operator import itemgetter
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.contrib.filters.admin import DropdownFilter
from unfold.decorators import display

from conversations import wording
from conversations.admin import cells
from conversations.admin.filters import Choices, since
from conversations.admin.record import RecordAdmin, Rows
from conversations.admin.viewer import may_open

OPERATORS = 500


class OperatorFilter(DropdownFilter):
    title = "operator"
    parameter_name = "operator"

    def lookups(self, request: HttpRequest, model_admin: object) -> Choices:
        names = User.objects.filter(is_staff=True).order_by("username").values_list("pk", "username")
        return [(str(pk), name) for pk, name in names[:OPERATORS]]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        value = self.value() or ""
        return queryset.filter(user=int(value)) if value.isdecimal() else queryset


class KindFilter(DropdownFilter):
    """What has pages here; Django knows of more."""

    title = "kind"
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Choices:
        kinds = ContentType.objects.get_for_models(*model_admin.admin_site._registry).values()
        return sorted(((str(kind.pk), _named(kind)) for kind in kinds), key=itemgetter(1))

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        value = self.value() or ""
        return queryset.filter(content_type=int(value)) if value.isdecimal() else queryset


def _named(kind: ContentType) -> str:
    return wording.NAMES.get(kind.name, kind.name)


@admin.register(LogEntry)
class AuditAdmin(RecordAdmin):
    list_display = ("when", "user", "what", "kind", "subject")
    list_display_links = ("when",)
    list_select_related = ("user", "content_type")
    list_filter = (OperatorFilter, KindFilter, since("action_time"))
    ordering = ("-id",)
    sortable_by = ()
    search_fields = ("user__username", "object_repr", "change_message")
    search_help_text = "Operator, what was done, or name or id of what"
    fields = ("when_exactly", "user", "what", "kind", "subject")
    readonly_fields = ("when_exactly", "what", "kind", "subject")

    def get_search_results(self, request: HttpRequest, queryset: Rows, search_term: str) -> tuple[Rows, bool]:
        """By its own words; nothing of it was said in a conversation."""
        found: tuple[Rows, bool] = ModelAdmin.get_search_results(self, request, queryset, search_term)
        return found

    @display(description="when")
    def when(self, row: LogEntry) -> SafeString:
        return cells.moment(row.action_time)

    @display(description="when")
    def when_exactly(self, row: LogEntry) -> Any:
        return row.action_time

    @display(description="what")
    def what(self, row: LogEntry) -> SafeString:
        return cells.short(row.get_change_message() or row.get_action_flag_display())

    @display(description="kind")
    def kind(self, row: LogEntry) -> str:
        return _named(row.content_type) if row.content_type else wording.NONE

    @display(description="of")
    def subject(self, row: LogEntry) -> SafeString:
        model = row.content_type.model_class() if row.content_type else None
        address = row.get_admin_url() if model is not None and may_open(model) and not row.is_deletion() else None
        return cells.led(address or "", row.object_repr or wording.NONE)
