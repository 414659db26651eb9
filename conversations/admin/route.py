"""Routes: which target answers for which names, under which policies."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.utils.html import escape, format_html_join
from django.utils.safestring import SafeString
from unfold.decorators import display
from unfold.widgets import UnfoldAdminSelectWidget

from conversations import conf, wording
from conversations.admin import cells
from conversations.admin.configuration import RoutingAdmin
from conversations.models import Route, Upstream
from conversations.models.routing import TARGET
from translation.policies import RULES, SWITCHES
from translation.policies.policy import Policy
from translation.providers.profiles import PROFILES

if TYPE_CHECKING:
    Form = forms.ModelForm[Route]
else:
    Form = forms.ModelForm  # generic for type checkers only

DOCS = {rule.__name__: " ".join((rule.__doc__ or "").split()) for rule in RULES}
STATES = [("", "as the profile says"), ("on", "on"), ("off", "off")]
TEXTS = ("guardrail", "read_cues", "write_cues", "read_only_tools")
PREFIX = "switch_"


class RouteFields(Form):
    class Meta:
        model = Route
        fields = (
            "pattern", "priority", "target", "fallbacks", "policy", *TEXTS, "guidance", "stream_upstream", "enabled",
        )  # fmt: skip

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for line in self.instance.switches.splitlines():
            rule, _, state = line.partition(" ")
            if f"{PREFIX}{rule}" in self.fields:
                self.fields[f"{PREFIX}{rule}"].initial = state
        for name in TEXTS:
            if name in self.fields:  # absent for those who may only look
                self.fields[name].widget.attrs["placeholder"] = _default(name)

    def clean_target(self) -> str:
        target: str = self.cleaned_data["target"]
        _known(target)
        return target

    def clean_fallbacks(self) -> str:
        fallbacks: str = self.cleaned_data["fallbacks"]
        for target in fallbacks.split():
            _known(target)
        return fallbacks

    def save(self, commit: bool = True) -> Route:  # noqa: FBT001, FBT002 - Django's signature
        states = ((rule, self.cleaned_data.get(f"{PREFIX}{rule}")) for rule in SWITCHES)
        self.instance.switches = "\n".join(f"{rule} {state}" for rule, state in states if state)
        return super().save(commit)


def _switch(rule: str) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=rule,
        choices=STATES,
        required=False,
        widget=UnfoldAdminSelectWidget(),
        help_text=escape(DOCS[rule].replace("`", "")),
    )


RouteForm = type("RouteForm", (RouteFields,), {f"{PREFIX}{rule}": _switch(rule) for rule in SWITCHES})


def _known(target: str) -> None:
    TARGET(target)
    name = target.partition("/")[0]
    if name not in PROFILES and not Upstream.objects.filter(name=name).exists():
        raise forms.ValidationError(f"{name} is neither a provider nor one of the upstreams.")


def _default(name: str) -> str:
    value = getattr(Policy(), name)
    return value if isinstance(value, str) else "\n".join(value)


@admin.register(Route)
class RouteAdmin(RoutingAdmin):
    form = RouteForm
    list_display = ("pattern", "leads", "instead", "policy_shown", "priority", "state")
    list_filter = ("policy", "enabled")
    search_fields = ("pattern", "target", "fallbacks")
    list_before_template = "admin/conversations/route/environment.html"
    readonly_fields = ("switched",)
    told = ("switched",)
    fieldsets = (
        (None, {"fields": ("pattern", "target", "fallbacks", "priority", "stream_upstream", "enabled")}),
        ("Policies", {"fields": ("policy", "guidance", "switched", *(f"{PREFIX}{rule}" for rule in SWITCHES))}),
        ("Texts of the policies", {"fields": TEXTS, "classes": ("collapse",)}),
    )

    def environment(self) -> list[tuple[str, str, str]]:
        """Where names go that no row matches: pattern, target, the variable that says so."""
        mapped = conf.current().model_map
        families = [(name, f"claude*{name}*", getattr(mapped, name)) for name in ("opus", "sonnet", "haiku")]
        lines = [(pattern, target, f"MODEL_MAP_{name.upper()}") for name, pattern, target in families if target]
        return lines + ([("anything else", mapped.default, "MODEL_MAP_DEFAULT")] if mapped.default else [])

    @display(description="target", ordering="target")
    def leads(self, row: Route) -> SafeString:
        return cells.code(row.target)

    @display(description="fallbacks")
    def instead(self, row: Route) -> SafeString | str:
        return cells.short(", ".join(row.fallbacks.split())) if row.fallbacks.split() else wording.NONE

    @display(description="policy", ordering="policy")
    def policy_shown(self, row: Route) -> str:
        changed = len(row.switches.splitlines())
        return f"{row.policy or 'default'}{f', {changed} switched' if changed else ''}"

    @display(description="switched")
    def switched(self, row: Route) -> SafeString | str:
        return format_html_join("", "<div>{}</div>", ((line,) for line in row.switches.splitlines())) or wording.NONE

    @display(description="state", label={"on": "success", "off": "danger"})
    def state(self, row: Route) -> str:
        return "on" if row.enabled else "off"
