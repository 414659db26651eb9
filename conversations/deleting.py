"""Deleting many rows in pieces, so that nobody who writes meanwhile has to wait.

A piece is one statement and a transaction of its own. How many rows it has follows from how long the last one took;
after it comes a rest, in which the others have the database to themselves.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, models, transaction
from msgspec import Struct

LEAST, MOST = 20, 5_000  # rows in a piece
LONGEST_REST = 0.1


class Pace(Struct, frozen=True):
    first: int  # rows, while nobody knows how long they take
    seconds: float  # that a piece should take
    rest: float  # afterwards, as a multiple of what it took


# SQLite has one writer: whoever deletes keeps everybody else from writing.
PACES = {"sqlite": Pace(100, 0.003, 9.0), "postgresql": Pace(LEAST, 0.01, 9.0)}


class Pieces:
    """`hurried`: somebody waits for it, so there is no rest."""

    def __init__(self, *, hurried: bool = False) -> None:
        pace = PACES[connection.vendor]
        self._first = pace.first
        self._seconds, self._rest = pace.seconds, 0.0 if hurried else pace.rest
        self._sizes: dict[str, int] = {}
        self.count = 0
        self.longest = 0.0  # seconds
        self.slowest = ""  # what took so long

    def size(self, what: str) -> int:
        """How many at once."""
        return self._sizes.get(what, self._first)

    def delete(self, rows: "models.QuerySet[Any]") -> int:
        """All of them, without what refers to them; how many that were."""
        count = 0
        while rows.exists():  # looked for first, which locks nothing
            deleted = self._piece(rows, self.size(rows.model._meta.db_table))
            if not deleted:
                time.sleep(LONGEST_REST)  # somebody else has them all
            count += deleted
        return count

    def _piece(self, rows: "models.QuerySet[Any]", size: int) -> int:
        started = time.monotonic()
        with _lightly():
            found = rows.model._default_manager.filter(pk__in=_free(rows, size))
            deleted: int = found._raw_delete(found.db) or 0  # Django: None, where no keys were given
        self.took(rows.model._meta.db_table, size if deleted == size else 0, time.monotonic() - started)
        return deleted

    def took(self, what: str, size: int, seconds: float) -> None:
        """So long for so many: the next piece is larger or smaller. Then the rest."""
        self.count += 1
        if seconds > self.longest:
            self.longest, self.slowest = seconds, what
        if size:
            better = int(size * self._seconds / max(seconds, 1e-4))
            self._sizes[what] = min(max(better, size // 4, LEAST), size * 2, MOST)
        time.sleep(min(seconds * self._rest, LONGEST_REST))


def _free(rows: "models.QuerySet[Any]", size: int) -> "models.QuerySet[Any] | list[Any]":
    """So many keys of them. Two who delete the same rows at once take different ones: had each a part of what the
    other wants, neither would get on, nor would whoever waits for a row of theirs. SQLite has one writer anyway.
    """
    keys = rows.order_by().values_list("pk", flat=True)
    if connection.features.has_select_for_update_skip_locked:
        return list(keys.select_for_update(skip_locked=True)[:size])
    return keys[:size]


@contextmanager
def _lightly() -> Iterator[None]:
    """What is deleted and comes back in a crash is deleted again: no lock need last until it is on disk."""
    if connection.vendor != "postgresql":
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = off")
        yield
