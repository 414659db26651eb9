"""The relay writer: for an upstream that speaks the client's own dialect. Its bytes go out as they came.

It stands where the block writer stands, so that the bridge stores a call before its bytes leave. What comes before the
first content block is held, so that an early failure can still be tried again; what ends the message is held until the
bridge has stored it.
"""

from collections.abc import Iterable

from translation.events import BlockStart, Event, Finished, Frame, Relayed, WireEvent
from translation.values import Usage


class RelayWriter:
    def __init__(self) -> None:
        self._blocks = 0
        self._opening: list[WireEvent] | None = []  # None once the first block has come
        self._closing: list[WireEvent] = []

    @property
    def blocks(self) -> int:
        return self._blocks

    def start(self, message_id: str, model: str, usage: Usage) -> Relayed:
        """Nothing: the upstream's own `message_start` will come, with its own id."""
        return Relayed(b"")

    def feed(self, events: Iterable[Event]) -> list[WireEvent]:
        out: list[WireEvent] = []
        for event in events:
            if not isinstance(event, Frame):
                continue
            relayed = Relayed(event.raw, event.event, event.kind == "body")
            if event.kind == "closing":
                self._closing.append(relayed)
            else:
                self._frame(relayed, out)
        return out

    def finish(self, finished: Finished, usage: Usage) -> list[WireEvent]:
        out, self._opening, self._closing = [*(self._opening or ()), *self._closing], None, []
        return out

    def _frame(self, relayed: Relayed, out: list[WireEvent]) -> None:
        if type(relayed.event) is BlockStart:
            self._blocks += 1
            out += self._opening or ()
            self._opening = None
        if self._opening is None:
            out.append(relayed)
        else:
            self._opening.append(relayed)
