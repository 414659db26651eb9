"""Turns: one request, every hop of it."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from unfold.decorators import action, display

from conversations import wording
from conversations.admin import cells, finding
from conversations.admin.filters import CostFilter, KeyFilter, NotesFilter, minted, recent_values, since
from conversations.admin.hops_page import hops_page
from conversations.admin.record import RecordAdmin, Rows, yes_or_no
from conversations.admin.replay_page import may_replay, replay_page
from conversations.admin.stored import CONTENT
from conversations.models import ToolMapping, Turn, UsageEntry
from conversations.wording import TURN_COLOURS

STREAM, ESTIMATED = yes_or_no("stream"), yes_or_no("usage_estimated")


@admin.register(Turn)
class TurnAdmin(RecordAdmin):
    list_display = ("request_cell", "outcome", "conversation_link", "model_path", "tokens", "cost", "tools",
                    "notes_shown", "duration", "when")  # fmt: skip
    list_select_related = ("conversation",)
    list_filter = (KeyFilter, "status", recent_values("upstream", "upstream"),
                   recent_values("resolved_model", "model"), recent_values("error_type", "error"),
                   NotesFilter, CostFilter, since("pk", minted))  # fmt: skip
    ordering = ("-id",)
    sortable_by = ()
    search_help_text = "Any id, tool name, error, or words that were said"
    find = staticmethod(finding.turns)
    living = {"conversation__ended_at": None}
    deferred = CONTENT
    row_page = "hops_page"
    actions_detail = ("hops_page", "replay_page")
    fieldsets = (
        ("Turn", {"fields": ("request_id", "message_id", "status", "conversation_link", "key", "started_at",
                             STREAM)}),
        ("Way", {"fields": ("requested_model", "model_path", "returned_model", "stop_reason", "http_status", "error")}),
        ("Used", {"fields": ("input_tokens", "output_tokens", "cache_read", "cache_write", "thinking_tokens",
                             ESTIMATED, "cost", "tools", "ledger", "notes_shown")}),
        ("Timing", {"fields": ("in_bridge", "first_byte", "first_token", "duration", "process")}),
    )  # fmt: skip
    readonly_fields = ("conversation_link", "key", "model_path", "error", "cost", "tools", "ledger", "notes_shown",
                       "in_bridge", "first_byte", "first_token", "duration", STREAM, ESTIMATED)  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> Rows:
        rows: Rows = super().get_queryset(request).select_related("conversation", "api_key")
        return rows

    @action(description="Every hop", icon="route", url_path="hops", permissions=["view"])
    def hops_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return hops_page(self, request, object_id)

    @action(description="Replay", icon="replay", url_path="replay", permissions=["replay"])
    def replay_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return replay_page(self, request, object_id)

    def has_replay_permission(self, request: HttpRequest, object_id: object = None) -> bool:
        return may_replay(request)

    @display(description="request")
    def request_cell(self, row: Turn) -> SafeString:
        return cells.code(row.request_id)

    @display(description="status", label=TURN_COLOURS)
    def outcome(self, row: Turn) -> tuple[str, str]:
        """Why it failed is seen without opening it, if its type says more than that it did."""
        why = row.error_type.removesuffix("_error").replace("_", " ")
        return row.status, why if why not in {"", "api"} else row.status

    @display(description="conversation")
    def conversation_link(self, row: Turn) -> SafeString:
        return cells.code_link(row.conversation, row.conversation.external_id, "toolchain_page")

    @display(description="API key")
    def key(self, row: Turn) -> SafeString:
        return cells.link(row.api_key, str(row.api_key))

    @display(description="model")
    def model_path(self, row: Turn) -> SafeString:
        return cells.short(f"{row.upstream}/{row.resolved_model}" if row.upstream else row.requested_model)

    @display(description="error")
    def error(self, row: Turn) -> str:
        """What it said is content: it stands with the hops."""
        return row.error_type or wording.NONE

    @display(description="in / out")
    def tokens(self, row: Turn) -> SafeString:
        read, guessed = row.input_tokens + row.cache_read + row.cache_write, row.usage_estimated
        written = wording.tokens(row.output_tokens, estimated=guessed)
        return cells.short(f"{wording.tokens(read, estimated=guessed)} / {written}")

    @display(description="calls")
    def tools(self, row: Turn) -> Any:
        return cells.listed(ToolMapping, str(row.tool_count), turn=row.pk) if row.tool_count else wording.NONE

    @display(description="ledger")
    def ledger(self, row: Turn) -> SafeString:
        return cells.shown(UsageEntry, "attempts and usage", q=row.request_id)

    @display(description="notes")
    def notes_shown(self, row: Turn) -> str:
        return str(row.note_count) if row.note_count else wording.NONE

    @display(description="cost")
    def cost(self, row: Turn) -> str:
        return wording.money(row.cost_micros)

    @display(description="in the bridge")
    def in_bridge(self, row: Turn) -> str:
        return wording.milliseconds(row.state_ms)

    @display(description="first byte")
    def first_byte(self, row: Turn) -> str:
        return wording.milliseconds(row.first_byte_ms)

    @display(description="first token")
    def first_token(self, row: Turn) -> str:
        return wording.milliseconds(row.first_token_ms)

    @display(description="took")
    def duration(self, row: Turn) -> SafeString:
        return cells.short(wording.milliseconds(row.duration_ms))

    @display(description="when")
    def when(self, row: Turn) -> SafeString:
        return cells.moment(row.started_at)
