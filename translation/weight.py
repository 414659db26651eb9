"""What of an upstream request's body a model reads, whatever its dialect: texts to be counted, and what else weighs.

Ids, signatures and ciphertext are not read. Pictures and pages weigh by their size, not by the length of their base64.
"""

import binascii
import re
from struct import unpack_from
from typing import Any

import msgspec
from msgspec import Struct

from translation.unreadable import UNREADABLE

READ = (
    "instructions", "system", "systemInstruction", "tools", "messages", "contents", "input",
    "response_format", "text", "generationConfig", "output_config",
)  # fmt: skip
UNREAD = frozenset({
    "id", "call_id", "tool_call_id", "tool_use_id", "type", "role", "status", "detail", "effort", "cache_control",
    "signature", "thoughtSignature", "encrypted_content", "media_type", "mimeType", "strict",
})  # fmt: skip
WHOLE = frozenset({"args", "input", "response", "schema", "parameters", "responseSchema", "responseJsonSchema"})
LINK = frozenset({"type", "url", "image_url", "file_url", "fileUri", "file_id", "mimeType", "detail"})
HEAD = 4  # tokens around a message
PICTURE = 1500  # tokens of a picture that cannot be looked at
PAGE = 2000
PAGE_BYTES = 50_000  # of a PDF whose pages cannot be counted
LONG_EDGE, PIXELS_PER_TOKEN, MOST = 1568, 750, 1600

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?[^,]*;base64,")
_PAGE = re.compile(rb"/Type\s*/Page(?!s)")


class Weight(Struct, frozen=True):
    texts: tuple[str, ...]
    extra: int  # tokens that are not text


def weight(body: bytes) -> Weight:
    """Of a JSON body; anything else is one text."""
    try:
        fields = msgspec.json.decode(body)
    except UNREADABLE:
        fields = None
    if not isinstance(fields, dict):
        return Weight((body.decode("utf-8", "replace"),), 0)
    scale = _Scale()
    for name in READ:
        if name == "tools" and isinstance(fields.get(name), list):
            scale.texts += [_json(tool) for tool in fields[name]]
        else:
            scale.put(fields.get(name), "")
    return Weight(tuple(scale.texts), scale.extra)


class _Scale:
    def __init__(self) -> None:
        self.texts: list[str] = []
        self.extra = 3  # what primes the answer

    def put(self, value: Any, name: str) -> None:
        match value:
            case str():
                self._text(value)
            case list():
                for item in value:
                    self.put(item, "")
            case dict() if name in WHOLE:
                self.texts.append(_json(value))
            case dict():
                self._object(value)
            case _:
                pass  # numbers and flags

    def _text(self, text: str) -> None:
        if text.startswith("data:") and (head := _DATA_URL.match(text)):
            self.extra += _file(text[head.end() :], head[1] or "")
        elif text:
            self.texts.append(text)

    def _object(self, value: dict[str, Any]) -> None:
        kind = value.get("media_type") or value.get("mimeType")
        data = value.get("data")
        if kind and isinstance(data, str) and value.get("type") != "text":
            self.extra += _file(data, str(kind))
            return
        if value.keys() <= LINK and _is_link(value):
            self.extra += PICTURE
            return
        if "role" in value:
            self.extra += HEAD
        for name, item in value.items():
            if name not in UNREAD:
                self.put(item, name)


def _is_link(value: dict[str, Any]) -> bool:
    """What the upstream fetches itself."""
    links = [value[name] for name in ("url", "image_url", "file_url", "fileUri", "file_id") if name in value]
    return any(isinstance(link, str) and not link.startswith("data:") for link in links)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


# ---------------------------------------------------------------- pictures and pages


def _file(data: str, media_type: str) -> int:
    if "pdf" in media_type:
        return _pages(_bytes(data)) * PAGE
    size = _size(_bytes(data[:87_380]))
    return _picture(*size) if size else PICTURE


def _bytes(data: str) -> bytes:
    try:
        return binascii.a2b_base64(data[: len(data) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""


def _pages(pdf: bytes) -> int:
    return len(_PAGE.findall(pdf)) or max(1, len(pdf) // PAGE_BYTES)


def _picture(width: int, height: int) -> int:
    """As Anthropic counts: scaled down to its longest edge, then by area."""
    shrink = min(1.0, LONG_EDGE / max(width, height, 1))
    return max(1, min(MOST, round(width * shrink * height * shrink / PIXELS_PER_TOKEN)))


def _size(image: bytes) -> tuple[int, int] | None:
    if image.startswith(b"\x89PNG") and len(image) >= 24:
        width, height = unpack_from(">II", image, 16)
        return width, height
    if image.startswith(b"GIF8") and len(image) >= 10:
        width, height = unpack_from("<HH", image, 6)
        return width, height
    return _jpeg_size(image) if image.startswith(b"\xff\xd8") else None


def _jpeg_size(image: bytes) -> tuple[int, int] | None:
    place = 2
    while place + 9 <= len(image) and image[place] == 0xFF:
        marker, length = image[place + 1], unpack_from(">H", image, place + 2)[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = unpack_from(">HH", image, place + 5)
            return width, height
        place += 2 + length
    return None
