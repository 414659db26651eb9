"""API keys: issuing, revoking. Only a key's SHA-256 is stored: it is random, so it cannot be guessed back."""

import hashlib
import secrets
from collections.abc import Iterable

from django.db import models, transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from conversations.models import ApiKey, Change

PREFIX = "sk-tb-"
MOST_NAMED = 20  # keys of one name that are told apart
ENVIRONMENT = "environment"  # and a number: what keys of BRIDGE_API_KEYS are called


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def issue(name: str, **chosen: object) -> tuple[ApiKey, str]:
    """A new key, with what was chosen for its columns, and its secret, which is never to be had again."""
    secret = PREFIX + secrets.token_urlsafe(32)
    return _create(name, secret, **chosen), secret


def rotate(key: ApiKey) -> str:
    """A new secret for the same key; the old one stops within a second."""
    secret = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        announce(key)
        key.digest, key.prefix = digest(secret), _shown(secret)
        key.save(update_fields=["digest", "prefix"])
    return secret


def find(given: str) -> ApiKey:
    """The usable key with this name, these first characters, or this secret."""
    named = Q(name=given) | Q(prefix=given) | Q(digest=digest(given))
    match list(ApiKey.objects.filter(revoked_at=None).filter(named).order_by("pk")[:MOST_NAMED]):
        case [key]:
            return key
        case []:
            raise LookupError(f"no usable key is called {given}")
        case several:
            prefixes = ", ".join(key.prefix for key in several)
            raise LookupError(
                f"several keys are called {given}: say which by its first characters ({prefixes}), or by the key itself"
            )


def ensure_environment_keys(secrets_given: Iterable[str]) -> None:
    """Keys of BRIDGE_API_KEYS are accepted as they are."""
    for number, secret in enumerate(secrets_given, 1):
        if not ApiKey.objects.filter(digest=digest(secret)).exists():
            _create(f"{ENVIRONMENT} {number}", secret)


def left_of_environment(secrets_given: Iterable[str]) -> "models.QuerySet[ApiKey]":
    """Keys that were in BRIDGE_API_KEYS once and are still accepted: conversations belong to them, and another machine
    may have them in its environment."""
    made = ApiKey.objects.filter(name__startswith=f"{ENVIRONMENT} ", revoked_at=None)
    return made.exclude(digest__in=[digest(secret) for secret in secrets_given])


def revoke(key: ApiKey) -> None:
    with transaction.atomic():
        ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now())
        announce(key)


def announce(key: ApiKey) -> None:
    """Tell every process that this key changed."""
    Change.objects.create(kind="key", ref=key.digest, created_at=Now())


def _create(name: str, secret: str, **chosen: object) -> ApiKey:
    defaults = {"name": name, "prefix": _shown(secret), **chosen}
    key, _ = ApiKey.objects.get_or_create(digest=digest(secret), defaults=defaults)
    return key


def _shown(secret: str) -> str:
    """A short secret would be given away by its first characters."""
    return secret[:10] if len(secret) >= 24 else secret[:3]
