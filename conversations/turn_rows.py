"""A turn in the store: opened before anything of it is shown, closed with what became of it."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from conversations.conversation import Conversation
from conversations.records import Opening
from conversations.store import Store
from conversations.store.writes import CloseTurn, WholeTurn
from translation.errors import StoreUnavailable

HOLD_SECONDS = 0.05


class TurnRows(Struct, eq=False):
    """The opening is made once the upstream's request is on its way, and held for a moment: a turn that is over by then
    is written once. Whatever must not be shown before it is stored waits for `opened`, which ends the holding.
    """

    _store: Store
    _build: Callable[[], Opening] | None = None
    _held: Opening | None = None
    _timer: asyncio.TimerHandle | None = None
    _conversation: Conversation | None = None
    _opened: "asyncio.Future[Any] | None" = None

    @property
    def stored(self) -> bool:
        return self._opened is not None and _is_stored(self._opened)

    def open(self, build: Callable[[], Opening], conversation: Conversation, *, at_once: bool) -> None:
        self.forget()
        self._build, self._conversation, self._opened = build, conversation, None
        if at_once:
            self._write()
        else:
            loop = asyncio.get_running_loop()
            loop.call_soon(self.make)
            self._timer = loop.call_later(HOLD_SECONDS, self._write)

    def make(self) -> None:
        """Make what is to be stored, if it has not been made."""
        if self._build is not None:
            self._held, self._build = self._build(), None
            if self._held.more:
                self._write()  # that takes a while: at once, while the upstream is waited for

    async def opened(self) -> None:
        """Until the turn is in the store; raises why it is not."""
        if self._build is not None or self._held is not None:
            self._write()
        if self._opened is not None:
            if self._opened.cancelled():  # with whoever waited for it, and has left: what became of it nobody heard
                raise StoreUnavailable
            await self._opened

    def when_stored(self, call: Callable[[], None]) -> None:
        """Once the turn is in the store; never, if it does not get there."""
        self._write()
        if self._opened is not None:
            self._opened.add_done_callback(partial(_if_stored, call))

    async def close(self, row: CloseTurn) -> None:
        held = self._release()
        if held is None:
            await self._store.write(row)
            return
        try:
            await self._watched(self._store.write(WholeTurn(held.write, row)))
        except (StoreUnavailable, asyncio.CancelledError):
            self._held = held  # for another try
            raise

    async def close_opened(self, row: CloseTurn) -> None:
        """The same for an answer, which is worth nothing without the turn that it belongs to; nobody hears of a late
        one."""
        self.make()
        if self._held is None and not row.late:
            await self.opened()
        await self.close(row)

    def forget(self) -> None:
        """What was to be opened is no longer so."""
        self._build = None
        self._release()

    def _write(self) -> None:
        held = self._release()
        if held is None:
            return
        opened: asyncio.Future[Any] = self._store.write(held.write)
        if held.more:
            opened = asyncio.gather(opened, *map(self._store.write, held.more))
        self._watched(opened)

    def _release(self) -> Opening | None:
        if self._build is not None:
            self.make()
        held, self._held = self._held, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return held

    def _watched(self, opened: "asyncio.Future[Any]") -> "asyncio.Future[Any]":
        assert self._conversation is not None
        self._opened = opened
        opened.add_done_callback(partial(_was_opened, self._conversation))
        return opened


def _was_opened(conversation: Conversation, opened: "asyncio.Future[Any]") -> None:
    # Whoever waits for it hears of a failure; nobody may, if the upstream failed first.
    if _is_stored(opened):
        conversation.stored = True


def _if_stored(call: Callable[[], None], opened: "asyncio.Future[Any]") -> None:
    if _is_stored(opened):
        call()


def _is_stored(opened: "asyncio.Future[Any]") -> bool:
    return opened.done() and not opened.cancelled() and opened.exception() is None
