"""Anthropic itself: the client's own bytes, with only what must change put in their place."""

from functools import partial

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from translation.adapter import Decoder, Target, UpstreamRequest
from translation.answer_schema import ANY_OBJECT, advice, wants_any_object
from translation.client.stored import MARK, dump_blocks, dump_message
from translation.closed_schema import closed, is_finite
from translation.errors import BridgeError
from translation.fields import answer_tokens, taken_temperature
from translation.function_schema import PATTERNS, object_root
from translation.names import ToolNames
from translation.providers.anthropic_cache import marked, spared
from translation.providers.anthropic_errors import refusal
from translation.providers.anthropic_history import lacks_thinking, legal, without_thinking
from translation.providers.anthropic_json import Fields, items, split, to_array, to_object
from translation.providers.anthropic_names import Renamed, aliased, as_sent, tool_names, with_called_tools, with_name
from translation.providers.anthropic_state import UNSIGNED
from translation.providers.anthropic_stream import AnthropicStream
from translation.providers.anthropic_thinking import thinking_off, unthinking, with_known_effort
from translation.providers.anthropic_whole import AnthropicWhole
from translation.schema_patterns import with_portable_patterns
from translation.sniffing import Sniffed
from translation.unicode import fingerprint, json_string
from translation.values import Message, Note, Request, Text, ThinkingConfig, Tool, ToolChoice, ToolUse

THREADS = "message-threads-"  # the beta that the bridge serves itself
MAX_USER_ID = 256
STRICT, MOST_STRICT = "tools.strict", 20  # among what an upstream refuses; tools in one request that may be
PATTERN = "tools.pattern"
UNSAMPLED = (None, None, None)
UNSAID = {"temperature": None, "top_p": None, "top_k": None, "effort": ""}  # among that, too: fields of a request


class Anthropic:
    def build(self, request: Request, target: Target) -> UpstreamRequest:
        lost: list[Note] = []
        if not request.body and (request.extras or request.output_schema):
            request = _worded(request, lost)
        if not (request.body or request.tools) and ToolUse in request.kinds:
            request = with_called_tools(request, lost)
        names = tool_names(request, target.profile.name_limit)
        messages, notes = legal(request, target, names)
        notes += lost
        given = split(request.body) if request.body else _spelled(request, target, notes)
        fields = given | _wanted(request, target, messages, names, given, notes)
        if "output_config" in fields:
            fields = with_known_effort(fields, target, notes)
        if lacks_thinking(request, messages):
            fields = thinking_off(fields)
            what = "thinking: off for this call, since the tool turn that it goes on from has none of Claude's"
            notes.append(Note("degradation", "thinking-disabled", what))
        fields.pop("thread", None)
        return UpstreamRequest(
            path="/messages",
            body=request.body if request.body and fields == given else to_object(fields),
            stream=request.stream,
            headers=_headers(request),
            names=names.changed,
            notes=tuple(notes),
        )

    def decoder(self, request: Request, target: Target, sent: UpstreamRequest, content_type: str) -> Decoder:
        """For the relay writer: the decoder's frames are the client's answer."""
        live = request.tools if request.stream else ()
        if not sent.names:
            return Sniffed(partial(AnthropicStream, live), partial(AnthropicWhole, streams=request.stream))
        stream = partial(AnthropicStream, as_sent(live, sent.names))
        return Renamed(Sniffed(stream, partial(AnthropicWhole, streams=request.stream)), dict(sent.names))

    def failure(self, target: Target, status: int, headers: dict[str, str], body: bytes) -> BridgeError:
        """`code` is `opaque_state_rejected` when a signature is not taken: see `without_state`."""
        return refusal(status, headers, body)

    def without_state(self, sent: UpstreamRequest) -> UpstreamRequest:
        """The same request without any thinking of earlier turns, for the one retry; the same object if it has none.

        Where there was none, or none that is signed, thinking is what is missed: then the model has to do without it.
        """
        fields = split(sent.body)
        raws = items(fields["messages"])
        kept = [without_thinking(raw) for raw in raws]
        count = sum(old != new for old, new in zip(raws, kept, strict=True))
        given = fields.get("thinking", b"")
        if not count and (b'"disabled"' in given or b'"tool_use"' not in fields["messages"]):
            return sent
        missed = not count or UNSIGNED.search(fields["messages"]) is not None
        if missed or (b'"enabled"' in given and b'"tool_result"' in kept[-1]):
            fields = thinking_off(fields)
        if not count and fields.get("thinking", b"") == given:
            return sent
        fields["messages"] = to_array(kept)
        what = f"the upstream did not take the thinking of earlier turns: that of {count} messages was left out"
        note = Note("substitution", "opaque-state-dropped", what)
        return replace(sent, body=to_object(fields), notes=(*sent.notes, note))


