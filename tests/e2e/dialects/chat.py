"""Chat Completions as each of its family speaks it, MiniMax's markup included."""

import json
from itertools import zip_longest
from typing import Any, NamedTuple

from tests.e2e.dialects.dialect import Gist, Turn
from tests.e2e.dialects.script import Json, Result, Speech
from tests.servers.script import Answer, json_answer, sse_answer
from tests.validators import chat, reasoning

USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "total_tokens": 120,
    "prompt_tokens_details": {"cached_tokens": 60},
    "completion_tokens_details": {"reasoning_tokens": 8},
}
PIECE = 7  # characters of a text or arguments in one chunk


class ChatModel(NamedTuple):
    """`field` is where reasoning is said; `replay` when it has to come back."""

    field: str = ""
    replay: str = "never"
    details: bool = False  # OpenRouter
    parts: bool = False  # Mistral's thinking inside the content
    id_length: int = 0
    id_limit: int = 64
    demands: bool = False  # refuses a turn with calls that has no reasoning while it thinks

    def refused(self, body: bytes, *, long_ids: bool) -> list[str]:
        if self.replay == "never" and not self.field:
            limit = 1000 if long_ids else self.id_limit
            return chat.validate(body, id_limit=limit, id_length=self.id_length)
        found = reasoning.validate(body, field=self.field, required=self.demands)
        return [each for each in found if not (long_ids and "string too long" in each)]

    def opening(self, body: Json) -> str:
        return _text(next(message for message in body["messages"] if message["role"] == "user"))

    def turns(self, body: Json) -> list[Turn]:
        found: list[Turn] = []
        for message in body["messages"]:
            if message["role"] == "assistant":
                found.append(self._turn(message))
            elif message["role"] == "tool":
                text = message["content"]
                found[-1].results.append(Result(text.removeprefix("Error: "), text.startswith("Error: ")))
        return found

    def _turn(self, message: Json) -> Turn:
        calls = message.get("tool_calls", [])
        gist = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls]
        state = {key: value for key, value in message.items() if key not in ("role", "content", "tool_calls")}
        return Turn(Gist(_text(message), gist), [call["id"] for call in calls], state, [])

    def state(self, speech: Speech) -> Any:
        if self.replay == "never" or not (speech.step.calls or self.replay == "always"):
            return {}
        return {"reasoning_details": _details(speech)} if self.details else {self.field: speech.thought}

    def answer(self, speech: Speech) -> Answer:
        finish = "tool_calls" if speech.step.calls else "stop"
        if speech.stream:
            return stream([*self._thinking(speech), *_said(speech)], finish)
        message: Json = {"role": "assistant", "content": speech.step.text or None}
        if self.parts:
            thinking = {"type": "thinking", "thinking": [{"type": "text", "text": speech.thought}]}
            message["content"] = [thinking, {"type": "text", "text": speech.step.text}]
        elif self.field:
            message[self.field] = speech.thought
        if self.details:
            message["reasoning_details"] = _details(speech)
        if speech.step.calls:
            message["tool_calls"] = [_call(speech, index) for index in range(len(speech.step.calls))]
        return whole(message, finish)

    def _thinking(self, speech: Speech) -> list[Json]:
        pieces = cut(speech.thought)
        if self.parts:
            return [{"content": [{"type": "thinking", "thinking": [{"type": "text", "text": p}]}]} for p in pieces]
        if self.details:
            head = {"type": "reasoning.text", "format": "unknown", "index": 0}
            last = {"type": "reasoning.encrypted", "format": "unknown", "index": 1, "data": speech.blob}
            said = [{self.field: p, "reasoning_details": [{**head, "text": p}]} for p in pieces]
            return [*said, {"reasoning_details": [last]}]
        return [{self.field: piece} for piece in pieces] if self.field else []

    def error(self, message: str) -> Answer:
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": None}
        return json_answer({"error": error}, 400)


