"""What this process counts. Once per request, never per chunk; told to the others through its row in the database."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from conversations.figures import Figures, Histogram, Series, flat
from conversations.limits import Limits
from conversations.state import State
from conversations.store import Store
from conversations.store.writes import CloseTurn, UsageRow
from translation.errors import BridgeError, UnknownToolResult
from translation.values import Note


class Meter:
    def __init__(self) -> None:
        self.touched = False  # something is worth telling before the next heartbeat
        self._counters: Counter[Series] = Counter()
        self._amounts: defaultdict[Series, float] = defaultdict(float)
        self._histograms: defaultdict[Series, Histogram] = defaultdict(Histogram)

    def turn(self, row: CloseTurn, added_ms: float, notes: Iterable[Note]) -> None:
        counters, last = self._counters, row.usage[-1]
        counters["toolbridge_turns_total", row.status, last.upstream] += 1
        if row.error_type:
            counters["toolbridge_errors_total", row.error_type] += 1
        self.used(row.usage)
        for _, calls in row.tools:
            counters["toolbridge_tool_calls_total", last.upstream] += calls
        if row.first_token_ms:
            histogram = self._histograms["toolbridge_time_to_first_token_seconds", last.upstream]
            histogram.observe(row.first_token_ms / 1000)
        self._histograms["toolbridge_turn_seconds", last.upstream].observe(row.duration_ms / 1000)
        self._histograms["toolbridge_added_seconds",].observe(added_ms / 1000)
        for note in notes:
            counters["toolbridge_notes_total", note.kind, note.rule] += 1
        self.touched = True

    def used(self, entries: Iterable[UsageRow]) -> None:
        """Calls of upstreams, and what they cost."""
        amounts = self._amounts
        for entry in entries:
            upstream = entry.upstream
            self._counters["toolbridge_attempts_total", entry.status, upstream] += 1
            amounts["toolbridge_tokens_total", "input", upstream] += entry.input_tokens
            amounts["toolbridge_tokens_total", "output", upstream] += entry.output_tokens
            amounts["toolbridge_tokens_total", "cache_read", upstream] += entry.cache_read
            amounts["toolbridge_tokens_total", "cache_write", upstream] += entry.cache_write
            amounts["toolbridge_cost_dollars_total", upstream] += entry.cost_micros / 1_000_000
        self.touched = True

    def error(self, error: BridgeError) -> None:
        """A request that was refused before it became a turn."""
        self._counters["toolbridge_errors_total", error.type] += 1
        if isinstance(error, UnknownToolResult):
            self._counters["toolbridge_unknown_tools_total",] += 1
        self.touched = True

    def figures(self, store: Store, state: State | None, limits: Limits, running: int) -> Figures:
        """Everything, with what the services count themselves."""
        counters: dict[Series, float] = {**dict(self._counters), **dict(self._amounts)}
        counters |= {("toolbridge_refusals_total", reason): count for reason, count in dict(limits.refusals).items()}
        counters |= _store(store)
        if state is not None:
            counters["toolbridge_state_lookups_total", "hit"] = state.hits
            counters["toolbridge_state_lookups_total", "miss"] = state.misses
        histograms = flat(tuple(self._histograms.items()))
        for operation, histogram in _timings(store).items():
            histograms["toolbridge_store_operation_seconds", operation] = [*histogram.counts, histogram.total]
        return Figures(counters, {("toolbridge_streams",): running}, histograms)


def _store(store: Store) -> dict[Series, float]:
    writer, reader = store.writer, store.reader
    return {
        ("toolbridge_store_operations_total", "write"): writer.writes,
        ("toolbridge_store_operations_total", "read"): reader.reads,
        ("toolbridge_store_commits_total",): writer.commits,
        ("toolbridge_store_retries_total", "write"): writer.retries,
        ("toolbridge_store_retries_total", "read"): reader.retries,
        ("toolbridge_store_failures_total", "write"): writer.failures,
        ("toolbridge_store_failures_total", "read"): reader.failures,
    }


def _timings(store: Store) -> Mapping[str, Histogram]:
    return {"write": store.writer.timings, "read": store.reader.timings}
