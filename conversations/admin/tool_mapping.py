"""Tool calls: the client's id on one side, the upstream's on the other."""

from typing import Any

from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from unfold.decorators import action, display
from unfold.enums import ActionVariant

from conversations import retention, wording
from conversations.admin import cells, finding
from conversations.admin.confirming import Question, confirmed
from conversations.admin.content import json_view, reads_content
from conversations.admin.filters import KeyFilter, StuckFilter, recent_values, since
from conversations.admin.record import RecordAdmin, Rows, yes_or_no
from conversations.admin.stored import CONTENT
from conversations.models import ToolMapping, Turn
from conversations.process import current
from conversations.wording import TOOL_COLOURS

IS_ERROR = yes_or_no("is_error")


@admin.register(ToolMapping)
class ToolMappingAdmin(RecordAdmin):
    list_display = ("tool", "outcome", "conversation_link", "model_path", "call_id", "result", "latency", "when")
    list_select_related = ("conversation", "turn")
    list_filter = (KeyFilter, "status", recent_values("tool_name", "tool"), recent_values("upstream", "upstream"),
                   recent_values("model", "model"), StuckFilter, since("created_at"))  # fmt: skip
    ordering = ("-id",)
    sortable_by = ()
    search_help_text = "Any id, tool name, or words that were said"
    find = staticmethod(finding.tool_mappings)
    living = {"conversation__ended_at": None}
    deferred = ("arguments", "state", *(f"turn__{field}" for field in CONTENT))
    actions_detail = ("forget_page",)
    fieldsets = (
        ("Call", {"fields": ("tool_name", "status", "tool_use_id", "conversation_link", "turn_link", "ordinal",
                             "when")}),
        ("Arguments", {"fields": ("arguments_shown",)}),
        ("Result", {"fields": (IS_ERROR, "result", "latency", "answered_in", "answered_at")}),
        ("Upstream", {"fields": ("upstream", "model", "upstream_name", "upstream_call_id", "opaque")}),
    )  # fmt: skip
    readonly_fields = ("conversation_link", "turn_link", "arguments_shown", "result", "latency", "answered_in",
                       "opaque", "when", IS_ERROR)  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Rows:
        rows: Rows = super().get_queryset(request).select_related("conversation", "turn")
        return rows

    def get_fieldsets(self, request: HttpRequest, obj: ToolMapping | None = None) -> Any:
        return [part for part in self.fieldsets if part[0] != "Arguments" or reads_content(request)]

    def has_forget_permission(self, request: HttpRequest, object_id: object = None) -> bool:
        return request.user.has_perm("conversations.delete_toolmapping")

    @action(
        description="Forget", icon="delete", url_path="forget", variant=ActionVariant.DANGER, permissions=["forget"]
    )
    def forget_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        text = (
            "The bridge will no longer know this call: a lone result for it is refused, and its opaque state is lost. "
            "Turns that send the whole history go on, without that state."
        )
        facts = (("Tool", row.tool_name), ("Id", row.tool_use_id), ("Conversation", row.conversation.external_id))
        question = Question("Forget this tool call?", text, "Forget", facts, danger=True, back=cells.url(row))

        def forget() -> str:
            retention.forget(row)
            current().hear("forgotten", str(row.conversation_id))
            self.log_change(request, row.conversation, f"Forgot {row.tool_use_id}")
            return f"{row.tool_use_id} is forgotten."

        return confirmed(self, request, question, forget, cells.url(row.conversation, "toolchain_page"))

    @display(description="tool", ordering="tool_name", header=True)
    def tool(self, row: ToolMapping) -> list[object]:
        return [cells.short(row.tool_name), cells.code(row.tool_use_id)]

    @display(description="status", label=TOOL_COLOURS)
    def outcome(self, row: ToolMapping) -> str:
        return row.status

    @display(description="conversation")
    def conversation_link(self, row: ToolMapping) -> SafeString:
        return cells.code_link(row.conversation, row.conversation.external_id, "toolchain_page")

    @display(description="turn")
    def turn_link(self, row: ToolMapping) -> SafeString:
        return cells.code_link(row.turn, row.turn.request_id, "hops_page")

    @display(description="answered in")
    def answered_in(self, row: ToolMapping) -> SafeString:
        found = Turn.objects.filter(pk=row.answered_turn).only("request_id").first() if row.answered_turn else None
        return cells.code_link(found, found.request_id, "hops_page") if found else SafeString(wording.NONE)

    @display(description="model")
    def model_path(self, row: ToolMapping) -> SafeString:
        return cells.short(f"{row.upstream}/{row.model}")

    @display(description="upstream's id")
    def call_id(self, row: ToolMapping) -> SafeString:
        return cells.code(row.upstream_call_id)

    @display(description="result")
    def result(self, row: ToolMapping) -> str:
        return wording.size(row.result_size) if row.answered_at else wording.NONE

    @display(description="latency")
    def latency(self, row: ToolMapping) -> str:
        """From the call to its result: the tool's time and the client's."""
        if row.answered_at is None:
            return wording.NONE
        return wording.milliseconds((row.answered_at - row.created_at).total_seconds() * 1_000)

    @display(description="arguments")
    def arguments_shown(self, row: ToolMapping) -> SafeString:
        return json_view(row.call_arguments, "arguments")

    @display(description="opaque state")
    def opaque(self, row: ToolMapping) -> str:
        return f"kept, {wording.size(len(row.state))}" if row.state else "none"

    @display(description="called")
    def when(self, row: ToolMapping) -> SafeString:
        return cells.moment(row.created_at)
