"""`/metrics`: the figures of all web processes added up, and what only the database knows."""

import datetime as dt
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from django.db import connection, models
from django.db.models.functions import Now
from django.utils import timezone
from msgspec import Struct

from conversations import expiry, figures, retention, tallies
from conversations.figures import Figures, Series
from conversations.models import (
    ApiKey,
    Blob,
    Conversation,
    Message,
    Process,
    Rest,
    ToolEntry,
    ToolMapping,
    ToolStatus,
    Turn,
    UsageEntry,
)

if TYPE_CHECKING:
    from prometheus_client.core import Metric as Family

ACTIVE = dt.timedelta(minutes=5)
SIZES_SECONDS = 30.0  # for which the sizes of tables are remembered
DBSTAT_LIMIT = 256 * 1024 * 1024  # SQLite reads the whole file to tell a table's size
TABLES: tuple[type[models.Model], ...] = (
    ApiKey,
    Blob,
    Conversation,
    Message,
    ToolEntry,
    ToolMapping,
    Turn,
    UsageEntry,
)


class Metric(Struct, frozen=True):
    kind: str  # counter, gauge, histogram
    help: str
    labels: tuple[str, ...] = ()


CATALOGUE = {
    "toolbridge_turns_total": Metric("counter", "Turns that ended, stored.", ("status", "upstream")),
    "toolbridge_attempts_total": Metric("counter", "Calls of upstreams.", ("status", "upstream")),
    "toolbridge_errors_total": Metric("counter", "Errors that clients were told, by Anthropic's type.", ("type",)),
    "toolbridge_unknown_tools_total": Metric("counter", "Tool results whose call nobody knows."),
    "toolbridge_refusals_total": Metric("counter", "Requests that a key's own limit refused.", ("reason",)),
    "toolbridge_tokens_total": Metric("counter", "Tokens, as reported or estimated.", ("kind", "upstream")),
    "toolbridge_cost_dollars_total": Metric("counter", "Dollars, by the price table.", ("upstream",)),
    "toolbridge_tool_calls_total": Metric("counter", "Tool calls in answers.", ("upstream",)),
    "toolbridge_notes_total": Metric("counter", "Repairs, substitutions, policies on turns.", ("kind", "rule")),
    "toolbridge_store_operations_total": Metric("counter", "Operations of the state store.", ("operation",)),
    "toolbridge_store_commits_total": Metric("counter", "Transactions that made writes durable, several in one."),
    "toolbridge_store_retries_total": Metric("counter", "Operations of the store tried again.", ("operation",)),
    "toolbridge_store_failures_total": Metric("counter", "Operations of the store that failed.", ("operation",)),
    "toolbridge_state_lookups_total": Metric("counter", "Requests whose state was cached, or not.", ("result",)),
    "toolbridge_purge_runs_total": Metric("counter", "Runs of the purge."),
    "toolbridge_purge_seconds_total": Metric("counter", "Time that purges took."),
    "toolbridge_purged_conversations_total": Metric("counter", "Conversations that purges deleted."),
    "toolbridge_purged_contents_total": Metric("counter", "Conversations whose text purges deleted."),
    "toolbridge_purged_rows_total": Metric("counter", "Rows that purges deleted."),
    "toolbridge_reconciled_turns_total": Metric("counter", "Turns of dead processes that were closed."),
    "toolbridge_time_to_first_token_seconds": Metric(
        "histogram", "From the request to the first thing to show.", ("upstream",)
    ),
    "toolbridge_turn_seconds": Metric("histogram", "From the request to the end of its answer.", ("upstream",)),
    "toolbridge_added_seconds": Metric("histogram", "From the request to the call of the upstream: the bridge itself."),
    "toolbridge_store_operation_seconds": Metric(
        "histogram", "Operations of the store; a write takes as long as its transaction.", ("operation",)
    ),
    "toolbridge_streams": Metric("gauge", "Turns that run now."),
    "toolbridge_tasks": Metric(
        "gauge", "Tasks of the web process that was asked: some for itself, a few for each stream."
    ),
    "toolbridge_processes": Metric("gauge", "Web processes that live."),
    "toolbridge_conversations": Metric("gauge", "Conversations that are stored.", ("state",)),
    "toolbridge_active_conversations": Metric("gauge", "Conversations with a turn in the last five minutes."),
    "toolbridge_pending_tool_calls": Metric("gauge", "Tool calls that wait for their result."),
    "toolbridge_resting": Metric(
        "gauge", "Keys of an upstream that rest now; the upstream itself is one.", ("upstream",)
    ),
    "toolbridge_purge_backlog": Metric("gauge", "What the next purge will delete.", ("what",)),
    "toolbridge_purge_last_run_timestamp_seconds": Metric("gauge", "When the last purge ended."),
    "toolbridge_search_indexed_timestamp_seconds": Metric("gauge", "What ended until then can be found by its text."),
    "toolbridge_table_rows": Metric("gauge", "Rows, on PostgreSQL as it estimates them.", ("table",)),
    "toolbridge_table_bytes": Metric("gauge", "Bytes with indexes.", ("table",)),
    "toolbridge_database_bytes": Metric("gauge", "Bytes of the whole database."),
}


