"""JSON by its outermost layer: what a client wrote stays in its own bytes, but for what has to change."""

import msgspec
from msgspec import Raw

from translation.unicode import json_string

Fields = dict[str, bytes]  # a JSON object: the bytes of each value

_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_RAWS = msgspec.json.Decoder(list[Raw])


def split(value: bytes) -> Fields:
    return {name: bytes(raw) for name, raw in _FIELDS.decode(value).items()}


def items(value: bytes) -> list[bytes]:
    return [bytes(raw) for raw in _RAWS.decode(value)]


def to_object(fields: Fields) -> bytes:
    return b"{" + b",".join(json_string(name) + b":" + value for name, value in fields.items()) + b"}"


def to_array(values: list[bytes]) -> bytes:
    return b"[" + b",".join(values) + b"]"
