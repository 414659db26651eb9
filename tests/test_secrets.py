"""Secrets at rest can be read again by whoever has a key, and by nobody else."""

import pytest
from pytest_django import Settings

from conversations import secrets


def test_secret_is_not_in_what_is_stored() -> None:
    sealed = secrets.encrypt("s3cret")
    assert b"s3cret" not in sealed
    assert secrets.decrypt(sealed) == "s3cret"


def test_keys_can_be_set_and_rotated_later(settings: Settings) -> None:
    first = secrets.encrypt("one")
    settings.BRIDGE_ENCRYPTION_KEYS = ("any text is a key",)
    second = secrets.encrypt("two")
    settings.BRIDGE_ENCRYPTION_KEYS = ("k" * 43 + "=", "any text is a key")
    assert [secrets.decrypt(sealed) for sealed in (first, second, secrets.encrypt("three"))] == ["one", "two", "three"]


def test_key_that_is_gone_opens_nothing(settings: Settings) -> None:
    settings.BRIDGE_ENCRYPTION_KEYS = ("one",)
    sealed = secrets.encrypt("secret")
    settings.BRIDGE_ENCRYPTION_KEYS = ("another",)
    with pytest.raises(secrets.Unreadable):
        secrets.decrypt(sealed)
