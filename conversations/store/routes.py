"""Where requests go, as operators configured it and as upstreams taught it: read whole, and rarely."""

import time
from typing import Any

from msgspec import Struct

from conversations.store.database import Database, seconds

UPSTREAMS = "SELECT name, provider, base_url, secret, enabled FROM conversations_upstream ORDER BY name"
ROUTES = """
SELECT pattern, target, fallbacks, policy, switches, guardrail, read_cues, write_cues, read_only_tools, guidance,
  stream_upstream
FROM conversations_route WHERE enabled ORDER BY priority DESC, LENGTH(pattern) DESC, id"""
LEARNED = "SELECT upstream, model, remedy FROM conversations_learned ORDER BY id"
LEARN = """
INSERT INTO conversations_learned (upstream, model, remedy, why, learned_at) VALUES (%s, %s, %s, %s, NOW())
ON CONFLICT (upstream, model, remedy) DO NOTHING"""
NEWS = """
INSERT INTO conversations_change (kind, ref, created_at) SELECT 'routes', %s, NOW()
WHERE NOT EXISTS (SELECT 1 FROM conversations_learned WHERE upstream = %s AND model = %s AND remedy = %s)"""
BY_HAND = "by hand"  # how the reason of a rest begins that an operator decided
RESTING = "SELECT upstream, until FROM conversations_rest WHERE key = 0 AND reason LIKE 'by hand%%'"
REST = """
INSERT INTO conversations_rest (upstream, key, reason, since, until) VALUES (%s, %s, %s, %s, %s)
ON CONFLICT (upstream, key) DO UPDATE SET reason = excluded.reason, since = excluded.since, until = excluded.until"""


class UpstreamRow(Struct, frozen=True):
    name: str
    provider: str
    base_url: str
    secret: bytes
    enabled: bool


class RouteRow(Struct, frozen=True):
    pattern: str
    target: str
    fallbacks: str  # lines
    policy: str
    switches: str  # lines: `drop_echo off`
    guardrail: str
    read_cues: str  # lines, like all lists here
    write_cues: str
    read_only_tools: str
    guidance: str
    stream_upstream: bool  # SQLite says 0 or 1


class LearnedRow(Struct, frozen=True):
    upstream: str
    model: str
    remedy: str  # JSON


class RestRow(Struct, frozen=True):
    """Decided by an operator."""

    upstream: str
    until: float


class Configuration(Struct, frozen=True):
    upstreams: tuple[UpstreamRow, ...] = ()
    routes: tuple[RouteRow, ...] = ()
    learned: tuple[LearnedRow, ...] = ()
    rests: tuple[RestRow, ...] = ()


def configuration(db: Database) -> Configuration:
    return Configuration(
        tuple(_upstream(*row) for row in db.query(UPSTREAMS)),
        tuple(RouteRow(*row) for row in db.query(ROUTES)),
        tuple(LearnedRow(*row) for row in db.query(LEARNED)),
        tuple(RestRow(name, until) for name, at in db.query(RESTING) if (until := seconds(at) or 0.0) > time.time()),
    )


def _upstream(name: str, provider: str, base_url: str, secret: Any, enabled: Any) -> UpstreamRow:
    return UpstreamRow(name, provider, base_url, bytes(secret), bool(enabled))


class SaveLearned(Struct, frozen=True):
    """What a refusal taught about an upstream's model; every process is told."""

    upstream: str
    model: str
    remedy: str
    why: str

    def apply(self, db: Database) -> None:
        lesson = (self.upstream, self.model, self.remedy)
        db.execute(NEWS, (f"learned {self.upstream}/{self.model}"[:255], *lesson))
        db.execute(LEARN, (*lesson, self.why))


class SaveRest(Struct, frozen=True):
    """A key or an upstream that rests, for operators to see."""

    upstream: str
    key: int
    reason: str
    since: str
    until: str

    def apply(self, db: Database) -> None:
        db.execute(REST, (self.upstream, self.key, self.reason, self.since, self.until))
