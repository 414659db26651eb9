"""Heads that came before, in the same bytes but for the length of the body. A client's are nearly all alike: what the
parser made of one need not be made again. Only a request that came whole, in one read, is looked for."""

import re
from typing import Any

from msgspec import Struct

from conversations.lines import KNOWN, LARGEST, Lines, split

KEPT = ("type", "asgi", "http_version", "root_path", "method", "path", "raw_path", "query_string")  # of the scope
_TOLD = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ?([0-9]{1,7})(?=\r\n)")
_END = b"\r\n\r\n"


class Whole(Struct, frozen=True, gc=False):
    """A request that came at once."""

    head: bytes  # without the digits of its length
    length: bytes
    body: bytes


class Known(Struct, frozen=True):
    scope: dict[str, Any]  # as ASGI has it, but for what is the connection's
    lines: Lines


known_heads: dict[bytes, Known] = {}


def cut(data: bytes) -> Whole | None:
    end = data.find(_END, 0, LARGEST)
    told = _TOLD.search(data, 0, end + 2) if end > 0 else None
    if told is None:
        return None
    length, (start, stop) = told[1], told.span(1)
    if int(length) != len(data) - end - 4:
        return None
    return Whole(data[:start] + data[stop:end], length, data[end + 4 :])


def remember(head: bytes, scope: Any) -> None:
    if len(known_heads) >= KNOWN:
        known_heads.clear()
    known_heads[head] = Known({name: scope[name] for name in KEPT}, split(scope["headers"])[0])
