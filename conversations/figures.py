"""Counters and histograms as plain numbers: cheap to keep, easy to send, and to be added up over processes."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from translation.unreadable import UNREADABLE

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

Series = tuple[str, ...]  # a metric's name, then the values of its labels


class Histogram:
    """Seconds. The last count is of what is above all buckets."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += times
        self.total += seconds * times


class Figures(Struct):
    """What one process has counted, or several together."""

    counters: dict[Series, float] = {}
    gauges: dict[Series, float] = {}
    histograms: dict[Series, list[float]] = {}  # the counts, then the sum of all values

    def add(self, other: "Figures") -> None:
        for mine, theirs in ((self.counters, other.counters), (self.gauges, other.gauges)):
            for series, value in theirs.items():
                mine[series] = mine.get(series, 0) + value
        for series, values in other.histograms.items():
            known = self.histograms.get(series)
            if known is None or len(known) != len(values):
                self.histograms[series] = list(values)
            else:
                self.histograms[series] = [one + two for one, two in zip(known, values, strict=True)]


class _Wire(Struct):
    """JSON knows no tuples as keys."""

    counters: list[tuple[Series, float]] = []
    gauges: list[tuple[Series, float]] = []
    histograms: list[tuple[Series, list[float]]] = []


_DECODER = msgspec.json.Decoder(_Wire)


def dump(figures: Figures) -> bytes:
    wire = _Wire(list(figures.counters.items()), list(figures.gauges.items()), list(figures.histograms.items()))
    return msgspec.json.encode(wire)


def load(data: bytes) -> Figures:
    """Nothing, if another version of the bridge wrote it in its own way."""
    try:
        wire = _DECODER.decode(data) if data else _Wire()
    except UNREADABLE:
        wire = _Wire()
    return Figures(dict(wire.counters), dict(wire.gauges), dict(wire.histograms))


def flat(histograms: Iterable[tuple[Series, Histogram]]) -> dict[Series, list[float]]:
    return {series: [*histogram.counts, histogram.total] for series, histogram in histograms}


def cumulative(values: Sequence[float]) -> list[tuple[str, float]]:
    """Prometheus's buckets: each counts everything up to its bound."""
    total, buckets = 0.0, []
    for bound, count in zip((*map(str, BUCKETS), "+Inf"), values, strict=False):
        total += count
        buckets.append((bound, total))
    return buckets
