"""System checks of the app's settings, each with an id."""

from collections.abc import Iterable

from django.apps import AppConfig
from django.core import checks
from django.core.checks import CheckMessage, Error, register

from conversations import conf

OURS = "toolbridge"  # the tag by which a start asks for these alone


@register(OURS)
def model_map_names_configured_upstreams(*, app_configs: Iterable[AppConfig] | None, **_: object) -> list[CheckMessage]:
    configured = {upstream.provider for upstream in conf.current().upstreams} | {"demo"}
    model_map = conf.current().model_map
    messages: list[CheckMessage] = []
    for family in ("opus", "sonnet", "haiku", "default"):
        target = getattr(model_map, family)
        if target is None:
            continue
        variable = f"MODEL_MAP_{family.upper()}"
        provider, slash, model = target.partition("/")
        if not (provider and slash and model):
            messages.append(Error(f"{variable} is {target!r}; it must be provider/model", id="conversations.E001"))
        elif provider not in configured:
            messages.append(
                checks.Warning(f"{variable} names {provider!r}, which no variable configures", id="conversations.W001")
            )
    return messages


@register(OURS)
def hold_is_shorter_than_idle(*, app_configs: Iterable[AppConfig] | None, **_: object) -> list[CheckMessage]:
    configuration = conf.current()
    if configuration.hold_seconds <= configuration.upstream_idle_seconds:
        return []
    return [
        checks.Warning(
            "BRIDGE_HOLD_SECONDS is longer than BRIDGE_UPSTREAM_IDLE_SECONDS: no stream would ever be held that long",
            id="conversations.W002",
        )
    ]


@register(OURS)
def cors_origins_are_origins(*, app_configs: Iterable[AppConfig] | None, **_: object) -> list[CheckMessage]:
    return [
        Error(f"BRIDGE_CORS_ORIGINS holds {origin!r}; an origin is scheme://host[:port]", id="conversations.E002")
        for origin in conf.current().cors_origins
        if not origin.startswith(("http://", "https://")) or origin.count("/") != 2
    ]
