"""The chain hash of a history: each message's place in the tree of all histories, as one hash over it and its parents.

Two requests share a hash exactly as far as they say the same, whatever a client does to the form: a string is one text
block, `cache_control` moves, thinking is dropped, tool inputs are serialised anew, a chat answer has one text.
`system` is not part of it.
"""

from collections.abc import Iterable
from functools import partial
from hashlib import blake2b
from operator import attrgetter
from typing import Any, assert_never

import msgspec

from translation.memo import Memo
from translation.unicode import well_formed
from translation.values import (
    Block,
    Document,
    Image,
    Message,
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

ROOT = b""
SIZE = 16
_RAW = attrgetter("raw")
TOGETHER = 16  # messages of a history whose hashes are looked up as one
_SEEN: Memo[bytes] = Memo(budget=16 * 1024 * 1024, largest=256 * 1024)
_LINKED: Memo[tuple[bytes, ...]] = Memo(budget=2 * 1024 * 1024, largest=(TOGETHER + 1) * SIZE)

_encode = msgspec.msgpack.Encoder().encode  # each part after its length: no two lists of parts give the same bytes


def link(parent: bytes, message: Message) -> bytes:
    """The hash of a message that follows the message with the hash `parent`."""
    return _follow(parent, _SEEN.get(message.raw, partial(_said, message)) if message.raw else _said(message))


def _follow(parent: bytes, said: bytes) -> bytes:
    return blake2b(parent + said, digest_size=SIZE).digest()


def _said(message: Message) -> bytes:
    """The hash of what a message says by itself."""
    parts: list[str | bytes] = [message.role]
    for block in _joined(message.blocks) if message.role == "assistant" else message.blocks:
        _say(block, parts)
    try:
        said = _encode(parts)
    except UnicodeEncodeError:  # lone surrogates: the store keeps them mended, so they count as mended
        said = _encode([well_formed(part) if isinstance(part, str) else part for part in parts])
    return blake2b(said, digest_size=SIZE).digest()


def _joined(blocks: tuple[Block, ...]) -> list[Block]:
    """Texts of an answer with nothing but thinking between them are one: so chat clients send them back."""
    out: list[Block] = []
    for block in blocks:
        last = out[-1] if out else None
        if type(block) is Text and type(last) is Text:
            out[-1] = Text(last.text + block.text)
        elif type(block) not in (Thinking, RedactedThinking):
            out.append(block)
    return out


def chain(messages: Iterable[Message], parent: bytes = ROOT) -> tuple[bytes, ...]:
    """One hash for each message, in order."""
    said = _all_said(tuple(messages))
    hashes: list[bytes] = []
    for start in range(0, len(said) - TOGETHER + 1, TOGETHER):
        some = said[start : start + TOGETHER]
        hashes += _LINKED.get(b"".join((parent, *some)), partial(_linked, some, parent))
        parent = hashes[-1]
    hashes += [parent := _follow(parent, one) for one in said[len(hashes) :]]
    return tuple(hashes)


def _linked(said: list[bytes], parent: bytes) -> tuple[bytes, ...]:
    return tuple([parent := _follow(parent, one) for one in said])


def _all_said(messages: tuple[Message, ...]) -> list[bytes]:
    raws = [*map(_RAW, messages)]
    if all(raws):
        return _SEEN.get_all(raws, lambda place: _said(messages[place]))
    return [_SEEN.get(raw, partial(_said, one)) if raw else _said(one) for one, raw in zip(messages, raws, strict=True)]


def _say(block: Block, parts: list[str | bytes]) -> None:  # noqa: C901 - one flat table of block types
    match block:
        case Text():
            parts += ("text", block.text) if block.text else ()
        case ToolUse():
            parts += ("tool_use", block.id, block.name)
        case ToolResult():
            parts += ("tool_result", block.tool_use_id, "error" if block.is_error else "")
            _say_all(block.blocks, parts)
        case Thinking() | RedactedThinking():
            pass  # clients drop them
        case Image():
            parts += ("image", block.kind, block.media_type, block.data)
        case Document():
            parts += ("document", block.kind, block.media_type, block.data, block.title, block.context)
            _say_all(block.blocks, parts)
        case SearchResult():
            parts += ("search_result", block.title, block.source)
            _say_all(block.blocks, parts)
        case ToolReference():
            parts += ("tool_reference", block.tool_name)
        case ServerToolUse():
            parts += (block.type, block.id, block.name)
        case ServerToolResult() | Other():
            parts += (block.type, _canonical(block.raw))
        case _:
            assert_never(block)


def _say_all(blocks: tuple[Block, ...], parts: list[str | bytes]) -> None:
    for block in blocks:
        _say(block, parts)
    parts.append("end")


def _canonical(raw: bytes) -> bytes:
    value: dict[str, Any] = msgspec.json.decode(raw)
    value.pop("cache_control", None)
    return msgspec.json.encode(value, order="deterministic")
