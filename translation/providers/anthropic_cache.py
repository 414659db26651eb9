"""Cache breakpoints of messages that could not stay as they were: values have none, the client's own bytes do."""

import msgspec
from msgspec import Raw, Struct

from translation.client.stored import dump_blocks, parse_blocks
from translation.unicode import json_string
from translation.values import Block, Message, ServerToolUse, ToolResult, ToolUse

MARK = b'"cache_control"'
NONE = (b"", b"null")


class _Content(Struct):
    content: Raw


class _Marked(Struct):
    cache_control: Raw = Raw(b"")


_CONTENT = msgspec.json.Decoder(_Content)
_BLOCKS = msgspec.json.Decoder(list[Raw])
_MARKED = msgspec.json.Decoder(_Marked)


def marked(messages: tuple[Message, ...], raws: list[bytes], written: list[bytes]) -> list[bytes]:
    """`raws` with the breakpoints of `written` on the blocks of those messages that the bridge has changed."""
    kept = set(raws)
    lost = {key: mark for raw in written if MARK in raw and raw not in kept for key, mark in _marks(raw)}
    if not lost:
        return raws
    return [raw if message.raw else _with(message, lost) for message, raw in zip(messages, raws, strict=True)]


def _marks(raw: bytes) -> list[tuple[object, bytes]]:
    content = bytes(_CONTENT.decode(raw).content)
    blocks = _BLOCKS.decode(content) if content.startswith(b"[") else []
    marks = [(block, bytes(_MARKED.decode(block).cache_control)) for block in blocks]
    return [(_key(parse_blocks(b"[%b]" % bytes(block))[0]), mark) for block, mark in marks if mark not in NONE]


def _with(message: Message, lost: dict[object, bytes]) -> bytes:
    """The message as it is sent; each breakpoint is used once."""
    blocks = [_marked(dump_blocks((block,))[1:-1], lost.pop(_key(block), b"")) for block in message.blocks]
    return b'{"role":%b,"content":[%b]}' % (json_string(message.role), b",".join(blocks))


def _marked(block: bytes, mark: bytes) -> bytes:
    return b'%b,"cache_control":%b}' % (block[:-1], mark) if mark else block


def _key(block: Block) -> object:
    """What a repair leaves of it: a call has its id even with state from the store, a result even if it was filled."""
    if isinstance(block, ToolUse | ServerToolUse):
        return "call", block.id
    return ("result", block.tool_use_id) if type(block) is ToolResult else block
