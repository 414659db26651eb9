"""Content as a client writes it, in any of its shapes (rule R1), to blocks.

A list whose blocks are all known is read in one pass. Otherwise it is read block by block: a type that the bridge does
not know is carried as it was written, a known one that is wrong is refused with its path.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, assert_never, get_args

import msgspec
from msgspec import Raw, Struct

from translation.client.paths import CROWD, carried, carried_fields, carried_object, decode, explained, named, wrong
from translation.values import (
    Block,
    Document,
    Image,
    Other,
    RedactedThinking,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)

ABSENT = Raw(b"")
NOTHING = (b"", b"null")


class Wire(Struct, tag_field="type"):
    """A block as it is written; `path` is where, for what may be wrong inside."""

    @abstractmethod
    def value(self, path: str) -> Block: ...


class Base64Source(Struct, tag_field="type", tag="base64"):
    media_type: str
    data: str


class TextSource(Struct, tag_field="type", tag="text"):
    data: str
    media_type: str = "text/plain"


class ContentSource(Struct, tag_field="type", tag="content"):
    content: Raw


class URLSource(Struct, tag_field="type", tag="url"):
    url: str


class FileSource(Struct, tag_field="type", tag="file"):
    file_id: str


class TextWire(Wire, tag="text"):
    text: str
    citations: Raw = ABSENT

    def value(self, path: str) -> Text:
        if self.citations is ABSENT or bytes(self.citations) in (b"null", b"[]"):
            return Text(self.text)
        return Text(self.text, carried(self.citations, path + ".citations"))


class ImageWire(Wire, tag="image"):
    source: Base64Source | URLSource | FileSource
    transformations: Raw = ABSENT

    def value(self, path: str) -> Image:
        more = carried_fields(path, transformations=self.transformations)
        match self.source:
            case Base64Source(media_type=media_type, data=data):
                return Image("base64", data, media_type, more)
            case URLSource(url=url):
                return Image("url", url, "", more)
            case FileSource(file_id=file_id):
                return Image("file", file_id, "", more)
            case _:
                assert_never(self.source)


class Citations(Struct):
    """Whether answers are to cite a source."""

    enabled: bool | None = None


class DocumentWire(Wire, tag="document"):
    source: Base64Source | TextSource | ContentSource | URLSource | FileSource
    title: str | None = None
    context: str | None = None
    citations: Citations | None = None

    def value(self, path: str) -> Document:
        about = self.title or "", self.context or "", _cited(self.citations)
        match self.source:
            case Base64Source(media_type=media_type, data=data):
                return Document("base64", data, media_type, (), *about)
            case TextSource(media_type=media_type, data=data):
                return Document("text", data, media_type, (), *about)
            case ContentSource(content=content):
                return Document("content", "", "", blocks(content, path + ".source.content", LEAVES), *about)
            case URLSource(url=url):
                return Document("url", url, "", (), *about)
            case FileSource(file_id=file_id):
                return Document("file", file_id, "", (), *about)
            case _:
                assert_never(self.source)


class SearchResultWire(Wire, tag="search_result"):
    title: str
    source: str
    content: Raw
    citations: Citations | None = None

    def value(self, path: str) -> SearchResult:
        inner = blocks(self.content, path + ".content", LEAVES)
        return SearchResult(self.title, self.source, inner, _cited(self.citations))


def _cited(citations: Citations | None) -> bool:
    return citations is not None and bool(citations.enabled)


class ThinkingWire(Wire, tag="thinking"):
    thinking: str
    signature: str | None = None

    def value(self, path: str) -> Thinking:
        return Thinking(self.thinking, self.signature or "")


class RedactedThinkingWire(Wire, tag="redacted_thinking"):
    data: str

    def value(self, path: str) -> RedactedThinking:
        return RedactedThinking(self.data)


class ToolUseWire(Wire, tag="tool_use"):
    id: str
    name: str
    input: Raw
    caller: Raw = ABSENT
    toolset_name: Raw = ABSENT

    def value(self, path: str) -> ToolUse:
        call = named(self.id, path + ".id"), named(self.name, path + ".name")
        more = carried_fields(path, caller=self.caller, toolset_name=self.toolset_name)
        return ToolUse(*call, carried_object(self.input, path + ".input"), None, more)


class ToolResultWire(Wire, tag="tool_result"):
    tool_use_id: str
    content: Raw = ABSENT
    is_error: bool | None = None
    toolset_name: Raw = ABSENT

    def value(self, path: str) -> ToolResult:
        tool_use_id = named(self.tool_use_id, path + ".tool_use_id")
        content, more = bytes(self.content), carried_fields(path, toolset_name=self.toolset_name)
        if content in NOTHING:
            return ToolResult(tool_use_id, (), bool(self.is_error), more)
        return ToolResult(tool_use_id, blocks(content, path + ".content", RESULTS), bool(self.is_error), more)


class ToolReferenceWire(Wire, tag="tool_reference"):
    tool_name: str

    def value(self, path: str) -> ToolReference:
        return ToolReference(named(self.tool_name, path + ".tool_name"))


class Head(Struct):
    type: str


class Call(Struct):
    """What the calls that the API side runs have in common."""

    id: str
    name: str
    input: Raw


class Answer(Struct):
    tool_use_id: str


class Shape(Struct):
    """Content that is an object: one block, or R1's `{text}` and `{content}`."""

    type: Raw = ABSENT
    text: Raw = ABSENT
    content: Raw = ABSENT


