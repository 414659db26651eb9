"""Content as the store keeps it and histories are compared: one form for whatever a client may have written.

A string and one text block are the same, and the JSON inside has one spelling. `cache_control` is gone, unless the
client leaves its history to the bridge (`marks.py`).
"""

from collections.abc import Sequence
from typing import Any, assert_never

import msgspec
from msgspec.structs import replace

from translation.arguments import respelled
from translation.client.blocks import blocks
from translation.client.parse import parse_written
from translation.errors import InvalidRequest, UpstreamProtocolError
from translation.memo import remembered
from translation.unicode import json_string, well_formed
from translation.values import (
    Block,
    Document,
    Image,
    Message,
    Other,
    RedactedThinking,
    Role,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)

Json = dict[str, object]
Pieces = tuple[bytes | msgspec.Raw, ...]

CITED: Json = {"enabled": True}
MARK = b'"cache_control"'  # it cannot be in a string, where a quote has a backslash before it
OPTIONS = ("clear_at", "output_config")  # fields of a message beside its role and content
SET = b'[{"type":"text","text":"","set":'
HELD = 4096  # bytes, of what is kept for the next time
BILLING = "x-anthropic-billing-header:"  # Claude Code's, another one in each request


_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])
_encode = msgspec.json.Encoder().encode
_TEXT_HEAD = b'[{"type":"text","text":'


def parse_blocks(content: bytes) -> tuple[Block, ...]:
    return blocks(content, "content")


def parse_message(role: Role, content: bytes) -> Message:
    if content.startswith(SET):
        return _with_options(role, content)
    return Message(role, parse_blocks(content))


def parse_told(role: Role, content: bytes) -> Message:
    """What the store puts into a request: an answer is kept with its calls as the model spelled them."""
    message = parse_message(role, content)
    if role != "assistant":
        return _as_written(message, content) if MARK in content and not message.raw else message
    return replace(message, blocks=tuple(map(_respelled, message.blocks)))


def _as_written(message: Message, content: bytes) -> Message:
    """With its cache breakpoints, which are in no value."""
    return replace(message, raw=b'{"role":%b,"content":%b}' % (json_string(message.role), content))


def _respelled(block: Block) -> Block:
    return replace(block, input=respelled(block.input)) if type(block) is ToolUse else block


def parse_answer(content: bytes) -> Message:
    """What an upstream said, as a message. One that no client could send back is the upstream's fault."""
    try:
        return parse_message("assistant", content)
    except InvalidRequest as error:
        raise UpstreamProtocolError(f"the upstream's answer cannot be kept: {error.message}") from None


def dump_blocks(content: tuple[Block, ...]) -> bytes:
    return b"".join(_pieces(content))


def _pieces(content: tuple[Block, ...]) -> Pieces:
    """A text is one, as the value has it: it need not be escaped, and `%b` would copy a long one again and again."""
    first = content[0] if len(content) == 1 else None
    if type(first) is Text and not first.citations:
        return _TEXT_HEAD, first.json, b"}]"
    if type(first) is ToolResult and first.blocks and not first.is_error and not first.more:
        head = b'[{"type":"tool_result","tool_use_id":%b,"content":' % json_string(first.tool_use_id)
        return head, *_pieces(first.blocks), b"}]"
    told = [*map(_json, content)]
    try:
        return (_encode(told),)
    except UnicodeEncodeError:
        return (msgspec.json.encode(_repaired(told)),)


def dump_content(message: Message) -> bytes:
    """What the store keeps of a message. What it sets beside its content stands in an empty text before that, which a
    reader that does not know of it leaves out."""
    content = dump_blocks(message.blocks)
    if not (message.options or message.effort) or not message.raw:
        return content
    fields = _FIELDS.decode(message.raw)
    options = {name: fields[name] for name in OPTIONS if name in fields}
    return b"%b%b}%b%b" % (SET, msgspec.json.encode(options), b"," if message.blocks else b"", content[1:])


def dump_all(messages: Sequence[Message]) -> list[bytes]:
    """The same of many: a history that comes whole has come whole before, in another conversation or a process ago."""
    told: list[Any] = _told.all(messages)
    if None not in told:
        return [*map(b"".join, told)]
    return [b"".join(it) if it else dump_content(one) for one, it in zip(messages, told, strict=True)]


@remembered
def _told(message: Message) -> Pieces | None:
    """Its content, where that takes few bytes beside the texts that the message has in memory already."""
    if message.options or message.effort:
        return None
    pieces = _pieces(message.blocks)
    return pieces if sum([len(piece) for piece in pieces if type(piece) is bytes]) <= HELD else None


