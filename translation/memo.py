"""Remembers the results of a pure function of bytes. Clients resend their whole history with every turn, nearly all of
it in the same bytes; what was worked out once need not be worked out again.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class Memo(Generic[Result]):
    """Bounded by the size of its keys; what was used longest ago goes first, what is large is not kept at all."""

    def __init__(self, budget: int, largest: int) -> None:
        self._budget = budget
        self._largest = largest
        self._size = 0
        self._known: OrderedDict[bytes, Result] = OrderedDict()

    def get(self, key: bytes, work: Callable[[], Result]) -> Result:
        found = self._known.get(key)
        if found is not None:
            self._known.move_to_end(key)
            return found
        result = work()
        if len(key) <= self._largest:
            self._known[key] = result
            self._size += len(key)
            while self._size > self._budget:
                self._size -= len(self._known.popitem(last=False)[0])
        return result
