"""What the client reads: server-sent events, whole messages, errors. Exactly the grammar of the API."""

import math
from typing import assert_never

import msgspec

from translation.accumulator import Accumulator
from translation.errors import BridgeError
from translation.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    MessageDelta,
    MessageStart,
    MessageStop,
    Relayed,
    WireEvent,
)
from translation.renderer import Refusal
from translation.sse import frame
from translation.unicode import json_string, well_formed
from translation.values import Usage

PING = frame("ping", b'{"type":"ping"}')

_DELTA = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%%d,"delta":{"type":"%b","%b":%%b}}\n\n'
)
_DELTAS: dict[str, bytes] = {
    "text_delta": _DELTA % (b"text_delta", b"text"),
    "thinking_delta": _DELTA % (b"thinking_delta", b"thinking"),
    "signature_delta": _DELTA % (b"signature_delta", b"signature"),
    "input_json_delta": _DELTA % (b"input_json_delta", b"partial_json"),
}
_JSON_DELTAS: dict[str, bytes] = {
    "citations_delta": _DELTA % (b"citations_delta", b"citation"),
    "other_delta": b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":%b}\n\n',
}
_BLOCK_START = b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,"content_block":%b}\n\n'
_BLOCK_STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_MESSAGE_STOP = frame("message_stop", b'{"type":"message_stop"}')


def sse(events: list[WireEvent]) -> bytes:
    """All events that go out in one write."""
    return _event(events[0]) if len(events) == 1 else b"".join([_event(event) for event in events])


def _event(event: WireEvent) -> bytes:  # noqa: PLR0911  # one case per kind of event
    if isinstance(event, BlockDelta):  # nearly all are
        if (delta := _DELTAS.get(event.kind)) is not None:
            return delta % (event.index, json_string(event.text))
        return _JSON_DELTAS[event.kind] % (event.index, _line(event.text.encode()))
    match event:
        case BlockStart(index=index, block=block):
            return _BLOCK_START % (index, _line(block))
        case BlockStop(index=index):
            return _BLOCK_STOP % index
        case MessageStart():
            return frame("message_start", _message_start(event))
        case MessageDelta():
            return frame("message_delta", _message_delta(event))
        case MessageStop():
            return _MESSAGE_STOP
        case Relayed(raw=raw):
            return raw
        case _:
            assert_never(event)


def _line(value: bytes) -> bytes:
    """JSON that an upstream wrote, perhaps over several lines."""
    return msgspec.json.format(value, indent=-1) if b"\n" in value or b"\r" in value else value


def _message_start(event: MessageStart) -> bytes:
    message = _message(event.id, event.model, msgspec.Raw(b"[]"), event.usage)
    return msgspec.json.encode({"type": "message_start", "message": message})


def _message_delta(event: MessageDelta) -> bytes:
    delta = _stop(event.stop_reason, event.sequence, event.explanation)
    return msgspec.json.encode({"type": "message_delta", "delta": delta, "usage": _usage(event.usage)})


def message_body(accumulator: Accumulator) -> bytes:
    """The answer for a client that did not ask for a stream."""
    if accumulator.body:
        return accumulator.body
    message = _message(accumulator.id, accumulator.model, msgspec.Raw(accumulator.content), accumulator.usage)
    message |= _stop(accumulator.stop_reason, accumulator.sequence, accumulator.explanation)
    return msgspec.json.encode(message)


def _message(id_: str, model: str, content: msgspec.Raw, usage: Usage) -> dict[str, object]:
    return {
        "id": id_,
        "type": "message",
        "role": "assistant",
        "model": well_formed(model),
        "content": content,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(usage),
    }


def _stop(reason: str | None, sequence: str, explanation: str) -> dict[str, object]:
    stop: dict[str, object] = {
        "stop_reason": reason,
        "stop_sequence": (well_formed(sequence) or None) if sequence else None,
    }
    if reason == "refusal":
        text = well_formed(explanation) or None
        stop["stop_details"] = {"type": "refusal", "category": None, "explanation": text}
    return stop


def _usage(usage: Usage) -> dict[str, object]:
    counts: dict[str, object] = {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output_tokens,
    }
    if usage.thinking_tokens:
        counts["output_tokens_details"] = {"thinking_tokens": usage.thinking_tokens}
    if usage.searches:
        counts["server_tool_use"] = {"web_search_requests": usage.searches, "web_fetch_requests": 0}
    return counts


# ---------------------------------------------------------------- errors


def error_body(error: BridgeError, request_id: str) -> bytes:
    told: dict[str, object] = {"type": error.type, "message": well_formed(error.message) or "no reason was given"}
    if error.code:
        told["details"] = {"error_code": error.code}
    return msgspec.json.encode({"type": "error", "error": told, "request_id": request_id})


def error_event(error: BridgeError, request_id: str) -> bytes:
    return frame("error", error_body(error, request_id))


def error_headers(error: BridgeError) -> tuple[tuple[str, str], ...]:
    """`retry-after` in whole seconds, never early, and `x-should-retry` where the client's own rule would be wrong."""
    headers: list[tuple[str, str]] = []
    if error.retry_after is not None:
        headers.append(("retry-after", str(max(0, math.ceil(error.retry_after)))))
    if error.should_retry is not None:
        headers.append(("x-should-retry", "true" if error.should_retry else "false"))
    return tuple(headers)


class MessagesRenderer:
    """The API's own dialect; it remembers nothing, so one is enough."""

    ping = PING
    events = staticmethod(sse)

    def whole(self, accumulator: Accumulator) -> bytes:
        return message_body(accumulator)

    def error(self, error: BridgeError, request_id: str) -> bytes:
        return error_event(error, request_id)

    def refusal(self, error: BridgeError, request_id: str) -> Refusal:
        headers = (*self.headers(request_id), *error_headers(error))
        return Refusal(error.status, headers, error_body(error, request_id))

    def headers(self, request_id: str) -> tuple[tuple[str, str], ...]:
        return (("request-id", request_id),)


MESSAGES = MessagesRenderer()
