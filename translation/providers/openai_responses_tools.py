"""Tools and tool choice for the Responses API."""

from translation.fields import search
from translation.function_schema import function_schema
from translation.names import ToolNames
from translation.providers.profile import Profile
from translation.strict import is_strict
from translation.tool_limit import described
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
            entries.append(_web_search(tool, profile, notes))
        else:
            notes.append(Note("degradation", "server-tool-dropped", f"{profile.title} has no {tool.type}: left out"))
    return entries, notes


def choice(request: Request, profile: Profile, names: ToolNames, notes: list[Note]) -> object:
    """None leaves it to the upstream, which means `auto`."""
    asked = request.tool_choice
    if asked is None or asked.kind == "auto":
        return None
    if asked.kind != "tool":
        return "required" if asked.kind == "any" else "none"
    if not any(tool.name == asked.name and tool.type.startswith("web_search") for tool in request.tools):
        return {"type": "function", "name": names.upstream(asked.name)}
    if profile.forced_search:
        return {"type": "web_search"}
    notes.append(Note("degradation", "tool-choice", f"{profile.title} cannot be made to search; it may choose"))
    return None


def _function(tool: Tool, profile: Profile, names: ToolNames, notes: list[Note]) -> Entry:
    known = definition(tool)
    parameters = function_schema(known.schema)
    notes += [Note("degradation", "schema-lowered", lost.format(tool.name)) for lost in parameters.lost]
    strict = tool.strict and profile.strict_tools and is_strict(bytes(parameters.schema))
    if tool.strict and not strict:
        what = f"tools: the schema of {tool.name} is not in the strict form that {profile.title} takes"
        notes.append(Note("degradation", "strict-dropped", what))
    entry: Entry = {"type": "function", "name": names.upstream(tool.name)}
    if known.description:
        entry["description"] = described(tool, known.description, profile.description_limit, notes)
    # Left out, `strict` would be true.
    return entry | {"parameters": parameters.schema, "strict": strict}


def _web_search(tool: Tool, profile: Profile, notes: list[Note]) -> Entry:
    given, lost = search(tool, profile)
    notes += lost
    entry: Entry = {"type": "web_search"}
    domains = (("allowed_domains", given.allowed_domains), (profile.blocked_domains, given.blocked_domains))
    filters = {name: names for name, names in domains if names}
    if filters:
        entry["filters"] = filters
    if given.user_location:
        entry["user_location"] = given.user_location
    return entry


def searches(request: Request, profile: Profile) -> bool:
    """Whether the upstream's own search is among the tools."""
    return bool(profile.web_search) and any(tool.type.startswith("web_search") for tool in request.tools)


def max_searches(request: Request, profile: Profile) -> int | None:
    """The upstream's limit is on all of its own tools, of which the client can ask for one."""
    asked = [search(tool, profile)[0].max_uses for tool in request.tools if tool.type.startswith("web_search")]
    return asked[0] if asked else None
