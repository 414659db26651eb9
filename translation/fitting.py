"""JSON in a shape that it should not have, where it is clear what is meant by it.

Servers written in PHP or Go say "nothing" as an empty thing of another kind (`[]`, `{}`, `""`, `false`), Cloudflare's
write a token that looks like a number as one, others leave out the list around a single thing.
"""

from functools import cache

import msgspec
from msgspec import Raw, Struct, inspect

from translation.unicode import json_string

_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_items = msgspec.json.Decoder(list[Raw]).decode
_info = cache(inspect.type_info)
NOTHING = (b"null", b"false", b'""', b"[]", b"{}")
MOST = 1e15  # of anything that is counted


class Spare(Struct, frozen=True):
    """A part of an answer that nothing hangs on: what cannot be read of it is left out."""


def fitted(data: bytes, kind: object) -> bytes:
    """The same as a value of this kind, as far as it can be told; what cannot be stays as it is."""
    return _fit(data.strip(), _info(kind)) or data


def _fit(raw: bytes, wanted: inspect.Type, *, spare: bool = False) -> bytes:
    """b"" where there is nothing."""
    if raw == b"null":
        return b""
    kinds = wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,)
    for kind in kinds:
        if (found := _as(raw, kind)) is not None:
            return found
    return b"" if spare or raw in NOTHING or any(map(_is_spare, kinds)) else raw


def _as(raw: bytes, kind: inspect.Type) -> bytes | None:  # noqa: PLR0911 - one for each kind
    """None where it is not of this kind."""
    first = raw[:1]
    match kind:
        case inspect.RawType():
            return raw
        case inspect.DictType() if first == b"{":
            return raw
        case inspect.StrType() if first == b'"' or _is_number(raw):
            return raw if first == b'"' else json_string(raw.decode())
        case inspect.BoolType() if raw in (b"true", b"false"):
            return raw
        case inspect.IntType() | inspect.FloatType() if _is_number(number := raw.strip(b'"')):
            return _number(number, kind)
        case inspect.StructType() if first == b"{":
            return _object(raw, kind)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item) if first == b"[":
            return _list([bytes(each) for each in _items(raw)], item)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item) if first == b"{" and raw != b"{}":
            return _list([raw], item)
        case _:
            return None


def _is_number(raw: bytes) -> bool:
    try:
        return isinstance(msgspec.json.decode(raw), int | float) and raw[:1] not in (b"t", b"f")
    except msgspec.DecodeError:
        return False


def _number(raw: bytes, kind: inspect.IntType | inspect.FloatType) -> bytes | None:
    value = max(-MOST, min(float(raw), MOST))
    return None if kind.ge is not None and value < kind.ge else b"%d" % value


def _is_spare(kind: inspect.Type) -> bool:
    return isinstance(kind, inspect.StructType) and issubclass(kind.cls, Spare)


def _list(items: list[bytes], kind: inspect.Type) -> bytes:
    return b"[%b]" % b",".join(filter(None, [_fit(item, kind) for item in items]))


def _object(raw: bytes, kind: inspect.StructType) -> bytes:
    known, spare = {field.encode_name: field.type for field in kind.fields}, _is_spare(kind)
    given = {name: bytes(value) for name, value in _fields(raw).items()}
    fit = {name: _fit(value, known[name], spare=spare) if name in known else value for name, value in given.items()}
    return msgspec.json.encode({name: Raw(value) for name, value in fit.items() if value})
