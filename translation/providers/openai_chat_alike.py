"""What of a message is told alike in every request: a text, the calls of an answer, and results of one text each.

A client sends nearly the same history with every turn. Ids and names are each request's own.
"""

from msgspec import Raw, Struct

from translation.memo import remembered
from translation.outline import outline
from translation.unicode import json_string
from translation.values import Block, Message, RedactedThinking, Text, Thinking, ToolResult, ToolUse

CALLING = frozenset((Text, ToolUse, Thinking, RedactedThinking))
LARGE = 4096  # bytes of arguments, which are not held once more


class Alike(Struct, frozen=True):
    content: Raw | None = None  # of an answer beside its calls
    functions: tuple[Raw, ...] = ()  # of its calls, under their own names
    uses: tuple[ToolUse, ...] = ()  # these calls
    blocks: tuple[Block, ...] = ()  # all of the answer; () where the store has put its links into the calls
    results: tuple[tuple[str, Raw], ...] = ()  # all that a user message holds: the id of a call, and its result


@remembered
def alike(message: Message) -> Alike | Raw | None:
    """What is only a text is that text."""
    if (text := outline(message).lone) is not None:
        return text.json
    if ToolUse in message.kinds:
        return _calling(message) if message.role == "assistant" and message.kinds <= CALLING else None
    return _answering(message) if message.role == "user" and ToolResult in message.kinds else None


def _calling(message: Message) -> Alike | None:
    texts = [block for block in message.blocks if type(block) is Text]
    uses = [block for block in message.blocks if type(block) is ToolUse]
    if len(texts) > 1 or (texts and not texts[0].text) or sum([len(use.input) for use in uses]) > LARGE:
        return None
    content, functions = texts[0].json if texts else None, tuple(map(_function, uses))
    if any(use.link is not None for use in uses):
        return Alike(content, functions)
    return Alike(content, functions, tuple(uses), message.blocks)


def _function(use: ToolUse) -> Raw:
    return Raw(b'{"name":%b,"arguments":%b}' % (json_string(use.name), json_string(arguments(use))))


def arguments(use: ToolUse) -> str:
    return use.input.decode("utf-8", "replace") or "{}"


def _answering(message: Message) -> Alike | None:
    results = [(block.tool_use_id, text_of(block)) for block in message.blocks if type(block) is ToolResult]
    texts = [(id_, text.json) for id_, text in results if text is not None]
    return Alike(results=tuple(texts)) if len(texts) == len(message.blocks) else None


def text_of(result: ToolResult) -> Text | None:
    """The one text that a result is told as."""
    only = result.blocks[0] if len(result.blocks) == 1 and not result.is_error else None
    return only if type(only) is Text and only.text else None
