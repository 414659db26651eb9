"""What running turns have said so far, for whoever watches their conversation."""

from msgspec import Struct

from conversations.store.database import Database

# Nothing late may bring back what a terminated conversation has left.
SAVE = """INSERT INTO conversations_livesnapshot (turn, conversation, sequence, content, updated_at)
    SELECT %s, id, %s, %s, NOW() FROM conversations_conversation WHERE id = %s AND ended_at IS NULL
    ON CONFLICT (turn) DO UPDATE SET sequence = excluded.sequence, content = excluded.content,
      updated_at = excluded.updated_at"""


class SaveSnapshot(Struct, frozen=True):
    turn: int
    conversation: int
    sequence: int
    content: bytes

    def apply(self, db: Database) -> None:
        db.execute(SAVE, (self.turn, self.sequence, self.content, self.conversation))


class DropSnapshot(Struct, frozen=True):
    """The turn has ended: the store has its answer."""

    turn: int

    def apply(self, db: Database) -> None:
        db.execute("DELETE FROM conversations_livesnapshot WHERE turn = %s", (self.turn,))
