"""Google's Gemini API (`generateContent`), the request side. The answer is read in `gemini_stream`."""

from urllib.parse import quote

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from translation import fields, typed_tools
from translation.adapter import Decoder, Target, UpstreamRequest
from translation.effort import nearest, wanted
from translation.errors import BridgeError, InvalidRequest
from translation.extras import extras
from translation.fences import unfenced
from translation.function_schema import WHOLE
from translation.names import ToolNames
from translation.providers.gemini_contents import Part, contents, unsigned
from translation.providers.gemini_errors import failure
from translation.providers.gemini_models import Abilities, abilities
from translation.providers.gemini_search import searches
from translation.providers.gemini_stream import GeminiDecoder
from translation.providers.profile import Profile
from translation.schema import Lowered, lower
from translation.schema_json import spelled
from translation.schema_levels import shallow
from translation.sniffing import Sniffed
from translation.stopping import stopping
from translation.values import Note, Request, Tool, ToolChoice

MODES = {"auto": "AUTO", "any": "ANY", "tool": "ANY", "none": "NONE"}
STOPS = "stopSequences"
MAX_STOPS = 5
CUT = "what nests deeper than Gemini takes was left out"  # of a schema; of a tool's, its description has all
DYNAMIC = -1
# Tokens to think for an effort; `high` is what clients send unless told otherwise: as much as the model sees fit.
BUDGETS = {"low": 1_024, "medium": 8_192, "high": DYNAMIC, "xhigh": 1 << 30, "max": 1 << 30}


class Gemini:
    def build(self, request: Request, target: Target) -> UpstreamRequest:
        notes: list[Note] = []
        able = abilities(target.model)
        declared, search = _sorted_tools(request, able, target.profile, notes)
        profile = target.profile
        names = ToolNames((tool.name for tool in declared), profile.name_limit, letter_first=profile.letter_first)
        system, config = _system(request), _config(request, able, target, notes, alone=able.mixes or not declared)
        if request.output_schema and declared and not able.mixes:
            _structure_in_words(request, system, notes)
        elif request.output_schema:
            _structure(request, config, target.profile, notes)
        body: Part = {}
        if system:
            body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
        told: list[Note] = []
        turns, invoked = contents(request, target, names, told)
        body |= _tools(declared, search, names, target.profile, notes)
        body |= _tool_config(request, declared, search, names, notes, invoked=invoked)
        if request.user_id:
            notes.append(Note("degradation", "parameter-dropped", "metadata.user_id: Gemini takes no name of a user"))
        body["generationConfig"] = config
        body["contents"] = turns  # last: what a longer history only appends to
        notes += told
        return UpstreamRequest(
            path=_path(target.model, stream=request.stream),
            body=msgspec.json.encode(body),
            stream=request.stream,
            names=names.changed,
            notes=tuple(notes),
        )

    def decoder(self, request: Request, target: Target, sent: UpstreamRequest, content_type: str) -> Decoder:
        names = dict(sent.names)
        decoder: Decoder = Sniffed(lambda: GeminiDecoder(names), lambda: GeminiDecoder(names, streams=False))
        if request.output_schema:
            decoder = unfenced(decoder, sent)
        return stopping(decoder, _stops(request, target)[1]) if request.stop_sequences else decoder

    def failure(self, target: Target, status: int, headers: dict[str, str], body: bytes) -> BridgeError:
        """`code` is `opaque_state_rejected` when a thought signature is refused or missed: see `without_state`."""
        return failure(status, headers, body)

    def without_state(self, sent: UpstreamRequest) -> UpstreamRequest:
        """The same request with Google's word for a lost signature in place of all, for the one retry."""
        body = msgspec.json.decode(sent.body, type=dict[str, Raw])
        bare, count = unsigned(body["contents"])
        if not count:
            return sent
        what = f"the upstream did not take a thought signature: those of {count} answers were left out"
        note = Note("substitution", "opaque-state-dropped", what)
        return replace(sent, body=msgspec.json.encode(body | {"contents": bare}), notes=(*sent.notes, note))


def _path(model: str, *, stream: bool) -> str:
    name = (
        quote(model, safe="/") if model.startswith(("models/", "tunedModels/")) else f"models/{quote(model, safe='')}"
    )
    return f"/{name}:streamGenerateContent?alt=sse" if stream else f"/{name}:generateContent"


def _system(request: Request) -> list[str]:
    return [block.text for block in request.system if block.text.strip()]


# ---------------------------------------------------------------- generationConfig


