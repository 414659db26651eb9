"""OpenAI's Responses API, also xAI's: `POST /responses`, kept stateless (`store: false`)."""

from collections.abc import Iterable

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from translation.adapter import Decoder, Target, UpstreamRequest
from translation.answer_schema import ANY_OBJECT, advice, object_schema, told_schema
from translation.effort import effort, is_reasoning, wanted
from translation.errors import BridgeError, InvalidRequest
from translation.extras import extras
from translation.fences import unfenced
from translation.fields import answer_tokens, cache_key, standard_only
from translation.names import ToolNames
from translation.patterns import matches
from translation.providers.openai_responses_errors import refusal
from translation.providers.openai_responses_input import InputItems
from translation.providers.openai_responses_stream import ResponsesStream
from translation.providers.openai_responses_tools import choice, max_searches, searches, tools
from translation.providers.openai_responses_whole import ResponsesWhole
from translation.sniffing import Sniffed
from translation.stopping import stopping
from translation.strict import is_strict
from translation.text_calls import in_text
from translation.unicode import fingerprint
from translation.values import Note, Request, ToolUse

Body = dict[str, object]
MIN_OUTPUT = 16  # the API refuses less
ID_LIMIT = 64
STATE = (b'"reasoning"', b'"web_search_call"')  # items that each are refused without the one after it
SUMMARY, VERBOSITY = "reasoning.summary", "text.verbosity"  # among the parameters that an upstream refuses


class OpenAIResponses:
    def build(self, request: Request, target: Target) -> UpstreamRequest:
        names = ToolNames(_tool_names(request), target.profile.name_limit)
        items = InputItems(target, names)
        history = items.build(request)  # refuses before anything else is built
        if request.extras and "response_format" in extras(request, target.profile):
            history = [items.instructed(ANY_OBJECT), *history]
        body: Body = {"model": target.model, "stream": request.stream, "store": False}
        notes = [*_limits(request, target, body), *_reasoning(request, target, body)]
        notes += _tools(request, target, names, body)
        system = [text.text for text in request.system if text.text.strip()]
        notes += _format(request, target, system, body)
        body |= _caller(request, target) | _said_in_chat(request, target, body, notes)
        if system:
            body["instructions"] = "\n\n".join(system)
        body = _remedied(body, target, notes)
        body["input"] = history  # last: a longer history only appends to the body
        encoded = msgspec.json.encode(body)
        return UpstreamRequest(
            path="/responses",
            body=encoded,
            stream=request.stream,
            names=names.changed,
            notes=(*notes, *items.notes),
        )

    def decoder(self, request: Request, target: Target, sent: UpstreamRequest, content_type: str) -> Decoder:
        names = dict(sent.names)
        tools = request.tools
        decoder: Decoder = Sniffed(lambda: ResponsesStream(names, tools), lambda: ResponsesWhole(names, tools))
        profile = target.profile
        if request.tools and profile.calls_in_text and not matches(target.model, profile.calls_beside):
            decoder = in_text(decoder, request, sent)
        if request.output_schema:
            decoder = unfenced(decoder, sent)
        return stopping(decoder, request.stop_sequences) if request.stop_sequences else decoder

    def failure(self, target: Target, status: int, headers: dict[str, str], body: bytes) -> BridgeError:
        """`code` is `opaque_state_rejected` when the upstream cannot read its blobs: see `without_state`."""
        return refusal(status, headers, body)

    def without_state(self, sent: UpstreamRequest) -> UpstreamRequest:
        """The same request without encrypted reasoning, for the one retry; the same object when it holds none."""
        body = msgspec.json.decode(sent.body, type=dict[str, Raw])
        items = msgspec.json.decode(body["input"], type=list[dict[str, Raw]])
        kept = [item for item in items if bytes(item["type"]) not in STATE]
        if len(kept) == len(items):
            return sent
        for item in kept:
            # An item that names itself is refused without the reasoning that it came with.
            for field in ("id", "status"):
                item.pop(field, None)
        what = f"the upstream could not read its encrypted reasoning: {len(items) - len(kept)} items were left out"
        note = Note("substitution", "opaque-state-dropped", what)
        encoded = msgspec.json.encode(body | {"input": Raw(msgspec.json.encode(kept))})
        return replace(sent, body=encoded, notes=(*sent.notes, note))


def _tool_names(request: Request) -> Iterable[str]:
    yield from (tool.name for tool in request.tools)
    for message in request.messages:
        yield from (block.name for block in message.blocks if isinstance(block, ToolUse))


def _limits(request: Request, target: Target, body: Body) -> list[Note]:
    notes: list[Note] = []
    if not request.open_ended:
        body["max_output_tokens"] = answer_tokens(request, target.profile.max_output, notes, MIN_OUTPUT)
    reasons = is_reasoning(target.profile, target.model)
    if any(request.stop_sequences):
        what = f"stop_sequences: {target.model} takes none; the bridge stops at them"
        notes.append(Note("degradation", "stop-sequences", what))
    lost: list[tuple[str, object]] = [("top_k", request.top_k)]
    for field, value in (("temperature", request.temperature), ("top_p", request.top_p)):
        if reasons:
            lost.append((field, value))
        elif value is not None:
            body[field] = value
    return notes + [
        Note("degradation", "parameter-dropped", f"{field}: {target.model} does not take it")
        for field, value in lost
        if value is not None
    ]


