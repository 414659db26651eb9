"""Everything that is encrypted at rest, encrypted anew: after that, older keys may be forgotten.

Row by row, each readable before and after: what was interrupted is simply done again.
"""

from django.db import models

from conversations import secrets
from conversations.models import ToolMapping, ToolSecret, Upstream

SLICE = 500


def reseal() -> tuple[int, int]:
    """How many values were, and how many could not be read."""
    counts = (
        _reseal(Upstream, "secret", b""),
        _reseal(ToolSecret, "value", b""),
        _reseal(ToolMapping, "arguments", secrets.SEALED),
        _reseal(ToolMapping, "state", secrets.SEALED),
    )
    return sum(done for done, _ in counts), sum(failed for _, failed in counts)


def _reseal(model: type[models.Model], name: str, mark: bytes) -> tuple[int, int]:
    """What begins with the mark is encrypted, the rest never was."""
    done = failed = last = 0
    rows = model._default_manager.order_by("pk").only("pk", name)
    while found := list(rows.filter(pk__gt=last)[:SLICE]):
        last = found[-1].pk
        for row in found:
            value = bytes(getattr(row, name))
            if not value or not value.startswith(mark):
                continue
            try:
                # Only if it is still what was read: an operator may just have set another.
                unchanged = model._default_manager.filter(pk=row.pk, **{name: value})
                done += unchanged.update(**{name: secrets.rotated(value)})
            except secrets.Unreadable:
                failed += 1
    return done, failed
