"""Who reads a turn: the client that asked first, and whoever sends the same request again while it runs.

Alone, the first one drives its turn itself. From when another one comes, all read what the turn keeps of what it said,
each at its own pace, and whoever has read everything takes the next step. A step is a task of its own, so that a reader
that leaves breaks nothing off: the turn is given up when its last reader leaves.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from translation.errors import BridgeError

if TYPE_CHECKING:
    from conversations.turn import Turn
    from translation.accumulator import Accumulator
    from translation.events import WireEvent
    from translation.values import Note


class Client:
    """Who is answered by the task that makes this: when it leaves, the task is cancelled."""

    __slots__ = ("_answering", "_held", "gone")

    def __init__(self) -> None:
        self._answering = asyncio.current_task()
        self._held = False
        self.gone = False

    def leave(self) -> None:
        self.gone = True
        if not self._held:
            self._cancel()

    def hold(self) -> None:
        """Another client waits for what the task is doing: until `release` it does it to the end."""
        self._held = True

    def release(self) -> None:
        if self._held and self.gone:
            self._cancel()
        self._held = False

    def _cancel(self) -> None:
        assert self._answering is not None
        self._answering.cancel()


class Audience:
    """Of a turn that somebody else wants to read, too."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.shown = 0  # events of all that was said; what comes after them may not be stored yet
        self.over = False
        self._readers = 1
        self._shared: asyncio.Future[bool] = asyncio.get_running_loop().create_future()  # the first one does not drive
        self._step: asyncio.Task[None] | None = None
        self._error: BridgeError | None = None
        if not turn.driven:
            self.share()

    async def join(self) -> Reader | None:
        """A place from which all is heard from the beginning; None if the turn ends before there was anything."""
        reader = Reader(self, 0)
        self._readers += 1
        if not self._shared.done():
            self.turn.ask.client.hold()
            self.turn.nudge()
        try:
            return reader if await asyncio.shield(self._shared) else None
        except asyncio.CancelledError:
            reader.abort()
            raise

    def share(self) -> None:
        """The first one has read what it was reading, and goes on as one of many."""
        if not self._shared.done():
            self._go_on()
            self.turn.reader = None if self.over else Reader(self, self.shown)
            self._shared.set_result(True)
            self.turn.ask.client.release()

    def break_off(self) -> None:
        if not self._shared.done():
            self._shared.set_result(False)
            self.turn.ask.client.release()

    async def step(self) -> None:
        """Until there is more to read, or the turn was nudged. What ends a turn in an error is raised to everybody."""
        step = self._step
        if step is None or (step.done() and self._error is None):
            step = self._step = asyncio.get_running_loop().create_task(self._take_step())
        await asyncio.wait((step,))
        if self._error is not None:
            raise self._error
        step.result()

    async def _take_step(self) -> None:
        try:
            await self.turn.step()
        except BridgeError as error:  # kept, since perhaps nobody is waiting for it now
            self._error = error
            self.turn.fail(error)
        else:
            self._go_on()

    def _go_on(self) -> None:
        self.shown, self.over = self.turn.told, self.turn.done
        if self.over:
            self.turn.audience = None  # nobody comes any more

    def leave(self) -> None:
        self._readers -= 1
        if not self._readers:
            if self._step is not None:
                self._step.cancel()
            self.turn.abort()
        elif self._readers == 1:
            self.turn.ask.client.release()  # the first one's, if it still drives: nobody waits for that now


class Reader:
    """Stands in for the turn, for one of those who read it."""

    reader = None  # it is one

    def __init__(self, audience: Audience, read_so_far: int) -> None:
        self._read_so_far = read_so_far
        self._left = False
        self._audience = audience
        self._turn = audience.turn
        self.ask = audience.turn.ask

    @property
    def done(self) -> bool:
        return self._audience.over and self._read_so_far == self._audience.shown

    @property
    def notes(self) -> list[Note]:
        return self._turn.notes

    @property
    def accumulator(self) -> Accumulator:
        return self._turn.accumulator

    @property
    def conversation_id(self) -> str:
        return self._turn.conversation_id

    async def begin(self) -> list[WireEvent]:
        return await self.read()

    async def read(self) -> list[WireEvent]:
        self._taken()
        if self._read_so_far == self._audience.shown:
            await self._audience.step()
        wire = self.accumulator.said[self._read_so_far : self._audience.shown]
        self._read_so_far += len(wire)
        return wire

    def nudge(self) -> None:
        self._turn.nudge()

    def fail(self, error: BridgeError) -> None:
        """The turn's own error is stored already; what only this client was told is no end of the turn."""
        self.abort()

    def abort(self) -> None:
        self._taken()
        if not self._left:
            self._left = True
            self._audience.leave()

    def _taken(self) -> None:
        """The first one has its place: the turn need not keep it, and so holds nothing that holds itself."""
        if self._turn.reader is self:
            self._turn.reader = None
