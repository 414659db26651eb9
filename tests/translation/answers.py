"""What a client gets of an upstream's answer, whatever the upstream."""

import json
from typing import Any

import msgspec

from translation.accumulator import Accumulator
from translation.adapter import Decoder, Target
from translation.adapters import adapter, writer
from translation.client.parse import parse
from translation.events import Event, Failed, Finished, ToolStarted
from translation.history import repair
from translation.providers.profiles import PROFILES
from translation.values import Usage

Json = dict[str, Any]
MODELS = {
    "openai": "gpt-4.1",
    "vllm": "qwen3",
    "gemini": "gemini-3-pro",
    "openai-responses": "gpt-5.5",
    "openrouter": "google/gemini-3",
    "minimax": "MiniMax-M2",
    "anthropic": "claude-opus-4-6",
}
READ = {"name": "Read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
TOOLS = [READ, {**READ, "name": "ReadFile"}, {**READ, "name": "Bash"}]
REQUEST = {
    "model": "m",
    "max_tokens": 9,
    "stream": True,
    "tools": TOOLS,
    "messages": [{"role": "user", "content": "x"}],
}


def decoder(provider: str, model: str = "") -> tuple[Decoder, Accumulator, Any]:
    profile = PROFILES[provider]
    target = Target(provider, model or MODELS[provider], profile)
    request, _ = repair(parse(msgspec.json.encode(REQUEST), "", ()), profile)
    sent = adapter(profile).build(request, target)
    kind = "text/event-stream"
    folded = Accumulator()
    return adapter(profile).decoder(request, target, sent, kind), folded, writer(profile, request, "msg")


def answer(provider: str, *reads: bytes, model: str = "") -> tuple[list[Json], str, Usage | None]:
    """The content, the stop reason (or why it failed) and the usage."""
    reading, folded, writing = decoder(provider, model)
    end, usage = "", None
    for events in [*map(reading.feed, reads), reading.close()]:
        named = [_with_id(event) for event in events]
        folded.feed(writing.feed(named))
        for event in named:
            if isinstance(event, Finished):
                usage = event.usage
                folded.feed(writing.finish(event, usage or Usage()))
                end = folded.stop_reason or ""
            elif isinstance(event, Failed):
                end = event.error.message
    return json.loads(folded.content), end, usage


def _with_id(event: Event) -> Event:
    return msgspec.structs.replace(event, id=f"toolu_{event.call}") if isinstance(event, ToolStarted) else event


def calls(content: list[Json]) -> list[tuple[str, Json]]:
    return [(block["name"], block["input"]) for block in content if block["type"] == "tool_use"]


def chunk(delta: Json | None = None, finish: str | None = None, **more: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def piece(arguments: Any = None, name: str | None = None, id_: Any = None, index: Any = 0) -> Json:
    call: Json = {"function": {"name": name, "arguments": arguments}, "id": id_}
    return chunk({"tool_calls": [call if index is None else {**call, "index": index}]})


def text(words: str) -> Json:
    return {"type": "text", "text": words}
