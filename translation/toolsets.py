"""Anthropic's toolsets for other models: each member is offered to them as a tool of its own.

A toolset (`browser_toolset_20260801`) is one entry in `tools`, without a name. A call of it names the member, and in
`toolset_name` the family: families and the client's own tools may share names. Within the bridge a member is called
`browser.navigate`, as no tool of a client's is.
"""

from collections.abc import Iterator

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.client.paths import decode
from translation.toolset_members import FAMILIES, MEMBERS, UNASKED
from translation.values import TYPE, Message, Tool, ToolChoice, ToolUse


class _Config(Struct):
    enabled: bool | None = None


class _Toolset(Struct):
    configs: dict[str, _Config | None] | None = None


_TOOLSET = msgspec.json.Decoder(_Toolset)
_MORE = msgspec.json.Decoder(dict[str, Raw])
_NAMES = {msgspec.json.encode(family): family for family in FAMILIES.values()}


def offered(tools: tuple[Tool, ...]) -> tuple[Tool, ...]:
    """The members in place of their toolsets; the same tuple where there are none."""
    if MEMBERS.keys().isdisjoint(map(TYPE, tools)):
        return tools
    return tuple(one for index, tool in enumerate(tools) for one in _members(tool, f"tools.{index}"))


def _members(tool: Tool, path: str) -> Iterator[Tool]:
    if tool.type not in MEMBERS:
        yield tool
        return
    configs = decode(_TOOLSET, tool.raw, path).configs or {}
    family = FAMILIES[tool.type]
    for name, known in MEMBERS[tool.type].items():
        if _is_enabled(configs.get(name), usual=name not in UNASKED):
            yield Tool(f"{family}.{name}", known.description, known.schema, eager=tool.eager, toolset=family)


def _is_enabled(config: _Config | None, *, usual: bool) -> bool:
    return usual if config is None or config.enabled is None else config.enabled


def chosen(choice: ToolChoice | None, tools: tuple[Tool, ...]) -> ToolChoice | None:
    """The choice of a member by the name that it is offered under; a tool of the client's own name comes first."""
    if choice is None or choice.kind != "tool" or any(tool.name == choice.name for tool in tools):
        return choice
    members = (tool.name for tool in tools if tool.toolset and tool.name == f"{tool.toolset}.{choice.name}")
    return replace(choice, name=next(members, choice.name))


def called(message: Message) -> Message:
    """The message with its members called as they are offered."""
    blocks = tuple([_named(block) if type(block) is ToolUse and block.more else block for block in message.blocks])
    same = all(one is other for one, other in zip(blocks, message.blocks, strict=True))
    return message if same else replace(message, blocks=blocks, raw=b"")


def _named(call: ToolUse) -> ToolUse:
    family = _NAMES.get(bytes(_MORE.decode(call.more).get("toolset_name", Raw(b""))))
    return replace(call, name=f"{family}.{call.name}") if family else call
