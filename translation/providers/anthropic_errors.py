"""Anthropic's errors, which are the client's own: type and message stay, unless they are about the bridge's key."""

import re

from translation.errors import (
    OPAQUE_STATE_REJECTED,
    BridgeError,
    TooLarge,
    UpstreamFailed,
    UpstreamKeyRefused,
    UpstreamModelMissing,
    UpstreamOverloaded,
    UpstreamRateLimited,
    UpstreamRefused,
    UpstreamTimeout,
)
from translation.overflow import overflow
from translation.refusals import Complaint, read, retry_after

SIGNATURE = re.compile(r"Invalid `(?:signature|data)` in `(?:redacted_)?thinking`|thinking\.signature: Field required")
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
STATUSES: dict[int, type[BridgeError]] = {
    401: UpstreamKeyRefused,
    402: UpstreamKeyRefused,
    403: UpstreamKeyRefused,
    404: UpstreamModelMissing,
    408: UpstreamTimeout,
    413: TooLarge,
    429: UpstreamRateLimited,
    503: UpstreamOverloaded,
    504: UpstreamTimeout,
    529: UpstreamOverloaded,
}


def refusal(status: int, headers: dict[str, str], body: bytes) -> BridgeError:
    complaint = read(body) or Complaint(f"the upstream answered {status} without a readable error")
    kind = STATUSES.get(status, UpstreamRefused if status < 500 else UpstreamFailed)
    return _fault(kind, complaint, retry_after(headers))


def in_band(data: bytes) -> BridgeError:
    """An `error` event: the status line is gone, the type tells."""
    complaint = read(data) or Complaint("the upstream ended its stream with an error")
    return _fault(TYPES.get(complaint.type, UpstreamFailed), complaint, None)


def _fault(kind: type[BridgeError], complaint: Complaint, wait: float | None) -> BridgeError:
    if kind is UpstreamKeyRefused or ACCOUNT.search(complaint.message):
        # The words may name the account or a part of the key.
        return UpstreamKeyRefused("the bridge's upstream key was refused", retry_after=wait)
    if kind in (UpstreamRefused, TooLarge):
        if SIGNATURE.search(complaint.message):
            return UpstreamRefused(complaint.message, code=OPAQUE_STATE_REJECTED)
        too_long = overflow(complaint.message)
        if too_long is not None:
            return too_long
    return kind(complaint.message, retry_after=wait)
