"""Canonical values: what a request says, whatever dialect it came in or goes out in.

The shape follows Anthropic's Messages API, the richest of them. JSON that the bridge only carries (schemas, tool
inputs, blocks that it does not know) stays as the bytes that the client wrote.
"""

from operator import attrgetter
from typing import Literal

from msgspec import Raw, Struct

from translation.memo import once
from translation.unicode import json_string

Role = Literal["user", "assistant", "system"]


class Note(Struct, frozen=True):
    """A trace for the operator: something was repaired, substituted, degraded, or a policy fired."""

    kind: Literal["repair", "substitution", "degradation", "policy"]
    rule: str  # stable short code: `orphan-result-demoted`, `R8`
    what: str  # plain words: which message, which field, why
    message: int = -1  # index in the client's `messages`, -1 when it is about none: old ones need not be stored again


class Origin(Struct, frozen=True):
    """Who made an assistant message or a tool call, and what that provider needs back with it."""

    upstream: str  # the upstream's name, e.g. `gemini`: opaque state goes back to the same one only
    model: str
    state: bytes = b""  # JSON owned by the adapter that wrote it; b"" when there is none


class Link(Struct, frozen=True):
    """A tool call as the store knows it: the client's id on one side, the upstream's on the other."""

    tool_use_id: str
    name: str
    upstream_name: str
    upstream_id: str  # "" when the upstream gave none
    arguments: bytes  # JSON object; b"" while the call is not complete
    origin: Origin
    turn_id: int = 0
    ordinal: int = 0


# ---------------------------------------------------------------- content blocks


class Text(Struct, frozen=True, dict=True):
    text: str
    citations: bytes = b""  # JSON, b"" when absent

    @once
    def json(self) -> Raw:
        """The text as JSON: told upstream, kept in the store, and told again with each turn that follows."""
        return Raw(json_string(self.text))


class Image(Struct, frozen=True):
    kind: Literal["base64", "url", "file"]
    data: str  # base64 text, the URL, or the file id
    media_type: str = ""
    more: bytes = b""  # JSON object: fields that only Anthropic knows
    detail: str = ""  # how closely a chat client wants it to be looked at


class Document(Struct, frozen=True):
    kind: Literal["base64", "text", "content", "url", "file"]
    data: str  # base64 text, plain text, URL or file id; "" for `content`
    media_type: str = ""
    blocks: "tuple[Block, ...]" = ()  # for `content`
    title: str = ""
    context: str = ""
    citations: bool = False  # the client wants answers that cite it


class SearchResult(Struct, frozen=True):
    title: str
    source: str
    blocks: "tuple[Block, ...]"
    citations: bool = False


class Thinking(Struct, frozen=True):
    text: str
    signature: str = ""


class RedactedThinking(Struct, frozen=True):
    data: str


class ToolUse(Struct, frozen=True):
    id: str
    name: str
    input: bytes  # JSON object
    link: Link | None = None  # set by hydration when the store knows the call
    more: bytes = b""  # JSON object: fields that only Anthropic knows


class ToolReference(Struct, frozen=True):
    tool_name: str


class ToolResult(Struct, frozen=True):
    tool_use_id: str
    blocks: "tuple[Block, ...]" = ()
    is_error: bool = False
    more: bytes = b""  # JSON object: fields that only Anthropic knows


class ServerToolUse(Struct, frozen=True):
    """`server_tool_use` and `mcp_tool_use`: a call that the API side ran itself."""

    id: str
    name: str
    input: bytes
    type: str = "server_tool_use"
    raw: bytes = b""  # the block as it was written
    link: Link | None = None  # set by hydration when the bridge ran it


class ServerToolResult(Struct, frozen=True):
    """`web_search_tool_result`, `mcp_tool_result` and their relatives."""

    type: str
    tool_use_id: str
    raw: bytes


class Other(Struct, frozen=True):
    """A block type that this bridge does not know: kept, and told to other models as text."""

    type: str
    raw: bytes


Block = (
    Text
    | Image
    | Document
    | SearchResult
    | Thinking
    | RedactedThinking
    | ToolUse
    | ToolReference
    | ToolResult
    | ServerToolUse
    | ServerToolResult
    | Other
)


_KINDS: dict[frozenset[type], frozenset[type]] = {}  # each of the few there are, once


