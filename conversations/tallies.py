"""Counters in the database: what purges did, and what ended processes had counted."""

from collections.abc import Mapping

import msgspec
from django.db import transaction
from django.db.models import F

from conversations import figures
from conversations.figures import Figures, Series
from conversations.models import Process, Tally

HISTOGRAM = "histogram"


def count(**amounts: float) -> None:
    """Add to counters by name."""
    _add({(name,): amount for name, amount in amounts.items() if amount})


def put(name: str, value: float) -> None:
    Tally.objects.update_or_create(name=named(name), defaults={"value": value})


def named(name: str) -> str:
    """The name of a counter without labels, as its row has it."""
    return _name((name,))


def archive(process: Process) -> None:
    """Delete an ended process's row; its counters stay, so that no sum ever falls."""
    counted = figures.load(bytes(process.figures))
    amounts = dict(counted.counters)
    for series, values in counted.histograms.items():
        amounts |= {(HISTOGRAM, str(index), *series): value for index, value in enumerate(values) if value}
    with transaction.atomic():
        deleted, _ = process.delete()  # first: somebody else may do the same
        if deleted:
            _add(amounts)


def read() -> Figures:
    counters: dict[Series, float] = {}
    histograms: dict[Series, dict[int, float]] = {}
    for name, value in Tally.objects.values_list("name", "value"):
        series = tuple(msgspec.json.decode(name, type=list[str]))
        if series[0] == HISTOGRAM:
            histograms.setdefault(series[2:], {})[int(series[1])] = value
        else:
            counters[series] = value
    size = len(figures.BUCKETS) + 2
    return Figures(counters, {}, {key: [found.get(n, 0) for n in range(size)] for key, found in histograms.items()})


def _add(amounts: Mapping[Series, float]) -> None:
    names = {_name(series): amount for series, amount in amounts.items()}
    Tally.objects.bulk_create([Tally(name=name) for name in names], ignore_conflicts=True)
    # In one order everywhere: two that add at the same time wait for each other, never both ways.
    for name in sorted(names):
        Tally.objects.filter(name=name).update(value=F("value") + names[name])


def _name(series: Series) -> str:
    return msgspec.json.encode(series).decode()[:255]
