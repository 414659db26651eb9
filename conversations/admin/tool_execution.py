"""Runs of hosted tools."""

from typing import Any

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.decorators import display

from conversations import wording
from conversations.admin import cells, finding
from conversations.admin.content import json_view, reads_content
from conversations.admin.filters import KeyFilter, recent_values, since
from conversations.admin.record import RecordAdmin, Rows, yes_or_no
from conversations.admin.stored import CONTENT
from conversations.models import ToolExecution
from conversations.store.hosted import progressed
from conversations.store.packing import unpacked

COLOURS = {"queued": "warning", "running": "info", "complete": "success", "failed": "danger", "cancelled": "warning"}
IS_ERROR, LONG = yes_or_no("is_error"), yes_or_no("long_running")


def _found(term: str, said: finding.Said = ()) -> Q:
    return (
        Q(tool_use_id=term)
        | Q(turn__in=list(said))
        | Q(tool_name=term)
        | Q(conversation__in=finding.conversation_ids(term))
    )


@admin.register(ToolExecution)
class ToolExecutionAdmin(RecordAdmin):
    about = "Each call of a tool that the bridge runs itself is a run."
    list_display = ("tool_shown", "outcome", "conversation_link", "how_far", "size", "took", "tries", "when")
    list_select_related = ("conversation", "turn")
    list_filter = (KeyFilter, "status", "long_running", recent_values("tool_name", "tool"), since("created_at"))
    ordering = ("-id",)
    sortable_by = ()
    search_help_text = "Tool id or name, conversation id"
    find = staticmethod(_found)
    living = {"conversation__ended_at": None}
    deferred = ("arguments", "state", "result", *(f"turn__{field}" for field in CONTENT))
    fieldsets = (
        ("Run", {"fields": ("server_name", "tool_name", "registered", "outcome", "tool_use_id", "conversation_link",
                            "turn_link", "round_number", LONG, "how_far")}),
        ("Content", {"fields": ("arguments_shown", "result_shown")}),
        ("Outcome", {"fields": (IS_ERROR, "error", "size", "tries", "took", "when", "finished_at")}),
    )  # fmt: skip
    readonly_fields = ("outcome", "how_far", "conversation_link", "turn_link", "arguments_shown", "result_shown",
                       "registered", "size", "took", "tries", "when", IS_ERROR, LONG)  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Rows:
        rows: Rows = super().get_queryset(request).select_related("conversation", "turn")
        return rows

    def get_fieldsets(self, request: HttpRequest, obj: ToolExecution | None = None) -> Any:
        return [part for part in self.fieldsets if part[0] != "Content" or reads_content(request)]

    @display(description="tool", header=True)
    def tool_shown(self, row: ToolExecution) -> list[object]:
        return [cells.short(f"{row.server_name}: {row.tool_name}"), cells.code(row.tool_use_id)]

    @display(description="status", label=COLOURS)
    def outcome(self, row: ToolExecution) -> str:
        return row.status

    @display(description="progress")
    def how_far(self, row: ToolExecution) -> str:
        return wording.harmless(str(progressed(row.progress) or wording.NONE))

    @display(description="conversation")
    def conversation_link(self, row: ToolExecution) -> SafeString:
        return cells.code_link(row.conversation, row.conversation.external_id, "toolchain_page")

    @display(description="turn")
    def turn_link(self, row: ToolExecution) -> SafeString:
        return cells.code_link(row.turn, row.turn.request_id, "hops_page")

    @display(description="hosted tool")
    def registered(self, row: ToolExecution) -> SafeString:
        return cells.link(row.tool, row.tool.name) if row.tool is not None else SafeString(wording.NONE)

    @display(description="arguments")
    def arguments_shown(self, row: ToolExecution) -> SafeString:
        return json_view(bytes(row.arguments), "arguments")

    @display(description="result")
    def result_shown(self, row: ToolExecution) -> SafeString:
        return json_view(unpacked(bytes(row.result)), "result")

    @display(description="result's size")
    def size(self, row: ToolExecution) -> str:
        return wording.size(row.result_size) if row.finished_at else wording.NONE

    @display(description="took")
    def took(self, row: ToolExecution) -> str:
        return wording.milliseconds(row.duration_ms) if row.finished_at else wording.NONE

    @display(description="attempts")
    def tries(self, row: ToolExecution) -> str:
        return wording.count(row.attempts)

    @display(description="called")
    def when(self, row: ToolExecution) -> SafeString:
        return cells.moment(row.created_at)
