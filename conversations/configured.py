"""From the environment, and the rows over it, to what a router needs."""

import logging

import msgspec
from msgspec import Struct

from conversations import secrets
from conversations.conf import Conf
from conversations.store.routes import LearnedRow, RouteRow, UpstreamRow
from conversations.upstream import Upstream
from translation.policies import Policy
from translation.policies.policy import ProfileName
from translation.providers.profile import Profile
from translation.providers.profiles import PROFILES
from translation.remedies import Remedy
from translation.unreadable import UNREADABLE

log = logging.getLogger(__name__)

PROFILE_NAMES: dict[str, ProfileName] = {"agentic": "agentic", "conservative": "conservative"}


class Rule(Struct, frozen=True):
    """A route as an operator wrote it."""

    pattern: str  # lower case
    targets: tuple[str, ...]  # upstream/model; the first is the route's own, the others its fallbacks
    policy: Policy
    streams: bool


def upstreams(conf: Conf, rows: tuple[UpstreamRow, ...]) -> dict[str, Upstream]:
    """By name. One that a row switches off is not there, whatever the environment says."""
    found = {
        item.provider: _upstream(item.provider, item.provider, item.base_url, item.api_keys) for item in conf.upstreams
    }
    known = [row for row in rows if row.provider in PROFILES]
    sharing = [(profile.provider, row) for row in known for profile in PROFILES.values() if _shares(profile, row)]
    # A row of its own says more than the one that it would share: it comes last.
    for provider, row in (*sharing, *((row.provider, row) for row in known)):
        name = row.name if provider == row.provider else provider
        found.pop(name, None)
        if row.enabled:
            found[name] = _upstream(name, provider, row.base_url, _keys(row))
    return found


def _shares(profile: Profile, row: UpstreamRow) -> bool:
    """OpenAI's Responses, for one, are to be had wherever its Chat Completions are."""
    return profile.shares == row.name == row.provider


def rules(conf: Conf, rows: tuple[RouteRow, ...]) -> tuple[Rule, ...]:
    """In the order in which they are asked."""
    return tuple(
        Rule(row.pattern.lower(), (row.target, *row.fallbacks.split()), _policy(conf, row), bool(row.stream_upstream))
        for row in rows
    )


def lessons(rows: tuple[LearnedRow, ...]) -> dict[tuple[str, str], tuple[Remedy, ...]]:
    found: dict[tuple[str, str], tuple[Remedy, ...]] = {}
    for row in rows:
        try:
            remedy = msgspec.json.decode(row.remedy, type=Remedy)
        except UNREADABLE as error:
            log.error("routes.lesson of %s/%s cannot be read: %s", row.upstream, row.model, error)
        else:
            found[row.upstream, row.model] = (*found.get((row.upstream, row.model), ()), remedy)
    return found


def _upstream(name: str, provider: str, base_url: str | None, keys: tuple[str, ...]) -> Upstream:
    profile = PROFILES[provider]
    return Upstream(name, profile, base_url or profile.base_url, keys)


def _keys(row: UpstreamRow) -> tuple[str, ...]:
    if not row.secret:
        return ()
    try:
        return tuple(secrets.decrypt(row.secret).split())
    except secrets.Unreadable as error:
        log.error("routes.upstream %s has no keys: %s", row.name, error)
        return ()


def _policy(conf: Conf, row: RouteRow) -> Policy:
    texts = {"guardrail": row.guardrail.strip(), "guidance": row.guidance.strip()}
    lists = {
        "read_cues": _lines(row.read_cues),
        "write_cues": _lines(row.write_cues),
        "read_only_tools": _lines(row.read_only_tools),
    }
    given = {name: value for name, value in (texts | lists).items() if value}
    name = PROFILE_NAMES.get(row.policy, conf.policy)
    return msgspec.structs.replace(Policy(name, switches=_switches(row.switches)), **given)


def _switches(lines: str) -> tuple[tuple[str, bool], ...]:
    return tuple((rule, state == "on") for rule, _, state in (line.partition(" ") for line in _lines(lines)))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())
