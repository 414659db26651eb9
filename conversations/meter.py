"""What this process counts. Once per request, never per chunk; told to the others through its row in the database."""

from collections import Counter, defaultdict
from collections.abc import Iterable

from conversations.figures import Figures, Histogram, Series, flat
from conversations.limits import Limits
from conversations.state import State
from conversations.store import Store
from conversations.store.usage import UsageRow
from conversations.store.writes import CloseTurn
from translation.errors import BridgeError, UnknownToolResult
from translation.values import Note


class _Served:
    """What one upstream did. Attributes, since looking up a series by its name and labels costs more than counting."""

    __slots__ = ("attempts", "calls", "first", "input", "micros", "output", "read", "seconds", "turns", "written")

    def __init__(self) -> None:
        self.turns: defaultdict[str, int] = defaultdict(int)  # by status
        self.attempts: defaultdict[str, int] = defaultdict(int)
        self.input = self.output = self.read = self.written = self.micros = self.calls = 0
        self.first = Histogram()
        self.seconds = Histogram()

    def counters(self, name: str) -> dict[Series, float]:
        turns: dict[Series, float] = {
            ("toolbridge_turns_total", status, name): count for status, count in dict(self.turns).items()
        }
        tried: dict[Series, float] = {
            ("toolbridge_attempts_total", status, name): count for status, count in dict(self.attempts).items()
        }
        kinds = {"input": self.input, "output": self.output, "cache_read": self.read, "cache_write": self.written}
        return {
            **turns,
            **tried,
            **{("toolbridge_tokens_total", kind, name): count for kind, count in kinds.items()},
            ("toolbridge_cost_dollars_total", name): self.micros / 1_000_000,
            ("toolbridge_tool_calls_total", name): self.calls,
        }


class Meter:
    def __init__(self) -> None:
        self.touched = False  # something is worth telling before the next heartbeat
        self._served: defaultdict[str, _Served] = defaultdict(_Served)
        self._added = Histogram()
        self._counters: Counter[Series] = Counter()

    def turn(self, row: CloseTurn, added_ms: float, notes: Iterable[Note]) -> None:
        self.used(row.usage)
        served = self._served[row.usage[-1].upstream]
        served.turns[row.status] += 1
        if row.first_token_ms:
            served.first.observe(row.first_token_ms / 1000)
        served.seconds.observe(row.duration_ms / 1000)
        self._added.observe(added_ms / 1000)
        for _, calls in row.tools:
            served.calls += calls
        if row.error_type:
            self._counters["toolbridge_errors_total", row.error_type] += 1
        for note in notes:
            self._counters["toolbridge_notes_total", note.kind, note.rule] += 1

    def used(self, entries: Iterable[UsageRow]) -> None:
        """Calls of upstreams, and what they cost."""
        for entry in entries:
            served = self._served[entry.upstream]
            served.attempts[entry.status] += 1
            served.input += entry.input_tokens
            served.output += entry.output_tokens
            served.read += entry.cache_read
            served.written += entry.cache_write
            served.micros += entry.cost_micros
        self.touched = True

    def error(self, error: BridgeError) -> None:
        """A request that was refused before it became a turn."""
        self._counters["toolbridge_errors_total", error.type] += 1
        if isinstance(error, UnknownToolResult):
            self._counters["toolbridge_unknown_tools_total",] += 1
        self.touched = True

    def figures(self, store: Store, state: State | None, limits: Limits, running: int) -> Figures:
        """Everything, with what the services count themselves."""
        counters: dict[Series, float] = dict(self._counters)
        timings: list[tuple[Series, Histogram]] = [(("toolbridge_added_seconds",), self._added)]
        for name, served in tuple(self._served.items()):
            counters |= served.counters(name)
            timings.append((("toolbridge_time_to_first_token_seconds", name), served.first))
            timings.append((("toolbridge_turn_seconds", name), served.seconds))
        counters |= {("toolbridge_refusals_total", reason): count for reason, count in dict(limits.refusals).items()}
        counters |= _store(store)
        if state is not None:
            counters["toolbridge_state_lookups_total", "hit"] = state.hits
            counters["toolbridge_state_lookups_total", "miss"] = state.misses
        for operation, histogram in (("write", store.writer.timings), ("read", store.reader.timings)):
            timings.append((("toolbridge_store_operation_seconds", operation), histogram))
        return Figures(counters, {("toolbridge_streams",): running}, flat(timings))


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
