"""Changing where requests go, for operators. Every process hears of it within a second."""

from collections.abc import Iterable

from django.db.models.functions import Now

from conversations import secrets
from conversations.models import Change, Upstream


def announce(what: str) -> None:
    Change.objects.create(kind="routes", ref=what[:255], created_at=Now())


def give_keys(upstream: Upstream, keys: Iterable[str]) -> None:
    """Encrypted, and never to be had again; the row is the caller's to save."""
    given = tuple(dict.fromkeys(keys))
    upstream.secret = secrets.encrypt("\n".join(given)) if given else b""
    upstream.key_count = len(given)


def keys_can_be_read(upstream: Upstream) -> bool:
    try:
        secrets.decrypt(bytes(upstream.secret))
    except secrets.Unreadable:
        return False
    return True
