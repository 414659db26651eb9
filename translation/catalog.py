"""Which models an upstream says it has, in any of the shapes that such lists come in."""

from typing import Any

import msgspec

from translation.unreadable import UNREADABLE


def model_names(body: bytes) -> tuple[str, ...]:
    """OpenAI's and Anthropic's `data`, or Gemini's `models`; () when it is neither."""
    try:
        value = msgspec.json.decode(body)
    except UNREADABLE:
        return ()
    if isinstance(value, dict):
        value = value.get("data") or value.get("models")
    if not isinstance(value, list):
        return ()
    names = [_name(item) for item in value if isinstance(item, dict)]
    return tuple(dict.fromkeys(name for name in names if name))


def _name(item: dict[str, Any]) -> str:
    name = item.get("id") or item.get("name")
    return name.removeprefix("models/") if isinstance(name, str) and name.isprintable() else ""
