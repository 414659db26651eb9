"""What `history.repair` promises to every adapter, checked on the values themselves."""

from collections.abc import Iterator
from itertools import pairwise

from translation.values import Message, RedactedThinking, Text, Thinking, ToolReference, ToolResult, ToolUse


def validate(messages: tuple[Message, ...]) -> list[str]:
    """For targets other than Anthropic."""
    return [
        *_roles(messages),
        *(each for index, message in enumerate(messages) for each in _content(message, index)),
        *_pairing(messages),
    ]


def _roles(messages: tuple[Message, ...]) -> Iterator[str]:
    if not messages or messages[0].role != "user":
        yield "the first message is not the user's"
    for one, other in pairwise(messages):
        if one.role == other.role:
            yield f"two {one.role} messages in a row"
    yield from (f"role {message.role}" for message in messages if message.role == "system")


def _content(message: Message, index: int) -> Iterator[str]:
    if all(isinstance(block, Thinking | RedactedThinking) for block in message.blocks):
        yield f"{index}: nothing to say"
    for block in message.blocks:
        for inner in block.blocks if isinstance(block, ToolResult) else (block,):
            if isinstance(inner, Text) and not inner.text.strip():
                yield f"{index}: empty text"
            if isinstance(inner, ToolReference):
                yield f"{index}: a tool reference"
        if isinstance(block, ToolResult) and not block.blocks:
            yield f"{index}: empty result"
        wrong = (ToolUse, Thinking, RedactedThinking) if message.role == "user" else (ToolResult,)
        if isinstance(block, wrong):
            yield f"{index}: {type(block).__name__} in a {message.role} message"


def _pairing(messages: tuple[Message, ...]) -> Iterator[str]:
    used: set[str] = set()
    waiting: list[str] = []
    for index, message in enumerate(messages):
        results = [block.tool_use_id for block in message.blocks if isinstance(block, ToolResult)]
        if results != waiting:
            yield f"{index}: calls {waiting}, results {results}"
        if not all(isinstance(block, ToolResult) for block in message.blocks[: len(results)]):
            yield f"{index}: results are not first"
        waiting = [block.id for block in message.blocks if isinstance(block, ToolUse)]
        if len(set(waiting)) < len(waiting) or used & set(waiting):
            yield f"{index}: an id is used twice"
        used |= set(waiting)
    if waiting:
        yield f"calls {waiting} at the end"
