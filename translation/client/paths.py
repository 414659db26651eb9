"""What is wrong with a request, and where, as the API says it: `messages.3.content.1.tool_use_id: Field required`."""

import re
from typing import TypeVar

import msgspec

from translation.errors import InvalidRequest

# Of JSON that the bridge carries for others: deeper is an attack, and recursive readers would fall over.
MAX_DEPTH = 100
EXPECTED = {
    "array": "a valid list",
    "object": "a valid dictionary",
    "str": "a valid string",
    "int": "a valid integer",
    "float": "a valid number",
    "bool": "a valid boolean",
}

BOM = b"\xef\xbb\xbf"
MAX_FIELDS = 1_000
CROWD = 1_000_000  # items that a body may have unseen


class _Object(msgspec.Struct, gc=False):
    pass


class _Message(msgspec.Struct, gc=False):
    role: str


T = TypeVar("T")
Fields = dict[str, msgspec.Raw]

_NULL = msgspec.Raw(b"null")
_FIELDS = msgspec.json.Decoder(Fields)
_ANYTHING = msgspec.json.Decoder()
_NAME = msgspec.json.Decoder(str)
_OBJECTS: msgspec.json.Decoder[object] = msgspec.json.Decoder(list[_Object])
_MESSAGES: msgspec.json.Decoder[object] = msgspec.json.Decoder(list[_Message])
_BYTE = re.compile(r"^JSON is malformed: (.*) \(byte (\d+)\)$")
_LONE_SURROGATE = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u)")
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def wrong(path: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{path}: {what}")


def one_of(path: str, allowed: tuple[str, ...], found: str) -> InvalidRequest:
    names = ", ".join(repr(name) for name in allowed[:-1]) + f" or {allowed[-1]!r}" if allowed[1:] else repr(allowed[0])
    return wrong(path, f"Input should be {names}, not {found[:100]!r}")


def decode(decoder: msgspec.json.Decoder[T], raw: msgspec.Raw | bytes, path: str) -> T:
    try:
        return decoder.decode(raw)
    except msgspec.ValidationError as error:
        raise explained(error, path) from None


def explained(error: msgspec.ValidationError, path: str) -> InvalidRequest:
    """msgspec's finding below `path` ("" is the body itself), said the way the API says it."""
    what, _, where = str(error).rpartition(" - at `$")
    if not what:
        what, where = where, ""
    steps = [path, *re.findall(r"\w+", where)]
    quoted = re.findall(r"`([^`]*)`", what)
    if what.startswith("Expected"):
        expected = next(words for kind, words in EXPECTED.items() if kind in quoted[0].split(" | "))
        what = f"Input should be {expected}"
    elif what.startswith("Object missing"):
        steps.append(quoted[0])
        what = "Field required"
    elif what.startswith("Invalid value"):
        what = f"Input tag {what.removeprefix('Invalid value ')[:100]} is not one of the known tags"
    return wrong(".".join(filter(None, steps)), what)


def named(text: str, path: str) -> str:
    """A name or an id: not empty, and nothing that a terminal, a log or a database would trip over."""
    if not text:
        raise wrong(path, "String should have at least 1 character")
    if not text.isprintable():
        raise wrong(path, "String should hold printable characters only")
    return text


def required(fields: Fields, name: str) -> msgspec.Raw:
    if name not in fields:
        raise wrong(name, "Field required")
    return fields[name]


def model_of(fields: Fields) -> str:
    model = named(decode(_NAME, required(fields, "model"), "model"), "model")
    if len(model) > 256:
        raise wrong("model", "String should have at most 256 characters")
    return model


def carried(raw: msgspec.Raw | bytes, path: str) -> bytes:
    """JSON that is kept as the client wrote it: known to be readable by whoever reads it later."""
    text = bytes(raw)
    if text.count(b"{") + text.count(b"[") > MAX_DEPTH and _is_deep(text):
        raise wrong(path, f"JSON is nested deeper than {MAX_DEPTH} levels")
    decode(_ANYTHING, text, path)
    return text


def carried_object(raw: msgspec.Raw | bytes, path: str) -> bytes:
    text = carried(raw, path)
    if not text.startswith(b"{"):
        raise wrong(path, "Input should be a valid dictionary")
    return text


def carried_fields(path: str, **fields: msgspec.Raw) -> bytes:
    """Those that are there as one JSON object; b"" when none is. An absent field has no bytes."""
    given = {name: raw for name, raw in fields.items() if bytes(raw) not in (b"", b"null")}
    return carried(msgspec.json.encode(given), path) if given else b""


def split(body: bytes) -> Fields:
    """The bytes of each field that is not null. Splitting does not look at UTF-8 inside strings: that comes first."""
    if body[:3] == BOM:
        body = body[3:]
    try:
        if not body.isascii():
            str(body, "utf-8")
        fields = _FIELDS.decode(body)
    except (UnicodeDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise unreadable(body, error) from None
    if len(fields) > MAX_FIELDS:
        raise InvalidRequest(f"The request body has more than {MAX_FIELDS} fields")
    if _NULL in fields.values():
        fields = {name: raw for name, raw in fields.items() if raw != _NULL}
    if len(body) > CROWD and body.count(b",") > CROWD:
        _look_over(fields)
    return fields


def _look_over(fields: Fields) -> None:
    """A list of maybe millions has to be of objects: of anything else there would be a value each, for nothing."""
    for name, decoder in (("messages", _MESSAGES), ("tools", _OBJECTS)):
        if name in fields:
            decode(decoder, fields[name], name)


def _is_deep(text: bytes) -> bool:
    brackets = _STRING.sub(b"", text).translate(_BRACKETS, _NOT_BRACKETS)
    for _ in range(MAX_DEPTH):
        brackets = brackets.replace(b"[]", b"")  # the innermost layer
    return bool(brackets)


def unreadable(body: bytes, error: Exception) -> InvalidRequest:
    """Why a body is not JSON, and where."""
    if isinstance(error, RecursionError):
        return InvalidRequest("The request body is not valid JSON: it is nested too deeply")
    if isinstance(error, UnicodeDecodeError):
        return _at(body, error.start, "invalid UTF-8")
    if isinstance(error, msgspec.ValidationError):
        return InvalidRequest("The request body is not a JSON object")
    if found := _BYTE.match(str(error)):
        return _at(body, int(found[2]), found[1])
    # msgspec takes a high surrogate that no escape follows for the end of the input.
    for lone in _LONE_SURROGATE.finditer(body):
        if not _is_escaped(body, lone.start()):
            return _at(body, lone.start(), "lone surrogate in a string")
    return _at(body, len(body), "unexpected end")


def _is_escaped(body: bytes, place: int) -> bool:
    """Whether the backslash at this place is itself the second half of an escape."""
    start = place
    while body[start - 1 : start] == b"\\":
        start -= 1
    return (place - start) % 2 == 1


def _at(body: bytes, byte: int, what: str) -> InvalidRequest:
    line = body.count(b"\n", 0, byte) + 1
    column = byte - body.rfind(b"\n", 0, byte)
    return InvalidRequest(f"The request body is not valid JSON: {what} at line {line} column {column} (byte {byte})")
