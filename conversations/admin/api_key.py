"""API keys: issued (the secret is shown once, and kept nowhere), changed, revoked."""

import datetime as dt
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.safestring import SafeString
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_variables
from unfold.admin import ModelAdmin
from unfold.decorators import action, display
from unfold.enums import ActionVariant

from conversations import keys, wording
from conversations.admin import cells
from conversations.admin.confirming import Question, confirmed
from conversations.models import ApiKey, Conversation, UsageEntry
from conversations.process import current
from conversations.store import accounts
from conversations.store.page import PageDatabase

FIELDSETS: Any = (
    (None, {"fields": ("name", "storage", "expires_at", "allowed_routes", "hosted_tools")}),
    ("Limits", {"fields": ("requests_per_minute", "concurrent_streams"), "description": "Empty: no limit."}),
    (
        "Budgets",
        {
            "fields": ("daily_tokens", "monthly_tokens", "daily_dollars", "monthly_dollars"),
            "description": "Empty: as much as it likes.",
        },
    ),
    (
        "Retention",
        {
            "fields": ("content_hours", "inactivity_hours", "ledger_days"),
            "description": "Empty: as for every key "
            "(BRIDGE_CONTENT_HOURS, BRIDGE_INACTIVITY_HOURS, BRIDGE_LEDGER_DAYS).",
        },
    ),
)


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        return [("usable", "usable"), ("revoked", "revoked"), ("expired", "expired")]

    def queryset(self, request: HttpRequest, queryset: "QuerySet[ApiKey]") -> "QuerySet[ApiKey]":
        match self.value():
            case "usable":
                return queryset.filter(pk__in=ApiKey.objects.usable())
            case "revoked":
                return queryset.filter(revoked_at__isnull=False)
            case "expired":
                return queryset.filter(revoked_at=None, expires_at__lte=timezone.now())
            case _:
                return queryset


def budgeted(tokens: int, micros: int, most: int | None, dollars: Decimal | None) -> str:
    """What was used of which budgets; without one, only what was used."""
    money = wording.money(micros) if micros else "$0"
    limit = None if dollars is None else round(dollars * 1_000_000)
    parts = [f"{wording.count(tokens)}{_of(most, wording.count(most or 0))} tokens"]
    if micros or limit is not None:
        parts.append(f"{money}{_of(limit, wording.dollars(dollars or Decimal(0)))}")
    over = (most is not None and tokens >= most) or (limit is not None and micros >= limit)
    return ", ".join(parts) + (" (used up: requests are refused with 402)" if over else "")


def _of(budget: int | None, words: str) -> str:
    return "" if budget is None else f" of {words}"


