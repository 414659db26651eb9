"""What of a history is legal as it stands: most of it, so this is the fast path of `history.repair`."""

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
    ids = called(answer)
    return ids if ids is not None and is_answered(turn, ids) else None


def called(answer: Message) -> list[str] | None:
    ids = []
    visible = False
    for block in answer.blocks:
        kind = type(block)
        if kind in UNSEEN:
            continue
        visible = True
        if type(block) is ToolUse:
            ids.append(block.id)
        elif type(block) is Text:
            if is_blank(block):
                return None
        elif kind not in SAID_BY_MODELS:
            return None
    return ids if visible else None


def is_answered(turn: Message, ids: list[str]) -> bool:
    blocks = turn.blocks
    count = len(ids)
    if len(blocks) < max(count, 1):
        return False
    for id_, block in zip(ids, blocks, strict=False):
        if type(block) is not ToolResult or block.tool_use_id != id_ or not _is_plain(block):
            return False
    for block in blocks[count:]:
        if type(block) is Text:
            if is_blank(block):
                return False
        elif type(block) not in SAID_BY_USERS:
            return False
    return True


def _is_plain(result: ToolResult) -> bool:
    for block in result.blocks:
        if type(block) is Text:
            if is_blank(block):
                return False
        elif type(block) is ToolReference:
            return False
    return bool(result.blocks)


def is_acceptable(messages: list[Message], calls: tuple[Call, ...]) -> bool:
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
