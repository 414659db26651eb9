"""Gateways write null for what the API that they speak leaves out."""

import msgspec
from msgspec import Raw

_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode


def without_nulls(data: bytes, arguments: str) -> bytes:
    """JSON without them. What a call is given, in the field of this name, stays as it was written."""
    match data.lstrip()[:1]:
        case b"{":
            fields = {name: bytes(value) for name, value in _fields(data).items()}
            given = {name: value for name, value in fields.items() if value != b"null"}
            return msgspec.json.encode(
                {
                    name: Raw(value if name == arguments else without_nulls(value, arguments))
                    for name, value in given.items()
                }
            )
        case b"[":
            return msgspec.json.encode([Raw(without_nulls(bytes(item), arguments)) for item in _items(data)])
        case _:
            return data
