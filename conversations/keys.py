"""API keys: issuing, revoking. Only a key's SHA-256 is stored: it is random, so it cannot be guessed back."""

import datetime as dt
import hashlib
import secrets
from collections.abc import Iterable

from django.db import transaction
from django.utils import timezone

from conversations.models import ApiKey, Change, StorageLevel

PREFIX = "sk-tb-"


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def issue(name: str, *, storage: str = StorageLevel.FULL, expires_at: dt.datetime | None = None) -> tuple[ApiKey, str]:
    """A new key and its secret, which is never to be had again."""
    secret = PREFIX + secrets.token_urlsafe(32)
    return _create(name, secret, storage=storage, expires_at=expires_at), secret


def ensure_environment_keys(secrets_given: Iterable[str]) -> None:
    """Keys of BRIDGE_API_KEYS are accepted as they are."""
    for number, secret in enumerate(secrets_given, 1):
        if not ApiKey.objects.filter(digest=digest(secret)).exists():
            _create(f"environment {number}", secret)


def revoke(key: ApiKey) -> None:
    with transaction.atomic():
        ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())
        announce(key)


def announce(key: ApiKey) -> None:
    """Tell every process that this key changed."""
    Change.objects.create(kind="key", ref=key.digest, created_at=timezone.now())


def _create(name: str, secret: str, **chosen: object) -> ApiKey:
    # A short secret would be given away by its first characters.
    shown = secret[:10] if len(secret) >= 24 else secret[:3]
    key, _ = ApiKey.objects.get_or_create(digest=digest(secret), defaults={"name": name, "prefix": shown, **chosen})
    return key
