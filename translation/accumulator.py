"""Folds the client's stream into the message that a client which did not ask for a stream gets, and that is stored."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from translation.arguments import is_object
from translation.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    DeltaKind,
    MessageDelta,
    MessageStart,
    Relayed,
    WireEvent,
)
from translation.unicode import well_formed
from translation.values import Usage

DELTA_FIELDS: dict[DeltaKind, str] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "input",
    "citations_delta": "citations",
    "other_delta": "",
}
STREAMED = {
    b'"text"': ("text",),
    b'"thinking"': ("thinking", "signature"),
    b'"tool_use"': ("input",),
    b'"server_tool_use"': ("input",),
    b'"mcp_tool_use"': ("input",),
}


HOSTED = b'"mcp_tool_use"'  # has its input from the start, unless Anthropic streams it


class Accumulator(Struct, eq=False):
    """`feed` as the stream goes; `content` is the message's blocks so far, as JSON. Pieces of blocks, which are most of
    what is fed, are put together when somebody asks for it."""

    said: list[WireEvent] = []  # for whoever comes later
    id: str = ""
    model: str = ""
    stop_reason: str | None = None
    sequence: str = ""
    explanation: str = ""
    usage: Usage = Usage()
    body: bytes = b""  # the whole answer as the upstream wrote it, where it is passed on
    _blocks: list[tuple[bytes, dict[str, list[str]]]] = []
    _pieces: list[BlockDelta] = []  # that have yet to be put together
    _content: bytes | None = None  # while nothing is added to the blocks

    def feed(self, events: list[WireEvent]) -> None:
        self.said += events
        for event in events:
            kind = type(event)
            if kind is BlockDelta:
                self._pieces.append(event)  # type: ignore[arg-type]  # mypy narrows the type itself only
            elif kind in _NOTED:
                _NOTED[kind](self, event)

    def _relayed(self, relayed: Relayed) -> None:
        if relayed.whole:
            self.body = relayed.raw
        elif type(relayed.event) is BlockDelta:
            self._pieces.append(relayed.event)
        elif (note := _NOTED.get(type(relayed.event))) is not None:
            note(self, relayed.event)

    def _began(self, message: MessageStart) -> None:
        self.id, self.model, self.usage = message.id, message.model, message.usage

    def _opened(self, start: BlockStart) -> None:
        self._content = None
        self._blocks.append((start.block, {}))

    def _ended(self, delta: MessageDelta) -> None:
        self.stop_reason, self.usage = delta.stop_reason, delta.usage
        self.sequence, self.explanation = delta.sequence, delta.explanation

    @property
    def content(self) -> bytes:
        if self._pieces:
            self._fold()
        if self._content is None:
            self._content = self._joined()
        return self._content

    def _fold(self) -> None:
        texts: list[str] = []
        place = None  # of `texts`
        for piece in self._pieces:
            if (piece.index, piece.kind) != place:
                place = (piece.index, piece.kind)
                texts = self._blocks[piece.index][1].setdefault(DELTA_FIELDS[piece.kind], [])
            texts.append(piece.text)
        self._pieces, self._content = [], None

    @property
    def size(self) -> int:
        """Of the content, where nobody needs that itself: it may be large, and is not kept."""
        if self._pieces:
            self._fold()
        return len(self._joined() if self._content is None else self._content)

    def _joined(self) -> bytes:
        return b"[" + b",".join([_whole(block, parts) for block, parts in self._blocks]) + b"]"


_NOTED: dict[type, Callable[[Accumulator, Any], None]] = {
    MessageStart: Accumulator._began,
    BlockStart: Accumulator._opened,
    MessageDelta: Accumulator._ended,
    Relayed: Accumulator._relayed,
}


def unfolded(content: bytes, first: int = 0) -> list[WireEvent]:
    """The inverse: the blocks of a stored message as they are streamed. A call that the bridge ran is whole."""
    events: list[WireEvent] = []
    for index, block in enumerate(msgspec.json.decode(content, type=list[dict[str, msgspec.Raw]]), first):
        deltas: list[WireEvent] = []
        for kind, field in DELTA_FIELDS.items():
            kind_of = bytes(block["type"])
            if (raw := block.get(field)) is None or field not in STREAMED.get(kind_of, ()) or kind_of == HOSTED:
                continue
            text = bytes(raw).decode() if field == "input" else msgspec.json.decode(raw, type=str)
            block[field] = msgspec.Raw(b"{}" if field == "input" else b'""')
            deltas.append(BlockDelta(index, kind, text))
        events += [BlockStart(index, msgspec.json.encode(block)), *deltas, BlockStop(index)]
    return events


def _whole(block: bytes, parts: dict[str, list[str]]) -> bytes:
    if not parts:
        return block
    value: dict[str, object] = msgspec.json.decode(block)
    for field, texts in parts.items():
        joined = well_formed("".join(texts))
        match field:
            case "text" | "thinking":
                value[field] = joined
            case "input":
                # A call that was cut off has been shown in part; what is kept must be JSON.
                value[field] = msgspec.Raw(joined.encode() if is_object(joined.strip()) else b"{}")
            case "citations":
                value[field] = [msgspec.Raw(well_formed(text).encode()) for text in texts]
            case "signature":
                value[field] = well_formed(texts[-1])
            case _:  # each field of such a delta is the block's, as the SDKs read it
                for text in texts:
                    value |= msgspec.json.decode(well_formed(text), type=dict[str, msgspec.Raw]) | {
                        "type": value["type"]
                    }
    return msgspec.json.encode(value)
