"""Requests per minute and concurrent streams of a key: in this process, or in Redis for all processes together.

Redis counts with its own clock, in one script: nothing can happen between looking and taking. A stream's place is a
lease that its process renews, so that a process which dies gives its places back.
"""

import asyncio
import logging
import time
from collections import deque
from typing import Any, Literal

from msgspec import Struct

log = logging.getLogger(__name__)

WINDOW = 60.0
LEASE = 30.0  # seconds that a stream's place is kept without being renewed
SPENT = 60.0  # seconds that a settled usage is told to other processes; by then their sums have it
PATIENCE = 0.25  # seconds that a request waits for Redis, as far as this process listens
BEATS = 5  # of them
REST = 1.0  # seconds for which Redis is not asked after it failed
STREAM_RETRY = 1.0

ADMIT = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local per_minute, concurrent, lease = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[4])
if concurrent > 0 then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
  if redis.call('ZCARD', KEYS[2]) >= concurrent then return {'streams', 0} end
end
if per_minute > 0 then
  local oldest = redis.call('LINDEX', KEYS[1], per_minute - 1)
  if oldest and now - oldest < 60000 then return {'rate', 60000 - (now - oldest)} end
  redis.call('LPUSH', KEYS[1], now)
  redis.call('LTRIM', KEYS[1], 0, per_minute - 1)
  redis.call('PEXPIRE', KEYS[1], 60000)
end
if concurrent > 0 then
  redis.call('ZADD', KEYS[2], now + lease, ARGV[3])
  redis.call('PEXPIRE', KEYS[2], lease)
