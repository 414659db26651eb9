"""How long a request waits for the store: so long in all, however often it has to ask.

A request that waits, is answered late and waits again would otherwise tell its client of an outage only after the sum
of these waits. Waits that are long past do not count, the upstream has answered since; nor do those before the last
thing that its client was shown: a stream that goes on has a store that is slow, not one that is away.
"""

from contextvars import ContextVar

WHOLE = 1.25  # seconds
LEAST = 0.25  # for one more wait: the store has just answered, if late
SLOW = 0.1  # who is answered sooner has not waited
AWAY = 0.5  # who is answered later has met an outage: the store is not only slow
FORGIVEN = 2.0  # seconds after which a wait no longer counts
NEVER = float("-inf")


class Patience:
    """Of one request, by the event loop's clock. Whoever shows something of it sets `spent` to nothing."""

    __slots__ = ("_last", "_longest", "spent")

    def __init__(self) -> None:
        self.spent = self._longest = 0.0
        self._last = NEVER  # when the last wait ended

    def left(self, now: float) -> float:
        return WHOLE if now - self._last > FORGIVEN else max(WHOLE - self.spent, LEAST)

    def waited(self, since: float, now: float) -> None:
        if now - since <= SLOW:
            return
        if since - self._last > FORGIVEN:
            self.spent = self._longest = 0.0
        self._longest = max(self._longest, now - since)
        self.spent += now - max(since, self._last)  # waits at the same time are one
        self._last = now

    def went_on(self) -> None:
        """The upstream has said more: a store that was only slow has all the time again."""
        if self._longest < AWAY:
            self.spent = 0.0


_current: ContextVar[Patience | None] = ContextVar("patience", default=None)


def begin() -> None:
    """A request begins; everything that is awaited for it shares its patience."""
    _current.set(Patience())


def current() -> Patience:
    """What no request waits for has its own."""
    return _current.get() or Patience()
