"""Tools by names that Anthropic takes: `ns.tool` goes out under an alias, and comes back as the client gave it."""

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.adapter import Around, Decoder
from translation.events import BlockStart, Event, Frame, ToolStarted
from translation.names import ToolNames
from translation.unicode import json_string
from translation.values import Note, Request, Tool, ToolChoice, ToolUse

NO_PARAMETERS = b'{"type":"object","properties":{}}'
Names = dict[str, str]  # the client's name of each alias


class _Call(Struct):
    type: str = ""
    name: str = ""


_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_BLOCKS = msgspec.json.Decoder(list[Raw])
_CALL = msgspec.json.Decoder(_Call)


def with_called_tools(request: Request, notes: list[Note]) -> Request:
    """`Requests which include tool_use or tool_result blocks must define tools`: chat clients leave them out where no
    call shall come of it, as in a summary.
    """
    called = [block.name for message in request.messages for block in message.blocks if isinstance(block, ToolUse)]
    tools = tuple([Tool(name, schema=NO_PARAMETERS) for name in dict.fromkeys(called)])
    what = f"tools: {len(tools)} that the history calls were declared, since Anthropic wants them; none may be called"
    notes.append(Note("degradation", "tools-declared", what))
    return replace(request, tools=tools, tool_choice=ToolChoice("none"))


def tool_names(request: Request, limit: int) -> ToolNames:
    """Typed tools have names of Anthropic's own, and toolsets those of their servers."""
    return ToolNames((tool.name for tool in request.tools if tool.type == "custom"), limit)


def aliased(tool: Tool, names: ToolNames) -> Tool:
    name = names.upstream(tool.name) if tool.type == "custom" else tool.name
    if name == tool.name:
        return tool
    return replace(tool, name=name, raw=with_name(tool.raw, name) if tool.raw else b"")


def as_sent(tools: tuple[Tool, ...], changed: tuple[tuple[str, str], ...]) -> tuple[Tool, ...]:
    """The tools by the names that the upstream knows."""
    aliases = {name: alias for alias, name in changed}
    return tuple([replace(tool, name=aliases.get(tool.name, tool.name)) for tool in tools])


def with_name(value: bytes | Raw, name: str) -> bytes:
    return msgspec.json.encode(_FIELDS.decode(value) | {"name": Raw(json_string(name))})


class Renamed(Around):
    """An answer in which the client's names stand for the aliases."""

    def __init__(self, decoder: Decoder, names: Names) -> None:
        super().__init__(decoder)
        self._names = names

    def _passed(self, events: list[Event]) -> list[Event]:
        return [self._renamed(event) for event in events]

    def _renamed(self, event: Event) -> Event:
        match event:
            case ToolStarted(name=name) if name in self._names:
                return replace(event, name=self._names[name])
            case Frame(event=BlockStart(block=block) as start) if (told := self._block(block)) != block:
                return replace(event, raw=b"", event=replace(start, block=told), mended=True)
            case Frame(kind="body"):
                return replace(event, raw=self._body(event.raw))
            case _:
                return event

    def _block(self, block: bytes) -> bytes:
        call = _CALL.decode(block)
        known = self._names.get(call.name) if call.type == "tool_use" else None
        return block if known is None else with_name(block, known)

    def _body(self, body: bytes) -> bytes:
        message = _FIELDS.decode(body)
        content = [Raw(self._block(bytes(block))) for block in _BLOCKS.decode(message["content"])]
        return msgspec.json.encode(message | {"content": Raw(msgspec.json.encode(content))})
