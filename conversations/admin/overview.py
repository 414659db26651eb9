"""The admin's first page: what is going on, over a chosen time. Every query is bounded by that time or by a limit."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from django.db import connection
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Substr, Trunc
from django.http import HttpRequest
from django.utils import timezone
from msgspec import Struct

from conversations import expiry, ledger, wording
from conversations.admin import cells
from conversations.admin.filters import STUCK, looping, minted
from conversations.models import ApiKey, Conversation, Process, Rest, ToolMapping, Turn, TurnStatus, UsageEntry

# What can be chosen: its words, its length, the unit of the plot.
RANGES = {
    "1h": ("Last hour", dt.timedelta(hours=1), "minute"),
    "24h": ("Last 24 hours", dt.timedelta(hours=24), "hour"),
    "7d": ("Last 7 days", dt.timedelta(days=7), "hour"),
    "30d": ("Last 30 days", dt.timedelta(days=30), "day"),
}
UNITS = {
    "minute": (dt.timedelta(minutes=1), 16),
    "hour": (dt.timedelta(hours=1), 13),
    "day": (dt.timedelta(days=1), 10),
}
PARTS = ("unit", "upstream", "model", "api_key")  # what the ledger is grouped by
SAMPLE = 2_000  # newest turns that quantiles are taken of
LIMIT = 1_000  # figures are counted so far
ROWS = 8
HEIGHT = 120


class Figure(Struct, frozen=True):
    name: str
    value: str
    about: str = ""
    url: str = ""
    colour: str = ""


class Line(Struct, frozen=True):
    """A line of a summary, and where its entries are."""

    name: str
    url: str  # "" for what has no list of its own
    attempts: int
    failed: int
    read: int  # tokens, from a cache or not
    output_tokens: int
    cost_micros: int


class Used(Struct, frozen=True):
    """What the ledger has for one unit of time, upstream, model and key."""

    unit: str = ""
    upstream: str = ""
    model: str = ""
    key: str = ""  # its id
    attempts: int = 0
    failed: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cost_micros: int = 0
    tool_calls: int = 0

    @property
    def read(self) -> int:
        return self.input_tokens + self.cache_read + self.cache_write


COSTLY, FAILING = ("cost_micros", "attempts"), ("failed", "attempts")  # what the lines of a summary are ordered by
SUMS = Used.__struct_fields__[4:]


class Column(Struct, frozen=True):
    """A unit of the plot, in percent of its width and pixels of its height."""

    x: float
    width: float
    height: int
    errors: int
    begins: str
    title: str


def overview(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """django-unfold calls it with the index page's context."""
    chosen = request.GET.get("range", "24h")
    chosen = chosen if chosen in RANGES else "24h"
    words, length, unit = RANGES[chosen]
    context |= {"title": "Overview", "chosen": chosen, "words": words, "unit": unit}
    context["ranges"] = [(name, words) for name, (words, _, _) in RANGES.items()]
    if not request.user.has_perm("conversations.view_usageentry"):
        return context
    now = timezone.now()
    used, tools = _used(now - length, unit), ledger.tool_totals(now - length)
    buckets = [(name, total.attempts, total.failed) for name, total in _by(used, "unit").items()]
    return context | {
        "figures": (*_traffic(_summed(used), chosen), *_latency(now - length)),
        "live": _live(now),
        "columns": columns(buckets, now - length, now, unit),
        "peak": max((number for _, number, _ in buckets), default=0),
        "by_upstream": _first(_by(used, "upstream"), "upstream", chosen, {}, FAILING),
        "by_model": _first(_by(used, "model"), "model", chosen, {}, COSTLY),
        "by_key": _first(_by(used, "key"), "key", chosen, _key_names(), COSTLY),
        "tools": tools[:ROWS],
        "other_tools": _others(tools),
        "other_calls": sum(tool.calls for tool in tools[ROWS:]),
    }


