"""Text that an upstream may have broken, made fit for UTF-8."""

import re
from hashlib import blake2b

import msgspec

_encode = msgspec.json.encode


def well_formed(text: str) -> str:
    """Lone surrogates, which no encoder takes, become U+FFFD; two halves that stand together become their character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def check_utf8(data: bytes) -> None:
    """Raises UnicodeDecodeError. Reading JSON looks only at the strings that it keeps; raw parts are passed on."""
    if not data.isascii():
        str(data, "utf-8")


ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\."
)


def without_halves(data: bytes) -> bytes:
    """JSON whose escaped halves of characters, which cannot be read, are U+FFFD."""
    return ESCAPES.sub(lambda escape: b"\\ufffd" if escape[1] else escape[0], data)


class Halves(msgspec.Struct, eq=False):
    """Characters that an upstream cuts in two, half of one at the end of an event and half at the start of the next.

    Servers in JavaScript do, where they cut a text by its length.
    """

    open: bytes = b""  # the first half, until the second comes

    def joined(self, data: bytes) -> bytes:
        """The event with whole characters; a half without the other stays, and cannot be read."""
        return ESCAPES.sub(self._join, data)

    def _join(self, escape: re.Match[bytes]) -> bytes:
        half = escape[1]
        if half is None:
            return escape[0]
        first, self.open = self.open, b""
        if half[3:4] in b"cdefCDEF":
            return first + half
        self.open = half
        return b""


def json_string(text: str) -> bytes:
    try:
        return _encode(text)
    except UnicodeEncodeError:
        return _encode(well_formed(text))


def fingerprint(text: str) -> str:
    """64 characters that stand for a text of any length."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
