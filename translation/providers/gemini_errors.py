"""Google's error bodies, outside and inside a stream, as the bridge's errors."""

import re

import msgspec
from msgspec import Struct

from translation import refusals
from translation.errors import (
    OPAQUE_STATE_REJECTED,
    BridgeError,
    UpstreamFailed,
    UpstreamKeyRefused,
    UpstreamModelMissing,
    UpstreamOverloaded,
    UpstreamRateLimited,
    UpstreamRefused,
    UpstreamTimeout,
)
from translation.overflow import overflow
from translation.providers.gemini_names import camel
from translation.refusals import heard, meant, retry_after, told_to_wait
from translation.unreadable import UNREADABLE

LONGEST = 2000  # characters of Google's message that are passed on
KEY_REASONS = ("API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED")
KEY_MESSAGE = re.compile(r"api key (?:not valid|expired|not found)", re.IGNORECASE)
# `Corrupted thought signature.`, `Invalid thought signature.`, `... is missing a thought_signature ...`, `Invalid value
# at '...thought_signature' (TYPE_BYTES), Base64 decoding failed ...`: another account's, an older model's, or none.
SIGNATURE = re.compile(r"thought[_ ]?signature", re.IGNORECASE)

# By Google's status word, which is more exact than the number; by the number where there is no word.
CLASSES: dict[str, type[BridgeError]] = {
    "UNAUTHENTICATED": UpstreamKeyRefused,
    "PERMISSION_DENIED": UpstreamKeyRefused,
    "NOT_FOUND": UpstreamModelMissing,
    "RESOURCE_EXHAUSTED": UpstreamRateLimited,
    "UNAVAILABLE": UpstreamOverloaded,
    "DEADLINE_EXCEEDED": UpstreamTimeout,
    "INTERNAL": UpstreamFailed,
    "CANCELLED": UpstreamFailed,
    "ABORTED": UpstreamFailed,
    "INVALID_ARGUMENT": UpstreamRefused,
    "FAILED_PRECONDITION": UpstreamRefused,
    "OUT_OF_RANGE": UpstreamRefused,
    "UNIMPLEMENTED": UpstreamRefused,
}


class _Detail(Struct):
    reason: str = ""
    retryDelay: str = ""  # noqa: N815 - Google's name


class Error(Struct):
    code: int | str = 0
    message: str = ""
    status: str = ""
    details: list[_Detail] = []

    @property
    def is_googles(self) -> bool:
        """Whether it says in Google's words of what kind it is."""
        return self.status in CLASSES or (isinstance(self.code, int) and self.code > 0) or _is_key(self)


NO_ERROR = Error()


class _Body(Struct):
    error: Error


def failure(status: int, headers: dict[str, str], body: bytes) -> BridgeError:
    error = _read(body) or Error(message=heard(status, body).message)
    return described(error, status, retry_after(headers))


def in_band(data: bytes) -> BridgeError:
    """An `error` event, which Google has none of: gateways write it."""
    error = _read(data)
    return described(error) if error is not None and error.is_googles else refusals.in_band(refusals.cried(data))


def heed(error: Error | None, data: bytes) -> None:
    """Raises the error that a chunk is; gateways write theirs in other words than Google, and in other places."""
    if error is None:
        if complaint := refusals.read(data):
            raise refusals.in_band(complaint)
    elif error != NO_ERROR:
        raise in_band(data) if data else described(error)


def _read(body: bytes) -> Error | None:
    try:
        found = msgspec.json.decode(camel(body), type=_Body | list[_Body])
    except UNREADABLE:
        return None
    first = found[:1] if isinstance(found, list) else [found]
    return first[0].error if first else Error()


def described(error: Error, status: int = 0, wait: float | None = None) -> BridgeError:
    """The bridge's error for Google's; `status` is the answer's own where the error came with one."""
    number = status or (error.code if isinstance(error.code, int) else 0)
    message = error.message or f"the upstream answered {number} {error.status}".rstrip()
    if _is_key(error):
        return _key_refused(number, error)
    too_long = overflow(message)
    if too_long is not None:
        return too_long
    kind = CLASSES.get(error.status) or meant(number)
    if kind is UpstreamKeyRefused:
        return _key_refused(number, error)
    if kind is UpstreamRefused and SIGNATURE.search(message):
        return UpstreamRefused(message[:LONGEST], code=OPAQUE_STATE_REJECTED)
    return kind(message[:LONGEST], retry_after=_wait(error) if wait is None else wait)


def _is_key(error: Error) -> bool:
    return any(detail.reason in KEY_REASONS for detail in error.details) or bool(KEY_MESSAGE.search(error.message))


def _key_refused(number: int, error: Error) -> UpstreamKeyRefused:
    # Google's own words may quote the key (`Consumer 'api_key:AIza...' has been suspended`).
    return UpstreamKeyRefused(f"the bridge's upstream key was refused ({number} {error.status})")


def _wait(error: Error) -> float | None:
    return told_to_wait(error.message, [detail.retryDelay for detail in error.details])
