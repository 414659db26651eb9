"""How much reasoning went back with a request: `n/m`, of m answers with tool calls n had theirs. Pure.

Models that think between calls lose much of their quality, in silence, when their earlier thinking is missing.
"""

from typing import Any

import msgspec

from translation.providers.gemini_contents import SENTINEL
from translation.providers.openai_chat_state import OF_CALLS, OF_MESSAGES
from translation.unreadable import UNREADABLE

Json = dict[str, Any]

FIELDS = ("reasoning_content", "reasoning", *OF_MESSAGES)
TAGS = ("<think>", "<mm:think>")
THINKING = ("thinking", "redacted_thinking")


def replayed(sent: bytes) -> str:
    """Of a request in any provider's dialect; nothing where no answer in it calls a tool."""
    try:
        body: Json = msgspec.json.decode(sent, type=dict[str, Any])
    except UNREADABLE:
        return ""
    if "contents" in body:
        found = [_signed(parts) for parts in (content["parts"] for content in body["contents"]) if _calls(parts)]
    elif "input" in body:
        found = _items([item for item in body["input"] if isinstance(item, dict)])
    else:
        found = [_thought(message) for message in body.get("messages", []) if _called(message)]
    return f"{sum(found)}/{len(found)}" if found else ""


def _calls(parts: list[Json]) -> bool:
    return any("functionCall" in part for part in parts)


def _signed(parts: list[Json]) -> bool:
    return any(part.get("thoughtSignature", SENTINEL) != SENTINEL for part in parts)


def _items(items: list[Json]) -> list[bool]:
    """Of the Responses API: reasoning stands before the calls that it led to."""
    found: list[bool] = []
    thought, inside = False, False
    for item in items:
        if item.get("type") == "function_call":
            found += [] if inside else [thought]
            inside = True
        elif item.get("type") == "reasoning":
            thought, inside = True, False
        else:
            thought, inside = thought and item.get("role") == "assistant", False
    return found


def _called(message: Json) -> bool:
    return bool(message.get("tool_calls")) or any(part.get("type") == "tool_use" for part in _parts(message))


def _thought(message: Json) -> bool:
    content = message.get("content")
    told = isinstance(content, str) and content.lstrip().startswith(TAGS)
    kept = any(str(message.get(field) or "").strip() for field in FIELDS)
    signs = [str(call[field]) for call in message.get("tool_calls") or () for field in OF_CALLS if field in call]
    signed = any(SENTINEL not in sign for sign in signs)
    return told or kept or signed or any(part.get("type") in THINKING for part in _parts(message))


def _parts(message: Json) -> list[Json]:
    content = message.get("content")
    return content if isinstance(content, list) else []
