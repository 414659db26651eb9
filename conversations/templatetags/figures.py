"""Figures in templates, worded as everywhere in the admin."""

from django.template import Library

from conversations import wording
from conversations.wording import harmless

register = Library()

COLOURS = wording.TURN_COLOURS | wording.TOOL_COLOURS

register.filter("status_colour", lambda value: COLOURS.get(str(value), "info"))

register.filter("milliseconds", lambda value: wording.milliseconds(value or 0))
register.filter("count", lambda value: wording.count(value or 0))
register.filter("bytesize", lambda value: wording.size(value or 0))
register.filter("money", lambda value: wording.money(value or 0))
register.filter("named", lambda value: wording.NAMES.get(str(value), str(value)))
register.filter("harmless", lambda value: harmless(str(value)))
