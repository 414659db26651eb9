"""Calling an upstream: keys in rotation, one HTTP exchange, and what went wrong in the bridge's own terms."""

import time
import zlib
from email.utils import formatdate
from functools import lru_cache

import httpx
from msgspec import Struct

from conversations.health import Health
from conversations.lane import MUCH, Lane
from conversations.redaction import hide
from conversations.transport import Transport
from conversations.transport.exchange import Exchange, Listener
from conversations.transport.origin import Origin, origin_of
from conversations.transport.outgoing import IDEMPOTENT, Outgoing, encode_head
from translation.adapter import UpstreamRequest
from translation.errors import (
    BridgeError,
    UpstreamFailed,
    UpstreamFault,
    UpstreamKeyRefused,
    UpstreamMoved,
    UpstreamProtocolError,
    UpstreamRateLimited,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from translation.providers.profile import Profile
from translation.urls import join

CONNECT_SECONDS = 10.0
WRITE_SECONDS = 60.0
BUSY = (503, 529)
ERROR_BODY_LIMIT = 256 * 1024
UNPACKED_LIMIT = 16 * 1024 * 1024  # of one read
GZIP = b"\x1f"  # nothing that an upstream writes in plain begins so
ZLIB = (b"x\x01", b"x^", b"x\x9c", b"x\xda")  # nor so
PLAIN = (b'{"', b"{ ", b"{\n", b"[{", b"data:", b"event:", b": ", b"<!", b"<h")


class Upstream(Struct, frozen=True):
    """A configured upstream. Its keys are secrets: they appear nowhere but in the head of a request."""

    name: str
    profile: Profile
    base_url: str
    keys: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        hide(*self.keys)

    def __repr__(self) -> str:
        return f"Upstream({self.name!r}, {self.base_url!r}, {len(self.keys)} keys)"


class Packed:
    """An answer in gzip or deflate, which some proxies send whatever they were asked for.

    `feed` may give nothing yet. What follows the end is nothing, but for another member of gzip.
    """

    def __init__(self, window: int) -> None:
        self._stream = zlib.decompressobj(window)

    def feed(self, chunk: bytes) -> bytes:
        plain = b""
        while chunk and not (self._stream.eof and not chunk.startswith(GZIP)):
            if self._stream.eof:
                self._stream = zlib.decompressobj(31)
            plain += self._unpacked(chunk, UNPACKED_LIMIT - len(plain))
            chunk = self._stream.unused_data
        return plain

    def _unpacked(self, chunk: bytes, limit: int) -> bytes:
        try:
            plain = self._stream.decompress(chunk, limit + 1)
        except zlib.error as error:
            raise UpstreamProtocolError(f"the upstream's answer is not packed as it began: {error}") from error
        if len(plain) > limit:
            raise UpstreamProtocolError("the upstream's answer is far larger than what it sent")
        return plain


def packed(begin: bytes, coding: bytes) -> Packed | None:
    """By the first bytes, which lie less than headers do; raw deflate has none of its own."""
    if begin.startswith(GZIP):
        return Packed(31)
    if begin.startswith(ZLIB):
        return Packed(15)
    return Packed(-15) if coding.lower() == b"deflate" else None


class Answer:
    """An upstream's answer: its head, and its body as it comes."""

    __slots__ = ("_lane", "_packed", "_plain", "_stream", "key", "status")

    def __init__(self, exchange: Exchange, key: str, lane: Lane) -> None:
        self.key = key
        self.status = exchange.status
        self._stream = exchange
        self._lane = lane
        self._plain = False  # known not to be packed
        self._packed: Packed | None = None

    @property
    def headers(self) -> dict[str, str]:
        """With the time of the answer: what it says of a later moment is counted from there."""
        return {"date": formatdate(usegmt=True), **httpx.Headers(self._stream.headers)}

    @property
    def content_type(self) -> str:
        return self._header(b"content-type").decode("latin-1")

    def _header(self, wanted: bytes) -> bytes:
        for name, value in self._stream.headers:
            if name.lower() == wanted:
                return value
        return b""

    async def read(self, listener: Listener | None = None) -> bytes | None:
        """What the next socket read brings that `listener` does not take; b"" when `nudge` was called or the listener
        wants its reader, None at the end."""
        stream = self._stream
        if stream.spent:
            return None
        stream.listener = listener if self._plain else None
        waited = stream.buffered > MUCH
        if waited:
            await self._lane.turn()  # until then the socket is not read any further
        try:
            chunk = await stream.__anext__()
        except StopAsyncIteration:
            return None
        except httpx.HTTPError as error:
            raise failure(error) from error
        if len(chunk) > MUCH and not waited:
            await self._lane.turn()
        return chunk if self._plain else self._unpacked(chunk)

    def _unpacked(self, chunk: bytes) -> bytes:
        if chunk and self._packed is None:
            if not chunk.startswith(PLAIN):
                self._packed = packed(chunk, self._header(b"content-encoding"))
            self._plain = self._packed is None
        return chunk if self._packed is None else self._packed.feed(chunk)

    async def body(self, limit: int = ERROR_BODY_LIMIT) -> bytes:
        """The whole body; no more than about `limit`, which by itself is what an error may have."""
        parts, size = [], 0
        while size < limit and (chunk := await self.read()) is not None:
            parts.append(chunk)
            size += len(chunk)
        self.close()
        return b"".join(parts)

    def hurry(self, seconds: float) -> None:
        """From now on, what comes has to come so soon."""
        known = self._stream.read_timeout
        self._stream.read_timeout = seconds if known is None else min(seconds, known)

    def nudge(self) -> None:
        self._stream.nudge()

    def close(self) -> None:
        self._stream.abandon()


class Upstreams:
    """The process's connections to all upstreams."""

    def __init__(self, idle_seconds: float) -> None:
        self._transport = Transport()
        self.lane = Lane()
        self._timeout = {"connect": CONNECT_SECONDS, "write": WRITE_SECONDS, "read": idle_seconds, "pool": None}
        self.health = Health()

    async def send(self, upstream: Upstream, request: UpstreamRequest, method: str = "POST") -> Answer:
        key = self.health.pick(upstream.name, upstream.keys)
        self.lane.sign = time.perf_counter()
        try:
            origin, head = _head(upstream.base_url, upstream.profile.auth, method, request.path, request.headers, key)
            exchange = await self._transport.exchange(origin, _outgoing(head, method, request.body), self._timeout)
        except httpx.HTTPError as error:
            raise failure(error) from error
        except httpx.InvalidURL as error:
            raise UpstreamFailed(f"the upstream's address is not a URL: {error}") from error
        self.lane.sign = time.perf_counter()
        if exchange.status not in BUSY:
            self.health.reached(upstream.name)
        return Answer(exchange, key, self.lane)

    def judge(self, upstream: Upstream, answer: Answer, error: BridgeError | None) -> None:
        """Whether the key of an answer has to rest."""
        key = answer.key
        if not key:
            return
        if isinstance(error, UpstreamKeyRefused):
            self.health.refused(upstream.name, upstream.keys, key, answer.status)
        elif isinstance(error, UpstreamRateLimited):
            self.health.limited(upstream.name, upstream.keys, key, error.retry_after)
        elif error is None:
            self.health.accepted(upstream.name, key)

    async def close(self) -> None:
        await self._transport.aclose()


@lru_cache(maxsize=1024)
def _head(
    base_url: str, auth: str, method: str, path: str, more: tuple[tuple[str, str], ...], key: str
) -> tuple[Origin, bytes]:
    """Where a request goes, and its head but for the length: the same for each request that a client sends."""
    url = httpx.URL(join(base_url, path))
    headers = [("content-type", "application/json"), ("accept-encoding", "identity"), *more]
    if key:
        headers.append(("authorization", f"Bearer {key}") if auth == "bearer" else (auth, key))
    raw = [(b"host", url.netloc), *((_latin(name), _latin(value)) for name, value in headers)]
    return origin_of(url), encode_head(method.encode(), url.raw_path, raw)


def _outgoing(head: bytes, method: str, body: bytes) -> Outgoing:
    if body or method == "POST":
        head = b"%b\r\ncontent-length: %d\r\n\r\n" % (head.removesuffix(b"\r\n\r\n"), len(body))
    return Outgoing(head, body, len(body), close=False, head_only=False, idempotent=method in IDEMPOTENT)


def _latin(text: str) -> bytes:
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise httpx.LocalProtocolError("a header has characters that HTTP does not know") from error


def failure(error: httpx.HTTPError) -> BridgeError:
    """A failed exchange. Messages name no address: a base URL may hold a secret."""
    match error:
        case httpx.ConnectTimeout():
            return UpstreamUnreachable("the upstream could not be reached in time")
        case httpx.TimeoutException():
            return UpstreamTimeout("the upstream did not answer in time")
        case httpx.ConnectError():
            return UpstreamUnreachable("the upstream could not be reached")
        case httpx.RemoteProtocolError():
            return UpstreamProtocolError("the upstream closed the connection before its answer was complete")
        case _:
            return UpstreamFailed(f"the connection to the upstream failed ({type(error).__name__})")


def misconfigured(status: int) -> UpstreamFault | None:
    """What no client is to blame for: the bridge's own key, or the upstream's address."""
    if status in (401, 403):
        return UpstreamKeyRefused(f"the bridge's upstream key was refused (HTTP {status})")
    if 300 <= status < 400:
        return UpstreamMoved(f"the upstream answered with a redirect (HTTP {status}): its base URL may be wrong")
    return None
