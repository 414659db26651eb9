"""What was used and what it cost: the price of an attempt, and which tools were called."""

import datetime as dt
from collections.abc import Sequence
from fnmatch import fnmatchcase

from django.db.models import Count, Sum
from django.db.models.functions import Now
from msgspec import Struct

from conversations.models import Change, ToolEntry
from conversations.prices import DEFAULTS, FREE, OWN_UPSTREAMS, Price
from translation.values import Usage

KNOWN = 1_000  # models whose price is remembered


def cost(price: Price, usage: Usage) -> int:
    """In millionths of a dollar."""
    return round(
        usage.input_tokens * price.input
        + usage.output_tokens * price.output
        + usage.cache_read * price.cache_read
        + usage.cache_write * price.cache_write
    )


class Prices:
    """The operator's rows over the built-in table; of the patterns that match, the longest counts."""

    def __init__(self, rows: Sequence[Price] = ()) -> None:
        self._rows = sorted(rows, key=_length, reverse=True)
        self._known: dict[tuple[str, str], Price] = {}

    def cost(self, upstream: str, model: str, usage: Usage) -> int:
        price = self._known.get((upstream, model))
        if price is None:
            if len(self._known) >= KNOWN:
                self._known.clear()
            price = self._known[upstream, model] = self.find(upstream, model)
        return cost(price, usage)

    def find(self, upstream: str, model: str) -> Price:
        name = model.lower()
        for row in self._rows:
            pattern = row.pattern.lower()
            if fnmatchcase(name, pattern) or fnmatchcase(f"{upstream}/{name}".lower(), pattern):
                return row
        if upstream in OWN_UPSTREAMS:
            return FREE
        plain = name.rpartition("/")[2].replace(".", "-")
        return next((price for price in _DEFAULTS if fnmatchcase(plain, price.pattern)), FREE)


def _length(price: Price) -> int:
    return len(price.pattern)


_DEFAULTS = sorted(DEFAULTS, key=_length, reverse=True)


def announce_prices() -> None:
    """Tell every process that a price changed."""
    Change.objects.create(kind="prices", ref="", created_at=Now())


class ToolTotal(Struct, frozen=True):
    name: str
    calls: int
    answers: int


def tool_totals(since: dt.datetime) -> list[ToolTotal]:
    """Which tools were called, the most called first."""
    rows = ToolEntry.objects.filter(created_at__gte=since).values("tool_name")
    summed = rows.annotate(sum_calls=Sum("calls"), answers=Count("id")).order_by("-sum_calls", "tool_name")
    return [ToolTotal(row["tool_name"], row["sum_calls"], row["answers"]) for row in summed]
