"""The colours of states, the same in lists and on pages."""

from conversations.wording import TOOL_COLOURS, TURN_COLOURS

__all__ = ["TOOL_COLOURS", "TURN_COLOURS"]
