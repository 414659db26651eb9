"""Tools that the bridge runs itself: offered to any model as ordinary ones, shown to the client as MCP blocks."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation import plain
from translation.arguments import is_object
from translation.errors import InvalidRequest
from translation.names import ToolNames
from translation.tool_changes import changes
from translation.unicode import json_string, well_formed
from translation.values import (
    Note,
    Request,
    ServerToolResult,
    ServerToolUse,
    Text,
    Tool,
    ToolChoice,
    ToolResult,
)

NAME_LIMIT = 128
OWN = "toolbridge"  # the server that a single HTTP endpoint is shown under
MCP_TOOL_RESULT = "mcp_tool_result"


class Offer(Struct, frozen=True):
    """A tool as the model, and as the client gets to know it."""

    name: str  # the model's name for it
    server: str
    tool: str  # its name at that server
    description: str = ""
    schema: bytes = b""
    defer_loading: bool = False


def offered_name(server: str, tool: str) -> str:
    """One that Anthropic takes, whatever servers call themselves and their tools; adapters make it fit the others."""
    name = tool if server == OWN else f"{server}__{tool}"
    return ToolNames((), NAME_LIMIT).upstream(name)


# ---------------------------------------------------------------- offering


def offer(
    request: Request, offers: Sequence[Offer], *, searches: bool = False
) -> tuple[Request, dict[str, Offer], tuple[Note, ...]]:
    """The request with these tools behind the client's own, which win where a name is taken.

    `searches` tells that the upstream loads deferred tools when a search finds them; elsewhere they would be lost.
    """
    taken = {tool.name for tool in request.tools}
    kept: dict[str, Offer] = {}
    notes: list[Note] = []
    for one in offers:
        if one.name in taken:
            notes.append(Note("degradation", "hosted-tool-hidden", f"the client has a tool {one.name} itself"))
        elif one.name in kept:
            notes.append(Note("degradation", "hosted-tool-hidden", f"two hosted tools are called {one.name}"))
        else:
            kept[one.name] = one
    deferred = sorted(one.name for one in kept.values() if one.defer_loading)
    if deferred and not searches:
        what = f"defer_loading: loaded at once, since nothing could search for them: {', '.join(deferred)}"
        notes.append(Note("degradation", "deferred-loaded", what[:2000]))
    if not kept:
        return request, kept, tuple(notes)
    added = tuple(_tool(one, deferred=searches and one.defer_loading) for one in kept.values())
    return replace(request, tools=request.tools + added, raw_tools=b""), kept, tuple(notes)


def check_choice(request: Request, offers: Iterable[Offer]) -> None:
    """Refuses the choice of a tool that nobody offers: the client, the store, a change of tools, or the bridge."""
    choice = request.tool_choice
    if choice is None or choice.kind != "tool" or any("toolset" in tool.type for tool in request.tools):
        return  # a toolset's members are known to its adapter only
    known = {tool.name for tool in request.tools} | {one.name for one in offers}
    if choice.name not in known and choice.name not in {change.name for change in changes(request)}:
        raise InvalidRequest(f"tool_choice: Tool {choice.name[:200]!r} not found in provided tools")


def _tool(one: Offer, *, deferred: bool) -> Tool:
    schema = one.schema or b'{"type":"object","properties":{}}'
    return Tool(one.name, well_formed(one.description), schema, defer_loading=deferred)


def relaxed(request: Request) -> Request:
    """A forced choice is for the first call only: forced again and again, a model would never come to its answer."""
    choice = request.tool_choice
    if choice is None or choice.kind not in ("any", "tool"):
        return request
    fields = msgspec.json.decode(request.body, type=dict[str, Raw]) if request.body else {}
    fields.pop("tool_choice", None)
    body = msgspec.json.encode(fields) if fields else b""
    return replace(request, tool_choice=ToolChoice("auto", "", choice.parallel), body=body)


# ---------------------------------------------------------------- the client's blocks


def call_block(id_: str, one: Offer, arguments: str = "") -> bytes:
    """With its whole input, and so without deltas: Claude Code gives a stream up that has them for this block."""
    given = arguments.encode() if is_object(arguments.strip()) else b"{}"
    names = (json_string(id_), json_string(one.tool), json_string(one.server))
    return b'{"type":"mcp_tool_use","id":%b,"name":%b,"server_name":%b,"input":%b}' % (*names, given)


def result_block(tool_use_id: str, text: str, *, is_error: bool) -> bytes:
    content = [{"type": "text", "text": well_formed(text)}]
    block = {"type": MCP_TOOL_RESULT, "tool_use_id": tool_use_id, "is_error": is_error, "content": content}
    return msgspec.json.encode(block)


class _Result(Struct):
    content: str | list[dict[str, object]] | None = None
    is_error: bool | None = None


def result_of(block: ServerToolResult) -> ToolResult:
    """An `mcp_tool_result` as the ordinary result that it is; what else a client sends as one, in words."""
    try:
        wire = msgspec.json.decode(block.raw, type=_Result)
    except msgspec.ValidationError:
        return ToolResult(block.tool_use_id, (Text(plain.summary(block)),))
    parts = [wire.content] if isinstance(wire.content, str) else [part.get("text") for part in wire.content or ()]
    texts = tuple(Text(part) for part in parts if isinstance(part, str) and part)
    return ToolResult(block.tool_use_id, texts, bool(wire.is_error))


class _Call(Struct):
    server_name: object = ""


def server_of(block: ServerToolUse) -> str:
    name = msgspec.json.decode(block.raw, type=_Call).server_name if block.raw else ""
    return name if isinstance(name, str) else ""
