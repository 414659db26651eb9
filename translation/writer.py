"""The block writer: the only thing that opens, closes and numbers content blocks.

At most one block is open. Events that belong to another block wait until the open one is complete, so interleaved calls
come out one after the other, and an illegal order cannot be written.
"""

from collections import deque
from collections.abc import Mapping
from typing import Literal, assert_never

from translation.accumulator import unfolded
from translation.errors import UpstreamProtocolError
from translation.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Citation,
    Event,
    Failed,
    Finished,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    Reason,
    TextDelta,
    TextEnded,
    ThinkingDelta,
    ToolArguments,
    ToolDropped,
    ToolEnded,
    ToolStarted,
    WholeBlock,
    WireEvent,
)
from translation.hosted import Offer, call_block
from translation.names import is_name
from translation.unicode import json_string
from translation.values import Usage

Showing = Literal["shown", "omitted", "hidden"]

NONE_HOSTED: Mapping[str, Offer] = {}
NO_TOOLSETS: Mapping[str, str] = {}
STOP_REASONS: dict[Reason, str] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_use": "tool_use",
    "refusal": "refusal",
    "stop_sequence": "stop_sequence",
    "context_window": "model_context_window_exceeded",
    "pause": "pause_turn",
}


Ordered = TextDelta | TextEnded | ThinkingDelta | Citation | WholeBlock  # what waits while a call is open


class _Call:
    """A tool call on its way out."""

    __slots__ = ("arguments", "ended", "live", "pending", "sent", "started")

    def __init__(self, started: ToolStarted, *, live: bool) -> None:
        self.started = started
        self.live = live  # its block may open before its arguments are whole
        self.arguments = ""
        self.pending: list[str] = []  # live fragments that wait for their block to open
        self.sent = ""  # what of the arguments has been written
        self.ended: bool = False


