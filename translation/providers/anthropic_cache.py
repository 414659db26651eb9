"""Cache breakpoints of messages that could not stay as they were, and of those that the store put before them."""

from translation.client.marks import Marks, dump_marked, marks
from translation.client.stored import MARK, dump_message
from translation.unicode import json_string
from translation.values import Message

MOST = 4  # breakpoints in one request
HOUR = b'"1h"'  # one that lasts so long may not come after one that does not


def marked(messages: tuple[Message, ...], raws: list[bytes], written: list[bytes]) -> list[bytes]:
    """`raws` with the breakpoints of `written` on the blocks of those messages that the bridge has changed."""
    kept = set(raws)
    lost: Marks = {}
    for raw in written:
        if MARK in raw and raw not in kept:
            lost |= marks(raw)
    if not lost:
        return raws
    return [raw if message.raw else _with(message, lost) for message, raw in zip(messages, raws, strict=True)]


def spared(messages: tuple[Message, ...], raws: list[bytes], written: list[bytes], before: bytes) -> list[bytes]:
    """`raws` with as many of the stored messages' breakpoints as the client's own, there and in what comes `before`
    the messages, leave room for: the newest, which are those of the longest prefix."""
    own, out = set(written), list(raws)
    left = MOST - before.count(MARK) - sum(raw.count(MARK) for raw in written)
    lasts, brief = any(HOUR in raw for raw in written), MARK in before and HOUR not in before
    for index in range(len(raws) - 1, -1, -1):
        raw = raws[index]
        if MARK not in raw or raw in own:
            continue
        count, hour = raw.count(MARK), HOUR in raw
        if count > left or (brief if hour else lasts):
            out[index] = dump_message(messages[index])
        else:
            left, lasts = left - count, lasts or hour
    return out


def _with(message: Message, lost: Marks) -> bytes:
    return b'{"role":%b,"content":%b}' % (json_string(message.role), dump_marked(message.blocks, lost))
