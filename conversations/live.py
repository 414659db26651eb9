"""What a web process does for operators who watch conversations: it keeps what their running turns have said so far.

A stream knows nothing of it: the process looks at the turns of watched conversations a few times a second, and writes
what changed. Watchers read the table; a message through the channel layer is only the hint to look.
"""

import asyncio
import logging
import time
from collections.abc import Iterable

import msgspec
from channels.layers import get_channel_layer
from msgspec import Struct
from redis.exceptions import RedisError

from conversations import secrets
from conversations.store import Store
from conversations.store.live import DropSnapshot, SaveSnapshot

log = logging.getLogger(__name__)

SECONDS = 0.25  # between two looks
LEASE = 40.0  # a conversation is watched for so long after somebody last said so
TAIL = 20_000  # characters of a block: the newest
LONG = ("text", "thinking", "partial")


class Seen(Struct, frozen=True):
    """A running turn of a watched conversation."""

    turn: int
    conversation: int
    content: bytes  # its blocks so far, JSON
    full: bool  # whether its key lets text be stored


class Live:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._until: dict[int, float] = {}
        self._kept: dict[int, tuple[int, bytes]] = {}  # turn -> how often it was written, and what

    def watch(self, conversation: int) -> None:
        self._until[conversation] = time.monotonic() + LEASE

    @property
    def idle(self) -> bool:
        return not self._until and not self._kept

    def watched(self) -> tuple[int, ...]:
        now = time.monotonic()
        self._until = {conversation: until for conversation, until in self._until.items() if until > now}
        return tuple(self._until)

    async def keep(self, seen: Iterable[Seen]) -> None:
        """Write what changed, drop what ended, tell those who watch."""
        here = {item.turn: item for item in seen}
        changed = [item for item in here.values() if self._kept.get(item.turn, (0, None))[1] != item.content]
        writes: list[SaveSnapshot | DropSnapshot] = [self._snapshot(item) for item in changed]
        for turn in self._kept.keys() - here.keys():
            del self._kept[turn]
            writes.append(DropSnapshot(turn))
        if writes:
            await asyncio.gather(*map(self._store.write, writes))
        for conversation in {item.conversation for item in changed}:
            await hint(conversation)

    def _snapshot(self, item: Seen) -> SaveSnapshot:
        sequence = self._kept.get(item.turn, (0, b""))[0] + 1
        self._kept[item.turn] = (sequence, item.content)
        content = newest(item.content) if item.full else outline(item.content)
        if secrets.configured():
            content = secrets.seal(content)
        return SaveSnapshot(item.turn, item.conversation, sequence, content)


def newest(content: bytes) -> bytes:
    """The end of each block, and how much of it was left out."""
    blocks = msgspec.json.decode(content)
    for block in blocks:
        for name in LONG:
            if isinstance(text := block.get(name), str) and len(text) > TAIL:
                block |= {name: text[-TAIL:], "cut": len(text) - TAIL}
    return msgspec.json.encode(blocks)


def outline(content: bytes) -> bytes:
    """Kinds and sizes of blocks: all that a key below full storage leaves behind."""
    blocks = msgspec.json.decode(content, type=list[msgspec.Raw])
    kinds = [msgspec.json.decode(block).get("type", "") for block in blocks]
    return msgspec.json.encode(
        [{"type": kind, "size": len(bytes(block))} for kind, block in zip(kinds, blocks, strict=True)]
    )


def group(conversation: int) -> str:
    return f"live-{conversation}"


async def hint(conversation: int) -> None:
    """Watchers look every second anyway: a layer that is away makes them later, not wrong."""
    layer = get_channel_layer()
    try:
        await layer.group_send(group(conversation), {"type": "live.look"})
    except (OSError, RedisError) as error:
        log.debug("the channel layer is away: %s", error)
