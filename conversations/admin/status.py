"""The colours of states, the same in lists and on pages."""

from conversations.wording import TURN_COLOURS

__all__ = ["TOOL_COLOURS", "TURN_COLOURS"]

TOOL_COLOURS = {
    "streaming": "info",
    "pending": "warning",
    "answered": "success",
    "failed": "danger",
    "truncated": "danger",
    "repaired": "warning",
    "orphaned": "warning",
}
