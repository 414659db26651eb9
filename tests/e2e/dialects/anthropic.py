"""Anthropic itself: thinking comes back signed and untouched, or not at all."""

import json
from typing import Any, NamedTuple

from tests.e2e.dialects.chat import cut
from tests.e2e.dialects.dialect import Gist, Turn
from tests.e2e.dialects.script import Json, Result, Speech
from tests.servers.script import Answer, json_answer, sse_answer
from tests.validators import anthropic

USAGE = {
    "input_tokens": 40,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 60,
    "output_tokens": 20,
    "output_tokens_details": {"thinking_tokens": 8},
}


class AnthropicModel(NamedTuple):
    def refused(self, body: bytes, *, long_ids: bool) -> list[str]:
        return anthropic.validate(body)

    def opening(self, body: Json) -> str:
        content = body["messages"][0]["content"]
        return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)

    def turns(self, body: Json) -> list[Turn]:
        found: list[Turn] = []
        for message in body["messages"]:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            if message["role"] == "assistant":
                found.append(_turn(blocks))
            for block in blocks:
                if block["type"] == "tool_result":
                    found[-1].results.append(Result(_result(block["content"]), bool(block.get("is_error"))))
        return found

    def state(self, speech: Speech) -> Any:
        return _thinking(speech)

    def answer(self, speech: Speech) -> Answer:
        message = {
            "id": f"msg_{speech.chain.name}{speech.number}",
            "type": "message",
            "role": "assistant",
            "model": "m",
        }
        stop = {"stop_reason": "tool_use" if speech.step.calls else "end_turn", "stop_sequence": None}
        blocks = _blocks(speech)
        if not speech.stream:
            return json_answer({**message, "content": blocks, **stop, "usage": USAGE})
        start: Json = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": USAGE}
        events: list[Json] = [{"type": "message_start", "message": start}, {"type": "ping"}]
        for index, block in enumerate(blocks):
            events += _told(block, index)
        events += [{"type": "message_delta", "delta": stop, "usage": USAGE}, {"type": "message_stop"}]
        return sse_answer(*(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events))

    def error(self, message: str) -> Answer:
        return json_answer({"type": "error", "error": {"type": "invalid_request_error", "message": message}}, 400)


def _turn(blocks: list[Json]) -> Turn:
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    calls = [block for block in blocks if block["type"] == "tool_use"]
    thinking = [block for block in blocks if block["type"] in ("thinking", "redacted_thinking")]
    gist = Gist(text, [(call["name"], call["input"]) for call in calls])
    return Turn(gist, [call["id"] for call in calls], thinking, [])


def _result(content: str | list[Json]) -> str:
    return content if isinstance(content, str) else "\n".join(block["text"] for block in content)


def _thinking(speech: Speech) -> list[Json]:
    blocks: list[Json] = [{"type": "thinking", "thinking": speech.thought, "signature": speech.blob}]
    if speech.number == 1:
        blocks.append({"type": "redacted_thinking", "data": speech.blob[::-1]})
    return blocks


def _blocks(speech: Speech) -> list[Json]:
    blocks = _thinking(speech)
    if speech.step.text:
        blocks.append({"type": "text", "text": speech.step.text})
    for index, call in enumerate(speech.step.calls):
        id_ = f"toolu_{speech.chain.name}{speech.number}{index}"  # Anthropic's own are always good
        blocks.append({"type": "tool_use", "id": id_, "name": call.name, "input": call.arguments})
    return blocks


def _told(block: Json, index: int) -> list[Json]:
    begun, deltas = block, []
    if block["type"] == "thinking":
        begun = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif block["type"] == "text":
        begun = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in cut(block["text"])]
    elif block["type"] == "tool_use":
        begun = {**block, "input": {}}
        written = json.dumps(block["input"])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *cut(written))]
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]