def columns(
    buckets: Iterable[tuple[str, int, int]], start: dt.datetime, end: dt.datetime, unit: str
) -> tuple[Column, ...]:
    """From (time, attempts, errors) to the plot; a unit without traffic has a place too."""
    step, length = UNITS[unit]
    counts = {name: (number, errors) for name, number, errors in buckets}
    names, moment = [], start
    while moment <= end + step:
        names.append(moment.strftime("%Y-%m-%d %H:%M")[:length])
        moment += step
    names = [name for name in dict.fromkeys(names) if name <= end.strftime("%Y-%m-%d %H:%M")[:length]]
    most = max((number for number, _ in counts.values()), default=0) or 1
    width = 100 / len(names)
    return tuple(
        _column(name, *counts.get(name, (0, 0)), place * width, width, most) for place, name in enumerate(names)
    )


def _column(name: str, number: int, errors: int, x: float, width: float, most: int) -> Column:
    height, failed = round(HEIGHT * number / most), round(HEIGHT * errors / most)
    begins = _told(name)
    title = f"{begins}: {number:,} attempts, {errors:,} errors"
    return Column(
        round(x, 3),
        round(width * 0.8, 3),
        max(height, 2 if number else 0),
        max(failed, 2 if errors else 0),
        begins,
        title,
    )


def _told(name: str) -> str:
    """The beginning of a unit, from a minute, an hour or a day as they are grouped."""
    return f"{name}{':00' if len(name) == UNITS['hour'][1] else ''} UTC"


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def _used(since: dt.datetime, unit: str) -> list[Used]:
    """The ledger is read once, whatever is shown of it: a day may have a million entries."""
    length = UNITS[unit][1]
    # SQLite keeps times as text, whose beginning is the unit; Django's own truncation is a call into Python per row.
    sqlite = connection.vendor == "sqlite"
    units = Substr(F("created_at"), 1, length) if sqlite else Trunc("created_at", unit)
    grouped = UsageEntry.objects.filter(created_at__gte=since).annotate(unit=units).values(*PARTS)
    rows = grouped.annotate(
        attempts=Count("id"), failed=Count("id", filter=Q(status="error")), given=Sum("input_tokens"),
        written=Sum("output_tokens"), read=Sum("cache_read"), kept=Sum("cache_write"), cost=Sum("cost_micros"),
        calls=Sum("tool_count"),
    ).order_by()  # fmt: skip
    figures = ("attempts", "failed", "given", "written", "read", "kept", "cost", "calls")
    return [
        Used(when if sqlite else when.strftime("%Y-%m-%d %H:%M")[:length], upstream, model, str(key), *rest)
        for when, upstream, model, key, *rest in rows.values_list(*PARTS, *figures)
    ]


def _summed(used: Iterable[Used]) -> Used:
    columns = zip(*([getattr(one, name) for name in SUMS] for one in used), strict=True)
    return Used("", "", "", "", *map(sum, columns))


def _by(used: list[Used], what: Literal["unit", "upstream", "model", "key"]) -> dict[str, Used]:
    groups: defaultdict[str, list[Used]] = defaultdict(list)
    for one in used:
        groups[getattr(one, what)].append(one)
    return {name: _summed(group) for name, group in groups.items()}


def _key_names() -> dict[str, str]:
    return {str(key): name for key, name in ApiKey.objects.values_list("id", "name")}


def _first(groups: dict[str, Used], what: str, chosen: str, names: dict[str, str], most: tuple[str, ...]) -> list[Line]:
    """Those with the most of what these columns count, as lines of a summary; the others are one line."""
    ordered = sorted(groups.items(), key=lambda item: (*(-getattr(item[1], name) for name in most), item[0]))
    lines = [
        _line(names.get(value, value), cells.list_url(UsageEntry, **{what: value, "since": chosen}), one)
        for value, one in ordered[:ROWS]
    ]
    if rest := ordered[ROWS:]:
        lines.append(_line(_others(ordered), "", _summed(one for _, one in rest)))
    return lines


