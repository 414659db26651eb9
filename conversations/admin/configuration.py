"""What the admin of everything that decides about routing has in common: a change is heard by every process."""

from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from conversations import routes
from conversations.process import current


class RoutingAdmin(ModelAdmin):
    list_filter_submit = True
    # What a row that is yet to be made has not.
    later: tuple[str, ...] = ()
    # What tells those who may only look what others have in fields of the form.
    told: tuple[str, ...] = ()

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        sets = super().get_fieldsets(request, obj)
        if obj is None:
            return _without(sets, (*self.later, *self.told))
        return _without(sets, self.told if self.has_change_permission(request, obj) else _asked(self.form))

    def save_model(self, request: HttpRequest, obj: Model, form: Any, change: Any) -> None:
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            self._announce(str(obj))

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        with transaction.atomic():
            self._announce(str(obj))
            super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: "QuerySet[Any]") -> None:
        with transaction.atomic():
            super().delete_queryset(request, queryset)
            self._announce("several were deleted")

    def _announce(self, what: str) -> None:
        routes.announce(what)
        transaction.on_commit(lambda: current().hear("routes", what))


def _asked(form: Any) -> tuple[str, ...]:
    """Fields that no column is behind: without the form they are empty, whatever the row has."""
    return tuple(form.declared_fields)


def _without(sets: Any, names: tuple[str, ...]) -> list[Any]:
    left = [
        (title, options | {"fields": [one for one in options["fields"] if one not in names]}) for title, options in sets
    ]
    return [(title, options) for title, options in left if options["fields"]]
