"""The ledger: every upstream attempt and what it used. It outlives the conversations."""

from django.contrib import admin
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.safestring import SafeString
from unfold.decorators import action, display

from conversations import wording
from conversations.admin import cells, finding
from conversations.admin.filters import KeyFilter, recent_values, since
from conversations.admin.ledger_page import ledger_page
from conversations.admin.record import RecordAdmin, yes_or_no
from conversations.models import Conversation, Turn, UsageEntry
from conversations.wording import TURN_COLOURS

ESTIMATED = yes_or_no("estimated")


@admin.register(UsageEntry)
class UsageAdmin(RecordAdmin):
    list_display = (
        "request_cell", "state", "model_path", "tokens_in", "tokens_out", "cached", "cost", "duration", "key", "when",
    )  # fmt: skip
    list_select_related = ("api_key",)
    list_filter = (KeyFilter, "status", recent_values("upstream", "upstream"), recent_values("model", "model"),
                   since("created_at"), "estimated")  # fmt: skip
    ordering = ("-id",)
    sortable_by = ()
    actions_list = ("export_page",)
    search_help_text = "Request, conversation, message or tool id"
    find = staticmethod(finding.usage)
    fieldsets = (
        ("Attempt", {"fields": ("turn", "conversation", "key", "attempt", "state", "when")}),
        ("Model", {"fields": ("requested_model", "upstream", "model", "returned_model")}),
        ("Used", {"fields": ("input_tokens", "output_tokens", "cache_read", "cache_write", "thinking_tokens",
                             ESTIMATED, "cost", "tool_count", "duration", "first_token")}),
    )  # fmt: skip
    readonly_fields = ("turn", "conversation", "key", "state", "when", "cost", "duration", "first_token", ESTIMATED)

    @action(description="Export", icon="download", url_path="export", permissions=["view"])
    def export_page(self, request: HttpRequest) -> HttpResponseBase:
        return ledger_page(self, request)

    @display(description="request", ordering="request_id")
    def request_cell(self, row: UsageEntry) -> SafeString:
        return cells.code(row.request_id)

    @display(description="conversation")
    def conversation(self, row: UsageEntry) -> SafeString:
        """A link while the conversation is there; its id for ever."""
        found = Conversation.objects.filter(
            api_key=row.api_key_id, external_id=row.conversation_id, ended_at=None
        ).first()
        name = row.conversation_id
        return cells.code_link(found, name, "toolchain_page") if found else cells.code(name)

    @display(description="turn")
    def turn(self, row: UsageEntry) -> SafeString:
        found = Turn.objects.filter(request_id=row.request_id, conversation__ended_at=None).only("request_id").first()
        return cells.code_link(found, row.request_id, "hops_page") if found else cells.code(row.request_id)

    @display(description="status", label=TURN_COLOURS)
    def state(self, row: UsageEntry) -> str:
        return row.status

    @display(description="model")
    def model_path(self, row: UsageEntry) -> SafeString:
        return cells.short(f"{row.upstream}/{row.model}")

    @display(description="in")
    def tokens_in(self, row: UsageEntry) -> str:
        """All of them, as on every other page; the next but one says how many of them came from a cache."""
        return wording.tokens(row.input_tokens + row.cache_read + row.cache_write, estimated=row.estimated)

    @display(description="out")
    def tokens_out(self, row: UsageEntry) -> str:
        return wording.tokens(row.output_tokens, estimated=row.estimated)

    @display(description="from cache")
    def cached(self, row: UsageEntry) -> str:
        return wording.count(row.cache_read)

    @display(description="cost")
    def cost(self, row: UsageEntry) -> str:
        return wording.money(row.cost_micros)

    @display(description="took")
    def duration(self, row: UsageEntry) -> SafeString:
        return cells.short(wording.milliseconds(row.duration_ms))

    @display(description="first token")
    def first_token(self, row: UsageEntry) -> str:
        return wording.milliseconds(row.first_token_ms)

    @display(description="API key")
    def key(self, row: UsageEntry) -> SafeString:
        return cells.short_link(row.api_key, row.api_key.name)

    @display(description="when")
    def when(self, row: UsageEntry) -> SafeString:
        return cells.moment(row.created_at)
