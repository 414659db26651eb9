"""Stands in for the relay writer when the bridge runs tools in an answer of Anthropic's: one message out of several.

What the upstream writes is said again with the message's own numbers; its thinking and signatures stay as they are.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from translation.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Finished,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    ToolStarted,
    WireEvent,
)
from translation.hosted import Offer, call_block
from translation.relay import called, minted
from translation.values import Usage
from translation.writer import STOP_REASONS


class _Block(Struct):
    type: str = ""
    id: str = ""
    name: str = ""


class HostedRelay:
    """For answers that come as a stream."""

    def __init__(self, hosted: Mapping[str, Offer]) -> None:
        self._hosted = hosted
        self._blocks = 0
        self._call_id = ""  # of the call that begins, where it is not the upstream's
        self._call: tuple[str, Offer] | None = None  # one of ours, which is shown when it is complete
        self._arguments: list[str] = []

    def start(self, message_id: str, model: str, usage: Usage) -> MessageStart:
        return MessageStart(message_id, model, usage)

    def feed(self, events: Iterable[Event]) -> list[WireEvent]:
        out: list[WireEvent] = []
        for event in events:
            said = event.event if isinstance(event, Frame) else None
            if isinstance(event, ToolStarted):
                self._call_id = minted(event)
            elif isinstance(said, BlockStart):
                id_, self._call_id = self._call_id, ""
                self._start(called(said.block, id_) if id_ else said.block, out)
            elif self._call is not None and isinstance(said, BlockDelta):
                self._arguments.append(said.text)
            elif self._call is not None and isinstance(said, BlockStop):
                id_, offer = self._call
                out += self.add(call_block(id_, offer, "".join(self._arguments)))
                self._call = None
            elif isinstance(said, BlockDelta | BlockStop):
                out.append(replace(said, index=self._blocks - 1))
        return out

    def add(self, block: bytes) -> list[WireEvent]:
        self._blocks += 1
        return [BlockStart(self._blocks - 1, block), BlockStop(self._blocks - 1)]

    def next_round(self) -> list[WireEvent]:
        """Every block of a finished answer is closed; a call that was cut off has not been shown."""
        self._call = None
        return []

    def finish(self, finished: Finished, usage: Usage) -> list[WireEvent]:
        delta = MessageDelta(STOP_REASONS[finished.reason], usage, finished.sequence, finished.explanation)
        return [delta, MessageStop()]

    def _start(self, block: bytes, out: list[WireEvent]) -> None:
        call = msgspec.json.decode(block, type=_Block)
        offer = self._hosted.get(call.name) if call.type == "tool_use" else None
        if offer is not None:
            self._call, self._arguments = (call.id, offer), []
            return
        out.append(BlockStart(self._blocks, block))
        self._blocks += 1
