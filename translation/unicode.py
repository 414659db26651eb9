"""Text that an upstream may have broken, made fit for UTF-8."""

from hashlib import blake2b

import msgspec


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


def json_string(text: str) -> bytes:
    try:
        return msgspec.json.encode(text)
    except UnicodeEncodeError:
        return msgspec.json.encode(well_formed(text))


def fingerprint(text: str) -> str:
    """64 characters that stand for a text of any length."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
