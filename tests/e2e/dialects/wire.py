"""Pieces of answers in each dialect, for tests of what goes wrong: a text that begins, half a call, errors in band."""

import json
from typing import Any, NamedTuple

from tests.e2e.dialects.script import Json
from tests.servers.script import Answer, json_answer, sse_answer


def data(payload: object, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(payload)}\n\n".encode()


def named(payload: Json) -> bytes:
    return data(payload, payload["type"])


class Wire(NamedTuple):
    """`text` makes the client see `Hel`; `call` a call of Read whose arguments are not complete."""

    path: str  # where a stream is asked for
    text: tuple[bytes, ...]
    call: tuple[bytes, ...]
    end: tuple[bytes, ...]  # after `text`
    overloaded: bytes  # an event
    limited: bytes  # an event
    error: Any  # (status, word, message) -> the body of an HTTP error

    @property
    def whole_path(self) -> str:
        return self.path.replace("streamGenerateContent", "generateContent")

    def refusal(self, status: int, message: str, **headers: str) -> Answer:
        named_headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return json_answer(self.error(status, message), status, named_headers)

    def stream(self, *frames: Any) -> Answer:
        return sse_answer(*frames)


def _choice(delta: Json, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return data({"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})


def _openai_error(status: int, message: str) -> Json:
    words = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
    return {"error": {"message": message, "type": words.get(status, "server_error"), "param": None, "code": None}}


def _google_error(status: int, message: str) -> Json:
    words = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
    words |= {503: "UNAVAILABLE", 500: "INTERNAL"}
    return {"error": {"code": status, "message": message, "status": words.get(status, "UNKNOWN")}}


def _anthropic_error(status: int, message: str) -> Json:
    words = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    return {
        "type": "error",
        "error": {"type": words.get(status, "overloaded_error" if status == 529 else "api_error"), "message": message},
    }


def _chat(base: str) -> Wire:
    function = {"name": "Read", "arguments": '{"pa'}
    return Wire(
        f"/{base}/v1/chat/completions",
        (_choice({"content": "Hel"}),),
        (_choice({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}),),
        (_choice({"content": "lo"}), _choice({}, "stop"), b"data: [DONE]\n\n"),
        data({"error": {"message": "busy", "type": "overloaded_error", "code": 529}}),
        data({"error": {"message": "slow down", "type": "rate_limit_error", "code": "429"}}),
        _openai_error,
    )


def _minimax() -> Wire:
    thought = _choice({"content": "Hm.\n</think>\n\n"})
    invoke = '<minimax:tool_call>\n<invoke name="Read">\n<parameter name="path">a'
    chat = _chat("minimax")
    return chat._replace(text=(thought, _choice({"content": "Hel"})), call=(thought, _choice({"content": invoke})))


def _item(kind: str, **more: Any) -> bytes:
    item = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "Read", "arguments": ""}
    return named({"type": f"response.output_item.{kind}", "output_index": 0, "item": {**item, **more}})


RESPONSE: Json = {"id": "resp_1", "object": "response", "model": "m", "output": [], "error": None}
RESPONSES = Wire(
    "/openai/v1/responses",
    (named({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "Hel"}),),
    (
        _item("added"),
        named({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"pa'}),
    ),
    (
        named({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "lo"}),
        named({"type": "response.completed", "response": {**RESPONSE, "status": "completed"}}),
    ),
    named(
        {
            "type": "response.failed",
            "response": {**RESPONSE, "status": "failed", "error": {"code": "server_is_overloaded", "message": "busy"}},
        }
    ),
    named({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": None}),
    _openai_error,
)


def _candidate(parts: list[Json], finish: str | None = None) -> bytes:
    return data({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": finish}]})


GEMINI = Wire(
    "/gemini/v1/models/gemini-3-pro:streamGenerateContent",
    (_candidate([{"text": "Hel"}]),),
    (b'data: {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": "Rea',),
    (_candidate([{"text": "lo"}], "STOP"),),
    data(_google_error(503, "busy")),
    data(_google_error(429, "slow down")),
    _google_error,
)

MESSAGE: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [],
    "stop_reason": None,
}
START = named({"type": "message_start", "message": {**MESSAGE, "usage": {"input_tokens": 1, "output_tokens": 1}}})


def _block(block: Json, delta: Json) -> tuple[bytes, bytes]:
    begun = {"type": "content_block_start", "index": 0, "content_block": block}
    return named(begun), named({"type": "content_block_delta", "index": 0, "delta": delta})


ANTHROPIC = Wire(
    "/anthropic/v1/messages",
    (START, *_block({"type": "text", "text": ""}, {"type": "text_delta", "text": "Hel"})),
    (
        START,
        *_block(
            {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"pa'},
        ),
    ),
    (
        named({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo"}}),
        named({"type": "content_block_stop", "index": 0}),
        named({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
        named({"type": "message_stop"}),
    ),
    named({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
    named({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}),
    _anthropic_error,
)

WIRES = {
    "openai": _chat("openai"),
    "openai-responses": RESPONSES,
    "gemini": GEMINI,
    "minimax": _minimax(),
    "anthropic": ANTHROPIC,
    "deepseek": _chat("deepseek"),
    "mistral": _chat("mistral"),
}
