"""Remembers the results of a pure function of bytes. Clients resend their whole history with every turn, nearly all of
it in the same bytes; what was worked out once need not be worked out again.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from operator import attrgetter, methodcaller
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Value = TypeVar("Value")

ENTRY = 700  # bytes that a small one takes beside its key, with what is remembered of it; a message of one text


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
        found: list[Any] = [*map(self._younger.get, keys)] if small else [None] * len(keys)
        for place in _places(None, found) if None in found else ():
            found[place] = self.get(keys[place], partial(work, place))
        return found


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


class remembered(Generic[Value, Result]):  # noqa: N801 - it is used as a decorator
    """A pure function of a value that never changes: its result is kept with the value, as `once` keeps a property.

    It is for small facts about each message of a history, which is nearly the same with every request: those of `all`
    its messages are looked up without a step of the interpreter for each.
    """

    def __init__(self, work: Callable[[Value], Result]) -> None:
        self._work = work
        self._name = f"{work.__module__}.{work.__qualname__}"
        self._kept = methodcaller("get", self._name, _UNKNOWN)
        self.__doc__ = work.__doc__

    def __call__(self, value: Value) -> Result:
        known: dict[str, Any] = value.__dict__
        found: Result = known.get(self._name, _UNKNOWN)
        if found is _UNKNOWN:
            found = known[self._name] = self._work(value)
        return found

    def all(self, values: Sequence[Value]) -> list[Result]:
        found: list[Any] = [*map(self._kept, map(_KNOWN, values))]
        for place in _places(_UNKNOWN, found) if _UNKNOWN in found else ():
            value = values[place]
            found[place] = value.__dict__[self._name] = self._work(value)
        return found


def hand_on(old: object, new: Value) -> Value:
    """To a value that differs from `old` in nothing that a fact is about."""
    new.__dict__.update(old.__dict__)
    return new


_UNKNOWN = object()
_KNOWN = attrgetter("__dict__")


def _places(missing: object, found: list[Any]) -> Iterator[int]:
    """Where it stands, in one pass: of a history that grew that is its end."""
    place = -1
    for _ in range(found.count(missing)):
        place = found.index(missing, place + 1)
        yield place