class BlockWriter:
    """Turns an answer's events into the client's stream grammar.

    A call is written when it is whole, for clients run one that the token limit has cut as if it were: a block cannot
    be taken back. If the upstream falls silent before that, it is `release`d: its block starts, its arguments follow.
    `eager` names tools whose arguments go out live. Neither is so (`live`) when the answer is folded into one message.
    `hosted` are the tools that the bridge runs itself, by their names; `toolsets` the families of members.
    `thinking` may be `omitted`, blocks without their text, or `hidden`, as if there were none.
    """

    def __init__(
        self,
        *,
        signature: str,
        eager: frozenset[str] = frozenset(),
        thinking: Showing = "shown",
        live: bool = True,
        hosted: Mapping[str, Offer] = NONE_HOSTED,
        toolsets: Mapping[str, str] = NO_TOOLSETS,
    ) -> None:
        self._signature = signature
        self._eager = eager - hosted.keys() if live else frozenset()  # what the bridge runs, clients see whole
        self._live_calls = live
        self._thinking = thinking
        self._hosted = hosted
        self._toolsets = toolsets
        self._index = 0  # of the next block
        self._open: str | _Call | None = None  # "text", "thinking" or a call
        self._calls: dict[int, _Call] = {}  # not yet written to their end
        self._waiting: deque[Ordered | _Call] = deque()
        self._tool_blocks = 0
        self._blank = ""  # white space that thinking may begin with
        self._done = False

    @property
    def blocks(self) -> int:
        return self._index

    def start(self, message_id: str, model: str, usage: Usage) -> MessageStart:
        return MessageStart(message_id, model, usage)

    def feed(self, events: list[Event]) -> list[WireEvent]:
        """Everything that one upstream read brought. Adjacent text becomes one delta."""
        if len(events) == 1 and type(only := events[0]) is TextDelta and self._open == "text" and not self._waiting:
            return [BlockDelta(self._index - 1, "text_delta", only.text)] if only.text else []
        out: list[WireEvent] = []
        text: list[str] = []
        for event in events:
            if type(event) is TextDelta and self._open == "text" and not self._waiting:
                text.append(event.text)
                continue
            if text:
                self._write(TextDelta("".join(text)), out)
                text = []
            self._event(event, out)
        if text:
            self._write(TextDelta("".join(text)), out)
        return out

    def finish(self, finished: Finished, usage: Usage) -> list[WireEvent]:
        """Close what is open and end the message. The stop reason follows from what was written."""
        if self._done:
            raise UpstreamProtocolError("the upstream finished twice")
        if self._calls:
            raise UpstreamProtocolError("the upstream finished inside a tool call")
        self._done = True
        out: list[WireEvent] = []
        self._close(out)
        reason = self._stop_reason(finished.reason)
        sequence = finished.sequence if reason == "stop_sequence" else ""
        out.append(MessageDelta(reason, usage, sequence, finished.explanation if reason == "refusal" else ""))
        out.append(MessageStop())
        return out

    def add(self, block: bytes) -> list[WireEvent]:
        """A block of the bridge's own, between two rounds."""
        return self.feed([WholeBlock(block)])

    def next_round(self) -> list[WireEvent]:
        """The upstream is called again for the same message; what a call that failed unseen left is forgotten."""
        out: list[WireEvent] = []
        self._calls.clear()
        self._waiting.clear()
        self._close(out)
        return out

    @property
    def holds(self) -> bool:
        """Whether a call waits that `release` would show."""
        if not self._waiting or not self._live_calls:
            return False
        first = self._waiting[0]
        return isinstance(first, _Call) and not isinstance(self._open, _Call) and first.started.name not in self._hosted

    def release(self) -> list[WireEvent]:
        out: list[WireEvent] = []
        first = self._waiting[0]
        assert isinstance(first, _Call)
        first.live = True
        self._flush(out)
        return out

    def _stop_reason(self, reason: Reason) -> str:
        if reason in ("stop", "tool_use", "stop_sequence"):
            if self._tool_blocks:
                return "tool_use"
            if reason == "tool_use":
                return "end_turn"
        return STOP_REASONS[reason]

    def _event(self, event: Event, out: list[WireEvent]) -> None:
        match event:
            case Finished() | Failed():
                pass  # the bridge ends the message with `finish`, or the stream with an error
            case TextDelta() | TextEnded() | ThinkingDelta() | Citation() | WholeBlock():
                if self._waiting or isinstance(self._open, _Call):
                    self._waiting.append(event)
                else:
                    self._write(event, out)
            case ToolStarted():
                self._start_call(event, out)
            case ToolArguments():
                self._arguments(self._calls[event.call], event.fragment, out)
            case ToolEnded():
                call = self._calls.pop(event.call)
                call.arguments, call.ended = event.arguments, True
                self._flush(out)
            case ToolDropped():
                self._drop(self._calls.pop(event.call), out)
            case Frame():
                raise UpstreamProtocolError("a frame of the client's own dialect belongs to the relay writer")
            case _:
                assert_never(event)

    def _write(self, event: Ordered, out: list[WireEvent]) -> None:
        match event:
            case TextDelta(text=text):
                if text:
                    self._ensure("text", b'{"type":"text","text":""}', out)
                    out.append(BlockDelta(self._index - 1, "text_delta", text))
            case TextEnded():
                if self._open == "text":
                    self._close(out)
            case ThinkingDelta(text=text):
                if self._thinking != "hidden":
                    self._think(text, out)
            case Citation(citation=citation):
                if self._open == "text":
                    out.append(BlockDelta(self._index - 1, "citations_delta", citation.decode()))
            case WholeBlock(block=block):
                self._close(out)
                out += unfolded(b"[%b]" % block, self._index)  # clients read a call's input from deltas only
                self._index += 1
            case _:
                assert_never(event)

    def _think(self, text: str, out: list[WireEvent]) -> None:
        """White space alone is none: who is told not to think writes `<think>\\n\\n</think>`."""
        if self._open != "thinking":
            text = self._blank = self._blank + text
            if not text.strip():
                return
        self._ensure("thinking", b'{"type":"thinking","thinking":"","signature":""}', out)
        if text and self._thinking == "shown":
            out.append(BlockDelta(self._index - 1, "thinking_delta", text))

    def _ensure(self, kind: str, block: bytes, out: list[WireEvent]) -> None:
        if self._open != kind:
            self._close(out)
            self._begin(block, out)
            self._open, self._blank = kind, ""

    def _begin(self, block: bytes, out: list[WireEvent]) -> None:
        out.append(BlockStart(self._index, block))
        self._index += 1

    def _close(self, out: list[WireEvent]) -> None:
        if self._open is None:
            return
        if self._open == "thinking":
            out.append(BlockDelta(self._index - 1, "signature_delta", self._signature))
        out.append(BlockStop(self._index - 1))
        self._open = None

    # ------------------------------------------------------------ tool calls

    def _start_call(self, started: ToolStarted, out: list[WireEvent]) -> None:
        if not is_name(started.name):
            raise UpstreamProtocolError(f"the upstream called a tool by a name that is none: {started.name!r}")
        if (
            self._open == "text"
        ):  # thinking stays open until the call is shown: what fails before that can be asked anew
            self._close(out)
        self._calls[started.call] = call = _Call(started, live=started.name in self._eager)
        self._waiting.append(call)
        self._flush(out)

    def _open_call(self, call: _Call, out: list[WireEvent]) -> None:
        self._close(out)
        started = call.started
        if (offer := self._hosted.get(started.name)) is not None:
            self._begin(call_block(started.id, offer, call.arguments), out)
            call.sent, call.pending = call.arguments, []
        else:
            self._begin(self._tool_use(started), out)
        self._open = call
        for fragment in call.pending:
            self._live(call, fragment, out)
        call.pending = []

    def _tool_use(self, started: ToolStarted) -> bytes:
        id_, toolset = json_string(started.id), self._toolsets.get(started.name)
        if toolset is None:
            return b'{"type":"tool_use","id":%b,"name":%b,"input":{}}' % (id_, json_string(started.name))
        member = json_string(started.name.removeprefix(f"{toolset}."))
        block = b'{"type":"tool_use","id":%b,"name":%b,"toolset_name":%b,"input":{}}'
        return block % (id_, member, json_string(toolset))

    def _arguments(self, call: _Call, fragment: str, out: list[WireEvent]) -> None:
        if call.started.name not in self._eager or not fragment:
            return
        if self._open is call:
            self._live(call, fragment, out)
        else:
            call.pending.append(fragment)

    def _live(self, call: _Call, fragment: str, out: list[WireEvent]) -> None:
        call.sent += fragment
        out.append(BlockDelta(self._index - 1, "input_json_delta", fragment))

    def _drop(self, call: _Call, out: list[WireEvent]) -> None:
        if self._open is not call:
            self._waiting.remove(call)
        elif call.sent:  # live: half of its arguments are no JSON, which nobody runs
            self._close(out)
        else:  # closed now, it would be a call without arguments
            raise UpstreamProtocolError("the answer was cut off inside a tool call that had been shown")
        self._flush(out)

    def _complete(self, call: _Call, out: list[WireEvent]) -> None:
        if not call.arguments.startswith(call.sent) and call.arguments != call.sent.rstrip():
            raise UpstreamProtocolError("the upstream's tool arguments were not the JSON that had been streamed")
        rest = call.arguments[len(call.sent) :]
        if rest:
            out.append(BlockDelta(self._index - 1, "input_json_delta", rest))
        if call.started.name not in self._hosted:
            self._tool_blocks += 1
        self._close(out)

    def _flush(self, out: list[WireEvent]) -> None:
        """Write what has been waiting, up to the first call that may not be seen yet."""
        if isinstance(self._open, _Call):
            if not self._open.ended:
                return
            self._complete(self._open, out)
        while self._waiting:
            item = self._waiting[0]
            if not isinstance(item, _Call):
                self._waiting.popleft()
                self._write(item, out)
                continue
            if not item.ended and not item.live:
                return
            self._waiting.popleft()
            self._open_call(item, out)
            if not item.ended:
                return
            self._complete(item, out)
