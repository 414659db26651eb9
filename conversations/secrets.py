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


class Unreadable(Exception):
    """None of the keys opens it."""


def encrypt(secret: str) -> bytes:
    return _ring().encrypt(secret.encode())


def decrypt(sealed: bytes) -> str:
    try:
        return _ring().decrypt(sealed).decode()
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