def _worded(request: Request, notes: list[Note]) -> Request:
    """What a chat client asks of its answer and the API has no field for: the system prompt asks for it."""
    if wants_any_object(request):
        return _asking(request, ANY_OBJECT)
    if not request.output_schema or is_finite(request.output_schema):
        return request
    what = "response_format: Claude cannot be held to a schema that refers to itself; the system prompt asks for it"
    notes.append(Note("degradation", "structured-output", what))
    return replace(_asking(request, advice(request.output_schema)), output_schema=b"")


def _asking(request: Request, words: str) -> Request:
    return replace(request, system=(*request.system, Text(words)), raw_system=b"")


def _wanted(
    request: Request,
    target: Target,
    messages: tuple[Message, ...],
    names: ToolNames,
    given: Fields,
    notes: list[Note],
) -> Fields:
    """The fields that are the bridge's matter; most of the time each is what the client wrote."""
    raws = [message.raw or dump_message(message) for message in messages]
    written = given.get("messages", b"")
    own = items(written) if written else []
    if raws != own or not written:
        told = to_array(raws)
        written = _marked(request, messages, raws, own, given) if MARK in told or MARK in written else told
    wanted = {"messages": written}
    if request.model != target.model:
        wanted["model"] = json_string(target.model)
    if request.system:
        wanted["system"] = request.raw_system or dump_blocks(request.system)
    if request.tools:
        kept = request.body and not names.changed and PATTERN not in target.profile.drop_params
        wanted["tools"] = (request.raw_tools if kept else b"") or _tools(request, target, names, notes)
    choice = request.tool_choice
    if choice is not None and choice.name in dict(names.changed).values() and "tool_choice" in given:
        wanted["tool_choice"] = with_name(given["tool_choice"], names.upstream(choice.name))
    if request.stream != (given.get("stream") == b"true"):
        wanted["stream"] = b"true" if request.stream else b"false"
    return wanted


def _marked(
    request: Request, messages: tuple[Message, ...], raws: list[bytes], own: list[bytes], given: Fields
) -> bytes:
    """Messages that are not the client's `own`, with the cache breakpoints that they had."""
    if len(raws) > len(own):
        last = [MARK + given["cache_control"]] if "cache_control" in given else []  # on whatever the last block is
        raws = spared(messages, raws, own + last, request.raw_tools + request.raw_system)
    return to_array(marked(messages, raws, own))


def _headers(request: Request) -> tuple[tuple[str, str], ...]:
    betas = ",".join(beta for beta in request.betas if not beta.startswith(THREADS))
    version = ("anthropic-version", request.version)
    return (version, ("anthropic-beta", betas)) if betas else (version,)


# ---------------------------------------------------------------- a request that came in another dialect


def _spelled(given: Request, target: Target, notes: list[Note]) -> Fields:
    asks = given.effort or (given.temperature, given.top_p, given.top_k) != UNSAMPLED
    request = unthinking(_permitted(given, target, notes) if asks else given, target, notes)
    temperature, top_p = _sampling(request, target, notes)
    unsaid: list[Note] = []  # of a limit that the client has not set
    values: dict[str, object] = {
        "model": request.model,
        "max_tokens": answer_tokens(request, target.profile.max_output, unsaid if request.open_ended else notes),
        "temperature": temperature,
        "top_p": top_p,
        "top_k": request.top_k,
        "stop_sequences": _stops(request.stop_sequences, notes) or None,
        "thinking": _thinking(request.thinking) if request.thinking else None,
        "output_config": _output(request, notes),
        "metadata": {"user_id": _user(request.user_id)} if request.user_id else None,
        "cache_control": Raw(request.cache_control) if request.cache_control else None,
        "mcp_servers": Raw(request.mcp_servers) if request.mcp_servers else None,
        "tool_choice": _choice(request.tool_choice, target, notes) if request.tool_choice and request.tools else None,
    }
    return {name: msgspec.json.encode(value) for name, value in values.items() if value is not None}


def _permitted(request: Request, target: Target, notes: list[Note]) -> Request:
    """Without what this model refuses."""
    given = {name: getattr(request, name) for name in UNSAID if name in target.refused}
    lost = [name for name, value in given.items() if value != UNSAID[name]]
    what = "{}: {} was left out, since {} does not take it"
    notes += [
        Note("degradation", "parameter-dropped", what.format(name, given[name], target.model))
        for name in lost
        if given[name] != 1  # which is how a model speaks that is told nothing
    ]
    return replace(request, **{name: UNSAID[name] for name in lost}) if lost else request


def _user(user_id: str) -> str:
    return user_id if len(user_id) <= MAX_USER_ID else fingerprint(user_id)


def _sampling(request: Request, target: Target, notes: list[Note]) -> tuple[float | None, float | None]:
    """Chat clients like to send both, and newer models refuse that. Where one says nothing, the other one counts."""
    temperature, top_p = request.temperature, request.top_p
    if temperature is not None:
        temperature = taken_temperature(temperature, target.profile, notes)
    if temperature is None or top_p is None:
        return temperature, top_p
    if temperature == 1 and top_p != 1:
        return None, top_p
    if top_p != 1:
        what = f"top_p: {top_p} was left out, since Anthropic takes it or a temperature, not both"
        notes.append(Note("degradation", "top-p-dropped", what))
    return temperature, None