def _with_options(role: Role, content: bytes) -> Message:
    first, *others = _RAWS.decode(content)
    options = _FIELDS.decode(_FIELDS.decode(first)["set"])
    return parse_written(msgspec.json.encode({"role": role, "content": others, **options}))


def dump_message(message: Message) -> bytes:
    return b'{"role":%b,"content":%b}' % (json_string(message.role), dump_blocks(message.blocks))


def _json(block: Block) -> Json:  # noqa: C901, PLR0911  # one case per kind of block
    match block:
        case Text(citations=citations):
            value: Json = {"type": "text", "text": block.json}
            return value | {"citations": _canonical(citations)} if citations else value
        case ToolUse(id=id_, name=name, input=arguments, more=more):
            value = {"type": "tool_use", "id": id_, "name": name, "input": _canonical(arguments)}
            return value | (_fields(more) if more else {})
        case ToolResult():
            return _tool_result(block)
        case Thinking(text=text, signature=signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case RedactedThinking(data=data):
            return {"type": "redacted_thinking", "data": data}
        case Image():
            return {"type": "image", "source": _source(block)} | (_fields(block.more) if block.more else {})
        case Document():
            return _document(block)
        case SearchResult(title=title, source=source):
            content = [_json(inner) for inner in block.blocks]
            value = {"type": "search_result", "title": title, "source": source, "content": content}
            return value | ({"citations": CITED} if block.citations else {})
        case ToolReference(tool_name=name):
            return {"type": "tool_reference", "tool_name": name}
        case ServerToolUse(raw=b""):
            return {"type": block.type, "id": block.id, "name": block.name, "input": _canonical(block.input)}
        case ServerToolUse(raw=raw) | ServerToolResult(raw=raw) | Other(raw=raw):
            return _without_cache_control(raw)
        case _:
            assert_never(block)


def _tool_result(block: ToolResult) -> Json:
    value: Json = {"type": "tool_result", "tool_use_id": block.tool_use_id}
    if block.blocks:
        value["content"] = [*map(_json, block.blocks)]
    if block.is_error:
        value["is_error"] = True
    return value | (_fields(block.more) if block.more else {})


def _document(block: Document) -> Json:
    value: Json = {"type": "document", "source": _source(block)}
    if block.title:
        value["title"] = block.title
    if block.context:
        value["context"] = block.context
    if block.citations:
        value["citations"] = CITED
    return value


def _source(block: Image | Document) -> Json:
    match block.kind:
        case "base64" | "text":
            return {"type": block.kind, "media_type": block.media_type, "data": block.data}
        case "url":
            return {"type": "url", "url": block.data}
        case "file":
            return {"type": "file", "file_id": block.data}
        case "content":
            return {"type": "content", "content": [_json(inner) for inner in block.blocks]}
        case _:
            assert_never(block.kind)


def _canonical(raw: bytes) -> msgspec.Raw:
    return msgspec.Raw(respelled(raw))


def _fields(raw: bytes) -> Json:
    fields: Json = msgspec.json.decode(raw)
    return fields


def _without_cache_control(raw: bytes) -> Json:
    value: Json = msgspec.json.decode(raw)
    return {name: field for name, field in value.items() if name != "cache_control"}


def _repaired(value: object) -> object:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list):
        return [_repaired(item) for item in value]
    if isinstance(value, dict):
        return {name: _repaired(item) for name, item in value.items()}
    return value


def fingerprint(raw: bytes) -> bytes:
    """A `system` or `tools`, in whatever form and spelling, as it is compared; b"" is one that was left out."""
    value: object = msgspec.json.decode(raw or b"[]")
    if isinstance(value, str):
        value = [{"type": "text", "text": value}] if value else []
    items: list[Json] = [value] if isinstance(value, dict) else value  # type: ignore[assignment]  # it was parsed before
    plain = [{name: field for name, field in item.items() if name != "cache_control"} for item in items]
    kept = [item for item in plain if not str(item.get("text", "")).lstrip().startswith(BILLING)]
    return msgspec.json.encode(kept, order="deterministic")


def is_content(content: bytes) -> bool:
    """Below full storage a message's blocks are only their kinds and sizes."""
    if b'"size"' not in content:
        return True  # nearly always, and without reading it
    blocks = msgspec.json.decode(content)
    return not any("size" in block and len(block) == 2 for block in blocks)
