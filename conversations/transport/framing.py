"""Where a response's head and body end, where the parser leaves that to us."""

from __future__ import annotations

import httpx

from conversations.transport.exchange import Exchange
from conversations.transport.outgoing import RawHeaders

HEAD_LIMIT = 64 * 1024


def too_large(exchange: Exchange, data: bytes) -> bool:
    if exchange.overhead + len(data) <= HEAD_LIMIT:
        return False
    return sum(len(name) + len(value) for name, value in exchange.headers) > HEAD_LIMIT


def until_close(headers: RawHeaders) -> bool:
    """RFC 9112 6.3: neither chunked as the last coding nor a length."""
    fields = {name.lower(): value for name, value in headers}
    coding = fields.get(b"transfer-encoding")
    if coding is not None:
        return coding.lower().rpartition(b",")[2].strip() != b"chunked"
    return b"content-length" not in fields


def cut_short(exchange: Exchange) -> httpx.RemoteProtocolError:
    if exchange.silent:
        return httpx.RemoteProtocolError("the peer closed the connection without sending a response")
    if not exchange.status:
        return httpx.RemoteProtocolError("the peer closed the connection within the response head")
    return httpx.RemoteProtocolError("peer closed connection without sending complete message body")
