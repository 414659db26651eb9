"""Tools whose definition waits until a search has named them, for targets that have no such thing."""

import re

from translation import plain
from translation.providers.profile import Profile
from translation.tool_changes import changed, changes, offered_as
from translation.values import (
    DEFERS,
    Block,
    Note,
    Request,
    ServerToolResult,
    Text,
    Tool,
    ToolReference,
    ToolResult,
    ToolUse,
)

SEARCH = "tool_search_tool_"
TOOL_NAME = re.compile(rb'"tool_name"\s*:\s*"([^"\\]+)"')


def available(request: Request, notes: list[Note]) -> tuple[Tool, ...]:
    """The tools without the deferred ones that nothing in the history has named or called yet.

    A client that searches by itself names them. One that leaves that to Anthropic's search gets all of them at once:
    no such search runs here, and nothing would ever find them.
    """
    made = changes(request)
    declared = changed(request.tools, made, notes) if made else request.tools
    if not any(map(DEFERS, declared)):
        return declared
    if any(tool.type.startswith(SEARCH) for tool in declared):
        what = "tools: the deferred ones are offered at once, since no tool search runs here"
        notes.append(Note("degradation", "deferred-loaded", what))
        return declared
    known = {name for message in request.messages for name in named(message.blocks)}
    known.update(change.name for change in made if change.adds)
    if request.tool_choice is not None:
        known.add(request.tool_choice.name)
    tools = tuple(tool for tool in declared if not tool.defer_loading or tool.name in known)
    if len(tools) == len(declared):
        return declared
    left = ", ".join(tool.name for tool in declared if tool.defer_loading and tool.name not in known)
    notes.append(Note("repair", "tools-deferred", f"tools: not loaded yet, so left out: {left}"))
    return tools


def spoken(block: Block, profile: Profile) -> Block:
    """A tool reference as text, by the name under which the tool is offered; every other block as it is."""
    if type(block) is ToolReference:
        return Text(plain.reference(ToolReference(offered_as(block.tool_name, profile))))
    if type(block) is ToolResult and any(type(inner) is ToolReference for inner in block.blocks):
        said = tuple([spoken(inner, profile) for inner in block.blocks])
        return ToolResult(block.tool_use_id, said, is_error=block.is_error)
    return block


def named(blocks: tuple[Block, ...]) -> set[str]:
    """The tools that a message calls, or that a search has found."""
    names: set[str] = set()
    for block in blocks:
        if type(block) is ToolReference:
            names.add(block.tool_name)
        elif type(block) is ToolUse:
            names.add(block.name)
        elif type(block) is ToolResult:
            names |= named(block.blocks)
        elif type(block) is ServerToolResult and block.type == "tool_search_tool_result":
            names.update(match.decode() for match in TOOL_NAME.findall(block.raw))
    return names
