"""Cache breakpoints (`cache_control`) on the blocks of a message: values have none, what the client wrote does."""

import msgspec
from msgspec import Raw, Struct

from translation.client.stored import MARK, dump_blocks, dump_content, parse_blocks
from translation.memo import remembered
from translation.values import Block, Message, ServerToolUse, ToolResult, ToolUse

NONE = (b"", b"null")
Marks = dict[object, bytes]  # by what a repair leaves of a block


class _Content(Struct):
    content: Raw


class _Marked(Struct):
    cache_control: Raw = Raw(b"")


_CONTENT = msgspec.json.Decoder(_Content)
_BLOCKS = msgspec.json.Decoder(list[Raw])
_MARKED = msgspec.json.Decoder(_Marked)


def marks(raw: bytes) -> Marks:
    """Those of a message as its client wrote it."""
    content = bytes(_CONTENT.decode(raw).content)
    blocks = _BLOCKS.decode(content) if content.startswith(b"[") else []
    found = [(block, bytes(_MARKED.decode(block).cache_control)) for block in blocks]
    return {_key(parse_blocks(b"[%b]" % bytes(block))[0]): mark for block, mark in found if mark not in NONE}


def dump_marked(blocks: tuple[Block, ...], lost: Marks) -> bytes:
    """Content with breakpoints on it; each is used once."""
    return b"[%b]" % b",".join([_with(dump_blocks((block,))[1:-1], lost.pop(_key(block), b"")) for block in blocks])


@remembered
def is_marked(message: Message) -> bool:
    return MARK in message.raw


def dump_written(message: Message) -> bytes:
    """What the store keeps of a message whose client leaves its history to the bridge: with its breakpoints."""
    if not is_marked(message) or message.options or message.effort:
        return dump_content(message)
    return dump_marked(message.blocks, marks(message.raw))


def _with(block: bytes, mark: bytes) -> bytes:
    return b'%b,"cache_control":%b}' % (block[:-1], mark) if mark else block


def _key(block: Block) -> object:
    """What a repair leaves of it: a call has its id even with state from the store, a result even if it was filled."""
    if isinstance(block, ToolUse | ServerToolUse):
        return "call", block.id
    return ("result", block.tool_use_id) if type(block) is ToolResult else block
