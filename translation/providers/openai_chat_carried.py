"""The fields of a streamed message that go back as they came, or as their pieces add up.

All but OpenRouter's details are read leniently: an answer is worth more than what cannot be read of them.
"""

from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from translation.providers.openai_chat_state import NOTHING, Fields
from translation.providers.openai_chat_wire import Delta, thought_of
from translation.unreadable import UNREADABLE

T = TypeVar("T")


class Block(Struct, omit_defaults=True):
    """Claude's thinking as LiteLLM tells it: a stream's pieces have no index; the signature ends them."""

    type: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None  # of a redacted one


class Signatures(Struct):
    thought_signatures: list[str] | None = None  # LiteLLM's, of Gemini's texts


_blocks = msgspec.json.Decoder(list[Block] | None)
_extra = msgspec.json.Decoder(dict[str, Fields] | None)
_signatures = msgspec.json.Decoder(Signatures | None)
_object = msgspec.json.Decoder(dict[str, Any]).decode


def carries(delta: Delta) -> bool:
    """Whether there is anything of these in it; OpenRouter's details say something, too."""
    given = (delta.thinking_blocks, delta.reasoning_opaque, delta.extra_content, delta.provider_specific_fields)
    return any(bytes(raw) not in (b"", b"null") for raw in given)


class Carried(Struct, eq=False):
    """Feed it the deltas that bring any."""

    details: list[Raw] = []
    _whole: bool = False  # they came at once, not in fragments
    _blocks: list[Block] = []
    _thought: list[str] = []  # of the block that is not signed yet
    _opaque: Raw = NOTHING
    _extra: dict[str, Fields] = {}
    _signatures: dict[str, None] = {}

    @property
    def anything(self) -> bool:
        return bool(self.details or self._blocks or self._thought or self._opaque or self._extra or self._signatures)

    def feed(self, delta: Delta, *, whole: bool) -> str:
        """The words in it, for servers that tell them nowhere else."""
        told = ""
        if delta.reasoning_details:
            told = thought_of(delta.reasoning_details)
            self.details += delta.reasoning_details
            self._whole = whole
        for block in _read(_blocks, delta.thinking_blocks) or ():
            told += self._block(block)
        if bytes(delta.reasoning_opaque) not in (b"", b"null"):
            self._opaque = delta.reasoning_opaque
        for vendor, fields in (_read(_extra, delta.extra_content) or {}).items():
            # `thought` says of a piece that it is reasoning; of the whole message it would be wrong.
            self._extra[vendor] = self._extra.get(vendor, {}) | {k: v for k, v in fields.items() if k != "thought"}
        signed = _read(_signatures, delta.provider_specific_fields)
        self._signatures |= dict.fromkeys((signed.thought_signatures or ()) if signed else ())
        return told

    def _block(self, block: Block) -> str:
        """What is new in it: the piece with the signature may repeat the whole thought."""
        text = block.thinking or ""
        if block.type != "thinking":
            self._blocks += [block] if block.data else []
            return ""
        if not block.signature:
            self._thought.append(text)
            return text
        known = "".join(self._thought)
        self._thought.clear()
        new = text.removeprefix(known)
        self._blocks.append(Block("thinking", known + new, block.signature))
        return new

    @property
    def merged_details(self) -> Raw:
        return _merged(self.details, whole=self._whole) if self.details else NOTHING

    def fields(self, thought: str) -> Fields:
        """The others. Copilot takes its reasoning back, a `thought` in its own field, beside what is opaque of it."""
        found: dict[str, object] = {}
        if self._blocks:
            found["thinking_blocks"] = self._blocks
        if self._opaque:
            found |= {"reasoning_text": thought} if thought else {}
            found["reasoning_opaque"] = self._opaque
        if extra := {vendor: fields for vendor, fields in self._extra.items() if fields}:
            found["extra_content"] = extra
        if self._signatures:
            found["provider_specific_fields"] = {"thought_signatures": list(self._signatures)}
        return {name: Raw(msgspec.json.encode(value)) for name, value in found.items()}


def _read(decoder: msgspec.json.Decoder[T], raw: Raw) -> T | None:
    try:
        return decoder.decode(raw) if raw else None
    except UNREADABLE:
        return None


def _merged(details: list[Raw], *, whole: bool) -> Raw:
    """OpenRouter's reasoning details, streamed in fragments: one per index, texts joined, the rest as last told.

    Two that name different calls or items (Gemini's signatures) are two, whatever their index.
    """
    if whole:
        return Raw(msgspec.json.encode(details))
    out: list[dict[str, Any]] = []
    for raw in details:
        detail = _object(raw)
        last = out[-1] if out else {}
        another = detail.get("id") and last.get("id") and detail["id"] != last["id"]
        if not last or another or any(last.get(key) != detail.get(key) for key in ("type", "index")):
            out.append(detail)
            continue
        for key, value in detail.items():
            if key in ("text", "summary", "data") and isinstance(last.get(key), str) and isinstance(value, str):
                last[key] += value
            elif value is not None:
                last[key] = value
    return Raw(msgspec.json.encode(out))
