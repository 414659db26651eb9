"""What operators see: one module per table, pages of their own beside them. Importing it registers everything."""

from django.contrib import admin

from conversations import wording
from conversations.admin import (
    api_key,
    audit,
    conversation,
    hosted_tool,
    learned,
    operators,
    price,
    process,
    replay,
    route,
    tool_execution,
    tool_mapping,
    turn,
    upstream,
    usage,
)

admin.site.empty_value_display = wording.NONE

__all__ = [
    "api_key",
    "audit",
    "conversation",
    "hosted_tool",
    "learned",
    "operators",
    "price",
    "process",
    "replay",
    "route",
    "tool_execution",
    "tool_mapping",
    "turn",
    "upstream",
    "usage",
]
