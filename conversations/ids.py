"""Ids that this process mints: row ids that sort by time and never meet another process's, and the API's own kinds."""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from functools import lru_cache

ALPHABET = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
EPOCH_MS = 1_704_067_200_000  # 2024-01-01

# 41 bits of milliseconds, 10 bits of process, 12 bits of sequence.
PROCESS_BITS = 10
SEQUENCE_BITS = 12
LATE = 1 << (SEQUENCE_BITS - 1)  # the upper half of the sequence, which no millisecond gets to by itself


class RowIds:
    """63-bit ids: milliseconds, the process's slot, a sequence. A clock that steps back does not repeat one."""

    def __init__(self, process: int) -> None:
        self._slot = (process % (1 << PROCESS_BITS)) << SEQUENCE_BITS
        self._last = 0
        self._sequence = 0
        self._late = 0

    def mint(self, after: int = 0) -> int:
        """Greater than `after`, whatever clock that was minted by: what follows in a conversation sorts so."""
        now = int(time.time() * 1000) - EPOCH_MS
        if now > self._last:
            self._last, self._sequence = now, 0
        else:
            self._next()
        minted = (self._last << (PROCESS_BITS + SEQUENCE_BITS)) | self._slot | self._sequence
        return minted if minted > after else self._following(after)

    def _next(self) -> None:
        self._sequence += 1
        if self._sequence >> SEQUENCE_BITS:
            self._last, self._sequence = self._last + 1, 0

    def _following(self, after: int) -> int:
        self._late = (self._late + 1) % LATE
        moment = (after >> (PROCESS_BITS + SEQUENCE_BITS)) + 1
        return (moment << (PROCESS_BITS + SEQUENCE_BITS)) | self._slot | LATE | self._late


def seconds(row_id: int) -> float:
    """When an id was minted."""
    return ((row_id >> (PROCESS_BITS + SEQUENCE_BITS)) + EPOCH_MS) / 1000


def least(moment: float) -> int:
    """The least id that may have been minted then or later."""
    return max(int(moment * 1000) - EPOCH_MS, 0) << (PROCESS_BITS + SEQUENCE_BITS)


# Eight of the 62 characters are a quarter likelier than the others: 24 of them still hold 141 bits.
_BASE62 = bytes(ALPHABET[byte % 62] for byte in range(256))


PIECE = 16  # characters of base62
PIECES = 256


class _Random:
    """Random text in pieces, many of them made at once: a system call for each id would be a tenth of a turn.

    Whichever thread takes a piece, nobody else gets it: `next` is one step of the interpreter.
    """

    def __init__(self, size: int, spelled: Callable[[bytes], str]) -> None:
        self._size = size  # bytes of a piece
        self._spelled = spelled
        self._pieces: Iterator[str] = iter(())
        os.register_at_fork(after_in_child=self.forget)  # a fork must not repeat its parent

    def piece(self) -> str:
        return next(self._pieces, "") or self._refilled()

    def _refilled(self) -> str:
        size, random = self._size, secrets.token_bytes(self._size * PIECES)
        pieces = iter([self._spelled(random[start : start + size]) for start in range(0, len(random), size)])
        first = next(pieces)
        self._pieces = pieces
        return first

    def forget(self) -> None:
        self._pieces = iter(())


_base62 = _Random(PIECE, lambda random: random.translate(_BASE62).decode())
_hex = _Random(10, bytes.hex)


def token(length: int = 24) -> str:
    """Random base62, for ids."""
    pieces = (_base62.piece() for _ in range(0, length, PIECE))
    return "".join(pieces)[:length]


def ordered() -> str:
    """Random base62 after eight digits that count milliseconds (in base 36, which every collation sorts alike): ids of
    one moment are neighbours in an index, so that a commit touches one page of it and not one for each row."""
    return _digits(int(time.time() * 1000)) + _base62.piece()


_PAIRS = [chr(first) + chr(second) for first in ALPHABET[:36] for second in ALPHABET[:36]]


def _digits(number: int) -> str:
    return _upper(number // 1296) + _PAIRS[number % 1296]


@lru_cache(maxsize=8)
def _upper(number: int) -> str:
    """Those of more than a second, which very many ids have alike."""
    return _PAIRS[number // 1296**2 % 1296] + _PAIRS[number // 1296 % 1296] + _PAIRS[number % 1296]


def tool_use_id() -> str:
    return "toolu_" + token()


def hosted_tool_use_id() -> str:
    return "mcptoolu_" + token()


def message_id() -> str:
    return "msg_" + ordered()


def request_id() -> str:
    return "req_" + ordered()


def conversation_id() -> str:
    return f"conv_{int(time.time() * 1000):012x}{_hex.piece()}"
