"""Conversations: found, held, released, terminated."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.safestring import SafeString
from unfold.decorators import action, display
from unfold.enums import ActionVariant

from conversations import retention, wording
from conversations.admin import cells, finding
from conversations.admin.confirming import Question, confirmed
from conversations.admin.export_page import export_page
from conversations.admin.filters import DueFilter, KeyFilter, StuckFilter, recent_values, since
from conversations.admin.record import RecordAdmin, Rows
from conversations.admin.toolchain_page import toolchain_page
from conversations.models import Conversation, ToolExecution, ToolMapping, Turn, TurnStatus, UsageEntry
from conversations.process import current
from conversations.wording import TURN_COLOURS, many

PURGE_SECONDS = 5.0  # an operator waits for it; beat does the rest


class StatusFilter(admin.SimpleListFilter):
    title = "last turn"
    parameter_name = "last_status"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [(status.value, status.value) for status in TurnStatus]

    def queryset(self, request: HttpRequest, queryset: Rows) -> Rows:
        return queryset.filter(last_status=self.value()) if self.value() else queryset


@admin.register(Conversation)
class ConversationAdmin(RecordAdmin):
    about = "The first request of a client begins one. “Connect” has the lines to paste."
    list_display = ("name", "outcome", "model_name", "turns", "tools", "hold", "key", "active")
    row_page = "toolchain_page"
    list_select_related = ("api_key",)
    list_filter = (KeyFilter, StatusFilter, recent_values("last_model", "model"), "held", "recognised", StuckFilter,
                   DueFilter, since("last_activity"))  # fmt: skip
    ordering = ("-last_activity",)
    sortable_by = ("active",)
    search_help_text = "Any id, tool name, error, or words that were said"
    find = staticmethod(finding.conversations)
    living = {"ended_at": None}
    actions_list = ("purge_page",)
    actions_detail = ("toolchain_page", "export_page", "hold_page", "release_page", "terminate_page")
    fieldsets = (
        ("Conversation", {"fields": ("external_id", "key", "recognised", "hold", "outcome", "last_model")}),
        ("Size", {"fields": ("turns", "tools", "runs", "message_total", "ledger")}),
        ("Session", {"fields": ("session", "agent_id", "parent_agent_id")}),
        ("Times", {"fields": ("created_at", "last_activity")}),
    )
    readonly_fields = ("key", "hold", "outcome", "turns", "tools", "runs", "message_total", "ledger", "session")

    def get_queryset(self, request: HttpRequest) -> Rows:
        rows: Rows = super().get_queryset(request).select_related("api_key")
        return rows

    # ------------------------------------------------------------ columns

    @display(description="conversation id", ordering="external_id")
    def name(self, row: Conversation) -> SafeString:
        return cells.code(row.external_id)

    @display(description="last turn", label=TURN_COLOURS)
    def outcome(self, row: Conversation) -> str:
        return row.last_status

    @display(description="hold", label={"held": "info"})
    def hold(self, row: Conversation) -> str:
        return "held" if row.held else ""

    @display(description="model")
    def model_name(self, row: Conversation) -> SafeString:
        return cells.short(row.last_model)

    @display(description="API key")
    def key(self, row: Conversation) -> SafeString:
        return cells.short_link(row.api_key, row.api_key.name)

    @display(description="turns")
    def turns(self, row: Conversation) -> SafeString:
        return cells.listed(Turn, wording.count(row.turn_count), conversation=row.pk)

    @display(description="tool calls")
    def tools(self, row: Conversation) -> SafeString:
        return cells.listed(ToolMapping, wording.count(row.tool_count), conversation=row.pk)

    @display(description="runs of hosted tools")
    def runs(self, row: Conversation) -> SafeString:
        return cells.listed(ToolExecution, wording.count(row.tool_executions.count()), conversation=row.pk)

    @display(description="messages")
    def message_total(self, row: Conversation) -> str:
        return wording.count(row.message_total)

    @display(description="ledger")
    def ledger(self, row: Conversation) -> SafeString:
        return cells.shown(UsageEntry, "attempts and usage", q=row.external_id)

    @display(description="session")
    def session(self, row: Conversation) -> Any:
        return cells.listed(Conversation, row.session_id, q=row.session_id) if row.session_id else wording.NONE

    @display(description="last activity", ordering="last_activity")
    def active(self, row: Conversation) -> SafeString:
        return cells.moment(row.last_activity)

    # ------------------------------------------------------------ what can be done

    @action(description="Export", icon="download", url_path="export", permissions=["view"])
    def export_page(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        return export_page(self, request, self._row(request, object_id))

    @action(description="Purge now", icon="mop", url_path="purge", permissions=["act"])
    def purge_page(self, request: HttpRequest) -> HttpResponse:
        text = "Conversations that were inactive for longer than is configured are deleted, held ones stay."
        due = retention.backlog()
        facts = (
            ("Conversations due", wording.count(due.conversations)),
            ("Texts due", wording.count(due.contents)),
            ("Usage entries due", wording.count(due.entries)),
        )
        back = reverse("admin:conversations_conversation_changelist")
        question = Question("Purge inactive conversations now?", text, "Purge", facts, danger=True, back=back)

        def purge() -> str:
            deleted = retention.purge(budget=PURGE_SECONDS).conversations
            LogEntry.objects.create(
                user_id=request.user.pk or 0, content_type=ContentType.objects.get_for_model(Conversation),
                object_repr="",
                action_flag=CHANGE, change_message=f"Purged {many(deleted, 'conversation')}",
            )  # fmt: skip
            return f"Purged {many(deleted, 'conversation')}; still due: {retention.backlog().conversations:,}."

        return confirmed(self, request, question, purge)

    def has_act_permission(self, request: HttpRequest, object_id: object = None) -> bool:
        return request.user.has_perm("conversations.change_conversation")

    @action(description="Tool chain", icon="account_tree", url_path="toolchain", permissions=["view"])
    def toolchain_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return toolchain_page(self, request, object_id)

    @action(description="Hold", icon="lock", url_path="hold", permissions=["act"])
    def hold_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self._row(request, object_id)
        text = "It will not be purged, and nobody can terminate it, until it is released."
        return self._set_held(request, row, Question("Hold this conversation?", text, "Hold"), held=True)

    @action(description="Release", icon="lock_open", url_path="release", permissions=["act"])
    def release_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self._row(request, object_id)
        text = "It will be purged like any other once it has been inactive for long enough."
        return self._set_held(request, row, Question("Release this conversation?", text, "Release"), held=False)

    @action(description="Terminate", icon="delete", url_path="terminate", variant=ActionVariant.DANGER,
            permissions=["act"])  # fmt: skip
    def terminate_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self._row(request, object_id)
        question = Question(
            "Terminate this conversation?",
            "All of its messages, turns and tool mappings are deleted at once and cannot be brought back. Turns that "
            "are running end with an error. Its id may be used afresh. The ledger keeps what it used.",
            "Terminate",
            _facts(row),
            danger=True,
            back=cells.url(row),
        )

        def terminate() -> str:
            deleted = retention.terminate(row)
            current().hear("conversation", str(row.pk))
            self.log_change(request, row, f"Terminated {row.external_id}")
            counts = f"{many(deleted.turns, 'turn')}, {many(deleted.tool_mappings, 'tool mapping')} deleted"
            return f"{row.external_id} was terminated: {counts}."

        return confirmed(self, request, question, terminate, reverse("admin:conversations_conversation_changelist"))

    def get_actions_detail(self, request: HttpRequest, object_id: int) -> list[Any]:
        row = self.get_object(request, str(object_id))  # None for what is no number, too
        held = row is not None and row.held
        hidden = {"hold_page", "terminate_page"} if held else {"release_page"}
        return [
            item
            for item in super().get_actions_detail(request, object_id)
            if item.action_name.removeprefix("conversations_conversation_") not in hidden
        ]

    def _set_held(self, request: HttpRequest, row: Conversation, question: Question, *, held: bool) -> HttpResponse:
        done = "held" if held else "released"

        def act() -> str:
            Conversation.objects.filter(pk=row.pk, ended_at=None).update(held=held)
            self.log_change(request, row, done.capitalize())
            return f"{row.external_id} is {done}."

        asked = Question(question.title, question.text, question.button, _facts(row), back=cells.url(row))
        return confirmed(self, request, asked, act)

    def _row(self, request: HttpRequest, object_id: str) -> Conversation:
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        found: Conversation = row
        return found


def _facts(row: Conversation) -> tuple[tuple[str, str], ...]:
    return (
        ("Conversation", row.external_id),
        ("API key", str(row.api_key)),
        ("Turns", wording.count(row.turn_count)),
        ("Tool calls", wording.count(row.tool_count)),
    )
