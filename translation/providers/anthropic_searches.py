"""What servers ran in a history, toward Anthropic: it takes back its own, with its result, and refuses all else.

The pages of a search are encrypted. What another provider's search found, or half of a search, is told in words.
"""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from translation import plain
from translation.values import Block, Message, Note, ServerToolResult, ServerToolUse, Text

SERVED = (ServerToolUse, ServerToolResult)
EMPTY = b'"encrypted_content":""'  # a page of another provider's search, as the bridge writes it
WITHIN = ("web_search", "web_fetch")  # end in the answer in which they begin, unless that was paused


class Served(Struct, frozen=True):
    """What Anthropic may take back of what servers ran: a call and its result, by the id of the call."""

    calls: frozenset[str]
    results: frozenset[str]


def served(messages: tuple[Message, ...]) -> Served | None:
    """None when there is nothing of the kind, as mostly."""
    blocks = [block for message in messages for block in message.blocks if type(block) in SERVED]
    if not blocks:
        return None
    calls = {block.id: block.name for block in blocks if isinstance(block, ServerToolUse)}
    results = {block.tool_use_id: _is_whole(block) for block in blocks if isinstance(block, ServerToolResult)}
    paused = {block.id for block in messages[-1].blocks if isinstance(block, ServerToolUse)}
    waits = {id_ for id_, name in calls.items() if id_ not in results and (name not in WITHIN or id_ in paused)}
    whole = {id_ for id_, is_whole in results.items() if is_whole and id_ in calls}
    return Served(frozenset(whole | waits), frozenset(whole))


def own(message: Message, index: int, upstream: str, known: Served, notes: list[Note]) -> Message:
    """The message, with that in words which would be refused."""
    if message.role != "assistant":
        return message
    if message.origin is not None and message.origin.upstream != upstream:
        known = Served(frozenset(), frozenset())
    blocks = tuple(_said(block, known) for block in message.blocks)
    if all(new is old for new, old in zip(blocks, message.blocks, strict=True)):
        return message
    if not known.results:
        blocks = tuple(Text(block.text) if type(block) is Text and block.citations else block for block in blocks)
    what = f"messages.{index}: a search that Anthropic did not make, or half of one, is told in words"
    notes.append(Note("repair", "search-worded", what, message=index))
    return replace(message, blocks=blocks, raw=b"")


def _said(block: Block, known: Served) -> Block:
    if isinstance(block, ServerToolUse):
        return block if block.id in known.calls else Text(plain.summary(block))
    if isinstance(block, ServerToolResult):
        return block if block.tool_use_id in known.results else Text(plain.summary(block))
    return block


def _is_whole(result: ServerToolResult) -> bool:
    return EMPTY not in msgspec.json.format(result.raw, indent=-1)
