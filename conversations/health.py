"""What rests: a key that its upstream refused or limited, and an upstream that cannot be reached.

Rests end by themselves. Each process finds out on its own; what it finds is told, so that operators can see it.
"""

import time
from collections.abc import Callable, Mapping

from msgspec import Struct

REFUSED_SECONDS = 300.0
LIMITED_SECONDS = 30.0
LONGEST = 3600.0  # however long an upstream wants to be left alone
STRIKES = 3  # requests in a row that could not reach an upstream
UPSTREAM_SECONDS = 15.0


class Rested(Struct, frozen=True):
    """Something begins to rest. `key` is its number among the upstream's keys, 0 for the upstream itself."""

    upstream: str
    key: int
    reason: str
    seconds: float


class Health:
    def __init__(self, tell: Callable[[Rested], None] = lambda _: None) -> None:
        self.tell = tell
        self._turn: dict[str, int] = {}  # upstream -> where its rotation is
        self._keys: dict[tuple[str, str], float] = {}  # (upstream, key) -> when its rest ends
        self._strikes: dict[str, int] = {}
        self._upstreams: dict[str, float] = {}
        self._by_hand: dict[str, float] = {}  # by an operator: no answer of theirs ends it

    # ------------------------------------------------------------ keys

    def pick(self, upstream: str, keys: tuple[str, ...]) -> str:
        if not keys:
            return ""
        start = self._turn.get(upstream, 0)
        for offset in range(len(keys)):
            key = keys[(start + offset) % len(keys)]
            if self._is_awake(upstream, key):
                self._turn[upstream] = (start + offset + 1) % len(keys)
                return key
        # All of them rest: the one that is due first is better than none.
        return min(keys, key=lambda key: self._keys[upstream, key])

    def has_key(self, upstream: str, keys: tuple[str, ...]) -> bool:
        """Whether a key is left that does not rest."""
        return any(self._is_awake(upstream, key) for key in keys)

    def refused(self, upstream: str, keys: tuple[str, ...], key: str, status: int) -> None:
        self._rest_key(upstream, keys, key, f"refused (HTTP {status})", REFUSED_SECONDS)

    def limited(self, upstream: str, keys: tuple[str, ...], key: str, seconds: float | None) -> None:
        self._rest_key(upstream, keys, key, "rate limited (HTTP 429)", min(seconds or LIMITED_SECONDS, LONGEST))

    def accepted(self, upstream: str, key: str) -> None:
        self._keys.pop((upstream, key), None)

    def _rest_key(self, upstream: str, keys: tuple[str, ...], key: str, reason: str, seconds: float) -> None:
        self._keys[upstream, key] = time.monotonic() + seconds
        self.tell(Rested(upstream, keys.index(key) + 1, reason, seconds))

    def _is_awake(self, upstream: str, key: str) -> bool:
        return self._keys.get((upstream, key), 0.0) <= time.monotonic()

    # ------------------------------------------------------------ upstreams

    def reached(self, upstream: str) -> None:
        self._strikes.pop(upstream, None)
        self._upstreams.pop(upstream, None)

    def unreachable(self, upstream: str, reason: str) -> None:
        """Once per request that gave up on it. After a rest the first such request makes it rest again."""
        self._strikes[upstream] = strikes = self._strikes.get(upstream, 0) + 1
        if strikes >= STRIKES:
            self._upstreams[upstream] = time.monotonic() + UPSTREAM_SECONDS
            self.tell(Rested(upstream, 0, reason, UPSTREAM_SECONDS))

    def is_resting(self, upstream: str) -> bool:
        return max(self._upstreams.get(upstream, 0.0), self._by_hand.get(upstream, 0.0)) > time.monotonic()

    # ------------------------------------------------------------ what an operator decides

    def rest_by_hand(self, seconds: Mapping[str, float]) -> None:
        """All upstreams that are to rest, and for how long from now."""
        now = time.monotonic()
        self._by_hand = {upstream: now + left for upstream, left in seconds.items()}

    def wake(self, upstream: str) -> None:
        """It, and all its keys."""
        for rests in (self._upstreams, self._strikes, self._by_hand):
            rests.pop(upstream, None)
        self._keys = {key: until for key, until in self._keys.items() if key[0] != upstream}
