"""The relay writer: for an upstream that speaks the client's own dialect. Its bytes go out as they came.

It stands where the block writer stands, so that the bridge stores a call before its bytes leave. What comes before the
first content block is held, so that an early failure can still be tried again; what ends the message is held until the
bridge has stored it.

Ids are the upstream's own, but for those by which two things would be called the same: servers that only speak like
Anthropic repeat them.
"""

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from translation.events import (
    BlockStart,
    Event,
    Finished,
    Frame,
    MessageDelta,
    MessageStart,
    Relayed,
    ToolStarted,
    WireEvent,
    Written,
)
from translation.sse import frame
from translation.values import Usage

UNTOLD = Usage()


class RelayWriter:
    """`message_id` is what the message is called instead of what its upstream calls it."""

    def __init__(self, message_id: str = "") -> None:
        self._message_id = message_id
        self._call_id = ""  # of the call that begins, where it is not the upstream's
        self._call_ids: dict[int, str] = {}  # by block
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

    def feed(self, events: list[Event]) -> list[WireEvent]:
        out: list[WireEvent] = []
        for event in events:
            if not isinstance(event, Frame):
                if isinstance(event, ToolStarted):
                    self._call_id = minted(event)
                continue
            said = self._said(event)
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

    def _said(self, event: Frame) -> WireEvent:
        written = event.event
        if type(written) is BlockStart and self._call_id:
            id_, self._call_id = self._call_id, ""
            self._call_ids[written.index] = id_
            return BlockStart(written.index, called(written.block, id_))
        if event.mended and written is not None:
            return self._completed(written)
        if type(written) is MessageStart and self._message_id:
            return Relayed(_begun(event.raw, self._message_id), replace(written, id=self._message_id))
        if event.kind == "body":
            return Relayed(self._whole(event.raw), written, whole=True)
        return Relayed(event.raw, written)

    def _whole(self, body: bytes) -> bytes:
        if self._call_ids:
            message = msgspec.json.decode(body, type=dict[str, Raw])
            blocks = enumerate(msgspec.json.decode(message["content"], type=list[Raw]))
            ids = self._call_ids
            content = [Raw(called(block, ids[index])) if index in ids else block for index, block in blocks]
            body = msgspec.json.encode(message | {"content": Raw(msgspec.json.encode(content))})
        return called(body, self._message_id) if self._message_id else body

    def _completed(self, event: Written) -> Written:
        """With what the bridge knows by itself; counts of the end come at the end."""
        if type(event) is not MessageStart:
            return event
        own = self._own
        usage = own.usage if event.usage == UNTOLD else event.usage
        return MessageStart(self._message_id or event.id or own.id, event.model or own.model, usage)


def minted(call: ToolStarted) -> str:
    """The bridge's own id for a call; "" where the upstream's is passed on."""
    return call.id if call.id != call.upstream_id else ""


def called(value: bytes | Raw, id_: str) -> bytes:
    """A block or a message under another id."""
    return msgspec.json.encode(msgspec.json.decode(value, type=dict[str, Raw]) | {"id": Raw(msgspec.json.encode(id_))})


def _begun(raw: bytes, id_: str) -> bytes:
    """A frame of `message_start` under another id; none in an answer without a stream."""
    if not raw:
        return raw
    _, _, data = raw.partition(b"data: ")
    event = msgspec.json.decode(data.replace(b"\ndata: ", b"\n"), type=dict[str, Raw])
    message = Raw(called(event["message"], id_))
    return frame("message_start", msgspec.json.encode(event | {"message": message}))
