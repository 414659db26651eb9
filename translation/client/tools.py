"""Tool definitions and the choice among them."""

import msgspec
from msgspec import Raw, Struct

from translation.client.paths import carried, carried_object, decode, named, one_of, wrong
from translation.errors import InvalidRequest
from translation.memo import Memo
from translation.values import Tool, ToolChoice

ABSENT = Raw(b"")
FINE_GRAINED = "fine-grained-tool-streaming-"  # a beta: arguments of every tool go out as they come
CHOICES = ("auto", "any", "tool", "none")


class ToolWire(Struct):
    name: str | None = None
    type: str | None = None
    description: str | None = None
    input_schema: Raw = ABSENT
    strict: bool | None = None
    defer_loading: bool | None = None
    eager_input_streaming: bool | None = None
    input_examples: Raw = ABSENT
    allowed_callers: list[str] | None = None
    mcp_server_name: str | None = None


class ChoiceWire(Struct):
    type: str
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


_RAWS = msgspec.json.Decoder(list[Raw])
_TOOL = msgspec.json.Decoder(ToolWire)
_CHOICE = msgspec.json.Decoder(ChoiceWire)
_SEEN: dict[bool, Memo[tuple[Tool, ...]]] = {
    eager: Memo(budget=5 * 1024 * 1024, largest=1024 * 1024)
    for eager in (False, True)  # and as others are told
}


def tools(raw: Raw, betas: tuple[str, ...]) -> tuple[Tool, ...]:
    eager = any(beta.startswith(FINE_GRAINED) for beta in betas)
    text = bytes(raw)
    return _SEEN[eager].get(text, lambda: _parsed(text, eager=eager))


def _parsed(raw: bytes, *, eager: bool) -> tuple[Tool, ...]:
    raws = decode(_RAWS, raw, "tools")
    found = tuple([_tool(one, f"tools.{index}", eager=eager) for index, one in enumerate(raws)])
    names = [tool.name for tool in found if tool.type != "mcp_toolset"]  # those have a server's
    if len(set(names)) < len(names):
        raise InvalidRequest("tools: Tool names must be unique.")
    return found


def _tool(raw: Raw, path: str, *, eager: bool) -> Tool:
    wire = decode(_TOOL, raw, path)
    kind = wire.type or "custom"
    return Tool(
        name=_name(wire, kind, path),
        description=wire.description or "",
        schema=_schema(wire, path + ".input_schema") if kind == "custom" else b"",
        type=kind,
        strict=bool(wire.strict),
        defer_loading=bool(wire.defer_loading),
        eager=eager or bool(wire.eager_input_streaming),
        examples=_examples(wire, path + ".input_examples"),
        callers=tuple(wire.allowed_callers or ()),
        raw=bytes(raw) if kind == "custom" else carried(raw, path),
    )


def _name(wire: ToolWire, kind: str, path: str) -> str:
    if wire.name is not None:
        if len(wire.name) > 128:
            raise wrong(path + ".name", "String should have at most 128 characters")
        return named(wire.name, path + ".name")
    if kind == "custom":
        raise wrong(path + ".name", "Field required")
    return wire.mcp_server_name or kind  # a toolset stands for many tools and has no name of its own


def _schema(wire: ToolWire, path: str) -> bytes:
    if bytes(wire.input_schema) in (b"", b"null"):
        return b""
    return carried_object(wire.input_schema, path)


def _examples(wire: ToolWire, path: str) -> bytes:
    if bytes(wire.input_examples) in (b"", b"null", b"[]"):
        return b""
    decode(_RAWS, wire.input_examples, path)
    return carried(wire.input_examples, path)


def tool_choice(raw: Raw) -> ToolChoice:
    """Whether there is such a tool is known once all that are offered are: `check_choice`."""
    wire = decode(_CHOICE, raw, "tool_choice")
    parallel = not wire.disable_parallel_tool_use
    match wire.type:
        case "auto" | "any" | "none" as kind:
            return ToolChoice(kind, "", parallel)
        case "tool":
            return ToolChoice("tool", _chosen(wire.name), parallel)
        case other:
            raise one_of("tool_choice.type", CHOICES, other)


def _chosen(name: str | None) -> str:
    if name is None:
        raise wrong("tool_choice.name", "Field required")
    return named(name, "tool_choice.name")
