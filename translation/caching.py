"""A client's marks of what an upstream shall cache, as the one for a whole request that moves on with its end."""

import re

import msgspec

MARK = re.compile(rb'"cache_control"\s*+:\s*+(\{[^{}]*+\})')  # it cannot be in a string, where quotes are escaped
AN_HOUR = re.compile(rb'"ttl"\s*+:\s*+"1h"')


def cache_control(body: bytes) -> bytes:
    """Wherever the marks stand in a request; b"" where there is none."""
    marks = MARK.findall(body)
    if not marks:
        return b""
    return msgspec.json.encode({"type": "ephemeral"} | ({"ttl": "1h"} if any(map(AN_HOUR.search, marks)) else {}))
