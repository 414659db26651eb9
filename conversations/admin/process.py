"""Web processes: which are alive."""

from django.contrib import admin
from django.utils import timezone
from django.utils.safestring import SafeString
from unfold.decorators import display

from conversations import wording
from conversations.admin import cells
from conversations.admin.record import RecordAdmin
from conversations.deaths import LONG_AGO
from conversations.expiry import DEAD_AFTER
from conversations.models import Process


@admin.register(Process)
class ProcessAdmin(RecordAdmin):
    list_display = ("host", "pid", "alive", "started", "seen")
    search_fields = ()
    ordering = ("-seen_at",)
    fields = ("host", "pid", "alive", "started_at", "seen")
    readonly_fields = ("alive", "seen")

    @display(description="state", label={"alive": "success", "gone": "danger"})
    def alive(self, row: Process) -> str:
        return "alive" if row.seen_at > timezone.now() - DEAD_AFTER else "gone"

    @display(description="started", ordering="started_at")
    def started(self, row: Process) -> SafeString:
        return cells.moment(row.started_at)

    @display(description="last seen", ordering="seen_at")
    def seen(self, row: Process) -> SafeString:
        """One that was found dead has no time of its own."""
        return cells.moment(row.seen_at) if row.seen_at > LONG_AGO else SafeString(wording.NONE)