@admin.register(ApiKey)
class ApiKeyAdmin(ModelAdmin):
    list_display = ("name", "begins", "state", "storage", "expires", "issued", "conversations", "usage")
    list_filter = (StateFilter, "storage")
    list_filter_submit = True
    search_fields = ("name", "prefix")
    search_help_text = "Name or first characters"
    ordering = ("-created_at",)
    actions = None
    add_form_template = "admin/conversations/apikey/issue.html"
    actions_detail = ("rotate_page", "revoke_page")
    readonly_fields = ("begins", "state", "issued", "revoked_at", "conversations", "usage", "spent")

    def get_fieldsets(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        shown = ("begins", "state", "issued", "conversations", "usage", "spent")
        return FIELDSETS if obj is None else (FIELDSETS[0], ("Key", {"fields": shown}), *FIELDSETS[1:])

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Its conversations and its ledger belong to it; it is revoked instead."""
        return False

    def has_revoke_permission(self, request: HttpRequest, object_id: object = None) -> bool:
        return request.user.has_perm("conversations.change_apikey")

    # ------------------------------------------------------------ columns

    @display(description="begins with")
    def begins(self, row: ApiKey) -> SafeString:
        return cells.code(f"{row.prefix}…")

    @display(description="state", label={"usable": "success", "revoked": "danger", "expired": "warning"})
    def state(self, row: ApiKey) -> str:
        if row.revoked_at is not None:
            return "revoked"
        return "usable" if row.usable else "expired"

    @display(description="expires", ordering="expires_at")
    def expires(self, row: ApiKey) -> object:
        return row.expires_at or "never"

    @display(description="issued", ordering="created_at")
    def issued(self, row: ApiKey) -> SafeString:
        return cells.moment(row.created_at)

    @display(description="conversations")
    def conversations(self, row: ApiKey) -> SafeString:
        return cells.shown(Conversation, "show", key=row.pk)

    @display(description="usage")
    def usage(self, row: ApiKey) -> SafeString:
        return cells.shown(UsageEntry, "show", key=row.pk)

    @display(description="spent")
    def spent(self, row: ApiKey) -> str:
        """As its budgets count."""
        today = dt.datetime.now(dt.UTC).date()
        until = str(today + dt.timedelta(days=1))
        spans = []
        for words, since, most, dollars in (
            ("today", today, row.daily_tokens, row.daily_dollars),
            ("this month", today.replace(day=1), row.monthly_tokens, row.monthly_dollars),
        ):
            amount = accounts.spent(PageDatabase(), key=row.pk, since=str(since), until=until)
            spans.append(f"{words} {budgeted(*amount, most, dollars)}")
        return "; ".join(spans)

    # ------------------------------------------------------------ issuing

    @method_decorator(never_cache)
    @sensitive_variables("secret")
    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """The secret is in the answer to the form, and nowhere else: no redirect, so nothing has to carry it."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        form = self.get_form(request)(request.POST or None)
        if request.method != "POST" or not form.is_valid():
            form_page: HttpResponse = super().add_view(request, form_url, extra_context)
            return form_page
        with transaction.atomic():
            key, secret = keys.issue(**form.cleaned_data)
            self.log_addition(request, key, "Issued")
        return self._issued(request, key, secret)

    @sensitive_variables("secret")
    def _issued(self, request: HttpRequest, key: ApiKey, secret: str) -> HttpResponse:
        context = self.admin_site.each_context(request) | {
            "title": "API key issued",
            "opts": self.model._meta,
            "key": key,
            "secret": secret,
            "server": f"{request.scheme}://{request.get_host()}",
            "list_url": reverse("admin:conversations_apikey_changelist"),
        }
        return TemplateResponse(request, "admin/conversations/apikey/issued.html", context)

    # ------------------------------------------------------------ changing and revoking

    def save_model(self, request: HttpRequest, obj: ApiKey, form: "forms.ModelForm[ApiKey]", change: Any) -> None:
        """Every process hears that a key has changed."""
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            keys.announce(obj)
        current().hear("key", obj.digest)

    @action(description="Rotate", icon="autorenew", url_path="rotate", permissions=["revoke"])
    @method_decorator(never_cache)
    @sensitive_variables("secret")
    def rotate_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Like issuing: the answer to the question holds the new secret, and nothing else does."""
        key = self.get_object(request, object_id)
        if key is None:
            raise Http404
        if request.method == "POST":
            old = key.digest
            with transaction.atomic():
                secret = keys.rotate(key)
                self.log_change(request, key, "Rotated")
            current().hear("key", old)
            return self._issued(request, key, secret)
        text = (
            "It gets a new secret, shown once on the next page. The old one is refused within a second, everywhere; "
            "answers that it is being given end in an error. Its conversations, limits and ledger stay."
        )
        question = Question("Rotate this API key?", text, "Rotate", (("API key", str(key)),), back=cells.url(key))
        return confirmed(self, request, question, str)

    @action(description="Revoke", icon="block", url_path="revoke", variant=ActionVariant.DANGER,
            permissions=["revoke"])  # fmt: skip
    def revoke_page(self, request: HttpRequest, object_id: str) -> HttpResponse:
        key = self.get_object(request, object_id)
        if key is None:
            raise Http404
        text = (
            "Requests with this key are refused from now on, everywhere within a second, and answers that it is being "
            "given end in an error. This cannot be undone: issue another key instead. Its conversations and its ledger "
            "stay."
        )
        question = Question(
            "Revoke this API key?", text, "Revoke", (("API key", str(key)),), danger=True, back=cells.url(key)
        )

        def revoke() -> str:
            keys.revoke(key)
            current().hear("key", key.digest)
            self.log_change(request, key, "Revoked")
            return f"{key} is revoked."

        return confirmed(self, request, question, revoke)

    def get_actions_detail(self, request: HttpRequest, object_id: int) -> list[Any]:
        key = self.get_object(request, str(object_id))  # None for what is no number, too
        return [] if key is None or key.revoked_at is not None else list(super().get_actions_detail(request, object_id))
