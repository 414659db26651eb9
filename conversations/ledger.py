"""What was used and what it cost: the price of an attempt, and the ledger's sums for the operator."""

import datetime as dt
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Literal, TypeVar

from django.db import models
from django.db.models import Count, F, Sum
from django.db.models.functions import Now, TruncDate
from msgspec import Struct

from conversations.models import Change, ToolEntry, UsageEntry
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


class Total(Struct, frozen=True):
    """A line of a summary: `name` is a key's name, a model, a day or an upstream."""

    name: str
    attempts: int
    input_tokens: int
    output_tokens: int
    cache_read: int
    cache_write: int
    cost_micros: int
    tool_calls: int


class ToolTotal(Struct, frozen=True):
    name: str
    calls: int
    answers: int


Entry = TypeVar("Entry", UsageEntry, ToolEntry)
By = Literal["key", "model", "day", "upstream"]
GROUPS = {"key": F("api_key__name"), "model": F("model"), "upstream": F("upstream"), "day": TruncDate("created_at")}


def totals(by: By, since: dt.datetime, until: dt.datetime | None = None, key: int | None = None) -> list[Total]:
    """What was used, by key, model, upstream or day; the costliest first, days in order."""
    rows = _between(UsageEntry.objects.all(), since, until, key).annotate(group=GROUPS[by]).values("group")
    summed = rows.annotate(
        attempts=Count("id"),
        given=Sum("input_tokens"),
        answered=Sum("output_tokens"),
        read=Sum("cache_read"),
        written=Sum("cache_write"),
        cost=Sum("cost_micros"),
        calls=Sum("tool_count"),
    )
    ordered = summed.order_by("group") if by == "day" else summed.order_by("-cost", "-attempts", "group")
    columns = ("group", "attempts", "given", "answered", "read", "written", "cost", "calls")
    return [Total(str(row[0]), *row[1:]) for row in ordered.values_list(*columns)]


def tool_totals(since: dt.datetime, until: dt.datetime | None = None, key: int | None = None) -> list[ToolTotal]:
    """Which tools were called, the most called first."""
    rows = _between(ToolEntry.objects.all(), since, until, key).values("tool_name")
    summed = rows.annotate(sum_calls=Sum("calls"), answers=Count("id")).order_by("-sum_calls", "tool_name")
    return [ToolTotal(row["tool_name"], row["sum_calls"], row["answers"]) for row in summed]


def _between(
    rows: "models.QuerySet[Entry]", since: dt.datetime, until: dt.datetime | None, key: int | None
) -> "models.QuerySet[Entry]":
    rows = rows.filter(created_at__gte=since)
    if until is not None:
        rows = rows.filter(created_at__lt=until)
    return rows.filter(api_key=key) if key is not None else rows
