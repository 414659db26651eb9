"""What the Responses API needs back and an Anthropic client cannot carry: encrypted reasoning, at its place.

A reasoning item belongs to the item that follows it. The ones before a call are that call's state, known before the
call is complete; the ones before a text are the message's, with the lengths of its texts: adjacent ones are one block.
"""

import msgspec
from msgspec import Raw, Struct

from translation.values import Message, Text, ToolUse


class CallState(Struct, frozen=True, omit_defaults=True):
    id: str = ""  # of the item; sent only after its reasoning, since OpenAI checks that both come together
    reasoning: tuple[Raw, ...] = ()


class TextState(Struct, frozen=True, omit_defaults=True):
    length: int  # in characters
    id: str = ""
    phase: str = ""  # `commentary` or `final_answer`, on models that tell
    reasoning: tuple[Raw, ...] = ()


class MessageState(Struct, frozen=True):
    texts: tuple[TextState, ...] = ()


def pack(state: CallState | MessageState) -> bytes:
    """b"" when there is nothing that would be missed."""
    if isinstance(state, MessageState) and not any(text.reasoning or text.phase for text in state.texts):
        return b""
    return b"" if state == CallState() else msgspec.json.encode(state)


def call_state(block: ToolUse, upstream: str) -> CallState:
    link = block.link
    if link is None or link.origin.upstream != upstream or not link.origin.state:
        return CallState()
    return msgspec.json.decode(link.origin.state, type=CallState)


def text_states(message: Message, upstream: str) -> tuple[TextState, ...]:
    """() also when the texts are not the ones that the state was made for."""
    origin = message.origin
    if origin is None or origin.upstream != upstream or not origin.state:
        return ()
    texts = msgspec.json.decode(origin.state, type=MessageState).texts
    length = sum(len(block.text) for block in message.blocks if isinstance(block, Text))
    return texts if length == sum(text.length for text in texts) else ()
