"""What clients send: one sentence, a coding agent's request, a conversation that grows."""

import json
from typing import Any

MODEL = "claude-sonnet-4-5"
ANSWER = "Hello from the fake upstream."
HOLD = "[hold]"  # the upstream says one word and then nothing, for as long as anyone waits
FLOOD = "[flood]"  # the upstream talks for as long as anybody listens
LINE = 'def handler(request, *args, **kwargs):\n    return answer(request)  # "quoted" ✓\n'

Message = dict[str, Any]


def encoded(messages: list[Message], *, stream: bool = False, **more: Any) -> bytes:
    body = {"model": MODEL, "max_tokens": 1024, **more, "messages": messages}
    return json.dumps(body | ({"stream": True} if stream else {}), ensure_ascii=False).encode()


def small(*, stream: bool = False) -> bytes:
    return encoded([{"role": "user", "content": "Say hello."}], stream=stream)


def held() -> bytes:
    return encoded([{"role": "user", "content": HOLD}], stream=True)


def flooded() -> bytes:
    return encoded([{"role": "user", "content": FLOOD}], stream=True)


def big(*, stream: bool = False) -> bytes:
    """101 messages, 25 of them tool calls, 20 tools: about 147 kB, as an agent sends with every step."""
    messages: list[Message] = []
    for step in range(25):
        call = {"type": "tool_use", "id": f"toolu_{step:024d}", "name": f"tool_{step % 20}"}
        shown = [{"type": "text", "text": LINE * 29}]
        messages += [
            _said("user", f"Step {step}: please look at the file. " * 20),
            _said("assistant", "I will read it. " * 10, {**call, "input": {"path": f"/src/module_{step}.py"}}),
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": shown}],
            },
            _said("assistant", "The file does what we expect. " * 14),
        ]
    messages.append(_said("user", "Now finish the work."))
    return encoded(messages, stream=stream, system=_system(), tools=tools())


def tools(count: int = 20) -> list[dict[str, Any]]:
    edits = {
        "type": "array",
        "items": {"type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}}},
    }
    properties = {
        "path": {"type": "string", "description": "Absolute path of the file to work on"},
        "limit": {"type": "integer", "minimum": 1},
        "mode": {"type": "string", "enum": ["read", "write", "append"]},
        "edits": edits,
    }
    schema = {"type": "object", "additionalProperties": False, "required": ["path"], "properties": properties}
    about = "Reads or edits something in the workspace and returns text. " * 18
    return [{"name": f"tool_{number}", "description": about, "input_schema": schema} for number in range(count)]


def exchange(number: int, size: int = 1_500) -> list[Message]:
    """One more question, and the answer that the fake upstream gives."""
    words = " ".join(f"{(number * 7919 + place * 104_729) % 1_000_003:x}" for place in range(size // 6))
    return [_said("user", f"{number}: {words}"), _said("assistant", ANSWER)]


def growing(turn: int, size: int = 1_500) -> bytes:
    """The request of a conversation's turn (the first is 1): everything before it, and one question more."""
    messages = [message for number in range(1, turn) for message in exchange(number, size)]
    return encoded([*messages, exchange(turn, size)[0]], system=_system(), tools=tools(5))


def continued(turn: int, previous: str, size: int = 1_500) -> bytes:
    """The same turn of a thread: only what is new. The first one brings everything before it."""
    if not previous:
        messages = [message for number in range(1, turn) for message in exchange(number, size)]
        return encoded(
            [*messages, exchange(turn, size)[0]], system=_system(), tools=tools(5), thread={"type": "create"}
        )
    return encoded([exchange(turn, size)[0]], thread={"type": "continue", "previous_message_id": previous})


def unique(turns: int, size: int = 1_500) -> int:
    """Bytes of what a growing conversation says, each thing once."""
    said = [message for number in range(1, turns + 1) for message in exchange(number, size)]
    return len(encoded(said, system=_system(), tools=tools(5)))


def _system() -> list[dict[str, Any]]:
    return [{"type": "text", "text": "You are a coding agent. " * 400, "cache_control": {"type": "ephemeral"}}]


def _said(role: str, text: str, *more: dict[str, Any]) -> Message:
    return {"role": role, "content": [{"type": "text", "text": text}, *more]}
