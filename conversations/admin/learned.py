"""What upstreams taught by refusing a parameter, and what rests. A lesson can be forgotten; a rest ends by itself.

Operators may begin and end a rest, too.
"""

from typing import Any

import msgspec
from django.contrib import admin
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from unfold.decorators import action, display

from conversations import routes
from conversations.admin import cells
from conversations.admin.configuration import RoutingAdmin
from conversations.admin.confirming import Choice, Question, confirmed
from conversations.admin.connect_page import upstream_names
from conversations.admin.record import RecordAdmin
from conversations.models import Learned, Rest
from conversations.process import current
from translation.errors import InvalidRequest
from translation.remedies import Remedy

OTHERWISE = {
    "tools_without_reasoning": "requests with tools go without reasoning",
    "json_schemas": "tools go as JSON Schemas",
}
MINUTES = (("5", "5 minutes"), ("15", "15 minutes"), ("60", "an hour"), ("480", "8 hours"))


def taught(raw: str) -> str:
    """A remedy in words; as it is kept, where a newer version kept it."""
    try:
        remedy = msgspec.json.decode(raw, type=Remedy)
    except msgspec.DecodeError:
        return raw
    left_out = (f"{name} is left out" for name in remedy.drop)
    renamed = (f"{old} goes as {new}" for old, new in remedy.rename)
    longest = (f"answers end after {most:,} tokens" for most in (remedy.max_output,) if most)
    fewest = (f"no more than {most:,} tools go" for most in (remedy.tool_limit,) if most)
    shortest = (f"{most:,} characters of a tool's description go" for most in (remedy.description_limit,) if most)
    deepest = (f"schemas go {most} levels deep" for most in (remedy.schema_levels,) if most)
    other = (words for name, words in OTHERWISE.items() if getattr(remedy, name))
    return "; ".join((*left_out, *renamed, *longest, *fewest, *shortest, *deepest, *other)) or raw


@admin.register(Learned)
class LearnedAdmin(RoutingAdmin):
    about = (
        "When an upstream refuses a parameter, the bridge leaves it out or renames it from then on: that is a lesson."
    )
    list_display = ("upstream", "model_name", "lesson", "said", "learned")
    list_filter = ("upstream",)
    search_fields = ("upstream", "model", "why")
    ordering = ("-learned_at",)
    fields = readonly_fields = ("upstream", "model", "lesson", "why", "learned_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @display(description="model", ordering="model")
    def model_name(self, row: Learned) -> SafeString:
        return cells.short(row.model)

    @display(description="since then", ordering="remedy")
    def lesson(self, row: Learned) -> str:
        return taught(row.remedy)

    @display(description="what the upstream said")
    def said(self, row: Learned) -> SafeString:
        return cells.short(row.why)

    @display(description="learned", ordering="learned_at")
    def learned(self, row: Learned) -> SafeString:
        return cells.moment(row.learned_at)


@admin.register(Rest)
class RestAdmin(RecordAdmin):
    about = "An upstream that fails, or a key of it that is refused, is left alone for a while: that is a rest."
    list_display = ("upstream", "what", "reason", "state", "began", "until")
    search_fields = ()
    ordering = ("-until",)
    fields = ("upstream", "what", "reason", "state", "since", "until")
    readonly_fields = ("what", "state")
    actions_list = ("rest_page",)
    actions_detail = ("wake_page",)

    def has_act_permission(self, request: HttpRequest, object_id: object = None) -> bool:
        return request.user.has_perm("conversations.change_upstream")

    @action(description="Rest an upstream", icon="bedtime", url_path="rest", permissions=["act"])
    def rest_page(self, request: HttpRequest) -> HttpResponse:
        names = upstream_names()
        given = request.POST if request.method == "POST" else request.GET
        upstream, minutes = given.get("upstream", ""), given.get("minutes", "15")
        text = "Requests go to the fallbacks of their routes meanwhile; where there is none, it is asked all the same."
        back = reverse("admin:conversations_rest_changelist")
        choices = (
            Choice("upstream", "Upstream", tuple((name, name) for name in names), upstream),
            Choice("minutes", "For", MINUTES, minutes),
        )
        question = Question("Let an upstream rest?", text, "Let it rest", back=back, choices=choices)

        def rest() -> str:
            if upstream not in names or minutes not in dict(MINUTES):
                raise InvalidRequest("no such upstream, or no such time")
            row = routes.rest(upstream, int(minutes), request.user.get_username())
            current().hear("routes", upstream)
            self.log_change(request, row, f"Rests for {minutes} minutes")
            return f"{upstream} rests for {dict(MINUTES)[minutes]}."

        return confirmed(self, request, question, rest)

    @action(description="Wake", icon="wb_sunny", url_path="wake", permissions=["act"])
    def wake_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        text = "It and all its keys are asked again, by every process within a second."
        facts = (("Upstream", row.upstream), ("Reason", row.reason))
        question = Question("Wake this upstream?", text, "Wake", facts, back=cells.url(row))

        def wake() -> str:
            routes.wake(row.upstream)
            current().hear("wake", row.upstream)
            self.log_change(request, row, "Woken")
            return f"{row.upstream} is awake."

        return confirmed(self, request, question, wake, reverse("admin:conversations_rest_changelist"))

    @display(description="what")
    def what(self, row: Rest) -> str:
        return f"key {row.key}" if row.key else "the upstream"

    @display(description="state", label={"resting": "warning", "over": "success"})
    def state(self, row: Rest) -> str:
        return "over" if row.is_over else "resting"

    @display(description="since", ordering="since")
    def began(self, row: Rest) -> SafeString:
        return cells.moment(row.since)
