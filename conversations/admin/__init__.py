"""What operators see: one module per table, pages of their own beside them. Importing it registers everything."""

from conversations.admin import api_key, conversation, operators, price, process, tool_mapping, turn, usage

__all__ = ["api_key", "conversation", "operators", "price", "process", "tool_mapping", "turn", "usage"]
