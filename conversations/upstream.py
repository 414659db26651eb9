"""Calling an upstream: keys in rotation, one HTTP exchange, and what went wrong in the bridge's own terms."""

from functools import lru_cache

import httpx
from msgspec import Struct

from conversations.health import Health
from conversations.redaction import hide
from conversations.transport import Transport
from conversations.transport.exchange import Exchange
from translation.adapter import UpstreamRequest
from translation.errors import (
    BridgeError,
    UpstreamFailed,
    UpstreamKeyRefused,
    UpstreamProtocolError,
    UpstreamRateLimited,
    UpstreamTimeout,
    UpstreamUnreachable,
)
from translation.providers.profiles import Profile
from translation.urls import join

CONNECT_SECONDS = 10.0
WRITE_SECONDS = 60.0
BUSY = (503, 529)
ERROR_BODY_LIMIT = 256 * 1024


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


class Answer:
    """An upstream's answer: its head, and its body as it comes."""

    __slots__ = ("_stream", "headers", "key", "status")

    def __init__(self, response: httpx.Response, key: str) -> None:
        self.key = key
        self.status = response.status_code
        self.headers = response.headers
        assert isinstance(response.stream, Exchange)
        self._stream = response.stream

    @property
    def content_type(self) -> str:
        return str(self.headers.get("content-type", ""))

    async def read(self) -> bytes | None:
        """What the next socket read brings; b"" when `nudge` was called, None at the end."""
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            return None
        except httpx.HTTPError as error:
            raise failure(error) from error

    async def body(self, limit: int = ERROR_BODY_LIMIT) -> bytes:
        """The whole body; no more than about `limit`, which by itself is what an error may have."""
        parts, size = [], 0
        while size < limit and (chunk := await self.read()) is not None:
            parts.append(chunk)
            size += len(chunk)
        await self.close()
        return b"".join(parts)

    def nudge(self) -> None:
        self._stream.nudge()

    async def close(self) -> None:
        await self._stream.aclose()


class Upstreams:
    """The process's connections to all upstreams."""

    def __init__(self, idle_seconds: float) -> None:
        self._transport = Transport()
        self._timeout = {"connect": CONNECT_SECONDS, "write": WRITE_SECONDS, "read": idle_seconds, "pool": None}
        self.health = Health()

    async def send(self, upstream: Upstream, request: UpstreamRequest, method: str = "POST") -> Answer:
        key = self.health.pick(upstream.name, upstream.keys)
        try:
            response = await self._transport.handle_async_request(self._request(upstream, request, key, method))
        except httpx.HTTPError as error:
            raise failure(error) from error
        except httpx.InvalidURL as error:
            raise UpstreamFailed(f"the upstream's address is not a URL: {error}") from error
        if response.status_code not in BUSY:
            self.health.reached(upstream.name)
        return Answer(response, key)

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

    def _request(self, upstream: Upstream, request: UpstreamRequest, key: str, method: str) -> httpx.Request:
        headers = [("content-type", "application/json"), ("accept-encoding", "identity"), *request.headers]
        if key:
            headers.append(_authorization(upstream.profile, key))
        return httpx.Request(
            method,
            _address(upstream.base_url, request.path),
            headers=headers,
            content=request.body,
            extensions={"timeout": self._timeout},
        )


def _authorization(profile: Profile, key: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {key}") if profile.auth == "bearer" else (profile.auth, key)


@lru_cache(maxsize=1024)
def _address(base_url: str, path: str) -> httpx.URL:
    """Parsing one costs more than all the rest of a request."""
    return httpx.URL(join(base_url, path))


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


def key_refused(status: int) -> UpstreamKeyRefused:
    return UpstreamKeyRefused(f"the bridge's upstream key was refused (HTTP {status})")
