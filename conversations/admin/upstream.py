"""Upstreams: where models are, and the keys for them, which go in and never come out."""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django import forms
from django.contrib import admin
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.debug import sensitive_variables
from msgspec import Struct
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldBooleanSwitchWidget

from conversations import conf, routes, wording
from conversations.admin import cells
from conversations.admin.configuration import RoutingAdmin
from conversations.models import Rest, Upstream

if TYPE_CHECKING:
    Form = forms.ModelForm[Upstream]
else:
    Form = forms.ModelForm  # generic for type checkers only


class Given(Struct, frozen=True):
    """An upstream that the environment configures."""

    name: str
    address: str  # without what may be secret in it
    keys: int
    replaced: bool
    rests: str  # what of it, "" for nothing


class SecretArea(UnfoldAdminTextareaWidget):
    """Shows nothing, not even what was just typed into a form with a mistake."""

    def format_value(self, value: Any) -> str:
        return ""


class UpstreamForm(Form):
    new_keys = forms.CharField(
        label="API keys",
        required=False,
        widget=SecretArea(attrs={"rows": 3, "autocomplete": "off", "spellcheck": "false"}),
        help_text="One per line: they are used in turn. They replace those that are stored, are encrypted, and are "
        "never shown again. Empty: nothing changes.",
    )
    forget_keys = forms.BooleanField(label="Forget the stored keys", required=False, widget=UnfoldBooleanSwitchWidget())

    class Meta:
        model = Upstream
        fields = ("name", "provider", "base_url", "enabled")

    def clean_base_url(self) -> str:
        """As of the environment's: without a scheme, every request would fail, far from here."""
        address: str = self.cleaned_data["base_url"].rstrip("/")
        scheme, _, rest = address.partition("://")
        if address and (scheme not in {"http", "https"} or not rest):
            raise forms.ValidationError("It must be an http:// or https:// URL.")
        return address

    @sensitive_variables()
    def save(self, commit: bool = True) -> Upstream:  # noqa: FBT001, FBT002 - Django's signature
        given = self.cleaned_data["new_keys"].split()
        if given or self.cleaned_data["forget_keys"]:
            routes.give_keys(self.instance, given)
        return super().save(commit)


def _resting() -> dict[str, str]:
    """What rests now, by upstream: itself, or so many of its keys."""
    keys: dict[str, list[int]] = {}
    for name, key in Rest.objects.filter(until__gt=timezone.now()).values_list("upstream", "key"):
        keys.setdefault(name, []).append(key)
    return {
        name: "it rests" if 0 in found else f"{wording.many(len(found), 'key')} resting" for name, found in keys.items()
    }


@admin.register(Upstream)
class UpstreamAdmin(RoutingAdmin):
    form = UpstreamForm
    list_display = ("name", "provider", "address", "keys", "state")
    list_filter = ("provider", "enabled")
    list_before_template = "admin/conversations/upstream/environment.html"
    search_fields = ("name", "base_url")
    readonly_fields = ("keys", "rests", "changed_at")
    later = ("keys", "forget_keys", "rests", "changed_at")
    fieldsets = (
        (None, {"fields": ("name", "provider", "base_url", "enabled")}),
        ("Keys", {"fields": ("keys", "new_keys", "forget_keys")}),
        ("State", {"fields": ("rests", "changed_at")}),
    )

    def get_queryset(self, request: HttpRequest) -> "QuerySet[Upstream]":
        resting = Rest.objects.filter(upstream=OuterRef("name"), until__gt=timezone.now())
        rows: QuerySet[Upstream] = super().get_queryset(request)
        return rows.annotate(is_resting=Exists(resting))

    def environment(self) -> list[Given]:
        """What is there without any row, and which of it a row replaces."""
        own, resting = set(Upstream.objects.values_list("name", flat=True)), _resting()
        return [
            Given(
                item.provider,
                urlsplit(item.base_url).hostname or "" if item.base_url else "the provider's own",
                len(item.api_keys),
                item.provider in own,
                resting.get(item.provider, ""),
            )
            for item in conf.current().upstreams
        ]

    @display(description="address")
    def address(self, row: Upstream) -> SafeString | str:
        return cells.short(row.base_url) if row.base_url else "the provider's own"

    @display(description="keys")
    def keys(self, row: Upstream) -> str:
        if not row.key_count:
            return wording.NONE
        readable = "" if routes.keys_can_be_read(row) else " (none of BRIDGE_ENCRYPTION_KEYS opens them)"
        return f"{row.key_count}, encrypted{readable}"

    @display(description="state", label={"on": "success", "off": "danger", "resting": "warning"})
    def state(self, row: Any) -> str:
        if not row.enabled:
            return "off"
        return "resting" if row.is_resting else "on"

    @display(description="rests")
    def rests(self, row: Upstream) -> SafeString | str:
        found = Rest.objects.filter(upstream=row.name, until__gt=timezone.now()).order_by("key")
        lines = [(str(rest), rest.reason, cells.moment(rest.since)) for rest in found]
        return format_html_join("", "<div>{}: {}, {}</div>", lines) or "nothing does"
