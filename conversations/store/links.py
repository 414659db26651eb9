"""Tool calls on their way to the client, each a row before it is shown."""

from msgspec import Struct

from conversations.store.database import Database
from conversations.store.writes import ConversationRow
from translation.errors import CallForgotten, ConversationEnded, OwnFault

LINK = """
INSERT INTO conversations_toolmapping (conversation_id, api_key_id, turn_id, tool_use_id, tool_name, upstream, model,
  upstream_name, upstream_call_id, ordinal, arguments, state, status, is_error, result_size, created_at)
SELECT %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, FALSE, 0, NOW()
WHERE EXISTS (SELECT 1 FROM conversations_conversation WHERE id = %s AND ended_at IS NULL)
ON CONFLICT (conversation_id, tool_use_id) DO UPDATE SET arguments = excluded.arguments, state = excluded.state,
  status = excluded.status"""
LINK_DONE = """
UPDATE conversations_toolmapping SET arguments = %s, state = %s, status = %s
WHERE conversation_id = %s AND tool_use_id = %s"""

TAKEN = """
SELECT 1 FROM conversations_toolmapping WHERE api_key_id = %s AND tool_use_id = %s AND turn_id <> %s LIMIT 1"""


class TakenId(OwnFault):
    """An upstream has called another call of the key the same."""

    def __init__(self, tool_use_id: str) -> None:
        super().__init__(f"{tool_use_id} is another call's")
        self.tool_use_id = tool_use_id


class LinkRow(Struct, frozen=True):
    tool_use_id: str
    name: str
    upstream_name: str
    upstream_id: str
    ordinal: int
    arguments: bytes = b""
    state: bytes = b""
    status: str = "streaming"
    fresh: bool = True  # not stored yet
    given: bool = False  # its id is the upstream's


class SaveLinks(Struct, frozen=True):
    """The tool calls that one upstream read brought or completed."""

    conversation: ConversationRow
    turn: int
    upstream: str
    model: str
    links: tuple[LinkRow, ...]

    def apply(self, db: Database) -> None:
        row, ended = self.conversation, ConversationEnded("the conversation was ended while this turn ran")
        for link in self.links:
            if link.fresh:
                if link.given and db.query(TAKEN, (row.api_key, link.tool_use_id, self.turn)):
                    raise TakenId(link.tool_use_id)
                owner = (row.id, row.api_key, self.turn, link.tool_use_id, link.name, self.upstream, self.model)
                call = (link.upstream_name, link.upstream_id, link.ordinal, link.arguments, link.state, link.status)
                db.expect(LINK, (*owner, *call, row.id), ended)
            else:
                done = (link.arguments, link.state, link.status)
                forgotten = CallForgotten(f"{link.tool_use_id} was deleted while it was being written")
                db.expect(LINK_DONE, (*done, row.id, link.tool_use_id), forgotten)
