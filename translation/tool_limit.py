"""As many tools as a provider takes, those that the conversation needs before the others.

`Invalid 'tools': array too long. Expected an array with maximum length 128`: a client with many MCP servers could not
say anything to OpenAI's models any more. Its own tools come first in the list, what it has connected after them.
"""

from translation.deferred import named
from translation.tool_changes import changes
from translation.typed_tools import kind
from translation.values import Note, Request, Tool

TOLD = 20  # names of a note
CUT = "..."


def within(tools: tuple[Tool, ...], limit: int, request: Request, notes: list[Note]) -> tuple[Tool, ...]:
    """The same tools where they are few enough; what a provider runs itself is not counted."""
    if not limit or len(tools) <= limit:
        return tools
    functions = [tool for tool in tools if kind(tool) != "server"]
    needed = {name for message in request.messages for name in named(message.blocks)}
    needed.update(change.name for change in changes(request) if change.adds)
    if request.tool_choice is not None:
        needed.add(request.tool_choice.name)
    ranked = sorted(functions, key=lambda tool: (needed.isdisjoint(_names(tool)), tool.defer_loading))
    left = {tool.name for tool in ranked[limit:]}
    if not left:
        return tools
    names = [tool.name for tool in tools if tool.name in left]
    some = ", ".join(names[:TOLD]) + (", ..." if len(names) > TOLD else "")
    what = f"tools: no more than {limit} are taken, so {len(names)} were left out: {some}"
    notes.append(Note("degradation", "tools-limited", what))
    return tuple(tool for tool in tools if tool.name not in left)


def _names(tool: Tool) -> tuple[str, ...]:
    """Under which a conversation may name it: a toolset's member is called by its own, too."""
    return (tool.name, tool.name.removeprefix(f"{tool.toolset}.")) if tool.toolset else (tool.name,)


def described(tool: Tool, words: str, limit: int, notes: list[Note]) -> str:
    """As much of a tool's description as is taken."""
    if not limit or len(words) <= limit:
        return words
    what = f"tools: no more than {limit} characters of a description are taken, so that of {tool.name} was cut"
    notes.append(Note("degradation", "description-limited", what))
    return f"{words[: limit - len(CUT)]}{CUT}"