def _line(name: str, url: str, one: Used) -> Line:
    return Line(name, url, one.attempts, one.failed, one.read, one.output_tokens, one.cost_micros)


def _others(found: Sequence[object]) -> str:
    return wording.many(len(found) - ROWS, "other") if len(found) > ROWS else ""


def _traffic(total: Used, chosen: str) -> tuple[Figure, ...]:
    number, failed = total.attempts, total.failed
    share = f"{100 * failed / number:.1f} % of attempts" if number else ""
    cached = f"{100 * total.cache_read / total.read:.0f} % from cache" if total.read else ""
    used = cells.list_url(UsageEntry, since=chosen)
    return (
        Figure("Attempts", wording.count(number), "calls of upstreams", used),
        Figure("Errors", wording.count(failed), share, f"{used}&status=error", "danger" if failed else ""),
        Figure("Tokens in", wording.count(total.read), cached, used),
        Figure("Tokens out", wording.count(total.output_tokens), "", used),
        Figure("Cost", wording.money(total.cost_micros), "", used),
    )


def _latency(since: dt.datetime) -> tuple[Figure, ...]:
    newest = Turn.objects.filter(pk__gte=minted(since), status=TurnStatus.COMPLETE).order_by("-pk")
    times = list(newest.values_list("first_token_ms", "state_ms", "duration_ms")[:SAMPLE])
    first, added, whole = ([row[place] for row in times] for place in range(3))
    about = f"p95 {wording.milliseconds(quantile(first, 0.95))}"
    return (
        Figure("First token", wording.milliseconds(quantile(first, 0.5)), about),
        Figure(
            "Whole turn",
            wording.milliseconds(quantile(whole, 0.5)),
            f"p95 {wording.milliseconds(quantile(whole, 0.95))}",
        ),
        Figure("Added by the bridge", wording.milliseconds(quantile(added, 0.5)), "before the upstream is called"),
    )


def _live(now: dt.datetime) -> tuple[Figure, ...]:
    present = Conversation.objects.filter(ended_at=None)
    active = present.filter(last_activity__gte=now - dt.timedelta(minutes=15))
    running = Turn.objects.filter(status=TurnStatus.RUNNING)
    pending = ToolMapping.objects.filter(status="pending")
    stuck = pending.filter(created_at__lt=now - STUCK)
    resting, loops = Rest.objects.filter(until__gt=now), looping()
    alive = Process.objects.filter(seen_at__gt=now - expiry.DEAD_AFTER)
    return (
        Figure("Active conversations", _counted(active), "in 15 minutes", cells.list_url(Conversation, since="15m")),
        Figure("Running turns", _counted(running), "", cells.list_url(Turn, status__exact="running")),
        Figure("Waiting for results", _counted(pending), "tool calls",
               cells.list_url(ToolMapping, status__exact="pending")),
        Figure("Stuck calls", _counted(stuck), "no result for 10 minutes", cells.list_url(ToolMapping, stuck="yes"),
               "warning" if stuck.exists() else ""),
        Figure("Resting", _counted(resting), "upstreams and their keys", cells.list_url(Rest),
               "warning" if resting.exists() else ""),
        Figure("Loops found", f"{len(loops):,}", "in the newest turns", cells.list_url(Turn, notes="loop"),
               "warning" if loops else ""),
        Figure("Due to be purged", _counted(expiry.inactive()), "inactive conversations",
               cells.list_url(Conversation, due="yes")),
        Figure("Web processes", _counted(alive), "alive", cells.list_url(Process), "" if alive.exists() else "danger"),
    )  # fmt: skip


def _counted(rows: "QuerySet[Any]") -> str:
    number = rows.order_by().values("pk")[: LIMIT + 1].count()
    return f"{LIMIT:,}+" if number > LIMIT else f"{number:,}"
