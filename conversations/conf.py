"""The app's configuration as typed values; the only reader of Django's settings in the app."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal, cast

from django.conf import settings

Policy = Literal["agentic", "conservative"]
UnstoredLink = Literal["error", "warn"]
Storage = Literal["durable", "off"]
PreparedStatements = Literal["auto", "on", "off"]


@dataclass(frozen=True, slots=True)
class UpstreamConf:
    provider: str
    api_keys: tuple[str, ...]
    base_url: str | None


@dataclass(frozen=True, slots=True)
class ModelMap:
    """`provider/model` for each family of Claude names, and for any name that nothing else matches."""

    opus: str | None
    sonnet: str | None
    haiku: str | None
    default: str | None


@dataclass(frozen=True, slots=True)
class Conf:
    home: Path
    api_keys: tuple[str, ...]
    upstreams: tuple[UpstreamConf, ...]
    model_map: ModelMap
    policy: Policy
    inactivity: timedelta
    content: timedelta | None  # None: as long as its conversation
    ledger: timedelta
    upstream_retries: int
    upstream_idle_seconds: float
    ping_seconds: float
    hold_seconds: float
    unstored_link: UnstoredLink
    storage: Storage
    encryption_keys: tuple[str, ...]
    cors_origins: tuple[str, ...]
    metrics_token: str | None
    tool_hosts: tuple[str, ...]
    tool_seconds: float
    tool_turn_seconds: float
    tool_rounds: int
    tool_result_bytes: int
    redis_url: str | None


def current() -> Conf:
    """Read afresh each time, so that a test's override counts; a server keeps what it read at its start."""
    return Conf(
        home=settings.BRIDGE_HOME,
        api_keys=settings.BRIDGE_API_KEYS,
        upstreams=_configured_upstreams(),
        model_map=ModelMap(**settings.BRIDGE_MODEL_MAP),
        policy=cast("Policy", settings.BRIDGE_POLICY),
        inactivity=timedelta(hours=settings.BRIDGE_INACTIVITY_HOURS),
        content=timedelta(hours=settings.BRIDGE_CONTENT_HOURS) if settings.BRIDGE_CONTENT_HOURS else None,
        ledger=timedelta(days=settings.BRIDGE_LEDGER_DAYS),
        upstream_retries=settings.BRIDGE_UPSTREAM_RETRIES,
        upstream_idle_seconds=settings.BRIDGE_UPSTREAM_IDLE_SECONDS,
        ping_seconds=settings.BRIDGE_PING_SECONDS,
        hold_seconds=settings.BRIDGE_HOLD_SECONDS,
        unstored_link=cast("UnstoredLink", settings.BRIDGE_UNSTORED_LINK),
        storage=cast("Storage", settings.BRIDGE_STORAGE),
        encryption_keys=settings.BRIDGE_ENCRYPTION_KEYS,
        cors_origins=settings.BRIDGE_CORS_ORIGINS,
        metrics_token=settings.BRIDGE_METRICS_TOKEN,
        tool_hosts=settings.BRIDGE_TOOL_HOSTS,
        tool_seconds=settings.BRIDGE_TOOL_SECONDS,
        tool_turn_seconds=settings.BRIDGE_TOOL_TURN_SECONDS,
        tool_rounds=settings.BRIDGE_TOOL_ROUNDS,
        tool_result_bytes=settings.BRIDGE_TOOL_RESULT_BYTES,
        redis_url=settings.REDIS_URL,
    )


def allowed_hosts() -> list[str]:
    return list(settings.ALLOWED_HOSTS)


def prepared_statements() -> PreparedStatements:
    return cast("PreparedStatements", settings.BRIDGE_PREPARED_STATEMENTS)


def secret_key_is_weak() -> bool:
    """By Django's own measure of a deployment."""
    return settings.PRODUCTION and (len(settings.SECRET_KEY) < 50 or len(set(settings.SECRET_KEY)) < 5)


def clients_key_given() -> bool:
    """Whether ANTHROPIC_API_KEY is that of a client, as in the shell that Claude Code is started from."""
    return bool(settings.CLIENTS_KEY_GIVEN)


def unknown_variables() -> tuple[tuple[str, str], ...]:
    """Called like settings, and none; with the one that is meant, perhaps."""
    return settings.UNKNOWN_VARIABLES


def sealing_keys() -> tuple[str, ...]:
    """The first encrypts, all decrypt; Django's own is the last, so that others can be set later."""
    return (*settings.BRIDGE_ENCRYPTION_KEYS, settings.SECRET_KEY)


def _configured_upstreams() -> tuple[UpstreamConf, ...]:
    return tuple(
        UpstreamConf(provider, keys, base_url)
        for provider, (keys, base_url) in settings.BRIDGE_UPSTREAMS.items()
        if keys or base_url
    )
