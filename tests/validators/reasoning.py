"""Chat Completions of models whose reasoning has to come back: DeepSeek, Kimi, GLM, and MiniMax."""

from tests.validators import chat
from tests.validators.shapes import blank, decode

FIELDS = frozenset({"reasoning_content", "reasoning", "reasoning_details"})
EXTRA = frozenset(
    {"thinking", "chat_template_kwargs", "top_k", "reasoning_split", "reasoning"}
    | {"add_generation_prompt", "continue_final_message"}
)


def validate(body: bytes, *, field: str = "reasoning_content", required: bool = True, prefill: str = "") -> list[str]:
    """`required`: thinking is on, so every message with calls needs its reasoning."""
    request = decode(body)
    found = chat.validate(body, id_limit=64, extra=EXTRA, extra_message=FIELDS, prefill=prefill)
    off = request.get("thinking", {}).get("type") == "disabled"
    if off and "reasoning_effort" in request:
        found.append("reasoning_effort with thinking disabled")
    for index, message in enumerate(request.get("messages", [])):
        if required and not off and message.get("tool_calls") and not message.get(field):
            found.append(f"Missing {field} field in the assistant message at message index {index}")
        for key in FIELDS & message.keys():
            if message["role"] != "assistant":
                found.append(f"messages[{index}]: {key} on a {message['role']} message")
            elif isinstance(message[key], str) and message[key] != " " and blank(message[key]):
                found.append(f"messages[{index}]: empty {key}")
    return found
