"""The parts of Anthropic's answers that the bridge looks at while it passes them on."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from translation.arguments import PLACEHOLDERS
from translation.events import Reason
from translation.fitting import Spare
from translation.names import is_name
from translation.values import Usage

# A stop reason that is not here is passed on as it is, and counts as `stop` in the bridge's own books.
REASONS: dict[str, Reason] = {
    "end_turn": "stop",
    "max_tokens": "length",
    "stop_sequence": "stop_sequence",
    "tool_use": "tool_use",
    "pause_turn": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_window",
}
# What servers that only speak like Anthropic say instead.
OTHER_WORDS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}


def settled(reason: str, calls: int) -> str:
    """The stop reason that fits what was shown: clients go on, or do not, by what it says of calls."""
    if reason in OTHER_WORDS:
        reason = OTHER_WORDS[reason]
    if calls and reason == "end_turn":
        return "tool_use"
    return "end_turn" if reason == "tool_use" and not calls else reason


Count = Annotated[int, Meta(ge=0)]  # gateways that do not know write -1


class OutputDetails(Spare, frozen=True):
    thinking_tokens: Count | None = None


class ServerTools(Spare, frozen=True):
    web_search_requests: Count | None = None


class Tokens(Spare, frozen=True):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None
    output_tokens_details: OutputDetails | None = None
    server_tool_use: ServerTools | None = None


class StopDetails(Spare, frozen=True):
    explanation: str | None = None


class Delta(Struct, frozen=True):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: Raw = Raw()
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: StopDetails | None = None


class MessageBody(Struct, frozen=True):
    id: str = ""
    type: str = ""
    role: str = ""
    model: str = ""
    content: tuple[Raw, ...] | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: StopDetails | None = None
    usage: Tokens | None = None

    @property
    def told(self) -> bool:
        """Whether it has what the SDKs look for."""
        named, tokens = self.id and self.role and self.model, self.usage
        counts = tokens is not None and tokens.input_tokens is not None and tokens.output_tokens is not None
        return counts and self.content is not None and named != ""


NO_INPUT = Raw(b"{}")


class Block(Struct, frozen=True):
    type: str = ""
    id: str = ""
    name: str = ""
    input: Raw = NO_INPUT
    text: str | UnsetType = UNSET
    thinking: str | UnsetType = UNSET
    signature: str | UnsetType = UNSET
    citations: tuple[Raw, ...] | None = None

    @property
    def own_id(self) -> str:
        """Of a call; "" for what no client could send back, in whose place the bridge puts one."""
        return self.id if is_name(self.id) else ""

    @property
    def arguments(self) -> str:
        """Of a call, as a whole answer has them; some servers write them as text."""
        text = bytes(self.input).decode()
        if text.startswith('"'):
            text = msgspec.json.decode(text, type=str).strip()
        return "{}" if text in PLACEHOLDERS else text

    @property
    def told(self) -> bool:
        """Whether it has what the SDKs look for."""
        match self.type:
            case "text":
                return self.text is not UNSET
            case "thinking":
                return bool(self.signature)
            case "tool_use":
                return self.input is not NO_INPUT and self.arguments == bytes(self.input).decode()
            case _:
                return True


NO_DELTA = Delta()


class StreamEvent(Struct, frozen=True):
    type: str = ""
    index: int = -1
    content_block: Raw = Raw(b"{}")
    delta: Delta = NO_DELTA
    message: MessageBody = MessageBody()
    usage: Tokens | None = None


EVENT = msgspec.json.Decoder(StreamEvent)
BLOCK = msgspec.json.Decoder(Block)
MESSAGE = msgspec.json.Decoder(MessageBody)


class _Carried(Struct):
    delta: Raw


_CARRIED = msgspec.json.Decoder(_Carried)


def other_delta(frame: bytes) -> bytes:
    """The delta of an event that is passed on, as it came."""
    _, _, data = frame.partition(b"data: ")
    return bytes(_CARRIED.decode(data.replace(b"\ndata: ", b"\n")).delta)


# What clients read from deltas only, as the start of a block has it.
EMPTY = {
    "text": {"text": Raw(b'""')},
    "thinking": {"thinking": Raw(b'""'), "signature": Raw(b'""')},
    "tool_use": {"input": Raw(b"{}")},
}

# Which block a delta belongs into, and how one begins that clients read nothing of but deltas.
HOMES = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "thinking",
    "input_json_delta": "tool_use",
}
BEGUN = {
    "text": Raw(b'{"type":"text","text":""}'),
    "thinking": Raw(b'{"type":"thinking","thinking":"","signature":""}'),
}


def early_deltas(block: Block) -> Iterator[Delta]:
    """What the start of a block says of them all the same."""
    if block.type == "text" and block.text:
        yield Delta("text_delta", text=block.text)
    if block.type == "thinking" and block.thinking:
        yield Delta("thinking_delta", thinking=block.thinking)
    if block.type == "thinking" and block.signature:
        yield Delta("signature_delta", signature=block.signature)


NONE = Usage()


def counted(tokens: Tokens | None, before: Usage = NONE) -> Usage:
    """Counts are cumulative: what an event tells replaces what was known `before`, the rest stays."""
    if tokens is None:
        return before
    details, tools = tokens.output_tokens_details or OutputDetails(), tokens.server_tool_use or ServerTools()
    return Usage(
        input_tokens=_newer(tokens.input_tokens, before.input_tokens),
        output_tokens=_newer(tokens.output_tokens, before.output_tokens),
        cache_read=_newer(tokens.cache_read_input_tokens, before.cache_read),
        cache_write=_newer(tokens.cache_creation_input_tokens, before.cache_write),
        thinking_tokens=_newer(details.thinking_tokens, before.thinking_tokens),
        searches=_newer(tools.web_search_requests, before.searches),
    )


def _newer(value: int | None, before: int) -> int:
    return before if value is None else value
