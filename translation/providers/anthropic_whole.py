"""Anthropic's answer to a request without a stream: passed on as it is, or as a stream to a client that wants one."""

import msgspec
from msgspec import Raw

from translation.arguments import is_object
from translation.client.render import sse
from translation.errors import UpstreamProtocolError
from translation.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Citation,
    DeltaKind,
    Event,
    Failed,
    Finished,
    Frame,
    MessageDelta,
    MessageStart,
    MessageStop,
    TextDelta,
    ThinkingDelta,
    ToolEnded,
    ToolStarted,
    WholeBlock,
    Written,
)
from translation.fitting import fitted
from translation.names import is_name
from translation.nulls import without_nulls
from translation.providers.anthropic_errors import in_band
from translation.providers.anthropic_state import Memory, thinking_block
from translation.providers.anthropic_wire import (
    BLOCK,
    MESSAGE,
    NONE,
    REASONS,
    Block,
    MessageBody,
    StopDetails,
    counted,
    settled,
)
from translation.refusals import read
from translation.unicode import check_utf8, without_halves
from translation.unreadable import UNREADABLE


class AnthropicWhole:
    """`streams` says whether the client reads a stream."""

    def __init__(self, *, streams: bool) -> None:
        self._streams = streams
        self._body: list[bytes] = []
        self._calls = 0
        self._mended = False  # what clients need was left out: the writer says the answer
        self._memory = Memory()

    def feed(self, chunk: bytes) -> list[Event]:
        self._body.append(chunk)
        return []

    def close(self) -> list[Event]:
        body = b"".join(self._body)
        try:
            check_utf8(body)
            try:
                return self._read(body)
            except msgspec.DecodeError:
                self._mended = True
                said = fitted(without_nulls(without_halves(body), "input"), MessageBody)
                return self._read(said)
        except UpstreamProtocolError as error:
            return [Failed(error)]
        except UNREADABLE as error:
            return [Failed(UpstreamProtocolError(f"the upstream's answer is not its protocol: {error}"))]

    def _read(self, body: bytes) -> list[Event]:
        self._calls, self._memory = 0, Memory()
        message = MESSAGE.decode(body)
        if message.type == "error" or (not message.type and read(body)):
            return [Failed(in_band(body))]
        if message.type not in ("message", "") or message.content is None or message.stop_reason is None:
            return [Failed(UpstreamProtocolError("the upstream's answer holds no content or no stop_reason"))]
        return self._events(message, message.content, body)

    def _events(self, message: MessageBody, content: tuple[Raw, ...], body: bytes) -> list[Event]:
        usage = counted(message.usage)
        blocks = [BLOCK.decode(raw) for raw in content]
        reason = settled(message.stop_reason or "", sum(block.type == "tool_use" for block in blocks))
        told = message.type and message.told and usage != NONE and reason == message.stop_reason
        told = told and all(block.told for block in blocks)
        self._mended = self._mended or not told
        details = message.stop_details or StopDetails()
        sequence = message.stop_sequence or ""
        out: list[Event] = [self._frame(MessageStart(message.id, message.model, usage))]
        for index, (block, raw) in enumerate(zip(blocks, content, strict=True)):
            if block.type in ("thinking", "redacted_thinking"):
                bare = block.type == "thinking" and not block.signature
                self._memory.keep(index, thinking_block(block.thinking or "", "") if bare else bytes(raw))
            out += self._block(index, raw)
        out.append(self._frame(MessageDelta(reason, usage, sequence, details.explanation or ""), closing=True))
        out.append(self._frame(MessageStop(), closing=True))
        if not self._streams and not self._mended:
            out.append(Frame(body, None, "body"))
        state = self._memory.state(len(content)) if self._calls else b""
        explanation = details.explanation or ""
        counts = usage if usage != NONE else None
        out.append(Finished(REASONS.get(reason, "stop"), counts, sequence, explanation, state, message.model))
        return out

    def _frame(self, event: Written, *, closing: bool = False) -> Frame:
        raw = sse([event]) if self._streams else b""
        return Frame(raw, event, "closing" if closing else "frame", self._mended)

    def _block(self, index: int, raw: Raw) -> list[Event]:
        block = BLOCK.decode(raw)
        seen, begun, deltas = self._split(block, raw)
        written: list[Written] = [
            BlockStart(index, begun),
            *(BlockDelta(index, *delta) for delta in deltas),
            BlockStop(index),
        ]
        return [*seen, *(self._frame(event) for event in written)]

    def _split(self, block: Block, raw: Raw) -> tuple[list[Event], bytes, list[tuple[DeltaKind, str]]]:
        """What a block means, how it begins in a stream, and what follows."""
        match block.type:
            case "text":
                cited = [bytes(citation) for citation in block.citations or ()]
                text = block.text or ""
                deltas: list[tuple[DeltaKind, str]] = [("text_delta", text)]
                deltas += [("citations_delta", citation.decode()) for citation in cited]
                begun = b'{"type":"text","text":"","citations":[]}' if cited else b'{"type":"text","text":""}'
                return [TextDelta(text), *map(Citation, cited)], begun, deltas
            case "thinking":
                begun = b'{"type":"thinking","thinking":"","signature":""}'
                thought: list[tuple[DeltaKind, str]] = [("thinking_delta", block.thinking)] if block.thinking else []
                return (
                    [ThinkingDelta(block.thinking or "")],
                    begun,
                    [*thought, ("signature_delta", block.signature or "")],
                )
            case "tool_use":
                call, arguments = self._calls, block.arguments
                if not (is_name(block.name) and is_object(arguments)):
                    raise UpstreamProtocolError("the upstream sent a tool_use without name or input")
                self._calls += 1
                started = ToolStarted(call, block.name, block.own_id, block.name, block.own_id)
                ended = ToolEnded(call, arguments, self._memory.fresh())
                return [started, ended], _emptied(raw), [("input_json_delta", arguments)]
            case "server_tool_use" if is_object(arguments := bytes(block.input).decode()):
                return [WholeBlock(bytes(raw))], _emptied(raw), [("input_json_delta", arguments)]
            case _:
                return [WholeBlock(bytes(raw))], bytes(raw), []


def _emptied(raw: Raw) -> bytes:
    """The start of a call: its input follows."""
    return msgspec.json.encode(msgspec.json.decode(raw, type=dict[str, Raw]) | {"input": Raw(b"{}")})
