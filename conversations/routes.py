"""Changing where requests go, for operators. Every process hears of it within a second."""

import datetime as dt
from collections.abc import Iterable

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from conversations import secrets
from conversations.models import Change, Rest, Upstream
from conversations.store.routes import BY_HAND


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


def rest(upstream: str, minutes: int, who: str) -> Rest:
    """Its fallbacks take over; where none is left, it is asked all the same."""
    now = timezone.now()
    until = now + dt.timedelta(minutes=minutes)
    columns = {"reason": f"{BY_HAND}, {who}"[:200], "since": now, "until": until}
    with transaction.atomic():
        row, _ = Rest.objects.update_or_create(upstream=upstream, key=0, defaults=columns)
        announce(f"{upstream} rests")
    return row


def wake(upstream: str) -> None:
    """Whatever made it, or a key of it, rest."""
    with transaction.atomic():
        Rest.objects.filter(upstream=upstream, until__gt=timezone.now()).update(until=timezone.now())
        Change.objects.create(kind="wake", ref=upstream, created_at=Now())
        announce(f"{upstream} wakes")
