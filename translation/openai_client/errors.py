"""Errors as OpenAI's clients read them: `{"error": {"message", "type", "param", "code"}}`, and the status they know.

What every error of the bridge has beside that (`type`, `request_id`) is there, too.
"""

import re

import msgspec

from translation.errors import BridgeError, PromptTooLong
from translation.unicode import well_formed

# What Anthropic's API says with numbers that only its own clients know.
STATUSES = {529: 503, 402: 429}
KINDS = {  # by our status: type and code
    401: ("invalid_request_error", "invalid_api_key"),
    402: ("insufficient_quota", "insufficient_quota"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("rate_limit_error", "rate_limit_exceeded"),
    504: ("server_error", "timeout"),
    529: ("server_error", "overloaded"),
}
_PATH = re.compile(r"([a-z_]+(?:\.\w+)*): ")
_PARAM = re.compile(r"\(Param: ([^()]+)\)")  # how an upstream's own finding is passed on
_INDEX = re.compile(r"\.(\d+)")


def status(error: BridgeError) -> int:
    return STATUSES.get(error.status, error.status)


def error_body(error: BridgeError, request_id: str) -> bytes:
    kind, code = KINDS.get(error.status, ("server_error" if error.status >= 500 else "invalid_request_error", None))
    if isinstance(error, PromptTooLong):
        code = "context_length_exceeded"
    told = {
        "message": well_formed(error.message),
        "type": kind,
        "param": _param(error),
        "code": error.code or code,
    }
    return msgspec.json.encode({"error": told, "type": "error", "request_id": request_id})


def _param(error: BridgeError) -> str | None:
    """The field that is wrong, the way OpenAI writes it: `messages[2].content[0].type`."""
    if error.status not in (400, 404):
        return None
    if told := _PARAM.search(error.message):
        return told[1]
    found = _PATH.match(error.message)
    return _INDEX.sub(r"[\1]", found[1]) if found else None
