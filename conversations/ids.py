"""Ids that this process mints: row ids that sort by time and never meet another process's, and the API's own kinds."""

import secrets
import time

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
EPOCH_MS = 1_704_067_200_000  # 2024-01-01

# 41 bits of milliseconds, 10 bits of process, 12 bits of sequence.
PROCESS_BITS = 10
SEQUENCE_BITS = 12


class RowIds:
    """63-bit ids: milliseconds, the process's slot, a sequence. A clock that steps back does not repeat one."""

    def __init__(self, process: int) -> None:
        self._slot = (process % (1 << PROCESS_BITS)) << SEQUENCE_BITS
        self._last = 0
        self._sequence = 0

    def mint(self) -> int:
        now = int(time.time() * 1000) - EPOCH_MS
        if now > self._last:
            self._last, self._sequence = now, 0
        else:
            self._sequence += 1
            if self._sequence >> SEQUENCE_BITS:
                self._last, self._sequence = self._last + 1, 0
        return (self._last << (PROCESS_BITS + SEQUENCE_BITS)) | self._slot | self._sequence


def token(length: int = 24) -> str:
    """Random base62; 24 characters hold 142 bits."""
    number = int.from_bytes(secrets.token_bytes(length), "big")
    characters = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        characters.append(ALPHABET[digit])
    return "".join(characters)


def tool_use_id() -> str:
    return "toolu_" + token()


def message_id() -> str:
    return "msg_" + token()


def request_id() -> str:
    return "req_" + token()


def conversation_id() -> str:
    return "conv_" + secrets.token_hex(16)
