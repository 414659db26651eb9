"""Anthropic's answers, watched while they pass: each frame goes on as it came, after what it means to the bridge.

Servers that only speak like Anthropic leave out what the SDKs look into unasked (`usage`, `content`) and the ends of
blocks, and put into the start of a block what Claude Code reads from deltas only. Such frames are `mended`: the writer
says them, and what came of them is nothing (`raw` is empty) where none of it could be passed on.

The grammar is checked on the way (blocks numbered from 0, one open at a time, one end), so that a stream that breaks it
ends in an error and not at the client.
"""

from collections.abc import Callable

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from translation.arguments import is_object
from translation.errors import TruncatedStream, UpstreamProtocolError
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
    TextDelta,
    ThinkingDelta,
    ToolArguments,
    ToolDropped,
    ToolEnded,
    ToolStarted,
    WholeBlock,
    Written,
)
from translation.fitting import fitted
from translation.names import is_name
from translation.nulls import without_nulls
from translation.providers.anthropic_calls import Call, Piece
from translation.providers.anthropic_errors import in_band
from translation.providers.anthropic_state import Memory, thinking_block
from translation.providers.anthropic_wire import (
    BEGUN,
    BLOCK,
    EMPTY,
    EVENT,
    HOMES,
    NO_DELTA,
    NO_INPUT,
    NONE,
    REASONS,
    Block,
    StopDetails,
    StreamEvent,
    counted,
    early_deltas,
    other_delta,
    settled,
)
from translation.refusals import read
from translation.sse import SSEDecoder, frame, is_idle
from translation.unicode import Halves, check_utf8
from translation.unreadable import UNREADABLE
from translation.values import Tool, Usage

BLOCKS = ("content_block_start", "content_block_delta", "content_block_stop")
WHOLE = ("tool_use", "end_turn", "stop_sequence")  # reasons for which nothing is cut off
STOP = frame("message_stop", b'{"type":"message_stop"}')


