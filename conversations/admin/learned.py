"""What upstreams taught by refusing a parameter, and what rests. A lesson can be forgotten; a rest ends by itself."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display

from conversations.admin import cells
from conversations.admin.configuration import RoutingAdmin
from conversations.admin.record import RecordAdmin
from conversations.models import Learned, Rest


@admin.register(Learned)
class LearnedAdmin(RoutingAdmin):
    list_display = ("upstream", "model", "lesson", "said", "learned")
    list_filter = ("upstream",)
    search_fields = ("upstream", "model", "why")
    ordering = ("-learned_at",)
    readonly_fields = ("upstream", "model", "remedy", "why", "learned_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @display(description="remedy", ordering="remedy")
    def lesson(self, row: Learned) -> SafeString:
        return cells.code(row.remedy)

    @display(description="what the upstream said")
    def said(self, row: Learned) -> SafeString:
        return cells.short(row.why)

    @display(description="learned", ordering="learned_at")
    def learned(self, row: Learned) -> SafeString:
        return cells.moment(row.learned_at)


@admin.register(Rest)
class RestAdmin(RecordAdmin):
    list_display = ("upstream", "what", "reason", "state", "began", "until")
    search_fields = ()
    ordering = ("-until",)
    fields = ("upstream", "what", "reason", "state", "since", "until")
    readonly_fields = ("what", "state")

    @display(description="what")
    def what(self, row: Rest) -> str:
        return f"key {row.key}" if row.key else "the upstream"

    @display(description="state", label={"resting": "warning", "over": "success"})
    def state(self, row: Rest) -> str:
        return "over" if row.is_over else "resting"

    @display(description="since", ordering="since")
    def began(self, row: Rest) -> SafeString:
        return cells.moment(row.since)
