"""The request that went upstream, as it is stored: by what it adds to the one before, and without what is secret."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from conversations.conversation import Sent
from conversations.redaction import without_tokens
from conversations.store.packing import compress
from conversations.store.reads import SENT_CHAIN
from conversations.store.writes import SentRow
from translation.adapter import UpstreamRequest
from translation.values import Request

if TYPE_CHECKING:
    from conversations.stored_turn import StoredTurn


class Delta(Struct, frozen=True):
    """A request as sent: the turn whose request it begins like, how far, and the rest."""

    parent: int | None
    prefix: int
    tail: bytes
    depth: int


def delta(last: Sent | None, body: bytes) -> Delta:
    """Against the conversation's last request; kept whole where little is shared, and now and then anyway."""
    if last is not None and last.depth < SENT_CHAIN:
        prefix = _shared(last.body, body)
        if prefix * 2 >= len(body):
            return Delta(last.turn, prefix, compress(body[prefix:]), last.depth + 1)
    return Delta(None, 0, compress(body), 0)


def tail(before: bytes, body: bytes) -> tuple[int, bytes]:
    """A request by what it adds to another: how much they share, and the rest."""
    prefix = _shared(before, body)
    return prefix, compress(body[prefix:])


def _shared(one: bytes, other: bytes) -> int:
    """The length of the common prefix, in a few comparisons."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def kept(request: Request, sent: UpstreamRequest) -> UpstreamRequest:
    """A request as it may be stored: as sent, but for what is secret in it."""
    return replace(sent, body=without_tokens(sent.body)) if request.mcp_servers else sent


def sent_instead(turn: StoredTurn) -> SentRow | None:
    """The request that was really sent, where it is not the one that the turn was opened with."""
    sent = turn.hop[0]
    if sent is turn.recorded or turn.ask.key.storage != "full":
        return None
    sent = kept(turn.ask.request, sent)
    if sent.body == turn.recorded.body:
        return None
    return SentRow(compress(sent.body), meta(sent))


def meta(sent: UpstreamRequest) -> bytes:
    return _meta(sent.path, sent.headers, sent.stream)


@lru_cache(maxsize=1024)
def _meta(path: str, headers: tuple[tuple[str, str], ...], stream: bool) -> bytes:  # noqa: FBT001 - a column
    return msgspec.json.encode({"path": path, "headers": dict(headers), "stream": stream})
