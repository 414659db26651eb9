"""Cells of lists and pages: links, times, ids. Always through `format_html`: what they show may be hostile.

What the operator may not open is text, not a link.
"""

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
from conversations.admin.viewer import may_open
from conversations.wording import harmless


def link(row: Model, text: str, page: str = "change") -> SafeString:
    return _linked(url(row, page) if may_open(type(row)) else "", text)


def url(row: Model, page: str = "change") -> str:
    options = row._meta
    return reverse(f"admin:{options.app_label}_{options.model_name}_{page}", args=(quote(row.pk),))


def listed(model: type[Model], text: str, /, **lookups: str | int) -> SafeString:
    """A link to the rows behind a figure."""
    return _linked(list_url(model, **lookups), text)


def shown(model: type[Model], text: str, /, **lookups: str | int) -> SafeString:
    """A link whose text means nothing without it."""
    return listed(model, text, **lookups) if may_open(model) else SafeString(wording.NONE)


def list_url(model: type[Model], /, **lookups: str | int) -> str:
    """ "" for a list that the operator may not open."""
    if not may_open(model):
        return ""
    options = model._meta
    return f"{reverse(f'admin:{options.app_label}_{options.model_name}_changelist')}?{urlencode(lookups)}"


def _linked(address: str, text: str) -> SafeString:
    if not address:
        return format_html("{}", harmless(text))
    return format_html('<a class="tb-link" href="{}">{}</a>', address, harmless(text))


def led(address: str, text: str) -> SafeString:
    """Cut by the layout, and a link where there is an address."""
    if not address:
        return short(text)
    return format_html(
        '<a class="tb-link tb-short" href="{}" title="{}">{}</a>', address, harmless(text), harmless(text)
    )


def short_link(row: Model, text: str) -> SafeString:
    return led(url(row) if may_open(type(row)) else "", text)


def short(text: str) -> SafeString:
    """Cut by the layout, whole in its title."""
    return format_html('<span class="tb-short" title="{}">{}</span>', harmless(text), harmless(text))


def code(text: str) -> SafeString:
    """An id: cut by the layout, whole in its title and when copied."""
    if not text:
        return SafeString(wording.NONE)
    return format_html('<code class="tb-id" title="{}">{}</code>', harmless(text), harmless(text))


def code_link(row: Model, text: str, page: str = "change") -> SafeString:
    if not may_open(type(row)):
        return code(text)
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
