"""Secrets at rest: encrypted under the first of BRIDGE_ENCRYPTION_KEYS, readable under each of them.

Without such keys, the one that Django's secret key gives is used; it is also the last that is tried, so that keys can
be set later.
"""

import base64
import hashlib
from contextlib import suppress
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from conversations import conf

SEALED = b"\0sealed:"  # no JSON begins like this


class Unreadable(Exception):
    """None of the keys opens it."""


def encrypt(secret: str) -> bytes:
    return _ring().encrypt(secret.encode())


def decrypt(sealed: bytes) -> str:
    try:
        return _ring().decrypt(sealed).decode()
    except InvalidToken:
        raise Unreadable("none of BRIDGE_ENCRYPTION_KEYS opens this secret") from None


def configured() -> bool:
    """Whether content is to be encrypted too."""
    return len(conf.sealing_keys()) > 1


def seal(data: bytes) -> bytes:
    """Content; what is empty says nothing."""
    return SEALED + _ring().encrypt(data) if data else data


def unseal(data: bytes) -> bytes:
    """Content, sealed or not."""
    if not data.startswith(SEALED):
        return data
    try:
        return _ring().decrypt(data[len(SEALED) :])
    except InvalidToken:
        raise Unreadable("none of BRIDGE_ENCRYPTION_KEYS opens this content") from None


def opened(data: bytes) -> bytes:
    """Content for who only looks at it; b"" where none of the keys opens it."""
    try:
        return unseal(data)
    except Unreadable:
        return b""


def rotated(sealed: bytes) -> bytes:
    """The same under the first key; `encrypt` and `seal` are both understood."""
    mark = SEALED if sealed.startswith(SEALED) else b""
    try:
        return mark + _ring().rotate(sealed[len(mark) :])
    except InvalidToken:
        raise Unreadable("none of BRIDGE_ENCRYPTION_KEYS opens this secret") from None


def _ring() -> MultiFernet:
    return _made(conf.sealing_keys())


@lru_cache(maxsize=4)
def _made(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(_fernet_key(key)) for key in keys])


def _fernet_key(text: str) -> bytes:
    """Any text is a key; one that is a Fernet key already is taken as it is."""
    with suppress(ValueError):  # not base64
        if len(base64.urlsafe_b64decode(text.encode())) == 32:
            return text.encode()
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
