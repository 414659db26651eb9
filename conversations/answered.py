"""What turns answered, as operators see it. Usually that is a row of the turn's own."""

from collections.abc import Sequence

from conversations.models import Message, Turn
from conversations.store import packing


def answer(turn: Turn) -> Message | None:
    own = turn.messages.exclude(message_id="").first()
    return own or next(iter(given_before((turn,))), None)


def given_before(turns: Sequence[Turn]) -> list[Message]:
    """The answers of turns of one conversation that have none of their own: what was said before, at the same place, is
    one row, an earlier turn's or the end of a packed history."""
    wanted = {bytes(turn.answer_hash) for turn in turns} - {b""}
    if not wanted:
        return []
    rows = Message.objects.filter(conversation=turns[0].conversation_id, chain_hash__in=list(wanted))
    found = {bytes(row.chain_hash): row for row in rows}
    return [_of(turn, row) for turn in turns if (row := found.get(bytes(turn.answer_hash))) is not None]


def _of(turn: Turn, row: Message) -> Message:
    role, content = packing.messages(row.role, row.span, row.content)[-1]
    told = {"role": role, "content": content, "message_id": turn.message_id, "state": row.state}
    return Message(turn=turn, depth=row.depth, **told)
