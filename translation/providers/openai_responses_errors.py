"""Errors of the Responses API, as HTTP answers and in the middle of a stream."""

import re
from collections.abc import Mapping

import msgspec
from msgspec import Struct

from translation.errors import (
    BridgeError,
    UpstreamFailed,
    UpstreamFault,
    UpstreamKeyRefused,
    UpstreamModelMissing,
    UpstreamOverloaded,
    UpstreamRateLimited,
    UpstreamRefused,
    UpstreamTimeout,
)
from translation.overflow import overflow

OPAQUE_STATE_REJECTED = "opaque_state_rejected"  # the bridge may send the request once more without the blobs
BLOB = re.compile(
    r"(?i)compaction blob|encrypted[_ ]content.*(?:could not be|decrypt)|decr?[yo][pd].*encrypted_content"
)

# In a stream the status line is gone: the code tells.
CODES: dict[str, type[UpstreamFault]] = {
    "rate_limit_exceeded": UpstreamRateLimited,
    "insufficient_quota": UpstreamRateLimited,
    "server_is_overloaded": UpstreamOverloaded,
    "slow_down": UpstreamOverloaded,
    "invalid_prompt": UpstreamRefused,
    "invalid_request_error": UpstreamRefused,
    "invalid_image": UpstreamRefused,
    "invalid_image_format": UpstreamRefused,
    "invalid_base64_image": UpstreamRefused,
    "invalid_image_url": UpstreamRefused,
    "image_too_large": UpstreamRefused,
    "image_parse_error": UpstreamRefused,
    "unsupported_image_media_type": UpstreamRefused,
    "429": UpstreamRateLimited,
    "503": UpstreamOverloaded,
}
STATUSES: dict[int, type[UpstreamFault]] = {
    404: UpstreamModelMissing,
    408: UpstreamTimeout,
    429: UpstreamRateLimited,
    503: UpstreamOverloaded,
    504: UpstreamTimeout,
    529: UpstreamOverloaded,
}


class ErrorBody(Struct, frozen=True):
    message: str | None = None
    code: str | int | None = None
    type: str | None = None
    param: str | None = None


class _Answer(Struct, frozen=True):
    """OpenAI's `{"error": {...}}` or xAI's `{"code": "...", "error": "..."}`."""

    error: ErrorBody | str | None = None
    code: str | int | None = None


def in_band(error: ErrorBody) -> BridgeError:
    code = str(error.code or error.type or "")
    return _special(error) or CODES.get(code, UpstreamFailed)(_words(error, "the upstream's response failed"))


def refusal(status: int, headers: Mapping[str, str], body: bytes) -> BridgeError:
    """An answer that is not 2xx."""
    error = _read(body)
    if status in (401, 403):
        # The upstream's words may quote a part of the key.
        return UpstreamKeyRefused(f"the bridge's upstream key was refused ({status})")
    special = _special(error) if status < 500 else None
    if special is not None:
        return special
    kind = STATUSES.get(status, UpstreamRefused if status < 500 else UpstreamFailed)
    return kind(_words(error, f"the upstream answered {status}"), retry_after=retry_after(headers))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds; a date is left to the client's own rule."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name, "")
        if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", value):
            return float(value) / unit
    return None


def _special(error: ErrorBody) -> BridgeError | None:
    """What the bridge or the client can do something about, whatever status it comes with."""
    text = error.message or ""
    if error.code == "invalid_encrypted_content" or BLOB.search(text):
        return UpstreamRefused(_words(error, ""), code=OPAQUE_STATE_REJECTED)
    return overflow(text, str(error.code or ""))


def _read(body: bytes) -> ErrorBody:
    try:
        answer = msgspec.json.decode(body, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ErrorBody()
    if isinstance(answer.error, ErrorBody):
        return answer.error
    return ErrorBody(answer.error, answer.code)


def _words(error: ErrorBody, default: str) -> str:
    about = [f"{name}: {value}" for name, value in (("param", error.param), ("type", error.type)) if value]
    text = error.message or default
    return f"{text} ({', '.join(about)})" if about else text
