"""What servers ran in a history, toward Anthropic: it takes back its own, with its result, and refuses all else.

The pages of a search are encrypted. What another provider's search found, or half of a search, is told in words; so
is what only looks like a call and its result: under an id that is none, of two tools, or in another shape.
"""

import re

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation import plain
from translation.outline import MCP_TOOL_USE
from translation.values import Block, Message, Note, Other, ServerToolResult, ServerToolUse, Text

SERVED = (ServerToolUse, ServerToolResult, Other)
SERVED_ID = re.compile(r"[a-zA-Z0-9_-]+")
EMPTY = re.compile(rb'"encrypted_index"\s*:\s*""')  # of a citation that the bridge wrote for another provider
SEARCHED = "web_search_tool_result"
MCP_RESULT = "mcp_tool_result"
RESULTS = {  # of the tools that are known; of another one, the result is none of these
    "web_search": SEARCHED,
    "web_fetch": "web_fetch_tool_result",
    "code_execution": "code_execution_tool_result",
    "bash_code_execution": "bash_code_execution_tool_result",
    "text_editor_code_execution": "text_editor_code_execution_tool_result",
    "tool_search_tool_regex": "tool_search_tool_result",
    "tool_search_tool_bm25": "tool_search_tool_result",
}
KNOWN = frozenset({*RESULTS.values(), MCP_RESULT})
WITHIN = ("web_search", "web_fetch")  # end in the answer in which they begin, unless that was paused


class _Page(Struct, frozen=True):
    encrypted_content: str


class _Pages(Struct, frozen=True):
    content: list[_Page] | dict[str, Raw]  # the latter is an error


class _Found(Struct, frozen=True):
    content: dict[str, Raw]


_PAGES = msgspec.json.Decoder(_Pages)
_FOUND = msgspec.json.Decoder(_Found)


class Served(Struct, frozen=True):
    """What Anthropic may take back of what servers ran: a call and its result, by the id of the call."""

    calls: frozenset[str]
    results: frozenset[str]


def served(messages: tuple[Message, ...]) -> Served | None:
    """None when there is nothing of the kind, as mostly."""
    blocks = [
        block
        for message in messages
        for block in message.blocks
        if type(block) in SERVED or (type(block) is Text and block.citations)
    ]
    if not blocks:
        return None
    calls: dict[str, ServerToolUse] = {}
    results: dict[str, bool] = {}  # by the id of the call: whether it is taken back
    for block in blocks:
        if isinstance(block, ServerToolUse) and block.name and SERVED_ID.fullmatch(block.id):
            calls[block.id] = block
        elif isinstance(block, ServerToolResult):
            call = calls.get(block.tool_use_id)
            results[block.tool_use_id] = call is not None and _fits(call, block) and _is_whole(block)
    paused = {block.id for block in messages[-1].blocks if isinstance(block, ServerToolUse)}
    waits = {id_ for id_, call in calls.items() if id_ not in results and (call.name not in WITHIN or id_ in paused)}
    whole = {id_ for id_, is_whole in results.items() if is_whole}
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
    if type(block) is Text and EMPTY.search(block.citations):
        return Text(block.text)
    return Text(plain.summary(block)) if isinstance(block, Other) and _is_odd(block) else block


def _is_odd(block: Other) -> bool:
    """Whether it is named like what servers ran, while its id is not even a text."""
    return block.type in ("server_tool_use", MCP_TOOL_USE) or block.type.endswith("_tool_result")


def _fits(call: ServerToolUse, result: ServerToolResult) -> bool:
    if call.type == MCP_TOOL_USE:
        return result.type == MCP_RESULT
    return result.type == RESULTS.get(call.name) if call.name in RESULTS else result.type not in KNOWN


def _is_whole(result: ServerToolResult) -> bool:
    """In its shape, with all its pages: those of other providers' searches are empty, as the bridge writes them."""
    try:
        if result.type == SEARCHED:
            pages = _PAGES.decode(result.raw).content
            return isinstance(pages, dict) or all(page.encrypted_content for page in pages)
        if result.type in KNOWN and result.type != MCP_RESULT:
            _FOUND.decode(result.raw)
    except msgspec.ValidationError:
        return False
    return True
