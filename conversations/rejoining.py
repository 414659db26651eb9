"""Answers whose hosted calls the client could not keep: the chat API has no place for what a server ran.

Its client sends back an answer with its own calls only. The store has the whole answer, and puts it in its place: else
the model would be told of one half of what it had called.
"""

from msgspec.structs import replace

from conversations.conversation import Conversation
from conversations.state import State
from translation.client.stored import is_content, parse_message
from translation.hosted_history import halved, whole_of
from translation.state import Snapshot
from translation.values import Message, Note, Request

Rejoined = tuple[Request, tuple[Note, ...]]


async def rejoin(state: State, conversation: Conversation, request: Request, snapshot: Snapshot) -> Rejoined:
    """The request with its halved answers made whole; the same object when there are none."""
    turns = {index: turn for index, message in enumerate(request.messages) if (turn := halved(message, snapshot))}
    mixed = await state.know_mixed(conversation, tuple(dict.fromkeys(turns.values()))) if turns else frozenset()
    messages, notes = list(request.messages), []
    for index, turn in turns.items():
        if turn not in mixed:
            continue
        whole = await _stored(state, turn, messages[index])
        if whole is None:
            what = f"messages.{index}: the results of hosted tools that belong to it are not known any more"
            notes.append(Note("degradation", "hosted-results-lost", what, message=index))
        else:
            messages[index] = whole
    if not mixed:
        return request, ()
    return replace(request, messages=tuple(messages)), tuple(notes)


async def _stored(state: State, turn: int, message: Message) -> Message | None:
    content = await state.delivered(turn)
    if not content or not is_content(content):
        return None
    return whole_of(message, parse_message("assistant", content))
