"""Content taken out of JSON and event streams, their structure left as it is. Pure.

A bug report needs to show which blocks came in which order with which ids, not what somebody said in them.
"""

import re
from typing import Any

import msgspec

from translation.unreadable import UNREADABLE

# Strings that carry structure. Everything else becomes its length.
KEPT = frozenset(
    {
        "type", "role", "id", "name", "model", "finish_reason", "finishReason", "stop_reason", "object", "status",
        "index", "tool_use_id", "tool_call_id", "call_id", "item_id", "message_id", "kind", "rule", "code", "event",
        "service_tier", "tool_choice", "effort", "reasoning_effort", "version", "media_type", "upstream",
        "content_type", "path", "system_fingerprint", "request_id", "response_id", "created_at", "started_at",
    }
)  # fmt: skip
KEPT_LENGTH = 200
_SECRET = re.compile(
    r"sk-[\w-]{8,}|AIza[\w-]{20,}|gh[pousr]_\w{20,}|xox\w-[\w-]{8,}|AKIA\w{12,}|Bearer\s+\S+", re.ASCII
)


def json(raw: bytes) -> bytes:
    try:
        value = msgspec.json.decode(raw)
    except UNREADABLE:
        return stream(raw)
    return msgspec.json.format(msgspec.json.encode(_value(value, "")), indent=2)


def stream(raw: bytes) -> bytes:
    """Server-sent events: each `data:` is redacted for itself; a line that is none of that is only its length."""
    return b"\n".join(_line(line) for line in raw.split(b"\n"))


def _line(line: bytes) -> bytes:
    field, colon, data = line.rstrip(b"\r").partition(b":")
    if not line.strip() or data.strip() == b"[DONE]" or (colon and field in {b"event", b"id", b"retry"}):
        return secrets(line.decode("utf-8", "replace")).encode()
    if field == b"data":
        try:
            return b"data: " + msgspec.json.encode(_value(msgspec.json.decode(data), ""))
        except UNREADABLE:
            return b"data: " + _mask(len(data)).encode()
    return _mask(len(line)).encode()


def secrets(text: str) -> str:
    return _SECRET.sub("[secret]", text)


def _value(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        return {secrets(str(key)[:KEPT_LENGTH]): _value(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_value(item, name) for item in value]
    if isinstance(value, str):
        return secrets(value) if name in KEPT and len(value) <= KEPT_LENGTH else _mask(len(value))
    return value


def _mask(length: int) -> str:
    return f"[{length} characters]"
