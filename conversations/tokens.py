"""Tokens of what would be sent, counted offline. The tokenizer is large: it is loaded when somebody first asks.

Counting holds the interpreter's lock, so it is done in small pieces on a thread of its own, and what was counted once
(tools, system, old messages) is remembered.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING

from conversations.recent import Recent
from translation.weight import weight

if TYPE_CHECKING:
    from bpe_openai import Encoding

ENCODING = "o200k_base"
PIECE = 8_192  # characters: about a millisecond
REMEMBERED, WORTH_IT = 20_000, 64


class Tokenizer:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokens")
        self._counts: Recent[bytes, int] = Recent(REMEMBERED)

    async def count(self, body: bytes) -> int:
        """Of an upstream request's body, in this tokenizer's own measure."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._count, body)

    def stop(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)

    @cached_property
    def _encoding(self) -> "Encoding":
        from bpe_openai import get_encoding  # noqa: PLC0415 - 150 MB that most processes never need

        return get_encoding(ENCODING)

    def _count(self, body: bytes) -> int:
        found = weight(body)
        return found.extra + sum(map(self._text, found.texts))

    def _text(self, text: str) -> int:
        pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
        return sum(map(self._piece, pieces))

    def _piece(self, text: str) -> int:
        if len(text) < WORTH_IT:
            return len(self._encoding.encode_ordinary(text))
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._counts.use(key)
        if known is None:
            known = len(self._encoding.encode_ordinary(text))
            self._counts.put(key, known)
        return known
