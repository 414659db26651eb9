"""Chat Completions as a scripted upstream says it: whole answers and streams."""

import json
from typing import Any

from tests.servers.script import Answer, Step, json_answer, sse_answer

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
DONE = b"data: [DONE]\n\n"

Call = tuple[str, str, dict[str, Any]]  # upstream id, name, arguments


def text(words: str) -> Answer:
    return json_answer(_whole({"role": "assistant", "content": words}, "stop"))


def stopped(words: str, sequence: str) -> Answer:
    """By a sequence, as vLLM says it."""
    whole = _whole({"role": "assistant", "content": words}, "stop")
    whole["choices"][0]["stop_reason"] = sequence
    return json_answer(whole)


def refused(why: str) -> Answer:
    return json_answer(_whole({"role": "assistant", "content": None, "refusal": why}, "stop"))


def calls(*given: Call) -> Answer:
    tool_calls = [
        {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for id_, name, arguments in given
    ]
    return json_answer(_whole({"role": "assistant", "content": None, "tool_calls": tool_calls}, "tool_calls"))


def streamed_text(*words: str | Step) -> Answer:
    """Strings are chunks of text; any other step stands where it is."""
    steps = [chunk({"content": word}) if isinstance(word, str) else word for word in words]
    return sse_answer(chunk({"role": "assistant", "content": ""}), *steps, *ending("stop"))


def streamed_calls(*given: Call) -> Answer:
    return sse_answer(*call_chunks(*given), *ending("tool_calls"))


def call_chunks(*given: Call) -> list[bytes]:
    """For each call its head, and its arguments in two pieces."""
    chunks = []
    for index, (id_, name, arguments) in enumerate(given):
        written = json.dumps(arguments)
        half = len(written) // 2
        chunks.append(call_chunk(index, "", id_, name))
        chunks += [call_chunk(index, piece) for piece in (written[:half], written[half:])]
    return chunks


def call_chunk(index: int, arguments: str, id_: str = "", name: str = "") -> bytes:
    head = {"id": id_, "type": "function"} if id_ else {}
    function = {"name": name, "arguments": arguments} if name else {"arguments": arguments}
    return chunk({"tool_calls": [{"index": index, **head, "function": function}]})


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return sse(
        {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [_choice("delta", delta, finish)]}
    )


def ending(finish: str) -> list[bytes]:
    usage = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": USAGE}
    return [chunk({}, finish), sse(usage), DONE]


def sse(payload: object) -> bytes:
    return b"data: %b\n\n" % json.dumps(payload).encode()


def error(status: int, message: str, headers: dict[str, str] | None = None, **more: Any) -> Answer:
    return json_answer({"error": {"message": message, **more}}, status, headers)


def _whole(message: dict[str, Any], finish: str) -> dict[str, Any]:
    choices = [_choice("message", message, finish)]
    return {"id": "c", "object": "chat.completion", "model": "m", "choices": choices, "usage": USAGE}


def _choice(key: str, value: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, key: value, "finish_reason": finish}
