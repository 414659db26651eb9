"""Who may ask, and for how much: keys with their limits, prices, what was spent."""

from typing import Any

from msgspec import Struct

from conversations.prices import Price
from conversations.store.database import Database, seconds


class KeyLimits(Struct, frozen=True):
    """What a key may do. Zero and None are no limit."""

    routes: tuple[str, ...] = ()  # patterns in lower case; none = all
    per_minute: int = 0
    concurrent: int = 0
    daily_tokens: int | None = None
    monthly_tokens: int | None = None
    daily_micros: int | None = None
    monthly_micros: int | None = None

    @property
    def budgeted(self) -> bool:
        budgets = (self.daily_tokens, self.monthly_tokens, self.daily_micros, self.monthly_micros)
        return any(budget is not None for budget in budgets)


class KeyRow(Struct, frozen=True):
    id: int
    digest: str
    storage: str
    expires_at: float | None  # seconds; None = never
    limits: KeyLimits | None = None
    hosted: bool = False  # may bring tools that the bridge runs


def key_by_digest(db: Database, digest: str) -> KeyRow | None:
    sql = """SELECT id, digest, storage, expires_at, allowed_routes, requests_per_minute, concurrent_streams,
          daily_tokens, monthly_tokens, daily_dollars, monthly_dollars, hosted_tools
        FROM conversations_apikey WHERE digest = %s AND revoked_at IS NULL"""
    for row in db.query(sql, (digest,)):
        rates = (_patterns(row[4]), row[5] or 0, row[6] or 0)
        limits = KeyLimits(*rates, row[7], row[8], _micros(row[9]), _micros(row[10]))
        found = None if limits == KeyLimits() else limits
        return KeyRow(row[0], row[1], row[2], seconds(row[3]), found, bool(row[11]))
    return None


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(text.lower().replace(",", " ").split())


def _micros(dollars: Any) -> int | None:
    return None if dollars is None else round(float(dollars) * 1_000_000)


def prices(db: Database) -> list[Price]:
    rows = db.query("SELECT pattern, input, output, cache_read, cache_write FROM conversations_price")
    return [Price(row[0], *(float(value) for value in row[1:])) for row in rows]


def spent(db: Database, key: int, since: str, until: str) -> tuple[int, int]:
    """Tokens and millionths of a dollar of a key, between two days; an operator's replays are not the key's."""
    sql = """SELECT COALESCE(SUM(input_tokens + output_tokens + cache_read + cache_write), 0),
          COALESCE(SUM(cost_micros), 0)
        FROM conversations_usageentry WHERE api_key_id = %s AND created_at >= %s AND created_at < %s
          AND status <> 'replay'"""
    ((tokens, micros),) = db.query(sql, (key, since, until))
    return int(tokens), int(micros)
