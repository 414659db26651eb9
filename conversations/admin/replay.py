"""Replays: what a turn's upstream, or another one, answered when it was asked again."""

from django.contrib import admin
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString
from unfold.decorators import action, display

from conversations import wording
from conversations.admin import cells, finding
from conversations.admin.record import RecordAdmin
from conversations.admin.replay_page import compare_page
from conversations.models import Replay, Turn
from conversations.wording import TURN_COLOURS


def _find(term: str, said: finding.Said = ()) -> Q:
    return Q(turn__in=Turn.objects.filter(finding.turns(term, said)).values("pk")[: finding.MOST])


@admin.register(Replay)
class ReplayAdmin(RecordAdmin):
    about = "The page of a turn runs it again, as it was or through another model, and compares the answers."
    list_display = ("target_cell", "turn_cell", "outcome", "exact", "cost", "took", "who", "when")
    list_select_related = ("turn",)
    list_filter = ("status", "exact")
    ordering = ("-id",)
    sortable_by = ()
    search_help_text = "Request, message, conversation or tool id of the turn"
    find = staticmethod(_find)
    living = {"conversation__ended_at": None}
    deferred = ("sent", "notes", "answer", "content")
    row_page = "compare_page"
    actions_detail = ("compare_page",)
    fields = ("turn_cell", "target", "status", "exact", "who", "created_at", "cost", "took")
    readonly_fields = ("turn_cell", "cost", "took")

    @action(description="Compare", icon="compare_arrows", url_path="compare", permissions=["view"])
    def compare_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return compare_page(self, request, object_id)

    @display(description="turn")
    def turn_cell(self, row: Replay) -> SafeString:
        return cells.code_link(row.turn, row.turn.request_id, "hops_page")

    @display(description="target")
    def target_cell(self, row: Replay) -> SafeString:
        return cells.short(row.target)

    @display(description="status", label=TURN_COLOURS)
    def outcome(self, row: Replay) -> str:
        return "aborted" if row.interrupted else row.status

    @display(description="cost")
    def cost(self, row: Replay) -> str:
        return wording.money(row.cost_micros)

    @display(description="took")
    def took(self, row: Replay) -> str:
        return wording.milliseconds(row.duration_ms)

    @display(description="when")
    def when(self, row: Replay) -> SafeString:
        return cells.moment(row.created_at)
