"""The right to continue a message, or to run a request: the database is where processes meet."""

from msgspec import Struct

from conversations.store.database import Database
from translation.errors import OwnFault

CLAIM = """
INSERT INTO conversations_claim (api_key_id, conversation_id, kind, token, turn, created_at)
VALUES (%s, %s, %s, %s, %s, NOW())
ON CONFLICT (api_key_id, kind, token) DO UPDATE SET turn = excluded.turn, conversation_id = excluded.conversation_id,
  created_at = excluded.created_at WHERE conversations_claim.created_at < {expired} OR NOT EXISTS (
    SELECT 1 FROM conversations_conversation c WHERE c.id = conversations_claim.conversation_id AND c.ended_at IS NULL)
  OR EXISTS (
    SELECT 1 FROM conversations_turn t WHERE t.id = conversations_claim.turn AND t.status IN ('error', 'aborted'))"""
GIVEN = """
INSERT INTO conversations_claim (api_key_id, conversation_id, kind, token, turn, created_at)
SELECT t.api_key_id, t.conversation_id, %s, %s, t.id, NOW() FROM conversations_turn t WHERE t.id = %s
ON CONFLICT (api_key_id, kind, token) DO NOTHING"""
FOREVER, NO_TIME = 3e9, -86_400.0  # seconds; less than none, since what is written together has the same time


class ClaimRow(Struct, frozen=True):
    kind: str  # thread, request
    token: str
    seconds: float = FOREVER  # after which a claim is nobody's any more, as is an ended conversation's


class AlreadyClaimed(OwnFault):
    """Another turn has the claim."""

    def __init__(self, claim: ClaimRow) -> None:
        super().__init__(f"another request has {claim.kind} {claim.token}")
        self.claim = claim


class GiveClaim(Struct, frozen=True):
    """To a turn that was begun without."""

    claim: ClaimRow
    turn: int

    def apply(self, db: Database) -> None:
        db.execute(GIVEN, (self.claim.kind, self.claim.token, self.turn))
