"""What happens in an answer.

A decoder turns an upstream's bytes into `Event`s; the block writer turns those into `WireEvent`s, the client's own
stream grammar, which is rendered as SSE or folded into one message.
"""

from typing import Literal

from msgspec import Struct

from translation.errors import BridgeError
from translation.values import Usage

# ---------------------------------------------------------------- from a decoder


class TextDelta(Struct, frozen=True):
    text: str


class ThinkingDelta(Struct, frozen=True):
    text: str


class TextEnded(Struct, frozen=True):
    """What comes next, if it is a text, is another one: a block of its own."""


class ToolStarted(Struct, frozen=True):
    """A call has a name. `call` numbers the calls of one answer from 0; `id` is minted by the bridge."""

    call: int
    name: str  # the client's name of the tool
    upstream_id: str = ""
    upstream_name: str = ""
    id: str = ""


class ToolArguments(Struct, frozen=True):
    """A fragment of arguments, for tools that stream them live; everyone else waits for `ToolEnded`."""

    call: int
    fragment: str


class ToolEnded(Struct, frozen=True):
    """The call is complete: its arguments are one valid JSON object."""

    call: int
    arguments: str
    state: bytes = b""  # opaque state known by now that belongs to this call


class ToolDropped(Struct, frozen=True):
    """The call was cut off by the token limit: it must not be run."""

    call: int


class Citation(Struct, frozen=True):
    """A source of the text before it, as the API's JSON."""

    citation: bytes


class WholeBlock(Struct, frozen=True):
    """A block that comes in one piece (`server_tool_use`, `web_search_tool_result`, ...), as JSON."""

    block: bytes


Reason = Literal["stop", "length", "tool_use", "refusal", "stop_sequence", "context_window", "pause"]


class Finished(Struct, frozen=True):
    """The upstream said that the answer is complete. Nothing follows."""

    reason: Reason
    usage: Usage | None = None  # None: the upstream did not tell
    sequence: str = ""  # the stop sequence that was hit
    explanation: str = ""  # of a refusal
    state: bytes = b""  # opaque state of the whole message
    model: str = ""  # what the upstream says answered
    notes: tuple[str, ...] = ()  # what was repaired while decoding, in plain words


class Failed(Struct, frozen=True):
    """The answer cannot go on. Nothing follows."""

    error: BridgeError


class Frame(Struct, frozen=True):
    """Bytes of an upstream that speaks the client's own dialect, to be passed on as they came: the relay writer's."""

    raw: bytes
    event: "Written | None" = None  # what they say
    kind: Literal["frame", "closing", "body"] = "frame"  # `body`: the whole answer to a request without a stream
    mended: bool = False  # clients could not read what came: `event` is said in the bridge's words


Event = (
    TextDelta
    | ThinkingDelta
    | TextEnded
    | ToolStarted
    | ToolArguments
    | ToolEnded
    | ToolDropped
    | Citation
    | WholeBlock
    | Frame
    | Finished
    | Failed
)


# ---------------------------------------------------------------- to the client


class MessageStart(Struct, frozen=True):
    id: str
    model: str
    usage: Usage


class BlockStart(Struct, frozen=True):
    index: int
    block: bytes  # JSON


# `other_delta`: of a kind that the bridge only carries (`compaction_delta`, and what the API may learn).
DeltaKind = Literal[
    "text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "other_delta"
]


class BlockDelta(Struct, frozen=True):
    index: int
    kind: DeltaKind
    text: str  # JSON for a citation; of `other_delta` the whole delta


class BlockStop(Struct, frozen=True):
    index: int


class MessageDelta(Struct, frozen=True):
    stop_reason: str
    usage: Usage
    sequence: str = ""
    explanation: str = ""  # stop_details of a refusal


class MessageStop(Struct, frozen=True):
    pass


Written = MessageStart | BlockStart | BlockDelta | BlockStop | MessageDelta | MessageStop


class Relayed(Struct, frozen=True):
    """Bytes that an upstream wrote for the client, and what they say, for whoever watches."""

    raw: bytes
    event: Written | None = None
    whole: bool = False  # the body of an answer without a stream


WireEvent = Written | Relayed
