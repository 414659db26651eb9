"""Gemini 3: the first call of a step is signed; a text is signed too, in a stream by an empty part after it."""

import json
from typing import Any, NamedTuple

from tests.e2e.dialects.dialect import Gist, Turn
from tests.e2e.dialects.script import Json, Result, Speech
from tests.servers.script import Answer, json_answer, sse_answer
from tests.validators import gemini

USAGE = {
    "promptTokenCount": 100,
    "cachedContentTokenCount": 60,
    "candidatesTokenCount": 12,
    "thoughtsTokenCount": 8,
    "totalTokenCount": 120,
}


class GeminiModel(NamedTuple):
    def refused(self, body: bytes, *, long_ids: bool) -> list[str]:
        return gemini.validate(body)

    def opening(self, body: Json) -> str:
        return "\n".join(part.get("text", "") for part in body["contents"][0]["parts"])

    def turns(self, body: Json) -> list[Turn]:
        found: list[Turn] = []
        for content in body["contents"]:
            if content["role"] == "model":
                found.append(_turn(content["parts"]))
            for part in content["parts"]:
                if "functionResponse" in part:
                    response = part["functionResponse"]["response"]
                    found[-1].results.append(Result(response.get("output") or response["error"], "error" in response))
        return found

    def state(self, speech: Speech) -> Any:
        return [(_kind(part), part.get("thoughtSignature")) for part in _parts(speech)]

    def answer(self, speech: Speech) -> Answer:
        thought = {"text": speech.thought, "thought": True}
        parts = [thought, *_parts(speech)]
        if not speech.stream:
            return json_answer(_response(parts, "STOP"))
        chunks = [_response([part], None) for part in parts[:-1]]
        chunks.append(_response(parts[-1:], "STOP"))
        return sse_answer(*(f"data: {json.dumps(chunk)}\r\n\r\n".encode() for chunk in chunks))

    def error(self, message: str) -> Answer:
        return json_answer({"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}, 400)


def _turn(parts: list[Json]) -> Turn:
    text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    calls = [part["functionCall"] for part in parts if "functionCall" in part]
    state = [(_kind(part), part.get("thoughtSignature")) for part in parts]
    gist = Gist(text, [(call["name"], call["args"]) for call in calls])
    return Turn(gist, [call.get("id", "") for call in calls], state, [])


def _kind(part: Json) -> str:
    return "call" if "functionCall" in part else f"text of {len(part['text'])}"


def _parts(speech: Speech) -> list[Json]:
    """As they have to come back: thoughts without a signature do not."""
    parts: list[Json] = []
    if speech.step.text:
        parts.append({"text": speech.step.text})
    for index, call in enumerate(speech.step.calls):
        named = {"id": speech.id(index)} if speech.id(index) else {}
        parts.append({"functionCall": {**named, "name": call.name, "args": call.arguments}})
        if not index:
            parts[-1]["thoughtSignature"] = speech.blob
    if not speech.step.calls and speech.stream:
        parts.append({"text": "", "thoughtSignature": speech.blob})
    elif not speech.step.calls:
        parts[-1]["thoughtSignature"] = speech.blob
    return parts


def _response(parts: list[Json], finish: str | None) -> Json:
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "usageMetadata": USAGE, "modelVersion": "m", "responseId": "r"}
