"""Tools that a system message adds or withdraws in mid-conversation, for models that get one list of them.

A compaction has the changes of the messages that it stands for.
"""

from collections.abc import Iterable, Iterator

import msgspec
from msgspec import Raw, Struct

from translation.client.tools import tools as parse_tools
from translation.errors import InvalidRequest
from translation.names import ToolNames
from translation.providers.profile import Profile
from translation.values import Block, Message, Note, Other, Request, Text, Tool

CHANGES = ("tool_addition", "tool_removal")
ABSENT = Raw(b"")


class _Tool(Struct):
    name: str = ""
    definition: Raw = ABSENT


class _Change(Struct):
    type: str
    tool: _Tool


class _Summary(Struct):
    tool_changes: list[Raw] | None = None


class Change(Struct, frozen=True):
    adds: bool
    name: str
    tool: Tool | None = None  # defined by the change itself


def changes(request: Request) -> list[Change]:
    """In the order in which they were made."""
    found: list[Change] = []
    if Other not in request.kinds:
        return found
    for message in request.messages:
        if message.role == "system":
            found += [change for block in message.blocks for change in _read(block, request.betas)]
        elif message.blocks and type(message.blocks[0]) is Other:  # where the API puts a compaction
            found += _compacted(message.blocks[0], request.betas)
    return found


def changed(tools: tuple[Tool, ...], made: list[Change], notes: list[Note]) -> tuple[Tool, ...]:
    """The tools that are offered in the end."""
    offered = {tool.name: tool for tool in tools}
    gone: set[str] = set()
    for change in made:
        gone = gone - {change.name} if change.adds else gone | {change.name}
        if change.tool is not None:
            offered[change.name] = change.tool
    names = ", ".join(dict.fromkeys(change.name for change in made))
    notes.append(Note("repair", "tools-changed", f"tools: added or withdrawn in the conversation: {names}"))
    return tuple(tool for name, tool in offered.items() if name not in gone)


def told(message: Message, profile: Profile) -> Message:
    """The same message with its changes in words."""
    if not any(type(block) is Other and block.type in CHANGES for block in message.blocks):
        return message
    return Message(message.role, tuple(_worded(block, profile) for block in message.blocks), options=message.options)


def _worded(block: Block, profile: Profile) -> Block:
    made = list(_read(block, ()))
    if not made:
        return block
    return Text(f"[tool {'available' if made[0].adds else 'withdrawn'}: {offered_as(made[0].name, profile)}]")


def offered_as(name: str, profile: Profile) -> str:
    """What the target knows a tool by that the conversation names."""
    return ToolNames((), profile.name_limit, letter_first=profile.letter_first).upstream(name)


def _read(block: Block, betas: tuple[str, ...]) -> Iterable[Change]:
    """Nothing for another block, or for a change of what is no single tool."""
    return _change(block.raw, betas) if type(block) is Other and block.type in CHANGES else ()


def _compacted(block: Other, betas: tuple[str, ...]) -> Iterator[Change]:
    if block.type != "compaction":
        return
    try:
        entries = msgspec.json.decode(block.raw, type=_Summary).tool_changes or ()
    except msgspec.ValidationError:
        return
    for entry in entries:
        yield from _change(entry, betas)


def _change(raw: bytes | Raw, betas: tuple[str, ...]) -> Iterator[Change]:
    try:
        change = msgspec.json.decode(raw, type=_Change)
        defined = bytes(change.tool.definition)
        tool = parse_tools(Raw(b"[" + defined + b"]"), betas)[0] if defined else None
    except (msgspec.ValidationError, InvalidRequest):
        return
    name = tool.name if tool is not None else change.tool.name
    if name and change.type in CHANGES:
        yield Change(change.type == "tool_addition", name, tool)
