"""Folds the client's stream into the message that a client which did not ask for a stream gets, and that is stored."""

import msgspec

from translation.events import BlockDelta, BlockStart, MessageDelta, MessageStart, WireEvent
from translation.values import Usage

DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "input",
}


class Accumulator:
    """`feed` as the stream goes; `content` is the message's blocks so far, as JSON."""

    def __init__(self) -> None:
        self.id = ""
        self.model = ""
        self.stop_reason: str | None = None
        self.sequence = ""
        self.explanation = ""
        self.usage = Usage()
        self._blocks: list[tuple[bytes, dict[str, list[str]]]] = []

    def feed(self, events: list[WireEvent]) -> None:
        for event in events:
            if type(event) is BlockDelta:
                self._blocks[event.index][1].setdefault(DELTA_FIELDS[event.kind], []).append(event.text)
            elif type(event) is BlockStart:
                self._blocks.append((event.block, {}))
            elif type(event) is MessageDelta:
                self.stop_reason, self.usage = event.stop_reason, event.usage
                self.sequence, self.explanation = event.sequence, event.explanation
            elif type(event) is MessageStart:
                self.id, self.model, self.usage = event.id, event.model, event.usage

    @property
    def content(self) -> bytes:
        return b"[" + b",".join(_whole(block, parts) for block, parts in self._blocks) + b"]"


def _whole(block: bytes, parts: dict[str, list[str]]) -> bytes:
    if not parts:
        return block
    value: dict[str, object] = msgspec.json.decode(block)
    for field, texts in parts.items():
        joined = "".join(texts)
        value[field] = msgspec.Raw(joined.encode()) if field == "input" else joined
    return msgspec.json.encode(value)
