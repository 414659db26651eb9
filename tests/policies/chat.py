"""What a Chat Completions upstream answers, whole and as a stream."""

import json
from typing import Any

from tests.servers.script import Answer, json_answer, sse_answer

PATH = "/v1/chat/completions"
USAGE = {"prompt_tokens": 40, "completion_tokens": 5, "total_tokens": 45}


def says(text: str) -> Answer:
    return _whole({"role": "assistant", "content": text}, "stop")


def calls(name: str, arguments: dict[str, Any], id_: str = "call_0") -> Answer:
    return _whole({"role": "assistant", "content": None, "tool_calls": [_call(name, arguments, id_)]}, "tool_calls")


def streams_text(*pieces: str) -> Answer:
    return sse_answer(*(_chunk({"content": piece}) for piece in pieces), _chunk({}, "stop"), _last())


def streams_call(name: str, arguments: dict[str, Any], id_: str = "call_0") -> Answer:
    return sse_answer(
        _chunk({"tool_calls": [{"index": 0, **_call(name, arguments, id_)}]}), _chunk({}, "tool_calls"), _last()
    )


def _call(name: str, arguments: dict[str, Any], id_: str) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def _whole(message: dict[str, Any], reason: str) -> Answer:
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return json_answer({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": USAGE})


def _chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    return _event({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def _last() -> bytes:
    return _event({"id": "c", "model": "m", "choices": [], "usage": USAGE}) + b"data: [DONE]\n\n"


def _event(payload: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"
