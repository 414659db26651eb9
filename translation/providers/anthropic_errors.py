"""Anthropic's errors, which are the client's own: type, message and code stay, unless the bridge's key is meant."""

import re

import msgspec
from msgspec import Struct

from translation.errors import (
    OPAQUE_STATE_REJECTED,
    BridgeError,
    PromptTooLong,
    TooLarge,
    UpstreamFailed,
    UpstreamKeyRefused,
    UpstreamModelMissing,
    UpstreamOverloaded,
    UpstreamRateLimited,
    UpstreamRefused,
    UpstreamTimeout,
)
from translation.names import is_name
from translation.overflow import overflow
from translation.refusals import Complaint, cried, heard, meant, retry_after
from translation.unreadable import UNREADABLE

# Thinking that is not as Claude wrote it, or not where it has to be.
SIGNATURE = re.compile(
    r"Invalid `(?:signature|data)` in `(?:redacted_)?thinking`|thinking\.signature: Field required"
    r"|each thinking block must contain thinking|blocks in the latest assistant message cannot be modified"
    r"|Expected `thinking` or `redacted_thinking`, but found"
    r"|thinking` in the thinking mode must be passed back"  # DeepSeek's server for Anthropic's clients
)
ACCOUNT = re.compile(r"credit balance is too low", re.IGNORECASE)

TYPES: dict[str, type[BridgeError]] = {
    "invalid_request_error": UpstreamRefused,
    "authentication_error": UpstreamKeyRefused,
    "billing_error": UpstreamKeyRefused,
    "permission_error": UpstreamKeyRefused,
    "not_found_error": UpstreamModelMissing,
    "request_too_large": TooLarge,
    "rate_limit_error": UpstreamRateLimited,
    "timeout_error": UpstreamTimeout,
    "overloaded_error": UpstreamOverloaded,
    "api_error": UpstreamFailed,
}


class _Details(Struct):
    error_code: str = ""


class _Error(Struct):
    details: _Details | None = None


class _Body(Struct):
    error: _Error


_BODY = msgspec.json.Decoder(_Body)


def refusal(status: int, headers: dict[str, str], body: bytes) -> BridgeError:
    complaint = heard(status, body)
    return _fault(meant(status), complaint, retry_after(headers), _code(body))


def in_band(data: bytes) -> BridgeError:
    """An `error` event: the status line is gone, the type tells; without one the code."""
    complaint = cried(data)
    kind = TYPES.get(complaint.type) or meant(complaint.status or 500)
    return _fault(kind, complaint, None, _code(data))


def _code(body: bytes) -> str | None:
    """`error.details.error_code`, by which the SDKs choose the class that they raise."""
    try:
        details = _BODY.decode(body).error.details
    except UNREADABLE:
        return None
    return details.error_code if details is not None and is_name(details.error_code) else None


def _fault(kind: type[BridgeError], complaint: Complaint, wait: float | None, code: str | None) -> BridgeError:
    if kind is UpstreamKeyRefused or ACCOUNT.search(complaint.message):
        # The words may name the account or a part of the key.
        return UpstreamKeyRefused("the bridge's upstream key was refused", retry_after=wait)
    if kind in (UpstreamRefused, TooLarge):
        if SIGNATURE.search(complaint.message):
            return UpstreamRefused(complaint.message, code=OPAQUE_STATE_REJECTED)
        too_long = overflow(complaint.message)
        if isinstance(too_long, PromptTooLong):  # else it is the answer: clients ask for less at Anthropic's own words
            return too_long
    return kind(complaint.message, code=code, retry_after=wait)
