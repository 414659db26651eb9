"""The colours of states, the same in lists and on pages."""

TURN_COLOURS = {"running": "info", "complete": "success", "aborted": "warning", "error": "danger"}
TOOL_COLOURS = {
    "streaming": "info",
    "pending": "warning",
    "answered": "success",
    "failed": "danger",
    "truncated": "danger",
    "repaired": "warning",
}
