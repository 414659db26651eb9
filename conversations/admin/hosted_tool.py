"""Hosted tools and their secrets: where they are, whom they are offered to, and whether they can be reached."""

from typing import TYPE_CHECKING, Any

import msgspec
from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.debug import sensitive_variables
from unfold.decorators import display

from conversations import secrets, wording
from conversations.admin import cells
from conversations.admin.configuration import RoutingAdmin
from conversations.admin.upstream import SecretArea
from conversations.hosted import registering
from conversations.hosted.values import ToolFailed
from conversations.models import HostedTool, ToolExecution, ToolSecret
from conversations.process import current
from translation.unreadable import UNREADABLE

if TYPE_CHECKING:
    ToolForm = forms.ModelForm[HostedTool]
    SecretForm = forms.ModelForm[ToolSecret]
else:
    ToolForm = SecretForm = forms.ModelForm  # generic for type checkers only


class HostedToolForm(ToolForm):
    class Meta:
        model = HostedTool
        fields = ("name", "kind", "enabled", "description", "url", "method", "schema", "headers", "timeout",
                  "long_running", "api_keys", "for_models")  # fmt: skip
        labels = {"api_keys": "API keys"}
        help_texts = {
            "url": "Arguments in braces go into it: https://host/users/{id}. Public hosts over https, unless "
            "BRIDGE_TOOL_HOSTS says otherwise."
        }

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            registering.check_url(url)
        except ToolFailed as failed:
            raise ValidationError(failed.text) from None
        return url

    def clean_schema(self) -> str:
        schema: str = self.cleaned_data["schema"]
        try:
            msgspec.json.decode(schema.encode() or b"{}", type=dict[str, object])
        except UNREADABLE as error:
            raise ValidationError(f"not a JSON object: {error}") from None
        return schema

    def clean_headers(self) -> str:
        headers: str = self.cleaned_data["headers"]
        for line in headers.splitlines():
            if line.strip() and not line.partition(":")[2].strip():
                raise ValidationError(f"{line[:50]!r} is not of the form Name: value")
        return headers


class HostedAdmin(RoutingAdmin):
    """A change is heard by every process."""

    def _announce(self, what: str) -> None:
        registering.announce()
        transaction.on_commit(lambda: current().hear("hosted", ""))


@admin.register(HostedTool)
class HostedToolAdmin(HostedAdmin):
    form = HostedToolForm
    list_display = ("name", "kind", "address", "audience", "state", "runs")
    list_filter = ("kind", "enabled", "long_running")
    list_select_related = ("owner",)
    search_fields = ("name", "url")
    autocomplete_fields = ("api_keys",)
    readonly_fields = ("audience", "state", "failures", "open_until", "last_error", "runs")
    later = readonly_fields
    about = "The bridge runs them itself, for any model: an HTTP endpoint, or an MCP server with all its tools."
    fieldsets = (
        (None, {"fields": ("name", "kind", "enabled", "description")}),
        ("Endpoint", {"fields": ("url", "method", "schema", "headers", "timeout", "long_running")}),
        ("Offered to", {"fields": ("api_keys", "for_models", "audience")}),
        ("State", {"fields": ("state", "failures", "open_until", "last_error", "runs")}),
    )

    def get_queryset(self, request: HttpRequest) -> "QuerySet[HostedTool]":
        rows: QuerySet[HostedTool] = super().get_queryset(request).annotate(key_count=Count("api_keys"))
        return rows

    @display(description="address")
    def address(self, row: HostedTool) -> SafeString:
        return cells.short(row.url)

    @display(description="offered to")
    def audience(self, row: HostedTool) -> SafeString | str:
        if row.owner is not None:
            return cells.link(row.owner, f"{row.owner.name}, which registered it")
        keys, patterns = getattr(row, "key_count", 0), len(row.for_models.split())
        if not keys and not patterns:
            return "nobody"
        return f"{wording.many(keys, 'key')}, {wording.many(patterns, 'pattern')} of models"

    @display(description="state", label={"on": "success", "off": "danger", "resting": "danger", "failing": "warning"})
    def state(self, row: HostedTool) -> str:
        """The circuit breaker, as the process that met the last failure has told it."""
        if not row.enabled:
            return "off"
        if row.open_until is not None and row.open_until > timezone.now():
            return "resting"
        return "failing" if row.failures else "on"

    @display(description="runs")
    def runs(self, row: HostedTool) -> SafeString | str:
        if not row.pk:
            return wording.NONE
        return cells.shown(ToolExecution, "show", tool=row.pk)


class ToolSecretForm(SecretForm):
    new_value = forms.CharField(
        label="Value",
        required=False,
        widget=SecretArea(attrs={"rows": 2, "autocomplete": "off", "spellcheck": "false"}),
        help_text="It is encrypted, and never shown again. Empty: nothing changes.",
    )

    class Meta:
        model = ToolSecret
        fields = ("name", "host")

    def clean(self) -> dict[str, Any]:
        """A secret that moves to another host has to be given anew."""
        cleaned: dict[str, Any] = super().clean() or {}
        if not cleaned.get("new_value") and ("host" in self.changed_data or not self.instance.pk):
            raise ValidationError({"new_value": "This host has to be given its value."})
        return cleaned

    @sensitive_variables()
    def save(self, commit: bool = True) -> ToolSecret:  # noqa: FBT001, FBT002 - Django's signature
        if given := self.cleaned_data["new_value"].strip():
            self.instance.value = secrets.encrypt(given)
        return super().save(commit)


@admin.register(ToolSecret)
class ToolSecretAdmin(HostedAdmin):
    form = ToolSecretForm
    list_display = ("name", "host", "owner", "kept")
    list_select_related = ("owner",)
    search_fields = ("name", "host")
    readonly_fields = ("kept",)
    later = readonly_fields
    about = "What hosted tools send in their headers: encrypted, shown nowhere, and sent to one host only."
    fieldsets = ((None, {"fields": ("name", "host", "new_value", "kept")}),)

    @display(description="kept")
    def kept(self, row: ToolSecret) -> SafeString:
        return cells.moment(row.created_at)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What a key registered for itself is the key's."""
        allowed: bool = super().has_change_permission(request, obj)
        return allowed and (obj is None or obj.owner_id is None)
