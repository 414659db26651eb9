"""Prices: the operator's own, over the built-in table."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.decorators import display

from conversations import ledger, prices, wording
from conversations.models import Price
from conversations.process import current


def per_million(field: str) -> Callable[[Price], str]:
    """A column in dollars. Its heading has the unit."""

    def shown(row: Price) -> str:
        return wording.dollars(getattr(row, field))

    words = field.replace("_", " ")
    named: Callable[[Price], str] = display(shown, description=f"{words}, per million", ordering=field)
    return named


@admin.register(Price)
class PriceAdmin(ModelAdmin):
    list_display = ("pattern", *map(per_million, ("input", "output", "cache_read", "cache_write")))
    search_fields = ("pattern",)
    list_before_template = "admin/conversations/price/known.html"
    known = prices.DEFAULTS
    actions = None
    fieldsets = (
        (
            None,
            {
                "fields": ("pattern", "input", "output", "cache_read", "cache_write"),
                "description": "Models that no row matches have their list price, if the bridge knows it.",
            },
        ),
    )

    def save_model(self, request: HttpRequest, obj: Price, form: "forms.ModelForm[Price]", change: Any) -> None:
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            ledger.announce_prices()
        current().hear("prices", "")

    def delete_model(self, request: HttpRequest, obj: Price) -> None:
        with transaction.atomic():
            super().delete_model(request, obj)
            ledger.announce_prices()
        current().hear("prices", "")
