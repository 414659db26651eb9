"""What a running attempt has said that its client has not been shown: the arguments of calls that are not complete.

Only turns that somebody watches pay for it: what the upstream sent is decoded a second time, beside the stream.
"""

from typing import Any

import msgspec

from conversations.attempt import Attempt
from translation.errors import BridgeError
from translation.events import ToolArguments, ToolDropped, ToolEnded, ToolStarted

CALLS = ("tool_use", "mcp_tool_use")


class _Call:
    def __init__(self, name: str) -> None:
        self.name = name
        self.fragments: list[str] = []
        self.ended = False


class Peek:
    """Follows one attempt; `content` is its blocks so far, those of open calls with what they have as `partial`."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempt = attempt
        self._read = 0  # pieces of the answer
        self._decoder: Any = None
        self._calls: dict[int, _Call] = {}
        self._lost = False  # it cannot be followed

    def content(self) -> bytes:
        self._follow()
        shown = self.attempt.accumulator.content
        if all(call.ended for call in self._calls.values()):
            return shown
        blocks = msgspec.json.decode(shown)
        places = [block for block in blocks if block.get("type") in CALLS][-len(self._calls) :]
        for place, call in enumerate(self._calls.values()):
            if call.ended:
                continue
            if place >= len(places):
                blocks.append({"type": "tool_use", "name": call.name})
                places.append(blocks[-1])
            places[place]["partial"] = "".join(call.fragments)
        return msgspec.json.encode(blocks)

    def _follow(self) -> None:
        new = self.attempt.raw[self._read :]
        self._read += len(new)
        if not new or self._lost:
            return
        try:
            if self._decoder is None:
                self._decoder = self.attempt.another_decoder()
            for event in self._decoder.feed(b"".join(new)):
                self._take(event)
        except BridgeError:
            self._lost = True  # the stream itself says why

    def _take(self, event: object) -> None:
        match event:
            case ToolStarted(call=call, name=name):
                self._calls[call] = _Call(name)
            case ToolArguments(call=call, fragment=fragment) if call in self._calls:
                self._calls[call].fragments.append(fragment)
            case ToolEnded(call=call) if call in self._calls:
                self._calls[call].ended = True
            case ToolDropped(call=call):
                self._calls.pop(call, None)
