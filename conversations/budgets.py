"""What a key has spent today and this month: the ledger's sums, kept in memory and looked up again every few seconds,
and on top of them what was used since and what runs at this moment.
"""

import asyncio
import datetime as dt
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from msgspec import Struct

from conversations.store import Store, accounts
from conversations.store.accounts import KeyLimits
from translation.errors import OverBudget, StoreUnavailable

FRESH = 2.0  # seconds after which sums are looked up again, beside the request that noticed
STALE = 10.0  # seconds after which a request waits for that
NOTHING = (0, 0)

Amount = tuple[int, int]  # tokens, millionths of a dollar
Clock = Callable[[], Awaitable[str]]


class Sums(Struct, frozen=True):
    day: dt.date
    mark: str  # Redis's clock when they were looked up; empty without Redis
    at: float
    earlier: Amount  # of the month before today
    today: Amount


class Account:
    """One key's."""

    def __init__(self) -> None:
        self.sums: Sums | None = None
        self.flying: dict[str, Amount] = {}
        self.settled: list[tuple[float, Amount]] = []
        self.refreshing: asyncio.Task[None] | None = None

    @property
    def mark(self) -> str:
        return self.sums.mark if self.sums else ""

    def settle(self, stream: str, amount: Amount, when: float) -> None:
        self.flying.pop(stream, None)
        if any(amount):
            self.settled.append((when, amount))

    def check(self, limits: KeyLimits, since: Amount | None) -> None:
        """`since`: what all processes used since the sums were looked up; None if only this process is known."""
        assert self.sums is not None
        recent = since if since is not None else _total(amount for _, amount in self.settled)
        running = _total(self.flying.values())
        tokens, micros = (self.sums.today[n] + recent[n] + running[n] for n in (0, 1))
        day, month = self.sums.day, self.sums.earlier
        for budget, spent, what in (
            (limits.daily_tokens, tokens, "daily token"),
            (limits.monthly_tokens, tokens + month[0], "monthly token"),
            (limits.daily_micros, micros, "daily money"),
            (limits.monthly_micros, micros + month[1], "monthly money"),
        ):
            if budget is not None and spent >= budget:
                raise OverBudget(_exhausted(what, budget, day))


class Budgets:
    def __init__(self, store: Store, clock: Clock | None) -> None:
        self._store = store
        self._clock = clock
        self._accounts: dict[int, Account] = {}

    async def account(self, key: int) -> Account:
        """With sums that are not stale."""
        account = self._accounts.setdefault(key, Account())
        sums, now = account.sums, time.monotonic()
        if sums is None or now - sums.at > STALE or sums.day != _today():
            await self._refreshed(key, account)
        elif now - sums.at > FRESH and account.refreshing is None:
            account.refreshing = asyncio.get_running_loop().create_task(self._refresh_beside(key, account))
        return account

    def forget(self, key: int) -> None:
        """Its limits changed; the next request looks everything up again."""
        if (account := self._accounts.get(key)) is not None:
            account.sums = None

    def sweep(self) -> None:
        old = time.monotonic() - 600
        for key, account in tuple(self._accounts.items()):
            if not account.flying and account.refreshing is None and (account.sums is None or account.sums.at < old):
                del self._accounts[key]

    async def _refresh_beside(self, key: int, account: Account) -> None:
        try:
            await self._refreshed(key, account)
        except StoreUnavailable:
            return  # the next request tries again; once they are stale it waits, and hears of it
        finally:
            account.refreshing = None

    async def _refreshed(self, key: int, account: Account) -> None:
        began, day, old = time.monotonic(), _today(), account.sums
        mark = await self._clock() if self._clock is not None else ""
        month = day.replace(day=1)
        earlier = old.earlier if old is not None and old.day == day else await self._spent(key, month, day)
        today = await self._spent(key, day, day + dt.timedelta(days=1))
        account.sums = Sums(day, mark, began, earlier, today)
        # What was durable before the question is in the answer.
        account.settled = [entry for entry in account.settled if entry[0] >= began]

    async def _spent(self, key: int, since: dt.date, until: dt.date) -> Amount:
        if since == until:
            return NOTHING
        return await self._store.read(partial(accounts.spent, key=key, since=str(since), until=str(until)), NOTHING)


def _today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


def _total(amounts: Iterable[Amount]) -> Amount:
    tokens = micros = 0
    for amount in amounts:
        tokens, micros = tokens + amount[0], micros + amount[1]
    return tokens, micros


def _exhausted(what: str, budget: int, day: dt.date) -> str:
    next_month = (day.replace(day=1) + dt.timedelta(days=32)).replace(day=1)
    until = day + dt.timedelta(days=1) if what.startswith("daily") else next_month
    amount = f"${budget / 1_000_000:.2f}" if what.endswith("money") else f"{budget} tokens"
    return f"this key's {what} budget of {amount} is used up; it starts anew on {until} (UTC)"
