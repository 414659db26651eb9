"""The relay writer: for an upstream that speaks the client's own dialect. Its bytes go out as they came.

It stands where the block writer stands, so that the bridge stores a call before its bytes leave. What comes before the
first content block is held, so that an early failure can still be tried again; what ends the message is held until the
bridge has stored it.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from translation.events import (
    BlockStart,
    Event,
    Finished,
    Frame,
    MessageDelta,
    MessageStart,
    Relayed,
    WireEvent,
    Written,
)
from translation.values import Usage

UNTOLD = Usage()


class RelayWriter:
    def __init__(self) -> None:
        self._blocks = 0
        self._own = MessageStart("", "", UNTOLD)  # what the bridge knows by itself
        self._opening: list[WireEvent] | None = []  # None once the first block has come
        self._closing: list[WireEvent] = []

    @property
    def blocks(self) -> int:
        return self._blocks

    def start(self, message_id: str, model: str, usage: Usage) -> Relayed:
        """Nothing: the upstream's own `message_start` will come, with its own id."""
        self._own = MessageStart(message_id, model, usage)
        return Relayed(b"")

    def feed(self, events: Iterable[Event]) -> list[WireEvent]:
        out: list[WireEvent] = []
        for event in events:
            if not isinstance(event, Frame):
                continue
            said: WireEvent = Relayed(event.raw, event.event, event.kind == "body")
            if event.mended and event.event is not None:
                said = self._completed(event.event)
            if event.kind == "closing":
                self._closing.append(said)
                continue
            if type(event.event) is BlockStart:
                self._blocks += 1
                out += self._opening or ()
                self._opening = None
            (out if self._opening is None else self._opening).append(said)
        return out

    def finish(self, finished: Finished, usage: Usage) -> list[WireEvent]:
        closing = [replace(event, usage=usage) if type(event) is MessageDelta else event for event in self._closing]
        out, self._opening, self._closing = [*(self._opening or ()), *closing], None, []
        return out

    def _completed(self, event: Written) -> Written:
        """With what the bridge knows by itself; counts of the end come at the end."""
        if type(event) is not MessageStart:
            return event
        own = self._own
        usage = own.usage if event.usage == UNTOLD else event.usage
        return MessageStart(event.id or own.id, event.model or own.model, usage)
