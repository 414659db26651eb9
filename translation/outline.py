"""What the steps of a request ask of each message of its history, worked out once for each message.

A client sends nearly the same history with every request, as the same `Message` values (`client/parse.py`): what is
known of one is kept with it, and a step looks at the messages that matter to it.
"""

from operator import attrgetter

from msgspec import Struct

from translation.legal import answered, asked
from translation.memo import remembered
from translation.values import Message, Request, ServerToolUse, Text, ToolResult, ToolUse

MCP_TOOL_USE = "mcp_tool_use"
NAMING = frozenset((ToolUse, ToolResult, ServerToolUse))  # a call, by its id


class Outline(Struct, frozen=True, gc=False):
    asked: tuple[str, ...] | None  # the ids of the calls of an answer, None if it is none that is legal as it is
    answered: tuple[str, ...] | None  # the ids of the calls that a user message answers, None in the same way
    named: tuple[str, ...] = ()  # the ids of all calls that it makes or answers
    calls: tuple[tuple[str, bytes], ...] = ()  # name and arguments of those that an answer makes
    lone: Text | None = None  # all that it says, where that is one text


ASKED, ANSWERED, NAMED, CALLS = map(attrgetter, ("asked", "answered", "named", "calls"))


@remembered
def outline(message: Message) -> Outline:
    answers = message.role == "assistant"
    asks = asked(message.blocks) if answers else None
    replies = answered(message.blocks) if message.role == "user" else None
    if NAMING.isdisjoint(message.kinds):
        first = message.blocks[0] if len(message.blocks) == 1 else None
        return Outline(asks, replies, lone=first if type(first) is Text and first.text else None)
    called = [(block.name, block.input) for block in message.blocks if type(block) is ToolUse] if answers else ()
    return Outline(asks, replies, _named(message), tuple(called))


@remembered
def outlines(request: Request) -> list[Outline]:
    """Of all its messages."""
    return outline.all(request.messages)


def _named(message: Message) -> tuple[str, ...]:
    ids: list[str] = []
    for block in message.blocks:
        if type(block) is ToolUse:
            ids.append(block.id)
        elif type(block) is ToolResult:
            ids.append(block.tool_use_id)
        elif type(block) is ServerToolUse and is_hosted(block):
            ids.append(block.id)
    return tuple(ids)


def is_hosted(call: ServerToolUse) -> bool:
    """Whether the store may know it. These blocks are carried as they come, and PostgreSQL has no words for a NUL."""
    return call.type == MCP_TOOL_USE and call.id.isprintable()