class AnthropicStream:
    """`tools` are those of whose calls the client reads a stream."""

    def __init__(self, tools: tuple[Tool, ...] = ()) -> None:
        self._tools = tools
        self._sse = SSEDecoder()
        self._halves = Halves()
        self._model = ""
        self._usage: Usage | None = None  # None until `message_start`
        self._blocks = 0
        self._named = -1  # what the upstream calls the newest one: some count from 1, leave numbers out or repeat them
        self._calls = 0
        self._open: str | Call | None = None  # the open block's type, or its call
        self._held: list[tuple[str, bytes, StreamEvent, bool]] = []  # of other blocks, while a call is open
        self._cut: tuple[str, Frame] | None = None  # arguments that are no object, and the end of their block
        self._unmarked: set[int] = set()  # blocks that were closed before their end came, if it comes at all
        self._thought: list[str] = []  # of the open block of thinking
        self._signature = ""
        self._memory = Memory()
        self._stop: MessageDelta | None = None  # the last one that told a reason
        self._ended = False

    def feed(self, chunk: bytes) -> list[Event]:
        return [] if self._ended else self._guard(lambda: self._sse.feed(chunk))

    def close(self) -> list[Event]:
        if self._ended:
            return []
        out = self._guard(self._sse.close)
        return out if self._is_over(out) else [*out, *self._unfinished()]

    def _guard(self, take: Callable[[], list[tuple[str, bytes]]]) -> list[Event]:
        out: list[Event] = []
        try:
            for name, data in take():
                # What is only like Anthropic may end as others do, and keep a connection alive with nothing.
                if self._ended or (not data.startswith(b"{") and (data.strip() == b"[DONE]" or is_idle(name, data))):
                    continue
                if name == "error":
                    self._end(Failed(in_band(data)), out)
                else:
                    check_utf8(data)
                    try:
                        self._frame(name, data, EVENT.decode(data), out)
                    except msgspec.ValidationError:
                        said = fitted(without_nulls(data, "input"), StreamEvent)  # the same, as the API would say it
                        self._frame(name, said, EVENT.decode(said), out)
                    except msgspec.DecodeError:
                        said = fitted(without_nulls(self._halves.joined(data), "input"), StreamEvent)
                        self._frame(name, said, EVENT.decode(said), out, mended=True)
        except UpstreamProtocolError as error:
            self._end(Failed(error), out)
        except UNREADABLE as error:
            self._end(Failed(UpstreamProtocolError(f"the upstream sent what is not its protocol: {error}")), out)
        return out

    def _is_over(self, out: list[Event]) -> bool:
        return bool(out) and isinstance(out[-1], Finished | Failed)

    def _unfinished(self) -> list[Event]:
        """The bytes ended without `message_stop`: with a stop reason the answer is complete all the same."""
        out: list[Event] = []
        if self._stop is not None and self._open is None:
            self._finish(STOP, out)
        else:
            self._end(Failed(TruncatedStream("the upstream closed before a stop_reason")), out)
        return out

    def _frame(self, name: str, data: bytes, event: StreamEvent, out: list[Event], *, mended: bool = False) -> None:
        kind = event.type or name
        if kind == "error" or (not kind and read(data)):
            self._end(Failed(in_band(data)), out)
            return
        if not kind.isidentifier():
            raise _ungrammatical(f"an event of type {kind[:40]!r}")
        raw = frame(kind, data.replace(b"\n", b"\ndata: "))
        watch = WATCHERS.get(kind)
        if watch is None:
            out.append(Frame(raw))  # `ping`, and what the API may learn to say
            return
        if isinstance(self._open, Call) and event.index not in (self._named, -1) and self._is_beside(self._open, kind):
            self._held.append((name, data, event, mended))
            return
        if self._held and kind not in BLOCKS:
            self._settle(out)
        number = self._blocks - 1
        if kind == "content_block_start":
            self._named, number = event.index, self._blocks
        if event.index != number and event.index in (self._named, -1) and kind in BLOCKS:
            event, mended = replace(event, index=number), True
        watch(self, event, b"" if mended else raw, out)
        if self._held and kind == "content_block_stop":
            self._go_on(out)

    def _is_beside(self, call: Call, kind: str) -> bool:
        """Whether it is of a block that begins while a call has yet to be told: some servers mix parallel calls."""
        if self._held or kind != "content_block_start":
            return bool(self._held)
        return call.arguments == "{}" or not is_object(call.arguments)

    def _go_on(self, out: list[Event]) -> None:
        """With what was held; of several blocks, one after the other."""
        held, self._held = self._held, []
        for name, data, event, mended in held:
            self._frame(name, data, event, out, mended=mended)

    def _settle(self, out: list[Event]) -> None:
        """The message is over: what was held tells that the open call is, too."""
        while self._held:
            self._close_unmarked(out)
            self._go_on(out)

    # ------------------------------------------------------------ one method for each kind of event

    def _message_start(self, event: StreamEvent, raw: bytes, out: list[Event]) -> None:
        if self._usage is not None and not self._blocks and self._stop is None:
            return  # Kimi's server may say it again and again until it has something to say
        self._check(self._usage is None, "a second message_start")
        message = event.message
        self._usage = counted(message.usage)
        self._model = message.model
        whole = bool(raw) and message.told and self._usage != NONE
        out.append(Frame(raw, MessageStart(message.id, self._model, self._usage), mended=not whole))

    def _block_start(self, event: StreamEvent, raw: bytes, out: list[Event]) -> None:
        self._check(self._usage is not None and self._stop is None, "a content block outside of the message")
        self._close_unmarked(out)
        if self._cut is not None:
            raise _broken(self._cut[0])
        block = BLOCK.decode(event.content_block)
        self._check(bool(block.type), "a content block without a type")
        self._blocks += 1
        self._open = block.type
        self._halves.open = b""
        early = False
        if block.type == "tool_use":
            self._check(is_name(block.name), "a tool_use without a name")
            live = any(tool.eager and tool.name == block.name for tool in self._tools)
            self._open = Call(self._calls, live=live)
            early = block.input is NO_INPUT or bytes(block.input) != b"{}"
            out.append(ToolStarted(self._calls, block.name, block.own_id, block.name, block.own_id))
            self._calls += 1
        elif block.type == "thinking":
            self._thought, self._signature = [], ""
            early = block.thinking != "" or block.signature != ""
        elif block.type == "text":
            early = block.text != ""
        else:
            out.append(WholeBlock(bytes(event.content_block)))
            if block.type == "redacted_thinking":
                self._memory.keep(event.index, bytes(event.content_block))
        if early:
            self._begin(event, block, raw, out)
        else:
            out.append(Frame(raw, BlockStart(event.index, bytes(event.content_block)), mended=not raw))

    def _begin(self, event: StreamEvent, block: Block, raw: bytes, out: list[Event]) -> None:
        """A block whose start says already what clients read from deltas only."""
        begun = msgspec.json.decode(event.content_block, type=dict[str, Raw]) | EMPTY[block.type]
        out.append(Frame(raw, BlockStart(event.index, msgspec.json.encode(begun)), mended=True))
        if isinstance(self._open, Call) and is_object(given := block.arguments) and given != "{}":
            self._open.given = given
        for delta in early_deltas(block):
            self._block_delta(StreamEvent("content_block_delta", event.index, delta=delta), b"", out)

    def _block_delta(self, event: StreamEvent, raw: bytes, out: list[Event]) -> None:
        self._check_open(event)
        delta = event.delta
        if not delta.type:
            raise _ungrammatical("a delta without a type")
        if isinstance(self._open, Call) and delta.type == "input_json_delta":
            self._called(self._open, self._open.add(delta.partial_json or "", raw), out)
            return
        if (
            delta.type in HOMES
            and self._open != HOMES[delta.type]
            and (self._open in BEGUN or isinstance(self._open, Call))
        ):
            self._misplaced(event, HOMES[delta.type], out)
            return
        written: Written | None = None
        match delta.type:
            case "text_delta":
                out.append(TextDelta(delta.text or ""))
                written = BlockDelta(event.index, "text_delta", delta.text or "")
            case "thinking_delta":
                self._thought.append(delta.thinking or "")
                out.append(ThinkingDelta(delta.thinking or ""))
                written = BlockDelta(event.index, "thinking_delta", delta.thinking or "")
            case "signature_delta":
                self._signature = delta.signature or ""
                written = BlockDelta(event.index, "signature_delta", self._signature)
            case "input_json_delta":
                # Server tools stream their input, too; only the client's calls are the bridge's matter.
                written = BlockDelta(event.index, "input_json_delta", delta.partial_json or "")
            case "citations_delta":
                out.append(Citation(bytes(delta.citation)))
                written = BlockDelta(event.index, "citations_delta", bytes(delta.citation).decode())
            case _ if raw:
                written = BlockDelta(event.index, "other_delta", other_delta(raw).decode())
        out.append(Frame(raw, written, mended=not raw))

    def _misplaced(self, event: StreamEvent, home: str, out: list[Event]) -> None:
        """LiteLLM goes on to think inside of a text, SGLang to speak inside of a call: Claude Code breaks off at such a
        delta. White space, which is SGLang's layout between two calls, and the signature of what is over are left out.
        """
        delta = event.delta
        if not (delta.text or delta.thinking or delta.partial_json or "").strip():
            return
        begun = not isinstance(self._open, Call) or bool(self._open.fragments)
        self._check(begun and home in BEGUN, f"a {delta.type} inside of another block")
        self._close_unmarked(out)
        self._block_start(StreamEvent("content_block_start", self._blocks, BEGUN[home]), b"", out)
        self._block_delta(replace(event, index=self._blocks - 1), b"", out)

    def _called(self, call: Call, pieces: list[Piece], out: list[Event]) -> None:
        for text, raw in pieces:
            if text:
                out.append(ToolArguments(call.number, text))
            out.append(Frame(raw, BlockDelta(self._blocks - 1, "input_json_delta", text), mended=not raw))

    def _close_unmarked(self, out: list[Event]) -> None:
        """Kimi's server leaves out the end of a block where what follows tells it. A call has to be whole for that."""
        if self._open is None:
            return
        if isinstance(self._open, Call):
            self._check(is_object(self._open.arguments), "a tool_use without an end")
        self._block_stop(StreamEvent("content_block_stop", self._blocks - 1), b"", out)
        self._unmarked.add(self._blocks - 1)

    def _block_stop(self, event: StreamEvent, raw: bytes, out: list[Event]) -> None:
        if event.index in self._unmarked:
            return
        self._check_open(event)
        if isinstance(self._open, Call):
            self._called(self._open, self._open.end(), out)
        closed, self._open = self._open, None
        end = Frame(raw, BlockStop(event.index), mended=not raw)
        if isinstance(closed, Call):
            self._end_call(closed, end, out)
            return
        if closed == "thinking":
            self._memory.keep(event.index, thinking_block("".join(self._thought), self._signature))
        out.append(end)

    def _end_call(self, call: Call, end: Frame, out: list[Event]) -> None:
        text = call.arguments
        whole = is_object(text) and not self._halves.open
        out.append(ToolEnded(call.number, text, self._memory.fresh()) if whole else ToolDropped(call.number))
        if whole or call.live:
            out.append(end)
        else:
            # The API itself sends a call that ran into max_tokens like this, and the client must see what it sent. For
            # any other reason the arguments are broken, and no client may run the call: its block does not end.
            self._cut = text, end

    def _message_delta(self, event: StreamEvent, raw: bytes, out: list[Event]) -> None:
        self._check(self._usage is not None, "a message_delta at the wrong place")
        self._close_unmarked(out)
        self._usage = counted(event.usage, self._usage or Usage())
        delta, before = event.delta, self._stop or MessageDelta("", Usage())
        reason = settled(delta.stop_reason or "", self._calls) or before.stop_reason
        counts = event.usage is not None and event.usage.output_tokens is not None
        if delta is NO_DELTA or not (reason or counts):  # clients look into it
            return
        if reason and self._cut is not None:
            if reason in WHOLE:
                raise _broken(self._cut[0])
            out.append(self._cut[1])
            self._cut = None
        explanation = (delta.stop_details or StopDetails()).explanation or before.explanation
        said = MessageDelta(reason, self._usage, delta.stop_sequence or before.sequence, explanation)
        self._stop = said if reason else None
        # What an event takes back, clients forget.
        whole = raw and counts and self._usage != NONE and reason == (delta.stop_reason or "")
        out.append(Frame(raw, said, "closing", mended=not whole))

    def _message_stop(self, event: StreamEvent, raw: bytes, out: list[Event]) -> None:
        self._check(self._stop is not None, "a message_stop without a stop_reason")
        self._finish(raw, out)

    # ------------------------------------------------------------ the end

    def _finish(self, raw: bytes, out: list[Event]) -> None:
        stop = self._stop or MessageDelta("", Usage())
        out.append(Frame(raw, MessageStop(), "closing", mended=not raw))
        reason = REASONS.get(stop.stop_reason, "stop")
        state = self._memory.state(self._blocks) if self._calls else b""
        usage = self._usage if self._usage != NONE else None  # all zero is a server that does not count
        self._end(Finished(reason, usage, stop.sequence, stop.explanation, state, self._model), out)

    def _end(self, event: Finished | Failed, out: list[Event]) -> None:
        self._ended = True
        out.append(event)

    def _check_open(self, event: StreamEvent) -> None:
        if self._open is None or event.index != self._blocks - 1:
            raise _ungrammatical(f"{event.type} for the content block {event.index}, which is not open")

    def _check(self, held: bool, found: str) -> None:  # noqa: FBT001 - an assertion
        if not held:
            raise _ungrammatical(found)


def _ungrammatical(found: str) -> UpstreamProtocolError:
    return UpstreamProtocolError(f"the upstream broke its own grammar: {found}")


def _broken(arguments: str) -> UpstreamProtocolError:
    return UpstreamProtocolError(f"the upstream sent tool arguments that are not a JSON object: {arguments[:200]!r}")


WATCHERS: dict[str, Callable[[AnthropicStream, StreamEvent, bytes, list[Event]], None]] = {
    "content_block_delta": AnthropicStream._block_delta,
    "content_block_start": AnthropicStream._block_start,
    "content_block_stop": AnthropicStream._block_stop,
    "message_start": AnthropicStream._message_start,
    "message_delta": AnthropicStream._message_delta,
    "message_stop": AnthropicStream._message_stop,
}
