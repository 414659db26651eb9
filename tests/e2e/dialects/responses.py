"""The Responses API: items, and encrypted reasoning that belongs to the item after it."""

import json
from typing import Any, NamedTuple

from tests.e2e.dialects.chat import cut
from tests.e2e.dialects.dialect import Gist, Turn
from tests.e2e.dialects.script import Json, Result, Speech
from tests.servers.script import Answer, json_answer, sse_answer
from tests.validators import responses

USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 60},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 8},
    "total_tokens": 120,
}


class ResponsesModel(NamedTuple):
    def refused(self, body: bytes, *, long_ids: bool) -> list[str]:
        return [each for each in responses.validate(body) if not (long_ids and "string too long" in each)]

    def opening(self, body: Json) -> str:
        first = next(item for item in body["input"] if item.get("role") == "user")
        return "\n".join(part.get("text", "") for part in first["content"])

    def turns(self, body: Json) -> list[Turn]:
        found: list[Turn] = []
        inside = False  # an assistant turn
        for item in body["input"]:
            made = item["type"] in ("reasoning", "function_call") or item.get("role") == "assistant"
            if made and not inside:
                found.append(Turn(Gist("", []), [], [], []))
            inside = made
            if made:
                found[-1] = _with(found[-1], item)
            elif item["type"] == "function_call_output":
                text = item["output"]
                found[-1].results.append(Result(text.removeprefix("Error: "), text.startswith("Error: ")))
        return found

    def state(self, speech: Speech) -> Any:
        return [item if item["type"] == "reasoning" else (item["type"], item["id"]) for item in _items(speech)]

    def answer(self, speech: Speech) -> Answer:
        response = {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "error": None}
        final = {**response, "output": [_done(item) for item in _items(speech)], "usage": USAGE}
        if not speech.stream:
            return json_answer(final)
        events = [{"type": "response.created", "response": {**response, "status": "in_progress", "output": []}}]
        for index, item in enumerate(_items(speech)):
            events += _told(item, index)
        events.append({"type": "response.completed", "response": final})
        frames = ({**event, "sequence_number": number} for number, event in enumerate(events))
        return sse_answer(*(f"event: {frame['type']}\ndata: {json.dumps(frame)}\n\n".encode() for frame in frames))

    def error(self, message: str) -> Answer:
        error = {"message": message, "type": "invalid_request_error", "param": "input", "code": None}
        return json_answer({"error": error}, 400)


def _with(turn: Turn, item: Json) -> Turn:
    text, calls = turn.gist
    if item["type"] == "reasoning":
        return turn._replace(state=[*turn.state, item])
    known = [(item["type"], item["id"])] if "id" in item else []
    turn = turn._replace(state=[*turn.state, *known])
    if item["type"] == "message":
        return turn._replace(gist=Gist(text + item["content"][0]["text"], calls))
    gist = Gist(text, [*calls, (item["name"], json.loads(item["arguments"]))])
    return turn._replace(gist=gist, ids=[*turn.ids, item["call_id"]])


def _items(speech: Speech) -> list[Json]:
    name = f"{speech.chain.name}{speech.number}"
    summary = [{"type": "summary_text", "text": speech.thought}]
    items: list[Json] = [
        {"id": f"rs_{name}", "type": "reasoning", "summary": summary, "encrypted_content": speech.blob}
    ]
    if speech.step.text:
        content = [{"type": "output_text", "text": speech.step.text, "annotations": []}]
        items.append({"id": f"msg_{name}", "type": "message", "role": "assistant", "content": content})
    for index, call in enumerate(speech.step.calls):
        made = {"call_id": speech.id(index), "name": call.name, "arguments": json.dumps(call.arguments)}
        items.append({"id": f"fc_{name}_{index}", "type": "function_call", **made})
    return items


def _done(item: Json) -> Json:
    return item if item["type"] == "reasoning" else {**item, "status": "completed"}


def _told(item: Json, index: int) -> list[Json]:
    where = {"item_id": item["id"], "output_index": index}
    begun = dict(item)
    told: list[Json] = []
    if item["type"] == "reasoning":
        begun |= {"summary": [], "encrypted_content": "not-yet"}
        place = {**where, "summary_index": 0}
        told.append({"type": "response.reasoning_summary_part.added", **place, "part": {"type": "summary_text"}})
        text = item["summary"][0]["text"]
        told += [{"type": "response.reasoning_summary_text.delta", **place, "delta": piece} for piece in cut(text)]
        told.append({"type": "response.reasoning_summary_text.done", **place, "text": text})
    elif item["type"] == "message":
        begun |= {"content": [], "status": "in_progress"}
        place = {**where, "content_index": 0}
        part = item["content"][0]
        told.append({"type": "response.content_part.added", **place, "part": {**part, "text": ""}})
        told += [{"type": "response.output_text.delta", **place, "delta": piece} for piece in cut(part["text"])]
        told.append({"type": "response.output_text.done", **place, "text": part["text"]})
    else:
        begun |= {"arguments": "", "status": "in_progress"}
        deltas = [
            {"type": "response.function_call_arguments.delta", **where, "delta": piece}
            for piece in cut(item["arguments"])
        ]
        told += [*deltas, {"type": "response.function_call_arguments.done", **where, "arguments": item["arguments"]}]
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *told,
        {"type": "response.output_item.done", "output_index": index, "item": _done(item)},
    ]
