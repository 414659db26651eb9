"""Tool definitions and the tool choice as chat parameters."""

from collections.abc import Sequence
from typing import Any, assert_never, cast

import msgspec
from msgspec.structs import replace

from translation.adapter import Target
from translation.errors import InvalidRequest
from translation.function_schema import function_schema
from translation.memo import remembered
from translation.names import ToolNames
from translation.patterns import matches
from translation.providers.openai_chat_search import is_search
from translation.strict import is_strict
from translation.tool_limit import described
from translation.typed_tools import definition, kind
from translation.values import Note, Request, Tool, ToolChoice

Json = dict[str, Any]  # chat JSON, built here and encoded in openai_chat


class Offer(msgspec.Struct, frozen=True):
    """What the model is offered: `parameters` are members of the body."""

    parameters: Json = {}
    forced: bool = False  # the model has to call a tool
    notes: tuple[Note, ...] = ()


NOTHING = Offer()


def offer(request: Request, target: Target, names: ToolNames) -> Offer:
    if not request.tools and request.tool_choice is None:
        return NOTHING
    tools, notes = _callable(request.tools, target)
    choice = request.tool_choice or ToolChoice()
    if choice.name and any(tool.name == choice.name and is_search(tool) for tool in request.tools):
        choice = replace(choice, kind="auto", name="")  # the answer says that there is no search: `openai_chat_search`
    if not tools:
        if choice.kind in ("any", "tool") and not all(map(is_search, request.tools)):
            raise InvalidRequest(f"tool_choice: {target.upstream} has none of the server tools that it could choose")
        return Offer({}, notes=tuple(notes))
    if choice.kind == "tool" and choice.name not in {tool.name for tool in tools}:
        raise InvalidRequest(
            f"tool_choice.name: {choice.name!r} is not among the tools that {target.upstream} can call"
        )
    chosen, changed = _chosen(choice, target, names)
    notes += changed
    if chosen == "none" and "none" not in target.choices:
        notes.append(degraded("tool-choice", "a tool choice of none is not known there; the tools were left out"))
        return Offer({}, notes=tuple(notes))
    # R3: what the client asked for, `auto` when it did not.
    parameters: Json = {"tools": _told(tools, target, names, notes), "tool_choice": chosen}
    if not choice.parallel:
        if target.profile.parallel_control:
            parameters["parallel_tool_calls"] = False
        else:
            notes.append(degraded("parallel-tool-use", "this upstream cannot be told to make one call at a time"))
    return Offer(parameters, chosen not in ("auto", "none"), tuple(notes))


def _chosen(choice: ToolChoice, target: Target, names: ToolNames) -> tuple[str | Json, list[Note]]:
    known = target.choices
    match choice.kind:
        case "tool" if "tool" in known:
            return {"type": "function", "function": {"name": names.upstream(choice.name)}}, []
        case "tool" if "required" in known:
            return "required", [
                degraded("tool-choice", f"{target.model} cannot be made to call {choice.name}, only any")
            ]
        case "any" if "required" in known:
            return "required", []
        case "any" | "tool":
            return "auto", [degraded("tool-choice", f"{target.upstream} cannot be made to call a tool; it may choose")]
        case "auto" | "none":
            return choice.kind, []
        case _:
            assert_never(choice.kind)


def _callable(tools: tuple[Tool, ...], target: Target) -> tuple[Sequence[Tool], list[Note]]:
    """Those that are not a server's, and what is said of the others."""
    kinds = kind.all(tools)
    if "server" not in kinds:
        return tools, []
    others = [_left_out(tool, target) for tool, its in zip(tools, kinds, strict=True) if its == "server"]
    return [tool for tool, its in zip(tools, kinds, strict=True) if its != "server"], others


def _told(tools: Sequence[Tool], target: Target, names: ToolNames, notes: list[Note]) -> Sequence[Json | msgspec.Raw]:
    """Clients offer the same tools in every turn, and most of them are told alike to everyone."""
    moonshot = matches(target.model, target.profile.moonshot_schemas)
    plain = not (names.changed or moonshot or target.profile.description_limit)
    if plain and None not in (usual := _usual.all(tools)):
        return cast("list[msgspec.Raw]", usual)
    return [_tool(tool, target, names, notes, moonshot=moonshot) for tool in tools]


@remembered
def _usual(tool: Tool) -> msgspec.Raw | None:
    """A tool that keeps its name, written down; None where there is something to be said about it."""
    found = definition(tool)
    parameters = function_schema(found.schema)
    if tool.strict or parameters.lost:
        return None
    return msgspec.Raw(msgspec.json.encode(_function(tool.name, found.description, parameters.schema)))


def _function(name: str, description: str, parameters: msgspec.Raw) -> Json:
    function: Json = {"name": name}
    if description:
        function["description"] = description
    function["parameters"] = parameters
    return {"type": "function", "function": function}


def _tool(tool: Tool, target: Target, names: ToolNames, notes: list[Note], *, moonshot: bool) -> Json:
    found = definition(tool)
    parameters = function_schema(found.schema, moonshot=moonshot)
    words = "\n\n".join(filter(None, (found.description, parameters.told)))
    description = described(tool, words, target.profile.description_limit, notes)
    told = _function(names.upstream(tool.name), description, parameters.schema)
    notes += [degraded("schema-lowered", lost.format(tool.name)) for lost in parameters.lost]
    if tool.strict and target.profile.strict_tools and is_strict(bytes(parameters.schema)):
        told["function"]["strict"] = True
    elif tool.strict:
        what = f"tools: {target.upstream} cannot be held to the schema of {tool.name}"
        notes.append(degraded("strict-dropped", what))
    return told


def _left_out(tool: Tool, target: Target) -> Note:
    return degraded("server-tool", f"{tool.name} ({tool.type}) was left out: {target.upstream} has no such tool")


def degraded(rule: str, what: str) -> Note:
    return Note("degradation", rule, what)
