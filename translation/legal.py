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


def asked(answer: tuple[Block, ...]) -> tuple[str, ...] | None:
    """The ids of the calls of an answer that everyone takes as it is, once these are answered; None of any other."""
    ids: list[str] = []
    visible = False
    for block in answer:
        if type(block) is Text:
            if not block.text or block.text.isspace():  # `is_blank`, for each text of each history
                return None
            visible = True
        elif type(block) is ToolUse:
            ids.append(block.id)
        elif type(block) in SAID_BY_MODELS:
            visible = True
        elif type(block) not in UNSEEN:
            return None
    return tuple(ids) if (ids or visible) and len(set(ids)) == len(ids) else None


def answered(turn: tuple[Block, ...]) -> tuple[str, ...] | None:
    """The ids of the calls whose results a user message begins with, if it holds nothing else but what users say."""
    ids: list[str] = []
    said = False
    for block in turn:
        if type(block) is ToolResult:
            if said or not _is_plain(block.blocks):
                return None
            ids.append(block.tool_use_id)
            continue
        said = True
        if type(block) is Text:
            if not block.text or block.text.isspace():
                return None
        elif type(block) not in SAID_BY_USERS:
            return None
    return tuple(ids) if turn else None


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
