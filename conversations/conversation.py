"""What a process knows of one conversation: true, but perhaps not all (`state.py`)."""

from collections.abc import Sequence

from msgspec import Struct

from conversations.store.reads import Known, Node
from conversations.store.writes import ConversationRow
from translation.state import Snapshot
from translation.values import Link, Origin


class Sent(Struct, frozen=True):
    """A request as it was sent, for the next one to share its beginning."""

    turn: int
    depth: int
    body: bytes


class Conversation(Struct, eq=False):
    """What is known of one conversation."""

    row: ConversationRow
    stored: bool  # whether its row is known to be in the database
    latest: int = 0  # of the turns that are known to have answered
    links: dict[str, Link] = {}
    turns: dict[bytes, int] = {}
    origins: dict[int, Origin] = {}
    nodes: dict[bytes, Node] = {}
    rounds: dict[str, Origin] = {}  # by a tool call that the bridge ran
    mixed: dict[int, bool] = {}  # turn -> whether the bridge ran tools in it, where that was asked

    @property
    def snapshot(self) -> Snapshot:
        return Snapshot(self.links, self.turns, self.origins)

    def learn(self, known: Known) -> None:
        self.links.update(known.links)
        self.turns.update(known.turns)
        self.origins.update(known.origins)
        self.nodes.update({node.chain_hash: node for node in known.nodes})
        self.latest = max(self.latest, *known.turns.values(), 0)

    def deepest(self, chain: Sequence[bytes]) -> tuple[int, Node | None]:
        """How many messages of this chain are stored, and the last of those."""
        if not self.nodes:
            return 0, None
        for index in range(len(chain) - 1, -1, -1):
            if (node := self.nodes.get(chain[index])) is not None:
                return index + 1, node
        return 0, None