def collect(own: Figures, process: int) -> Figures:
    """`own` are the figures of the process that is asked; its row may be half a second old."""
    total = Figures(dict(own.counters), dict(own.gauges), dict(own.histograms))
    alive, living = timezone.now() - expiry.DEAD_AFTER, 0
    for row in Process.objects.exclude(pk=process).only("seen_at", "figures").iterator():
        told = figures.load(bytes(row.figures))
        if row.seen_at < alive:
            told.gauges = {}
        else:
            living += 1
        total.add(told)
    counted = tallies.read()
    gauges = {series: counted.counters.pop(series) for series in tuple(counted.counters) if _is_gauge(series)}
    total.add(counted)
    total.gauges |= {**gauges, **_stored(), **_sizes(), ("toolbridge_processes",): living + 1}
    return total


def exposition(total: Figures) -> bytes:
    """Prometheus's text; every metric of the catalogue is there, also when nothing was counted yet."""
    # Only a process that is scraped needs it.
    from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(total))
    return generate_latest(registry)


class _Collector:
    def __init__(self, total: Figures) -> None:
        self._total = total

    def collect(self) -> "Iterator[Family]":
        from prometheus_client import core  # noqa: PLC0415

        kinds = {"counter": core.CounterMetricFamily, "gauge": core.GaugeMetricFamily}
        for name, metric in CATALOGUE.items():
            if metric.kind == "histogram":
                family = core.HistogramMetricFamily(name, metric.help, labels=metric.labels)
                for labels, values in _of(name, metric, self._total.histograms, [0.0] * (len(figures.BUCKETS) + 2)):
                    family.add_metric(labels, figures.cumulative(values[:-1]), values[-1])
            else:
                family = kinds[metric.kind](name, metric.help, labels=metric.labels)
                known = self._total.counters if metric.kind == "counter" else self._total.gauges
                for labels, value in _of(name, metric, known, 0.0):
                    family.add_metric(labels, value)
            yield family


Value = TypeVar("Value", float, list[float])


def _of(name: str, metric: Metric, known: dict[Series, Value], nothing: Value) -> list[tuple[tuple[str, ...], Value]]:
    found = sorted((series[1:], value) for series, value in known.items() if series[0] == name)
    if not found and not metric.labels:
        return [((), nothing)]
    return [(labels, value) for labels, value in found if len(labels) == len(metric.labels)]


def _is_gauge(series: Series) -> bool:
    return series[0] in CATALOGUE and CATALOGUE[series[0]].kind == "gauge"


def _stored() -> dict[Series, float]:
    """What the database says of now."""
    rows = Conversation.objects.filter(ended_at=None)
    active = rows.filter(last_activity__gt=Now() - ACTIVE).count()
    waiting = ToolMapping.objects.filter(status=ToolStatus.PENDING, conversation__ended_at=None).count()
    backlog = retention.backlog()
    resting = Counter(Rest.objects.filter(until__gt=timezone.now()).values_list("upstream", flat=True))
    return {
        **{("toolbridge_resting", upstream): count for upstream, count in resting.items()},
        ("toolbridge_conversations", "held"): rows.filter(held=True).count(),
        ("toolbridge_conversations", "stored"): rows.count(),
        ("toolbridge_active_conversations",): active,
        ("toolbridge_pending_tool_calls",): waiting,
        ("toolbridge_purge_backlog", "conversations"): backlog.conversations,
        ("toolbridge_purge_backlog", "contents"): backlog.contents,
        ("toolbridge_purge_backlog", "entries"): backlog.entries,
    }


_remembered: tuple[float, dict[Series, float]] = (float("-inf"), {})


def _sizes() -> dict[Series, float]:
    global _remembered  # noqa: PLW0603 - one per process
    when, sizes = _remembered
    if time.monotonic() - when > SIZES_SECONDS:
        sizes = _postgresql_sizes() if connection.vendor == "postgresql" else _sqlite_sizes()
        _remembered = (time.monotonic(), sizes)
    return sizes


def _postgresql_sizes() -> dict[Series, float]:
    sizes: dict[Series, float] = {}
    with connection.cursor() as cursor:
        for table in TABLES:
            name = table._meta.db_table
            cursor.execute(
                "SELECT reltuples, pg_total_relation_size(oid) FROM pg_class WHERE oid = %s::regclass", [name]
            )
            rows, size = cursor.fetchone()
            # A table that was never analysed is small.
            sizes["toolbridge_table_rows", name] = rows if rows > 0 else table._default_manager.count()
            sizes["toolbridge_table_bytes", name] = size
        cursor.execute("SELECT pg_database_size(current_database())")
        sizes["toolbridge_database_bytes",] = cursor.fetchone()[0]
    return sizes


def _sqlite_sizes() -> dict[Series, float]:
    sizes: dict[Series, float] = {}
    with connection.cursor() as cursor:
        cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
        sizes["toolbridge_database_bytes",] = whole = cursor.fetchone()[0]
        for table in TABLES:
            sizes["toolbridge_table_rows", table._meta.db_table] = table._default_manager.count()
        cursor.execute("SELECT 1 FROM pragma_compile_options WHERE compile_options = 'ENABLE_DBSTAT_VTAB'")
        if cursor.fetchone() and whole < DBSTAT_LIMIT:
            sql = """SELECT s.tbl_name, SUM(d.pgsize) FROM dbstat d JOIN sqlite_schema s ON s.name = d.name
                WHERE d.aggregate = TRUE GROUP BY s.tbl_name"""
            cursor.execute(sql)
            known = {table._meta.db_table for table in TABLES}
            sizes |= {("toolbridge_table_bytes", name): size for name, size in cursor.fetchall() if name in known}
    return sizes