class Message(Struct, frozen=True, dict=True):
    """What is `remembered` of one says nothing about where it comes from: links and origins are put in later."""

    role: Role
    blocks: tuple[Block, ...]
    raw: bytes = b""  # the message as the client wrote it; b"" once the bridge changed or made it
    origin: Origin | None = None  # set by hydration on assistant messages that the bridge delivered
    options: tuple[str, ...] = ()  # fields beside role and content that few know: `clear_at`, a chat client's `name`
    effort: str = ""  # which a system message sets for what follows it

    @once
    def kinds(self) -> frozenset[type]:
        """Of its blocks, but not of those inside others."""
        kinds = frozenset(map(type, self.blocks))
        return _KINDS.setdefault(kinds, kinds)


KINDS, ROLE = attrgetter("kinds"), attrgetter("role")  # for whoever asks it of each message


# ---------------------------------------------------------------- the rest of a request


class Tool(Struct, frozen=True, dict=True):
    name: str
    description: str = ""
    schema: bytes = b""  # JSON Schema; b"" for typed tools
    type: str = "custom"  # `custom`, or a typed tool such as `bash_20250124`, `web_search_20250305`
    strict: bool = False
    defer_loading: bool = False
    eager: bool = False  # eager_input_streaming
    examples: bytes = b""  # input_examples, a JSON array
    callers: tuple[str, ...] = ()  # allowed_callers; () is everyone
    raw: bytes = b""  # the definition as the client wrote it
    toolset: str = ""  # the family that it is a member of: `browser.navigate` of `browser`


# For whoever asks it of each tool.
NAME, TYPE, DEFERS = map(attrgetter, ("name", "type", "defer_loading"))
EAGER, CALLERS, TOOLSET = map(attrgetter, ("eager", "callers", "toolset"))


class ToolChoice(Struct, frozen=True):
    kind: Literal["auto", "any", "tool", "none"] = "auto"
    name: str = ""  # for `tool`
    parallel: bool = True  # False: disable_parallel_tool_use


class ThinkingConfig(Struct, frozen=True):
    kind: Literal["enabled", "adaptive", "between_tools", "disabled"]
    budget_tokens: int | None = None
    display: str = ""  # "", `summarized`, `omitted`, `updates`


class Field(Struct, frozen=True):
    """A field of a request that has no canonical form, as the client wrote it."""

    name: str  # with a dot for a part of one that has: `output_config.task_budget`
    value: bytes


class Thread(Struct, frozen=True):
    kind: Literal["create", "continue"]
    previous_message_id: str = ""


class Request(Struct, frozen=True, kw_only=True, dict=True):
    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    system: tuple[Text, ...] = ()
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    stream: bool = False
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    stop_sequences: tuple[str, ...] = ()
    thinking: ThinkingConfig | None = None
    effort: str = ""  # output_config.effort: "", low, medium, high, xhigh, max
    output_schema: bytes = b""  # structured output: a JSON Schema
    user_id: str = ""  # metadata.user_id
    thread: Thread | None = None
    mcp_servers: bytes = b""  # JSON array
    version: str = "2023-06-01"
    betas: tuple[str, ...] = ()
    others: tuple[Field, ...] = ()  # what only Anthropic, or nobody, knows
    open_ended: bool = False  # the client set no limit: `max_tokens` is only for targets that need one
    extras: bytes = b""  # JSON object: chat parameters without a canonical form, for targets that speak chat
    cache_control: bytes = b""  # JSON object: a chat client marked what is to be cached
    body: bytes = b""  # the whole body as the client wrote it, if in Anthropic's dialect
    size: int = 0  # bytes that it wrote
    raw_system: bytes = b""
    raw_tools: bytes = b""

    @once
    def roles(self) -> frozenset[str]:
        """Who speaks in it. With `kinds`, how whoever looks for what is rare need not look at each message."""
        return frozenset(map(ROLE, self.messages))

    @once
    def kinds(self) -> frozenset[type]:
        """Of its messages' blocks, but not of those inside others."""
        return frozenset().union(*map(KINDS, self.messages))

    @property
    def unknown(self) -> tuple[str, ...]:
        """The top-level fields that this bridge does not carry."""
        return tuple(field.name for field in self.others if "." not in field.name)


class Usage(Struct, frozen=True):
    """Anthropic's way of counting: the three input fields are exclusive and sum to the prompt."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    thinking_tokens: int = 0
    searches: int = 0
    estimated: bool = False
