"""Images in an answer, which the Messages API has no block for: a line of text says that there was one."""

import msgspec
from msgspec import Raw, Struct

from translation.unreadable import UNREADABLE


class _Address(Struct):
    url: str = ""


class _Image(Struct):
    image_url: _Address | str | None = None


def pictured(raw: Raw) -> str:
    """Where it can be had, or what it was: `data:` addresses hold it all."""
    try:
        image = msgspec.json.decode(raw, type=_Image)
    except UNREADABLE:
        image = _Image()
    told = image.image_url or ""
    address = told if isinstance(told, str) else told.url
    head, comma, data = address.partition(",")
    if not head.startswith("data:"):
        return f"[image: {address}]" if address else "[image: cannot be shown here]"
    size = f", {len(data) * 3 // 4} bytes" if comma else ""
    return f"[{head[5:].partition(';')[0] or 'image'}{size}: cannot be shown here]"
