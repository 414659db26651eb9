"""What of a history is legal as it stands: most of it, so this is the fast path of `history.repair`."""

from collections.abc import Sequence

from translation.results import Call, is_blank
from translation.values import (
    Block,
    Document,
    Image,
    Message,
    Other,
    RedactedThinking,
    SearchResult,
    ServerToolResult,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)

SAID_BY_USERS = frozenset((Image, Document, SearchResult, ServerToolUse, ServerToolResult, Other))
SAID_BY_MODELS = frozenset((ServerToolUse, ServerToolResult, Other))
UNSEEN = frozenset((Thinking, RedactedThinking))


def exchanged(answer: Message, turn: Message) -> list[str] | None:
    """The ids of the calls of an answer that the user message after it answers, as everyone wants it; None if not."""
    ids: list[str] = []
    visible = False
    for block in answer.blocks:
        if type(block) is Text:
            if not block.text or block.text.isspace():  # `is_blank`, for each text of each request
                return None
            visible = True
        elif type(block) is ToolUse:
            ids.append(block.id)
        elif type(block) in SAID_BY_MODELS:
            visible = True
        elif type(block) not in UNSEEN:
            return None
    return ids if (ids or visible) and _is_answered(turn.blocks, ids) else None


def _is_answered(blocks: tuple[Block, ...], ids: list[str]) -> bool:
    """Whether these begin with the results of these calls, in their order, and hold nothing else but what users say."""
    if len(blocks) < len(ids) or not blocks:
        return False
    waiting = iter(ids)
    for block in blocks:
        id_ = next(waiting, None)
        if id_ is not None:
            if type(block) is not ToolResult or block.tool_use_id != id_ or not _is_plain(block.blocks):
                return False
        elif type(block) is Text:
            if not block.text or block.text.isspace():
                return False
        elif type(block) not in SAID_BY_USERS:
            return False
    return True


def _is_plain(result: tuple[Block, ...]) -> bool:
    for block in result:
        if type(block) is Text:
            if not block.text or block.text.isspace():
                return False
        elif type(block) is ToolReference:
            return False
    return bool(result)


def is_acceptable(messages: Sequence[Message], calls: tuple[Call, ...]) -> bool:
    """Whether the API itself takes these user messages after these calls."""
    blocks = [block for message in messages for block in message.blocks]
    results = [block for block in blocks if type(block) is ToolResult]
    return (
        all(message.blocks for message in messages)
        and not any(_is_wrong(block) or type(block) is ToolReference for block in blocks)
        and all(type(block) is ToolResult for block in blocks[: len(results)])
        and all(call.id == call.sent for call in calls)
        and sorted(result.tool_use_id for result in results) == sorted(call.sent for call in calls)
    )


def _is_wrong(block: Block) -> bool:
    if isinstance(block, ToolUse | Thinking | RedactedThinking):
        return True
    if type(block) is ToolResult:
        return any(_is_wrong(inner) for inner in block.blocks)
    return type(block) is Text and is_blank(block)
