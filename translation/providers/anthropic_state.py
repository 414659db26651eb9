"""Claude's thinking, kept for clients that drop it: inside a tool turn the API refuses an answer without it."""

import re

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.client.stored import dump_message, parse_blocks
from translation.state import opaque
from translation.values import Message

# What no text holds, since its quotes are escaped: as `thinking_block` writes it, and as anyone may.
BARE = b'"signature":""'
UNSIGNED = re.compile(rb'"signature"\s*:\s*""')


class Kept(Struct, frozen=True):
    """A block of thinking as it was written, and its place among the blocks of its answer."""

    at: int
    block: Raw


class State(Struct, frozen=True):
    thinking: tuple[Kept, ...] = ()
    blocks: int = 0  # of the whole answer; 0 while it is not complete


def thinking_block(text: str, signature: str) -> bytes:
    return msgspec.json.encode({"type": "thinking", "thinking": text, "signature": signature})


class Memory:
    """Collects the thinking of one answer."""

    def __init__(self) -> None:
        self._kept: list[Kept] = []
        self._told = 0

    def keep(self, at: int, block: bytes) -> None:
        self._kept.append(Kept(at, Raw(block)))

    def fresh(self) -> bytes:
        """What a call has to carry: an answer may break off after it. Only what no call before it carries."""
        if self._told == len(self._kept):
            return b""
        self._told = len(self._kept)
        return self.state(0)

    def state(self, blocks: int) -> bytes:
        return msgspec.json.encode(State(tuple(self._kept), blocks)) if self._kept else b""


class _Thinking(Struct):
    thinking: str = ""
    signature: str = ""


def is_unsigned(message: Message) -> bool:
    """Whether there is such thinking in an answer."""
    return message.origin is not None and BARE in message.origin.state


def unsigned(message: Message, upstream: str) -> frozenset[str]:
    """The thinking that this upstream wrote in an answer without signing it: servers that are only like Anthropic do,
    and some of them want it back."""
    kept = opaque(message, upstream)
    pieces = msgspec.json.decode(kept, type=State).thinking if kept else ()
    written = [msgspec.json.decode(piece.block, type=_Thinking) for piece in pieces]
    return frozenset(block.thinking for block in written if block.thinking and not block.signature)


class _Wire(Struct):
    content: Raw


def remembered(message: Message, upstream: str) -> Message | None:
    """The answer with the thinking that this upstream wrote in it; None when that is not known.

    Of an answer that has other blocks now than it had then, only the thinking that it began with.
    """
    kept = opaque(message, upstream)
    if not kept:
        return None
    state = msgspec.json.decode(kept, type=State)
    raw = message.raw or dump_message(message)
    blocks = msgspec.json.decode(msgspec.json.decode(raw, type=_Wire).content, type=list[Raw])
    whole = len(blocks) + len(state.thinking) == state.blocks
    for place, piece in enumerate(state.thinking):
        if not whole and piece.at != place:
            break
        blocks.insert(piece.at, piece.block)
    if len(blocks) == len(message.blocks):
        return None
    content = msgspec.json.encode(blocks)
    return replace(message, blocks=parse_blocks(content), raw=b'{"role":"assistant","content":%b}' % content)