def _stops(given: tuple[str, ...], notes: list[Note]) -> tuple[str, ...]:
    """Chat clients like to stop at a line's end."""
    stops = tuple(stop for stop in given if stop.strip())
    if len(stops) < len(given):
        what = "stop_sequences: Anthropic takes none that is only white space"
        notes.append(Note("degradation", "stop-sequences-limited", what))
    return stops


def _thinking(config: ThinkingConfig) -> dict[str, object]:
    value = {"type": config.kind, "budget_tokens": config.budget_tokens, "display": config.display or None}
    return {name: field for name, field in value.items() if field is not None}


def _output(request: Request, notes: list[Note]) -> dict[str, object] | None:
    value: dict[str, object] = {"effort": request.effort} if request.effort else {}
    if request.output_schema:
        schema = closed(request.output_schema)
        value["format"] = {"type": "json_schema", "schema": Raw(schema)}
        if schema != request.output_schema:
            what = "response_format: what Claude's structured outputs cannot be told of it stands in descriptions"
            notes.append(Note("degradation", "schema-lowered", what))
    return value or None


def _tools(request: Request, target: Target, names: ToolNames, notes: list[Note]) -> bytes:
    """What the client wrote in this dialect stays; tools of the bridge and of chat clients have to be legal."""
    tools = tuple([tool if request.body and tool.raw else _rooted(tool, notes) for tool in request.tools])
    if names.changed:
        tools = tuple([aliased(tool, names) for tool in tools])
    if PATTERN in target.profile.drop_params:
        tools = tuple([_reworded(tool, notes) for tool in tools])
    if not request.body and any(tool.strict for tool in tools):
        return _loosened(tools, target, notes)
    return to_array([tool.raw or _tool(tool) for tool in tools])


def _rooted(tool: Tool, notes: list[Note]) -> Tool:
    """`input_schema does not support oneOf, allOf, or anyOf at the top level`."""
    told = object_root(tool.schema) if tool.schema else None
    if told is None:
        return tool
    notes += [Note("degradation", "schema-lowered", lost.format(tool.name)) for lost in told.lost]
    return _with_schema(tool, bytes(told.schema))


def _reworded(tool: Tool, notes: list[Note]) -> Tool:
    """For a server that has refused a regular expression."""
    schema = with_portable_patterns(tool.schema)
    if schema is tool.schema:
        return tool
    notes.append(Note("degradation", "schema-lowered", PATTERNS.format(tool.name)))
    return _with_schema(tool, schema)


def _with_schema(tool: Tool, schema: bytes) -> Tool:
    fields = split(tool.raw or _tool(tool)) | {"input_schema": schema}
    return replace(tool, schema=schema, raw=to_object(fields))


def _loosened(tools: tuple[Tool, ...], target: Target, notes: list[Note]) -> bytes:
    """OpenAI holds a model to more than Claude can be held to, and refuses none of what is only told."""
    bound = [tool.strict and is_finite(tool.schema) and closed(tool.schema) == tool.schema for tool in tools]
    if sum(bound) > MOST_STRICT or (any(bound) and STRICT in target.profile.drop_params):
        what = f"tools: Claude cannot be held to the schemas of {sum(bound)} tools at once"
        notes.append(Note("degradation", "strict-dropped", what))
        bound, tools = [False] * len(tools), tuple(replace(tool, strict=False) for tool in tools)
    raws = []
    for tool, held in zip(tools, bound, strict=True):
        fields = split(tool.raw or _tool(tool))
        if not held:
            fields.pop("strict", None)
        if tool.strict and not held:
            what = f"tools: Claude cannot be held to all of the schema of {tool.name}"
            notes.append(Note("degradation", "strict-dropped", what))
        raws.append(to_object(fields))
    return to_array(raws)


def _choice(choice: ToolChoice, target: Target, notes: list[Note]) -> dict[str, object]:
    if choice.kind in ("any", "tool") and "tool" not in target.choices:
        notes.append(Note("degradation", "tool-choice", f"{target.model} cannot be made to call a tool; it may choose"))
        choice = ToolChoice("auto", "", choice.parallel)
    value: dict[str, object] = {"type": choice.kind}
    if choice.name:
        value["name"] = choice.name
    if not choice.parallel and choice.kind != "none":
        value["disable_parallel_tool_use"] = True
    return value


def _tool(tool: Tool) -> bytes:
    if tool.type != "custom":
        return msgspec.json.encode({"type": tool.type, "name": tool.name})
    schema = Raw(tool.schema or b'{"type":"object"}')
    value: dict[str, object] = {"name": tool.name, "description": tool.description, "input_schema": schema}
    return msgspec.json.encode(value | {"defer_loading": True} if tool.defer_loading else value)
