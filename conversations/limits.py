"""Whether a key may make a request now: its routes, its rate, its concurrent streams, its budgets.

A key without limits never comes here. With REDIS_URL all processes count together; without it, or while Redis is away,
each counts by itself.
"""

import fnmatch
import time
from collections import Counter
from functools import lru_cache

from msgspec.structs import replace

from conversations.budgets import Account, Amount, Budgets
from conversations.store import Store
from conversations.store.accounts import KeyLimits, KeyRow
from conversations.windows import LocalWindows, SharedWindows, Verdict
from translation.errors import Forbidden, OverBudget, RateLimited


class Full(RateLimited):
    """All of a key's places are taken."""


class Admission:
    """A request that was let in: it holds a place until it is settled."""

    __slots__ = ("_account", "_key", "_limits", "_settled", "_stream")

    def __init__(self, limits: "Limits", key: int, stream: str, account: Account | None) -> None:
        self._limits = limits
        self._key = key
        self._stream = stream
        self._account = account
        self._settled = False

    def expect(self, tokens: int, micros: int) -> None:
        """What it will use at least, as far as one can tell."""
        if self._account is not None and not self._settled:
            self._account.flying[self._stream] = (tokens, micros)

    async def settle(self, tokens: int = 0, micros: int = 0) -> None:
        """It has ended, and what it used is in the ledger."""
        if not self._settled:
            self._settled = True
            await self._limits.settle(self._key, self._stream, self._account, (tokens, micros))


class Limits:
    def __init__(self, store: Store, redis_url: str | None) -> None:
        self._local = LocalWindows()
        self._shared = SharedWindows(redis_url) if redis_url else None
        self._budgets = Budgets(store, self._shared.clock if self._shared else None)
        self.refusals: Counter[str] = Counter()

    async def admit(self, key: KeyRow, model: str, request_id: str, *, places: int = 1) -> Admission:
        """A request that only listens to another one needs no place, and costs nothing."""
        limits = key.limits
        assert limits is not None
        self.permit(limits, model)
        account = await self._budgets.account(key.id) if limits.budgeted and places else None
        asked = limits if places else replace(limits, concurrent=0)
        verdict = await self._verdict(key.id, asked, request_id, account.mark if account else "")
        if verdict.kind != "admitted":
            self.refusals[verdict.kind] += 1
            refusal = Full if verdict.kind == "streams" else RateLimited
            raise refusal(_message(limits, verdict), retry_after=verdict.retry_after)
        admission = Admission(self, key.id, request_id, account)
        if account is not None:
            try:
                account.check(limits, verdict.spent)
            except OverBudget:
                self.refusals["budget"] += 1
                await admission.settle()
                raise
        return admission

    def permit(self, limits: KeyLimits, model: str) -> None:
        if limits.routes and not allowed(limits.routes, model):
            self.refusals["route"] += 1
            raise Forbidden(f"model: this key may not use {model}")

    async def settle(self, key: int, stream: str, account: Account | None, used: Amount) -> None:
        durable = time.monotonic()
        self._local.release(key, stream)
        if account is not None:
            account.flying[stream] = used  # until the other processes are told
        if self._shared is not None:
            await self._shared.settle(key, stream, used if account is not None and any(used) else None)
        if account is not None:
            account.settle(stream, used, durable)

    async def renew(self) -> None:
        """Every few seconds: the streams that run here still do."""
        self._local.sweep()
        self._budgets.sweep()
        if self._shared is not None:
            await self._shared.renew(self._local.streams)

    async def close(self) -> None:
        if self._shared is not None:
            await self._shared.close()

    async def _verdict(self, key: int, limits: KeyLimits, stream: str, mark: str) -> Verdict:
        per_minute, concurrent = limits.per_minute, limits.concurrent
        if self._shared is not None and (per_minute or concurrent or mark):
            verdict = await self._shared.admit(key, per_minute, concurrent, stream, mark)
            if verdict is not None:
                if verdict.kind == "admitted":
                    self._local.note(key, per_minute, concurrent, stream)
                return verdict
        return self._local.admit(key, per_minute, concurrent, stream)


@lru_cache(maxsize=4096)
def allowed(routes: tuple[str, ...], model: str) -> bool:
    lowered = model.lower()
    return any(fnmatch.fnmatchcase(lowered, pattern) for pattern in routes)


def _message(limits: KeyLimits, verdict: Verdict) -> str:
    if verdict.kind == "rate":
        return f"this key's limit of {limits.per_minute} requests per minute is reached"
    return f"this key's limit of {limits.concurrent} concurrent requests is reached"
