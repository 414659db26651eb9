"""Ids of tool calls toward an upstream: its own where it made the call, else ours where they are legal, else an alias.

Upstreams repeat ids, so a second call with an id that is already in the request gets another one; a result follows the
newest call that has its `tool_use_id`.
"""

import re
from functools import lru_cache
from hashlib import sha256

from translation.adapter import Target
from translation.values import Link, ToolUse

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class CallIds:
    """The ids of one request. Feed calls in order; ask for a result's id after its call."""

    def __init__(self, target: Target) -> None:
        self._upstream = target.upstream
        self._length = target.profile.id_length
        self._limit = target.profile.id_limit
        self._legal = _form(self._length, self._limit).fullmatch
        self._ids: dict[str, str] = {}  # tool_use_id -> the id of its newest call
        self._taken: set[str] = set()

    def call(self, use: ToolUse) -> str:
        id_ = use.id
        chosen = self._own(use.link) if use.link is not None else ""
        if not chosen and self._legal(id_):
            chosen = id_
        if not chosen or chosen in self._taken:
            chosen = self._alias(id_)
        self._ids[id_] = chosen
        self._taken.add(chosen)
        return chosen

    def result(self, tool_use_id: str) -> str:
        """A result without a call (a history that nobody repaired) still gets a legal id."""
        return self._ids.get(tool_use_id) or self.call(ToolUse(tool_use_id, "", b"{}"))

    def _own(self, link: Link) -> str:
        """The upstream's own id: whatever it looks like, that upstream wrote it.

        But one that wants an exact length does so because its template does, which its parser may not know.
        """
        if link.origin.upstream != self._upstream:
            return ""
        return "" if self._length and not self._legal(link.upstream_id) else link.upstream_id

    def _alias(self, id_: str) -> str:
        salt = ""
        while True:
            number = int.from_bytes(sha256((id_ + salt).encode("utf-8", "surrogatepass")).digest())
            alias = _base62(number, self._length or min(24, self._limit))
            if alias not in self._taken:
                return alias
            salt += "+"


@lru_cache
def _form(length: int, limit: int) -> re.Pattern[str]:
    return re.compile(f"[A-Za-z0-9]{{{length}}}" if length else f"[A-Za-z0-9_-]{{1,{limit}}}")


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(ALPHABET[digit])
    return "".join(digits)