def _config(request: Request, able: Abilities, target: Target, notes: list[Note], *, alone: bool) -> Part:
    """`alone` says whether the answer may have a form of its own."""
    config: Part = {}
    if not request.open_ended:
        config["maxOutputTokens"] = fields.answer_tokens(request, target.profile.max_output or able.max_output, notes)
    # A `top_k` of 0 is none at all; Gemini's begin with 1.
    for name, value in (("temperature", request.temperature), ("topP", request.top_p), ("topK", request.top_k or None)):
        if value is not None:
            config[name] = value
    stops, others = _stops(request, target)
    if stops:
        config[STOPS] = stops
    if others:
        what = (
            f"stop_sequences: Gemini takes {len(stops)} of {len(stops) + len(others)}: the bridge stops at the others"
        )
        notes.append(Note("degradation", "stop-sequences-limited", what))
    thinking = _thinking(request, able, target.model, notes)
    if thinking:
        config["thinkingConfig"] = thinking
    config |= _said_in_chat(request, target.profile, notes, alone=alone)
    return _allowed(config, target, notes) if target.profile.drop_params else config


def _stops(request: Request, target: Target) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The stop sequences that are sent, and those that are not."""
    given = tuple(stop for stop in request.stop_sequences if stop)
    most = 0 if STOPS in target.profile.drop_params else MAX_STOPS
    return given[:most], given[most:]


def _allowed(config: Part, target: Target, notes: list[Note]) -> Part:
    """Without what this upstream is known to refuse."""
    out: Part = {}
    for name, value in config.items():
        if name in target.profile.drop_params:
            notes.append(Note("degradation", "parameter-dropped", f"{target.upstream} takes no {name}"))
        else:
            out[name] = _allowed(value, target, notes) if isinstance(value, dict) else value
    return {name: value for name, value in out.items() if value != {}}


def _thinking(request: Request, able: Abilities, model: str, notes: list[Note]) -> Part:
    thinking = request.thinking
    off = thinking is not None and thinking.kind == "disabled"
    given = thinking.budget_tokens if thinking is not None else None
    wish = wanted(request) if off or given is not None or request.effort else ""
    config: Part = {}
    if able.levels and wish:
        config["thinkingLevel"] = level = nearest(wish, able.levels)
        if level != wish:
            _limited(notes, f"{model} knows the levels {', '.join(able.levels)}; {wish} became {level}")
    elif able.budget and (thinking is not None or wish):
        config["thinkingBudget"] = _budget(0 if off else given, wish, able, notes)
    elif wish and wish != "none" and not able.levels:
        _limited(notes, f"{model} has no control for thinking; {wish} was asked for")
    if thinking is not None and not off and (able.levels or able.budget):
        config["includeThoughts"] = True
    return config


def _budget(given: int | None, wish: str, able: Abilities, notes: list[Note]) -> int:
    least, most = able.budget or (0, 0)
    if given is None:
        budget = BUDGETS.get(wish, DYNAMIC)
        return budget if budget == DYNAMIC else min(max(budget, least), most)
    if given == 0 and able.stoppable:
        return 0
    budget = min(max(given, least), most)
    if budget != given:
        _limited(notes, f"a thinking budget of {given} became {budget}, the nearest that the model takes")
    return budget


def _limited(notes: list[Note], what: str) -> None:
    notes.append(Note("degradation", "effort-limited", what))


def _structure(request: Request, config: Part, profile: Profile, notes: list[Note]) -> None:
    lowered = _lowered(request.output_schema, profile, parameters=False)
    config["responseMimeType"] = "application/json"
    if profile.json_schemas:
        config["responseJsonSchema"] = Raw(spelled(lowered.schema))
    else:
        config["responseSchema"] = Raw(lowered.schema)
    _noted(notes, "output_config.format", lowered.notes)


def _structure_in_words(request: Request, system: list[str], notes: list[Note]) -> None:
    """For models that take no response schema beside functions."""
    schema = request.output_schema.decode("utf-8", "replace")
    system.append(
        f"Your final answer must be one JSON value that follows this JSON Schema, and nothing else:\n{schema}"
    )
    what = "output_config.format: the model takes no response schema beside tools; it was asked for in words"
    notes.append(Note("degradation", "schema-in-words", what))


def _said_in_chat(request: Request, profile: Profile, notes: list[Note], *, alone: bool) -> Part:
    """What a chat client asks of the answer: its seed, JSON of any form."""
    said: Part = dict(extras(request, profile))
    if said.pop("response_format", None) is None:
        return said
    if alone:
        return said | {"responseMimeType": "application/json"}
    notes.append(Note("degradation", "structured-output", "response_format: the model takes none beside tools"))
    return said


# ---------------------------------------------------------------- tools


def _sorted_tools(request: Request, able: Abilities, profile: Profile, notes: list[Note]) -> tuple[list[Tool], bool]:
    """The tools to declare as functions, and whether to search."""
    declared, search = [tool for tool in request.tools if typed_tools.kind(tool) != "server"], False
    choice = request.tool_choice or ToolChoice()
    if declared and not able.mixes and choice.name in [tool.name for tool in request.tools if searches(tool)]:
        notes.append(
            Note("degradation", "search-alone", "tools: left out beside the search, which the model cannot mix")
        )
        declared = []
    for tool in (tool for tool in request.tools if typed_tools.kind(tool) == "server"):
        if not searches(tool):
            notes.append(Note("degradation", "server-tool-unavailable", f"tools.{tool.name}: not at this upstream"))
        elif declared and not able.mixes:
            what = f"tools.{tool.name}: the model cannot search beside functions; left out"
            notes.append(Note("degradation", "search-left-out", what))
        elif choice.kind != "none":  # the mode is for functions
            search = True
            notes += fields.search(tool, profile)[1]
    return declared, search


def _tools(declared: list[Tool], search: bool, names: ToolNames, profile: Profile, notes: list[Note]) -> Part:  # noqa: FBT001
    tools: list[Part] = []
    if declared:
        tools.append({"functionDeclarations": [_declaration(tool, names, profile, notes) for tool in declared]})
    if search:
        tools.append({"googleSearch": {}})
    return {"tools": tools} if tools else {}


def _declaration(tool: Tool, names: ToolNames, profile: Profile, notes: list[Note]) -> Part:
    known = typed_tools.definition(tool)
    out: Part = {"name": names.upstream(tool.name)}
    lowered = _lowered(known.schema, profile)
    words = known.description
    if CUT in lowered.notes:
        words = f"{words}\n\n{WHOLE.format(known.schema.decode())}".lstrip()
    if words:
        out["description"] = words
    if not lowered.empty and profile.json_schemas:
        out["parametersJsonSchema"] = Raw(spelled(lowered.schema))
    elif not lowered.empty:  # a function without parameters has none, not an object without properties
        out["parameters"] = Raw(lowered.schema)
    elif told := msgspec.json.decode(lowered.schema).get("description"):
        out["description"] = f"{words} {told}".lstrip()
    _noted(notes, f"tools.{tool.name}.input_schema", lowered.notes)
    if tool.strict:
        what = f"tools: Gemini cannot be held to the schema of {tool.name}"
        notes.append(Note("degradation", "strict-dropped", what))
    return out


def _lowered(schema: bytes, profile: Profile, *, parameters: bool = True) -> Lowered:
    lowered = lower(schema, parameters=parameters)
    told = shallow(lowered.schema, profile.schema_levels) if profile.schema_levels else lowered.schema
    if told is lowered.schema:
        return lowered
    empty = not msgspec.json.decode(told).get("properties")
    return Lowered(told, (*lowered.notes, CUT), empty)


def _noted(notes: list[Note], where: str, lost: tuple[str, ...]) -> None:
    if lost:
        notes.append(Note("degradation", "schema-lowered", f"{where}: {'; '.join(lost)}"))


def _tool_config(
    request: Request,
    declared: list[Tool],
    search: bool,  # noqa: FBT001
    names: ToolNames,
    notes: list[Note],
    *,
    invoked: bool,
) -> Part:
    """`invoked`: the history holds searches beside functions, which every request after them has to allow, too."""
    config: Part = {}
    choice = request.tool_choice
    if choice is not None and request.tools:
        forced = choice.kind in ("any", "tool")
        if forced and not declared and not search:
            raise InvalidRequest("tool_choice: none of the tools can be used at this upstream")
        known = choice.kind != "tool" or any(tool.name == choice.name for tool in declared)
        if declared and known and not (search and choice.kind == "auto"):  # which is refused there: VALIDATED is usual
            calling: Part = {"mode": MODES[choice.kind]}
            config["functionCallingConfig"] = calling
            if choice.kind == "tool":
                calling["allowedFunctionNames"] = [names.upstream(choice.name)]
        elif forced and search:
            notes.append(Note("degradation", "search-not-forced", "tool_choice: Gemini decides itself when to search"))
        elif forced:
            raise InvalidRequest(f"tool_choice.name: there is no tool {choice.name!r} to choose at this upstream")
        if not choice.parallel and declared:
            what = "tool_choice.disable_parallel_tool_use: Gemini has no such control"
            notes.append(Note("degradation", "parallel-uncontrolled", what))
    if invoked or (declared and search):
        config["includeServerSideToolInvocations"] = True
    return {"toolConfig": config} if config else {}
