"""Remembers the results of a pure function of bytes. Clients resend their whole history with every turn, nearly all of
it in the same bytes; what was worked out once need not be worked out again.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")

ENTRY = 400  # bytes that a small one takes beside its key; measured for a message of one text


class Memo(Generic[Result]):
    """Bounded by the size of its entries, in two generations: when the younger is full the older goes, but for what was
    used since. What is large is not even looked for. Threads may share it: at worst they do the same work.
    """

    def __init__(self, budget: int, largest: int) -> None:
        self._half = budget // 2
        self._largest = largest
        self._size = 0  # of the younger
        self._younger: dict[bytes, Result] = {}
        self._older: dict[bytes, Result] = {}

    def get(self, key: bytes, work: Callable[[], Result]) -> Result:
        if len(key) > self._largest:
            return work()
        found = self._younger.get(key)
        if found is not None:
            return found
        found = self._older.get(key)
        if found is None:
            found = work()
        size = len(key) + ENTRY
        if self._size + size > self._half:
            self._younger, self._older, self._size = {}, self._younger, 0
        self._younger[key] = found
        self._size += size
        return found

    def get_all(self, keys: list[bytes], work: Callable[[int], Result]) -> list[Result]:
        """The same for many keys; `work` takes the place of one among them."""
        small = max(map(len, keys), default=0) <= self._largest
        found = map(self._younger.get, keys) if small else [None] * len(keys)
        return [self.get(keys[place], partial(work, place)) if one is None else one for place, one in enumerate(found)]


class once(Generic[Result]):  # noqa: N801 - it is used as a decorator
    """A property of a value that never changes, worked out when it is first asked for. Unlike `cached_property` it
    takes no lock: at worst two threads do the same work.
    """

    def __init__(self, work: Callable[[Any], Result]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, value: object, owner: type | None = None) -> Result:
        found = value.__dict__[self._name] = self._work(value)
        return found