def _reasoning(request: Request, target: Target, body: Body) -> list[Note]:
    level, notes = effort(request, target.profile, target.model)
    if level == "minimal" and searches(request, target.profile):
        # `The following tools cannot be used with reasoning.effort 'minimal': web_search.`
        what = f"{target.model} cannot search at an effort of minimal; {wanted(request)} became low"
        level, notes = "low", (Note("degradation", "effort-limited", what),)
    wish: Body = {"effort": level} if level else {}
    if target.profile.reasoning_summary and is_reasoning(target.profile, target.model) and _shows_thinking(request):
        if SUMMARY in target.profile.drop_params:
            notes = (*notes, Note("degradation", "parameter-dropped", f"{target.upstream} takes no {SUMMARY}"))
        else:
            wish["summary"] = "auto"
    if wish:
        body["reasoning"] = wish
    return list(notes)


def _shows_thinking(request: Request) -> bool:
    """A summary costs tokens and needs a verified organisation: only for a client that would show it."""
    thinking = request.thinking
    return thinking is not None and thinking.kind != "disabled" and thinking.display != "omitted"


def _tools(request: Request, target: Target, names: ToolNames, body: Body) -> list[Note]:
    entries, notes = tools(request, target.profile, names)
    include = ["reasoning.encrypted_content"] if is_reasoning(target.profile, target.model) else []
    if any(entry["type"] == "web_search" for entry in entries):
        include.append("web_search_call.action.sources")
        limit = max_searches(request, target.profile)
        if limit is not None:
            body["max_tool_calls"] = limit
    if include:
        body["include"] = include
    if request.mcp_servers:
        notes.append(Note("degradation", "parameter-dropped", f"mcp_servers: {target.profile.title} gets none"))
    if not entries:
        if request.tools and request.tool_choice is not None and request.tool_choice.kind in ("any", "tool"):
            raise InvalidRequest(f"tool_choice: {target.profile.title} can run none of the tools")
        return notes
    body["tools"] = entries
    asked = choice(request, target.profile, names, notes)
    if isinstance(asked, dict) and not any(_is_chosen(entry, asked) for entry in entries):
        raise InvalidRequest(f"tool_choice.name: {target.profile.title} cannot run the tool that it chooses")
    if asked is not None:
        body["tool_choice"] = asked
    if request.tool_choice is not None and not request.tool_choice.parallel:
        body["parallel_tool_calls"] = False
    return notes


def _is_chosen(entry: Body, asked: Body) -> bool:
    return entry["type"] == asked["type"] and entry.get("name") == asked.get("name")


def _format(request: Request, target: Target, system: list[str], body: Body) -> list[Note]:
    if not request.output_schema:
        return []
    schema = object_schema(request.output_schema)
    if not schema:
        system.append(advice(request.output_schema))
        what = f"{target.upstream} takes no such schema; the instructions ask for it"
        return [Note("degradation", "structured-output", what)]
    schema, notes = told_schema(schema)
    strict = is_strict(schema)
    body["text"] = {"format": {"type": "json_schema", "name": "output", "schema": Raw(schema), "strict": strict}}
    if strict:
        return notes
    what = "output_config.format: not in the strict form, so the upstream follows it without a guarantee"
    return [*notes, Note("degradation", "structured-loose", what)]


def _caller(request: Request, target: Target) -> Body:
    out: Body = {}
    if request.user_id and target.profile.user_field:
        out[target.profile.user_field] = (
            request.user_id if len(request.user_id) <= ID_LIMIT else fingerprint(request.user_id)
        )
    if request.others and target.profile.service_tier and standard_only(request):
        out["service_tier"] = "default"
    if target.profile.cache_key and request.messages:
        out["prompt_cache_key"] = cache_key(request)
    return out


def _said_in_chat(request: Request, target: Target, body: Body, notes: list[Note]) -> Body:
    """What the API shares with chat, by its own names."""
    said: Body = dict(extras(request, target.profile))
    text: Body = {"verbosity": said.pop("verbosity")} if "verbosity" in said else {}
    if text and VERBOSITY in target.profile.drop_params:
        notes.append(Note("degradation", "parameter-dropped", f"{target.upstream} takes no {VERBOSITY}"))
        text = {}
    if said.pop("response_format", None) is not None:
        text["format"] = {"type": "json_object"}
    form = body.get("text", {})
    return said | {"text": text | form} if text and isinstance(form, dict) else said


def _remedied(body: Body, target: Target, notes: list[Note]) -> Body:
    """What this upstream is known to refuse: renamed or left out."""
    renames = dict(target.profile.rename_params)
    out: Body = {}
    for name, value in body.items():
        if name in target.profile.drop_params:
            notes.append(Note("degradation", "parameter-dropped", f"{target.upstream} takes no {name}"))
        else:
            out[renames.get(name, name)] = value
    return out
