"""Answers as Chat Completions: chunks of a stream, or one `chat.completion`."""

from typing import Any

import msgspec
from msgspec import Struct

from translation.accumulator import Accumulator
from translation.client.render import error_headers
from translation.errors import BridgeError
from translation.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    MessageDelta,
    MessageStart,
    MessageStop,
    WireEvent,
    Written,
)
from translation.openai_client.errors import error_body, status
from translation.renderer import Refusal
from translation.unicode import well_formed
from translation.values import Usage

Json = dict[str, Any]  # chat JSON, built and encoded here

# A reason that is not here is new at Anthropic: the answer is complete all the same.
FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}
DONE = b"data: [DONE]\n\n"


class Block(Struct):
    """What of a block a chat client gets to see."""

    type: str
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")


_BLOCK = msgspec.json.Decoder(Block)
_BLOCKS = msgspec.json.Decoder(list[Block])


class ChatRenderer:
    ping = b": ping\n\n"

    def __init__(self, created: int, *, include_usage: bool = False) -> None:
        self._created = created
        self._include_usage = include_usage
        self._head: Json = {}
        self._calls = 0
        self._arguments: bool | None = None  # whether the open call has any yet; None: no call is open
        self._end = MessageDelta("", Usage())  # the last one counts: Anthropic may send several

    # ------------------------------------------------------------ a stream

    def events(self, wire: list[WireEvent]) -> bytes:
        written = [event if isinstance(event, Written) else event.event for event in wire]
        return b"".join([self._event(event) for event in written if event is not None])

    def _event(self, event: Written) -> bytes:  # noqa: PLR0911  # one case per kind of event
        match event:
            case BlockDelta(kind="text_delta", text=text):
                return self._chunk({"content": well_formed(text)})
            case BlockDelta(kind="thinking_delta", text=text):
                return self._chunk({"reasoning_content": well_formed(text)})
            case BlockDelta(kind="input_json_delta", text=text):
                return self._fragment(text)
            case BlockStart(block=block):
                return self._start(_BLOCK.decode(block))
            case BlockStop():
                closing = b"" if self._arguments is not False else self._fragment("{}")
                self._arguments = None
                return closing
            case MessageStart(id=id_, model=model):
                self._head = self._identity(id_, model)
                return self._chunk({"role": "assistant", "content": ""})
            case MessageDelta():
                self._end = event
                return b""
            case MessageStop():
                return self._finish(self._end) + DONE
            case _:
                return b""  # signatures and citations have no place in a chat

    def _start(self, block: Block) -> bytes:
        match block.type:
            case "text" if block.text:
                return self._chunk({"content": block.text})
            case "tool_use":
                self._arguments = False
                self._calls += 1
                function = {"name": block.name, "arguments": ""}
                call = {"index": self._calls - 1, "id": block.id, "type": "function", "function": function}
                return self._chunk({"tool_calls": [call]})
            case _:
                return b""

    def _fragment(self, arguments: str) -> bytes:
        if not arguments or self._arguments is None:  # None: of a tool that was run for the client
            return b""
        self._arguments = True
        call = {"index": self._calls - 1, "function": {"arguments": well_formed(arguments)}}
        return self._chunk({"tool_calls": [call]})

    def _finish(self, event: MessageDelta) -> bytes:
        delta = {"refusal": well_formed(event.explanation)} if event.explanation else {}
        out = self._chunk(delta, FINISH.get(event.stop_reason, "stop"))
        if self._include_usage:
            out += _frame(self._head | {"object": "chat.completion.chunk", "choices": [], "usage": _usage(event.usage)})
        return out

    def _chunk(self, delta: Json, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = self._head | {"object": "chat.completion.chunk", "choices": [choice]}
        return _frame(chunk | ({"usage": None} if self._include_usage else {}))

    def error(self, error: BridgeError, request_id: str) -> bytes:
        """The client raises on it; no `[DONE]` may follow."""
        return b"data: %b\n\n" % error_body(error, request_id)

    # ------------------------------------------------------------ whole

    def whole(self, accumulator: Accumulator) -> bytes:
        finish = FINISH.get(accumulator.stop_reason or "", "stop")
        message = _message(_BLOCKS.decode(accumulator.content), accumulator.explanation)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        head = self._identity(accumulator.id, accumulator.model) | {"object": "chat.completion"}
        return msgspec.json.encode(head | {"choices": [choice], "usage": _usage(accumulator.usage)})

    def refusal(self, error: BridgeError, request_id: str) -> Refusal:
        headers = (*self.headers(request_id), *_error_headers(error))
        return Refusal(status(error), headers, error_body(error, request_id))

    def headers(self, request_id: str) -> tuple[tuple[str, str], ...]:
        return ("request-id", request_id), ("x-request-id", request_id)

    def _identity(self, id_: str, model: str) -> Json:
        return {"id": f"chatcmpl-{id_.removeprefix('msg_')}", "created": self._created, "model": well_formed(model)}


def _message(blocks: list[Block], explanation: str) -> Json:
    text = "".join(block.text for block in blocks if block.type == "text")
    thought = "".join(block.thinking for block in blocks if block.type == "thinking")
    calls = [_call(block) for block in blocks if block.type == "tool_use"]
    message: Json = {"role": "assistant", "content": text or (None if calls else ""), "refusal": explanation or None}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = calls
    return message


def _call(block: Block) -> Json:
    function = {"name": block.name, "arguments": bytes(block.input).decode()}
    return {"id": block.id, "type": "function", "function": function}


def _usage(usage: Usage) -> Json:
    """OpenAI's way of counting: what came from a cache is part of the prompt."""
    prompt = usage.input_tokens + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": prompt,
        "completion_tokens": usage.output_tokens,
        "total_tokens": prompt + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        "completion_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
    }


def _error_headers(error: BridgeError) -> tuple[tuple[str, str], ...]:
    """A budget is a 429 here, which clients would retry."""
    headers = dict(error_headers(error))
    if error.status == 402:
        headers["x-should-retry"] = "false"
    return tuple(headers.items())


def _frame(payload: Json) -> bytes:
    return b"data: %b\n\n" % msgspec.json.encode(payload)