class MiniMaxModel(NamedTuple):
    """TabbyAPI without a parser: thinking and calls are in the text."""

    opening_tag: str
    closing_tag: str
    namespace: str = ""  # M3

    def refused(self, body: bytes, *, long_ids: bool) -> list[str]:
        return reasoning.validate(body, required=False)

    def opening(self, body: Json) -> str:
        return ChatModel().opening(body)

    def turns(self, body: Json) -> list[Turn]:
        found = ChatModel().turns(body)
        return [self._split(turn) for turn in found]

    def _split(self, turn: Turn) -> Turn:
        thought, closing, text = turn.gist.text.partition(f"\n{self.closing_tag}")
        if not closing:
            return turn._replace(state={})
        state = {"thought": thought.removeprefix(f"{self.opening_tag}\n"), **turn.state}
        return turn._replace(gist=turn.gist._replace(text=text.removeprefix("\n\n")), state=state)

    def state(self, speech: Speech) -> Any:
        return {"thought": speech.thought}

    def answer(self, speech: Speech) -> Answer:
        opening = "" if not self.namespace else f"{self.opening_tag}\n"  # M2's prompt holds it already
        content = f"{opening}{speech.thought}\n{self.closing_tag}\n\n{speech.step.text}{self._markup(speech)}"
        if speech.stream:
            return stream([{"content": piece} for piece in cut(content)], "stop")
        return whole({"role": "assistant", "content": content}, "stop")

    def _markup(self, speech: Speech) -> str:
        if not speech.step.calls:
            return ""
        calls = "\n".join(self._invoke(call.name, call.arguments) for call in speech.step.calls)
        wrapper = "tool_call" if self.namespace else "minimax:tool_call"
        return f"\n{self.namespace}<{wrapper}>\n{calls}\n{self.namespace}</{wrapper}>"

    def _invoke(self, name: str, arguments: Json) -> str:
        space = self.namespace
        values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()}
        if space:
            inner = "".join(f"{space}<{key}>{value}{space}</{key}>" for key, value in values.items())
        else:
            inner = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in values.items())
        return f'{space}<invoke name="{name}">{inner}{space}</invoke>'

    def error(self, message: str) -> Answer:
        return ChatModel().error(f"invalid params, {message} (2013)")


def stream(deltas: list[Json], finish: str) -> Answer:
    chunks = [_chunk([{"index": 0, "delta": delta, "finish_reason": None}]) for delta in deltas]
    chunks.insert(0, _chunk([{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}]))
    chunks.append(_chunk([{"index": 0, "delta": {}, "finish_reason": finish}]))
    chunks.append(_chunk([], usage=USAGE))
    return sse_answer(*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n")


def whole(message: Json, finish: str) -> Answer:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return json_answer({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice], "usage": USAGE})


def cut(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _chunk(choices: list[Json], **more: Any) -> Json:
    return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": choices, **more}


def _said(speech: Speech) -> list[Json]:
    """Parallel calls come interleaved, as OpenAI's may."""
    deltas: list[Json] = [{"content": piece} for piece in cut(speech.step.text)]
    pieces: list[list[Json]] = []
    for index in range(len(speech.step.calls)):
        call = _call(speech, index)
        arguments = call["function"]["arguments"]
        deltas.append({"tool_calls": [{"index": index, **call, "function": {**call["function"], "arguments": ""}}]})
        pieces.append(
            [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in cut(arguments)]
        )
    for together in zip_longest(*pieces):
        deltas += [delta for delta in together if delta]
    return deltas


def _call(speech: Speech, index: int) -> Json:
    call = speech.step.calls[index]
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    named = {"id": speech.id(index)} if speech.id(index) else {}
    return {**named, "type": "function", "function": function}


def _details(speech: Speech) -> list[Json]:
    return [
        {"type": "reasoning.text", "format": "unknown", "index": 0, "text": speech.thought},
        {"type": "reasoning.encrypted", "format": "unknown", "index": 1, "data": speech.blob},
    ]


def _text(message: Json) -> str:
    content = message["content"]
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part["type"] == "text")
    return content or ""
