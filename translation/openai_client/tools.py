"""Tools as chat clients define them, and the choice among them. They are stored in the API's own form."""

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from translation.client.paths import carried_object, decode, named, one_of, wrong
from translation.errors import InvalidRequest
from translation.memo import Memo
from translation.values import Tool, ToolChoice

ABSENT = Raw(b"")
NO_PARAMETERS = b'{"type":"object","properties":{}}'
CHOICES: dict[str, Literal["auto", "none", "any"]] = {"auto": "auto", "none": "none", "required": "any"}


class FunctionWire(Struct):
    name: str
    description: str | None = None
    parameters: Raw = ABSENT
    strict: bool | None = None


class ToolWire(Struct):
    type: str
    function: FunctionWire | None = None


class NameWire(Struct):
    name: str


class ChoiceWire(Struct):
    type: str
    function: NameWire | None = None


_RAWS = msgspec.json.Decoder(list[Raw])
_TOOL = msgspec.json.Decoder(ToolWire)
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_CHOICE = msgspec.json.Decoder(str | ChoiceWire)
_SEEN: Memo[tuple[Tool, ...]] = Memo(budget=8 * 1024 * 1024, largest=1024 * 1024)


def tools(raw: Raw) -> tuple[Tool, ...]:
    return _SEEN.get(bytes(raw), lambda: _tools(raw))


def _tools(raw: Raw) -> tuple[Tool, ...]:
    raws = decode(_RAWS, raw, "tools")
    found = tuple(_tool(one, f"tools.{index}") for index, one in enumerate(raws))
    if len({tool.name for tool in found}) < len(found):
        raise InvalidRequest("tools: Tool names must be unique.")
    return found


def _tool(raw: Raw, path: str) -> Tool:
    wire = decode(_TOOL, raw, path)
    if wire.type != "function":
        raise one_of(path + ".type", ("function",), wire.type)
    function = wire.function
    if function is None:
        raise wrong(path + ".function", "Field required")
    if len(function.name) > 128:
        raise wrong(path + ".function.name", "String should have at most 128 characters")
    tool = Tool(
        name=named(function.name, path + ".function.name"),
        description=function.description or "",
        schema=_schema(function.parameters, path + ".function.parameters"),
        strict=bool(function.strict),
    )
    return msgspec.structs.replace(tool, raw=_stored(tool))


def _schema(parameters: Raw, path: str) -> bytes:
    """OpenAI takes parameters that do not say that they are an object; Anthropic does not."""
    if bytes(parameters) in (b"", b"null"):
        return NO_PARAMETERS
    schema = carried_object(parameters, path)
    members = _MEMBERS.decode(schema)
    return schema if "type" in members else msgspec.json.encode({"type": Raw(b'"object"')} | members)


def _stored(tool: Tool) -> bytes:
    value = {
        "name": tool.name,
        "description": tool.description,
        "input_schema": Raw(tool.schema),
        "strict": tool.strict,
    }
    return msgspec.json.encode({name: field for name, field in value.items() if field not in ("", False)})


def tool_choice(raw: Raw | None, offered: tuple[Tool, ...], *, parallel: bool) -> ToolChoice | None:
    if raw is None:
        return None if parallel or not offered else ToolChoice(parallel=False)
    choice = decode(_CHOICE, raw, "tool_choice")
    if isinstance(choice, str):
        if choice not in CHOICES:
            raise one_of("tool_choice", tuple(CHOICES), choice)
        # Tools of the bridge, and stored ones, may be offered where the client sends none.
        return ToolChoice(CHOICES[choice], "", parallel) if offered or choice != "auto" else None
    if choice.type != "function":
        raise one_of("tool_choice.type", ("function",), choice.type)
    if choice.function is None:
        raise wrong("tool_choice.function", "Field required")
    return ToolChoice("tool", named(choice.function.name, "tool_choice.function.name"), parallel)
