"""Everything that is encrypted at rest, encrypted anew: after that, older keys may be forgotten."""

from django.db import models

from conversations import secrets
from conversations.models import ToolMapping

SLICE = 500
COLUMNS: tuple[tuple[type[models.Model], tuple[str, ...]], ...] = ((ToolMapping, ("arguments", "state")),)


def reseal() -> tuple[int, int]:
    """How many values were, and how many could not be read."""
    counts = [_reseal(model, name) for model, names in COLUMNS for name in names]
    return sum(done for done, _ in counts), sum(failed for _, failed in counts)


def _reseal(model: type[models.Model], name: str) -> tuple[int, int]:
    done = failed = last = 0
    rows = model._default_manager.order_by("pk").only("pk", name)
    while found := list(rows.filter(pk__gt=last)[:SLICE]):
        last = found[-1].pk
        for row in found:
            value = bytes(getattr(row, name))
            if not value.startswith(secrets.SEALED):
                continue
            try:
                model._default_manager.filter(pk=row.pk).update(**{name: secrets.rotated(value)})
                done += 1
            except secrets.Unreadable:
                failed += 1
    return done, failed