end
local answer = {'admitted', 0}
if ARGV[5] ~= '' then
  for _, entry in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[5], '+inf')) do
    answer[#answer + 1] = entry
  end
end
return answer
"""
SETTLE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('ZREM', KEYS[1], ARGV[1])
if ARGV[2] ~= '' then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[3]))
  redis.call('ZADD', KEYS[2], now, ARGV[2])
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
"""
RENEW = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
for index = 2, #ARGV do
  redis.call('ZADD', KEYS[1], now + ARGV[1], ARGV[index])
end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
"""


class Verdict(Struct, frozen=True):
    """`spent` is what other requests used since the mark that was given: tokens and millionths of a dollar."""

    kind: Literal["admitted", "rate", "streams"]
    retry_after: float = 0.0
    spent: tuple[int, int] | None = None


ADMITTED = Verdict("admitted")


class LocalWindows:
    """What this process has let in. It keeps count also while Redis decides, to go on with when Redis is away."""

    def __init__(self) -> None:
        self._times: dict[int, deque[float]] = {}
        self._streams: dict[int, set[str]] = {}

    def admit(self, key: int, per_minute: int, concurrent: int, stream: str) -> Verdict:
        if concurrent and len(self._streams.get(key, ())) >= concurrent:
            return Verdict("streams", STREAM_RETRY)
        times, now = self._times.get(key, ()), time.monotonic()
        if per_minute and len(times) >= per_minute and now - times[-per_minute] < WINDOW:
            return Verdict("rate", WINDOW - (now - times[-per_minute]))
        self.note(key, per_minute, concurrent, stream)
        return ADMITTED

    def note(self, key: int, per_minute: int, concurrent: int, stream: str) -> None:
        if per_minute:
            times = self._times.get(key)
            if times is None or times.maxlen != per_minute:
                times = self._times[key] = deque(times or (), maxlen=per_minute)
            times.append(time.monotonic())
        if concurrent:
            self._streams.setdefault(key, set()).add(stream)

    def release(self, key: int, stream: str) -> None:
        streams = self._streams.get(key)
        if streams is not None:
            streams.discard(stream)
            if not streams:
                del self._streams[key]

    @property
    def streams(self) -> dict[int, set[str]]:
        return self._streams

    def sweep(self) -> None:
        """Forget the keys that have been quiet for a whole window."""
        old = time.monotonic() - WINDOW
        for key in [key for key, times in self._times.items() if times[-1] < old]:
            del self._times[key]


class SharedWindows:
    """The same, in Redis. `None` for an answer means that Redis is away; it is asked again by itself."""

    def __init__(self, url: str) -> None:
        # Loaded only where it is configured: it costs a process some megabytes.
        from redis.asyncio import Redis  # noqa: PLC0415
        from redis.asyncio.retry import Retry  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.exceptions import RedisError  # noqa: PLC0415

        self._errors = (RedisError, OSError, TimeoutError)
        # No time limits of its own: they would count the seconds in which nobody listens.
        self._redis: Redis = Redis.from_url(
            url, socket_timeout=None, socket_connect_timeout=None, retry=Retry(NoBackoff(), 0)
        )
        self._admit = self._redis.register_script(ADMIT)
        self._settle = self._redis.register_script(SETTLE)
        self._renew = self._redis.register_script(RENEW)
        self._resting = 0.0
        self.failures = 0

    async def admit(self, key: int, per_minute: int, concurrent: int, stream: str, since: str) -> Verdict | None:
        """`since` is a mark of `clock`, or empty if nobody wants to know what was spent."""
        names = [_name(key, "requests"), _name(key, "streams"), _name(key, "spent")]
        answer = await self._ask(
            self._admit(keys=names, args=[per_minute, concurrent, stream, int(LEASE * 1000), since])
        )
        if answer is None:
            return None
        kind = answer[0].decode()
        if kind != "admitted":
            return Verdict(kind, STREAM_RETRY if kind == "streams" else int(answer[1]) / 1000)
        return Verdict("admitted", 0.0, _total(answer[2:]) if since else None)

    async def settle(self, key: int, stream: str, spent: tuple[int, int] | None) -> bool:
        told = f"{spent[0]}:{spent[1]}:{stream}" if spent else ""
        names = [_name(key, "streams"), _name(key, "spent")]
        return await self._ask(self._settle(keys=names, args=[stream, told, int(SPENT * 1000)])) is not None

    async def renew(self, streams: dict[int, set[str]]) -> None:
        """The leases of the streams that run here."""
        for key, names in [(key, tuple(names)) for key, names in streams.items()]:
            await self._ask(self._renew(keys=[_name(key, "streams")], args=[int(LEASE * 1000), *names]))
            # Whoever ended meanwhile may just have been put back.
            gone = [name for name in names if name not in streams.get(key, ())]
            if gone:
                await self._ask(self._redis.zrem(_name(key, "streams"), *gone))

    async def clock(self) -> str:
        """Redis's time, as a mark for `admit`; empty when it is away."""
        answer = await self._ask(self._redis.time())
        return "" if answer is None else str(answer[0] * 1000 + answer[1] // 1000)

    async def close(self) -> None:
        await self._redis.aclose()

    async def _ask(self, question: Any) -> Any:
        """The answer, never None; None when Redis does not answer in time."""
        if time.monotonic() < self._resting:
            question.close()
            return None
        try:
            async with asyncio.timeout(None) as deadline:
                patience = Patience(deadline)
                try:
                    answer = await question
                finally:
                    patience.end()
        except self._errors as error:
            self._resting = time.monotonic() + REST
            self.failures += 1
            log.warning("limits: Redis is away (%s); counting in this process alone", type(error).__name__)
            return None
        return True if answer is None else answer


class Patience:
    """Sets a deadline after so many beats of the loop. One that was busy, or not given the processor, has not heard
    what Redis said meanwhile: a beat that comes late counts as one."""

    def __init__(self, deadline: asyncio.Timeout) -> None:
        self._deadline = deadline
        self._left = BEATS
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_later(PATIENCE / BEATS, self._beat)

    def end(self) -> None:
        self._next.cancel()

    def _beat(self) -> None:
        self._left -= 1
        if self._left:
            self._next = self._loop.call_later(PATIENCE / BEATS, self._beat)
        else:
            self._deadline.reschedule(self._loop.time())


def _name(key: int, what: str) -> str:
    """In a cluster all of a key's names have to be on one node: that is what the braces say."""
    return f"toolbridge:{{{key}}}:{what}"


def _total(entries: list[bytes]) -> tuple[int, int]:
    tokens = micros = 0
    for entry in entries:
        parts = entry.split(b":", 2)
        tokens, micros = tokens + int(parts[0]), micros + int(parts[1])
    return tokens, micros