InDocument = TextWire | ImageWire
InResult = InDocument | DocumentWire | SearchResultWire | ToolReferenceWire
InMessage = InResult | ThinkingWire | RedactedThinkingWire | ToolUseWire | ToolResultWire


class Place:
    """Which blocks are known where: in a message, in a tool's result, inside a document."""

    def __init__(self, known: Any) -> None:
        self.all: msgspec.json.Decoder[list[Wire]] = msgspec.json.Decoder(list[known])
        self.one: msgspec.json.Decoder[Wire] = msgspec.json.Decoder(known)
        self.types = frozenset(wire.__struct_config__.tag for wire in get_args(known))


LEAVES = Place(InDocument)
RESULTS = Place(InResult)
MESSAGE = Place(InMessage)

_TEXT = msgspec.json.Decoder(str)
_RAWS = msgspec.json.Decoder(list[Raw])
_HEAD = msgspec.json.Decoder(Head)
_HEADS = msgspec.json.Decoder(list[Head])
_CALL = msgspec.json.Decoder(Call)
_ANSWER = msgspec.json.Decoder(Answer)
_SHAPE = msgspec.json.Decoder(Shape)


def blocks(content: Raw | bytes, path: str, place: Place = MESSAGE) -> tuple[Block, ...]:
    """R1: a string, `{text}`, `{content}`, one block or a list of blocks."""
    raw = bytes(content)
    match raw[:1]:
        case b'"':
            return values(_TEXT.decode(raw), path)
        case b"[":
            return _listed(raw, path, place)
        case b"{":
            return _shaped(raw, path, place)
        case _:
            raise wrong(path, "Input should be a valid list")


def _listed(content: bytes, path: str, place: Place) -> tuple[Block, ...]:
    try:
        wires = place.all.decode(content)
    except msgspec.ValidationError:
        if len(content) > CROWD:
            decode(_HEADS, content, path)  # before there is a value for each of millions, whatever they are
        return tuple(_one(raw, f"{path}.{index}", place) for index, raw in enumerate(_RAWS.decode(content)))
    return values(wires, path)


def values(content: str | Sequence[Wire], path: str) -> tuple[Block, ...]:
    """Of content that was read already."""
    if isinstance(content, str):
        return (Text(content),) if content else ()
    return tuple([wire.value(f"{path}.{index}") for index, wire in enumerate(content)])


def _shaped(content: bytes, path: str, place: Place) -> tuple[Block, ...]:
    shape = _SHAPE.decode(content)
    if shape.type is not ABSENT:
        return (_one(content, path, place),)
    if shape.content is not ABSENT and bytes(shape.content)[:1] != b"{":
        return blocks(shape.content, path + ".content", place)
    if shape.text is not ABSENT:
        return (Text(decode(_TEXT, shape.text, path + ".text")),)
    raise wrong(path, "Input should be a valid list")


def _one(raw: Raw | bytes, path: str, place: Place) -> Block:
    try:
        wire = place.one.decode(raw)
    except msgspec.ValidationError as error:
        kind = decode(_HEAD, raw, path).type
        if kind in place.types:
            raise explained(error, path) from None
        return _carried(kind, raw, path)
    return wire.value(path)


def _carried(kind: str, raw: Raw | bytes, path: str) -> Block:
    """A block that the API side made, or that this bridge does not know: never an error."""
    text = carried(raw, path)
    try:
        return _served(kind, text)
    except msgspec.ValidationError:
        return Other(kind, text)  # named like one of those, but it looks different


def _served(kind: str, text: bytes) -> Block:
    if kind in ("server_tool_use", "mcp_tool_use"):
        call = _CALL.decode(text)
        return ServerToolUse(call.id, call.name, bytes(call.input), kind, text)
    if kind.endswith("_tool_result"):
        return ServerToolResult(kind, _ANSWER.decode(text).tool_use_id, text)
    return Other(kind, text)
