"""Cells of lists and pages: links, times, ids. Always through `format_html`: what they show may be hostile."""

import datetime as dt

from django.contrib.admin.utils import quote
from django.db.models import Model
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from conversations import wording
from conversations.wording import harmless


def link(row: Model, text: str, page: str = "change") -> SafeString:
    return format_html('<a class="tb-link" href="{}">{}</a>', url(row, page), harmless(text))


def url(row: Model, page: str = "change") -> str:
    options = row._meta
    return reverse(f"admin:{options.app_label}_{options.model_name}_{page}", args=(quote(row.pk),))


def listed(model: type[Model], text: str, /, **lookups: str | int) -> SafeString:
    """A link to the rows behind a figure."""
    return format_html('<a class="tb-link" href="{}">{}</a>', list_url(model, **lookups), harmless(text))


def list_url(model: type[Model], /, **lookups: str | int) -> str:
    options = model._meta
    return f"{reverse(f'admin:{options.app_label}_{options.model_name}_changelist')}?{urlencode(lookups)}"


def short(text: str) -> SafeString:
    """Cut by the layout, whole in its title."""
    return format_html('<span class="tb-short" title="{}">{}</span>', harmless(text), harmless(text))


def code(text: str) -> SafeString:
    """An id: cut by the layout, whole in its title and when copied."""
    if not text:
        return SafeString(wording.NONE)
    return format_html('<code class="tb-id" title="{}">{}</code>', harmless(text), harmless(text))


def code_link(row: Model, text: str, page: str = "change") -> SafeString:
    return format_html(
        '<a class="tb-link tb-id" href="{}" title="{}">{}</a>', url(row, page), harmless(text), harmless(text)
    )


def moment(value: dt.datetime | None) -> SafeString:
    if value is None:
        return SafeString(wording.NONE)
    exact = date_format(value, "DATETIME_FORMAT")
    return format_html(
        '<time class="tb-short" datetime="{}" title="{}">{}</time>',
        value.isoformat(),
        exact,
        wording.ago(value, timezone.now()),
    )
