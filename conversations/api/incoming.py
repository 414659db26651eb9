"""The body of a request, as it comes in: no larger, no slower, and not more of them at a time than a process can hold.

A large one is read only for whoever has a key, and only while there is room for it: until then its bytes stay where
they are, with the client.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from conversations.beside import beside
from conversations.heads import Head
from conversations.lines import LENGTH
from translation.errors import InvalidRequest, TooLarge, TooSlow

Receive = Callable[[], Awaitable[Mapping[str, Any]]]

BODY_LIMIT = 32 * 1024 * 1024
BODY_SECONDS = 300.0  # the largest at a megabit per second
LARGE = 1024 * 1024
COLD_LIMIT = 2_621_440  # of what Django serves: its own limits, beyond which it refuses a body, or puts it on the disk
TOLD, FORM = (LENGTH, b"content-type"), (b"content-type", b"application/x-www-form-urlencoded")
UNKNOWN = 8 * LARGE  # what a body without a length is taken for
PLAIN = 0
CODINGS = {"": PLAIN, "identity": PLAIN, "gzip": 31, "x-gzip": 31, "deflate": 15}  # zlib's word for each
REST = 0.01  # seconds after so much of a large one: the others go on meanwhile


class ClientGone(Exception):
    """The client closed the connection before its request was whole."""


def announced(head: Head, length: bytes) -> int:
    """Bytes that the client says it will send. Raises for what is not going to be read."""
    size = int(length) if length.isdigit() else UNKNOWN if "transfer-encoding" in head.names else 0
    if size > BODY_LIMIT:
        raise TooLarge(f"request exceeds the maximum size of {BODY_LIMIT} bytes")
    if head.coding not in CODINGS:
        raise InvalidRequest(
            f"content-encoding: {head.coding} is not supported", code="request_body_encoding_unsupported"
        )
    return max(size, UNKNOWN) if CODINGS[head.coding] else size


async def read_body(receive: Receive, seconds: float = BODY_SECONDS) -> bytes:
    parts, size, rested = [], 0, 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                part = message.get("body", b"")
                size += len(part)
                if size > BODY_LIMIT:
                    raise TooLarge(f"request exceeds the maximum size of {BODY_LIMIT} bytes")
                parts.append(part)
                if not message.get("more_body", False):
                    return parts[0] if len(parts) == 1 else await beside(size, b"".join, parts)
                if size - rested >= LARGE:
                    rested = size
                    await asyncio.sleep(REST)
    except TimeoutError:
        raise TooSlow(f"the request's body did not arrive within {seconds:g} seconds") from None


def bounded(
    scope: Mapping[str, Any], receive: Receive, seconds: float = BODY_SECONDS
) -> tuple[dict[str, Any], Receive]:
    """For Django, which takes any body of anybody, before it asks whether there is a use for it. Of one that is too
    large it gets the length: by that it refuses the body where one is read, except for a form in parts, which it would
    take for whole where it ends. So it is told of none."""
    headers, size = list(scope["headers"]), 0
    until: float | None = asyncio.get_running_loop().time() + seconds  # None once it was read, or is not going to be

    async def received() -> Mapping[str, Any]:
        nonlocal size, until
        try:
            async with asyncio.timeout_at(until):
                message = await receive()
                while size > COLD_LIMIT and message["type"] != "http.disconnect":
                    message = await receive()
        except TimeoutError:
            raise TooSlow(f"the request's body did not arrive within {seconds:g} seconds") from None
        size += len(message.get("body", b""))
        if not message.get("more_body", False):
            until = None
        if size > COLD_LIMIT and message["type"] != "http.disconnect":
            until = None
            headers[:] = [line for line in headers if line[0] not in TOLD] + [(LENGTH, b"%d" % size), FORM]
            return {"type": "http.request"}
        return message

    return {**scope, "headers": headers}, received


async def unpacked(body: bytes, head: Head) -> bytes:
    """As the client wrote it before it was packed."""
    window = CODINGS[head.coding]
    return await asyncio.to_thread(_inflated, body, window) if window else body


def _inflated(body: bytes, window: int) -> bytes:
    stream = zlib.decompressobj(window)
    try:
        plain = stream.decompress(body, BODY_LIMIT + 1)
    except zlib.error:
        plain = b""
    if len(plain) > BODY_LIMIT:
        raise TooLarge(
            f"request exceeds the maximum size of {BODY_LIMIT} bytes", code="request_body_too_large_after_decoding"
        )
    if not stream.eof or stream.unused_data:
        raise InvalidRequest("content-encoding: the body is not packed like that", code="request_body_encoding_invalid")
    return plain
