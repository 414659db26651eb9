"""Turns that are closed by others than those who ran them."""

from msgspec import Struct

from conversations.store.database import Database
from conversations.store.writes import ConversationRow

# Four steps. The first waits for whoever ends the same turn at the same time: its calls are counted once. It takes the
# conversation before the turn, as they do: had each one of both, neither would get on.
LOST_CONVERSATION = """
UPDATE conversations_conversation SET last_status = last_status
WHERE id = (SELECT conversation_id FROM conversations_turn WHERE id = %s AND status = 'running')"""
LOST_CALLS = """
UPDATE conversations_turn SET tool_count = (
  SELECT COUNT(*) FROM conversations_toolmapping m WHERE m.turn_id = conversations_turn.id)
WHERE id = %s AND status = 'running'"""
LOST_COUNTED = """
UPDATE conversations_conversation SET
  tool_count = tool_count + (SELECT tool_count FROM conversations_turn WHERE id = %s),
  last_status = CASE last_status WHEN 'running' THEN 'error' ELSE last_status END
WHERE id = (SELECT conversation_id FROM conversations_turn WHERE id = %s AND status = 'running')"""
LOST = """
UPDATE conversations_turn SET status = 'error', error_type = %s, error_message = %s
WHERE id = %s AND status = 'running'"""
# One that has ended well after all keeps them: who asks the same again gets its answer.
LOST_CLAIMS = """
DELETE FROM conversations_claim
WHERE turn = %s AND NOT EXISTS (SELECT 1 FROM conversations_turn WHERE id = %s AND status = 'complete')"""
AWAY = ("overloaded_error", "the store was away when this turn ended")
DIED = ("api_error", "the process that ran this turn died")


class CloseLost(Struct, frozen=True):
    """A turn whose end nobody will tell: the store was away for so long that it is forgotten, or its process died."""

    conversation: ConversationRow
    turn: int
    error: tuple[str, str] = AWAY  # its type, and what it says

    def apply(self, db: Database) -> None:
        turn = self.turn
        db.execute(LOST_CONVERSATION, (turn,))
        db.execute(LOST_CALLS, (turn,))
        db.execute(LOST_COUNTED, (turn, turn))
        db.execute(LOST, (*self.error, turn))
        db.execute(LOST_CLAIMS, (turn, turn))
