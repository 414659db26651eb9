"""System checks of the app's settings, each with an id."""

import ipaddress
from collections.abc import Iterable

from django.apps import AppConfig
from django.core import checks
from django.core.checks import CheckMessage, Error, register

from conversations import conf
from translation.providers.profiles import PROFILES

LONG_KEY = 32  # characters
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
            todo = f"set {_stem(provider)}_API_KEY, or add" if provider in PROFILES else "add"
            messages.append(
                checks.Warning(
                    f"{variable} names {provider!r}, which no variable configures: {todo} an upstream of that name in "
                    "the admin",
                    id="conversations.W001",
                )
            )
    return messages


def _stem(provider: str) -> str:
    """What its variables begin with."""
    return (PROFILES[provider].shares or provider).upper()


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


@register(OURS)
def tool_hosts_are_hosts(*, app_configs: Iterable[AppConfig] | None, **_: object) -> list[CheckMessage]:
    return [
        Error(f"BRIDGE_TOOL_HOSTS holds {host!r}; a host is a name, an address or a network, without scheme and path",
              id="conversations.E003")
        for host in conf.current().tool_hosts
        if "/" in host and not _is_network(host)
    ]  # fmt: skip


def _is_network(host: str) -> bool:
    try:
        ipaddress.ip_network(host.strip("[]"), strict=False)
    except ValueError:
        return False
    return True


@register(OURS)
def upstreams_have_addresses(*, app_configs: Iterable[AppConfig] | None, **_: object) -> list[CheckMessage]:
    """Once for each variable, however many upstreams share it."""
    homeless = [item for item in conf.current().upstreams if not item.base_url and not PROFILES[item.provider].base_url]
    stems = {_stem(item.provider) for item in homeless}
    return [
        checks.Warning(f"{stem}_API_KEY does nothing without {stem}_BASE_URL", id="conversations.W003")
        for stem in sorted(stems)
    ]


@register(OURS)
def production_has_a_strong_secret(*, app_configs: Iterable[AppConfig] | None, **_: object) -> list[CheckMessage]:
    if not conf.secret_key_is_weak():
        return []
    text = "BRIDGE_SECRET_KEY can be guessed, and with it any operator's session: it needs 50 random characters"
    return [checks.Warning(text, id="conversations.W004")]


@register(OURS)
def encryption_keys_are_long(*, app_configs: Iterable[AppConfig] | None, **_: object) -> list[CheckMessage]:
    if all(len(key) >= LONG_KEY for key in conf.current().encryption_keys):
        return []
    text = f"BRIDGE_ENCRYPTION_KEYS holds a key that a backup's thief can guess: it needs {LONG_KEY} random characters"
    return [checks.Warning(text, id="conversations.W007")]


@register(OURS)
def what_was_given_is_used(*, app_configs: Iterable[AppConfig] | None, **_: object) -> list[CheckMessage]:
    found: list[CheckMessage] = [
        checks.Warning(f"{name} is no setting{f'; {meant}?' if meant else ''}", id="conversations.W005")
        for name, meant in conf.unknown_variables()
    ]
    if conf.clients_key_given():
        text = "ANTHROPIC_API_KEY is a key for this bridge's clients: it is not used as Anthropic's"
        found.append(checks.Warning(text, id="conversations.W006"))
    return found
