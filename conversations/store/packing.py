"""How content lies in the rows: compressed where that pays, and many messages in one where a history came whole."""

import threading
from collections.abc import Callable, Iterable

import msgspec
import zstandard
from msgspec import Struct

from translation.values import Role

SMALL = 400


class _Thread(threading.local):
    """A compressor must not be shared."""

    def __init__(self) -> None:
        self.compress = zstandard.ZstdCompressor(level=1).compress


_THREAD = _Thread()


class Packed(Struct, frozen=True, array_like=True):
    """A message inside a row that holds several."""

    role: Role
    chain_hash: bytes
    content: msgspec.Raw


_PACKED = msgspec.json.Decoder(tuple[Packed, ...])


def compress(data: bytes) -> bytes:
    """What is small stays as it is; `unpacked` tells the two apart by the magic number of a frame."""
    return _THREAD.compress(data) if len(data) > SMALL else data


def unpacked(data: bytes) -> bytes:
    return zstandard.decompress(data) if data.startswith(zstandard.FRAME_HEADER) else data


def pack(messages: Iterable[tuple[Role, bytes, bytes]]) -> bytes:
    """Of (role, hash, content)."""
    roles, hashes, contents = zip(*messages, strict=True)
    return msgspec.json.encode([*map(Packed, roles, hashes, map(msgspec.Raw, contents))])


def packed(data: bytes) -> tuple[Packed, ...]:
    return _PACKED.decode(unpacked(data))


def messages(role: str, span: int, content: bytes | memoryview) -> list[tuple[str, bytes]]:
    """Role and content of every message in a row."""
    if span == 1:
        return [(role, unpacked(bytes(content)))]
    return [(one.role, bytes(one.content)) for one in packed(bytes(content))]


def changed(span: int, content: bytes, change: Callable[[bytes], bytes]) -> bytes:
    """A row's content with that of each of its messages changed."""
    if span == 1:
        return change(unpacked(content))
    return compress(pack((one.role, one.chain_hash, change(bytes(one.content))) for one in packed(content)))
