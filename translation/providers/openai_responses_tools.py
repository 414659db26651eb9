"""Tools and tool choice for the Responses API."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from translation.names import ToolNames
from translation.providers.profiles import Profile
from translation.typed_tools import definition, kind
from translation.values import Note, Request, Tool

Entry = dict[str, object]


def tools(request: Request, profile: Profile, names: ToolNames) -> tuple[list[Entry], list[Note]]:
    entries: list[Entry] = []
    notes: list[Note] = []
    for tool in request.tools:
        if kind(tool) != "server":
            entries.append(_function(tool, profile, names, notes))
        elif tool.type.startswith("web_search") and profile.web_search:
            entries.append(_web_search(tool))
        else:
            notes.append(Note("degradation", "server-tool-dropped", f"{profile.title} has no {tool.type}: left out"))
    return entries, notes


def choice(request: Request, names: ToolNames) -> object:
    """None leaves it to the upstream, which means `auto`."""
    asked = request.tool_choice
    if asked is None or asked.kind == "auto":
        return None
    if asked.kind == "tool":
        native = any(tool.name == asked.name and tool.type.startswith("web_search") for tool in request.tools)
        return {"type": "web_search"} if native else {"type": "function", "name": names.upstream(asked.name)}
    return "required" if asked.kind == "any" else "none"


def _function(tool: Tool, profile: Profile, names: ToolNames, notes: list[Note]) -> Entry:
    known = definition(tool)
    strict = tool.strict and profile.strict_tools and is_strict(known.schema)
    if tool.strict and not strict:
        what = f"tools: the schema of {tool.name} is not in the strict form that {profile.title} takes"
        notes.append(Note("degradation", "strict-dropped", what))
    entry: Entry = {"type": "function", "name": names.upstream(tool.name)}
    if known.description:
        entry["description"] = known.description
    # Left out, `strict` would be true.
    return entry | {"parameters": _parameters(known.schema), "strict": strict}


def _parameters(schema: bytes) -> Raw:
    """OpenAI refuses an object schema without `properties`; everything else goes as the client wrote it."""
    value = msgspec.json.decode(schema or b"{}", type=dict[str, Raw])
    if "type" in value and "properties" in value:
        return Raw(schema)
    return Raw(msgspec.json.encode({"type": "object", "properties": {}} | value))


def is_strict(schema: bytes) -> bool:
    """Whether every object in it is closed and requires all that it names, as OpenAI's strict form demands."""
    return _closed(msgspec.json.decode(schema or b"{}"))


def _closed(node: Any) -> bool:
    if isinstance(node, list):
        return all(map(_closed, node))
    if not isinstance(node, dict):
        return True
    properties = node.get("properties")
    if node.get("type") == "object" or isinstance(properties, dict):
        required = node.get("required")
        names = set(required) if isinstance(required, list) else set()
        if node.get("additionalProperties") is not False or names != set(properties or ()):
            return False
    inner = [*(properties or {}).values(), node.get("items"), node.get("anyOf"), *(node.get("$defs") or {}).values()]
    return not {"oneOf", "allOf", "not", "if", "patternProperties"} & node.keys() and all(map(_closed, inner))


class _Search(Struct, frozen=True):
    allowed_domains: tuple[str, ...] | None = None
    blocked_domains: tuple[str, ...] | None = None
    user_location: dict[str, str | None] | None = None


def _web_search(tool: Tool) -> Entry:
    given = msgspec.json.decode(tool.raw or b"{}", type=_Search)
    entry: Entry = {"type": "web_search"}
    filters = {
        name: domains
        for name, domains in (("allowed_domains", given.allowed_domains), ("blocked_domains", given.blocked_domains))
        if domains
    }
    if filters:
        entry["filters"] = filters
    if given.user_location:
        entry["user_location"] = given.user_location
    return entry
