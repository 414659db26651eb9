"""OpenAI Chat Completions and the family that speaks it: requests, and the adapter that the bridge calls.

What providers differ in is data in `profiles`. `messages` is last in the body and all before it is stable, so that a
request is a byte prefix of the next one when the client only appended.
"""

import re
from typing import Any

import msgspec
from msgspec.structs import replace

from translation.adapter import Decoder, Target, UpstreamRequest
from translation.answer_schema import ANY_OBJECT, advice, object_schema, told_schema, wants_any_object
from translation.caching import cache_control
from translation.effort import effort, is_reasoning, scale, wanted
from translation.end_tokens import EndTokens
from translation.errors import OPAQUE_STATE_REJECTED, BridgeError, UpstreamRefused
from translation.fences import unfenced
from translation.fields import answer_tokens, cache_key, standard_only, taken_temperature
from translation.names import ToolNames
from translation.patterns import matches
from translation.providers.openai_chat_messages import History
from translation.providers.openai_chat_search import told
from translation.providers.openai_chat_state import stripped
from translation.providers.openai_chat_stream import chat_decoder
from translation.providers.openai_chat_tools import Offer, degraded, offer
from translation.refusals import refusal
from translation.stopping import stopping
from translation.strict import is_strict
from translation.text_calls import in_text
from translation.unicode import fingerprint
from translation.values import NAME, Note, Request

Json = dict[str, Any]  # chat JSON, encoded at the end of `build`

SIGNATURE = re.compile(
    r"thought[_ ]?signature|invalid `signature`|thinking\.signature|encrypted_content", re.IGNORECASE
)


class OpenAIChat:
    """The adapter of the chat dialect."""

    def build(self, request: Request, target: Target) -> UpstreamRequest:
        profile = target.profile
        names = ToolNames(map(NAME, request.tools), profile.name_limit, letter_first=profile.letter_first)
        offered = offer(request, target, names)
        notes: list[Note] = [*offered.notes]
        body: Json = {"model": target.model, "stream": request.stream}
        if request.stream and profile.stream_usage:
            body["stream_options"] = {"include_usage": True}
        body |= _limits(request, target, notes)
        body |= _sampling(request, target, notes)
        body |= _caller(request, target)
        body |= _thinking(request, target, offered, notes)
        system = "\n\n".join([block.text for block in request.system if block.text.strip()]) if request.system else ""
        if request.output_schema:
            form = _structure(request, target, notes)
            body |= form
            if "json_schema" not in form.get("response_format", ()):
                system = f"{system}\n\n{advice(request.output_schema)}".strip()
        elif profile.structured == "none" and wants_any_object(request):
            system = f"{system}\n\n{ANY_OBJECT}".strip()
        body |= offered.parameters
        if request.messages and request.messages[-1].role == "assistant":
            body |= profile.prefill_params
        if request.extras:
            body |= _extras(request, target, notes)
        body = _remedied(body, target, notes)
        history = History(request, target, names)
        body["messages"] = history.messages(system)
        return UpstreamRequest(
            path="/chat/completions",
            body=msgspec.json.encode(body),
            stream=request.stream,
            names=names.changed,
            notes=(*notes, *history.notes),
        )

    def decoder(self, request: Request, target: Target, sent: UpstreamRequest, content_type: str) -> Decoder:
        """Stream or whole JSON is seen from the bytes: servers send either under any content type."""
        decoder: Decoder = chat_decoder(request, target, sent)
        if target.profile.thinks_in_text:
            decoder = EndTokens(decoder)
        if request.tools and target.profile.calls_in_text:
            decoder = in_text(decoder, request, sent)
        if request.tools:
            decoder = told(decoder, request, sent)
        if request.output_schema:
            decoder = unfenced(decoder, sent)
        return stopping(decoder, _stops(request, target)[1]) if request.stop_sequences else decoder

    def failure(self, target: Target, status: int, headers: dict[str, str], body: bytes) -> BridgeError:
        """`code` is `opaque_state_rejected` when a signature is not taken: see `without_state`."""
        error = refusal(status, headers, body)
        if type(error) is UpstreamRefused and SIGNATURE.search(error.message):
            error.code = OPAQUE_STATE_REJECTED
        return error

    def without_state(self, sent: UpstreamRequest) -> UpstreamRequest:
        """The same request without signed reasoning, for the one retry; the same object when nothing can be done."""
        body = msgspec.json.decode(sent.body, type=dict[str, msgspec.Raw])
        messages, count = stripped(body)
        if not count:
            return sent
        what = f"the upstream did not take its signed reasoning: that of {count} messages was left out"
        note = Note("substitution", "opaque-state-dropped", what)
        return replace(sent, body=msgspec.json.encode(body | {"messages": messages}), notes=(*sent.notes, note))


def _limits(request: Request, target: Target, notes: list[Note]) -> Json:
    profile = target.profile
    field = "max_completion_tokens" if is_reasoning(profile, target.model) else profile.max_tokens_field
    out: Json = {}
    if not request.open_ended:
        out[field] = answer_tokens(request, profile.max_output, notes)
    if not request.stop_sequences:
        return out
    stops, others = _stops(request, target)
    if others:
        what = f"{target.model} takes {len(stops)} of {len(stops) + len(others)}: the bridge stops at the others"
        notes.append(degraded("stop-sequences", what))
    if stops:
        out["stop"] = list(stops)
    return out


def _stops(request: Request, target: Target) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The stop sequences that are sent, and those that are not."""
    given = tuple(stop for stop in request.stop_sequences if stop)  # an empty one stops nothing, and is refused
    limit = 0 if "stop" in target.refused else target.profile.stop_limit or len(given)
    return given[:limit], given[limit:]


def _sampling(request: Request, target: Target, notes: list[Note]) -> Json:
    if request.temperature is None and request.top_p is None and request.top_k is None:
        return {}
    given = {"temperature": request.temperature, "top_p": request.top_p, "top_k": request.top_k}
    out = {name: value for name, value in given.items() if value is not None}
    refused: set[str] = set() if target.profile.top_k else {"top_k"}
    if matches(target.model, target.profile.fixed_sampling):
        refused |= {"temperature", "top_p"}
    for name in sorted(refused & out.keys()):
        notes.append(degraded("sampling", f"{target.model} takes no {name}"))
        del out[name]
    if "temperature" in out:
        out["temperature"] = taken_temperature(out["temperature"], target.profile, notes)
    if out.get("temperature") == 0 and matches(target.model, target.profile.greedy):
        if out.get("top_p", 1) != 1:
            notes.append(degraded("sampling", f"{target.model} takes no other top_p than 1 beside a temperature of 0"))
        out["top_p"] = 1
    return out


def _caller(request: Request, target: Target) -> Json:
    out: Json = {}
    if request.user_id:
        out["user"] = request.user_id if len(request.user_id) <= 64 else fingerprint(request.user_id)
    if request.others and target.profile.service_tier and standard_only(request):
        out["service_tier"] = "default"
    if target.profile.cache_key and request.messages:
        out["prompt_cache_key"] = cache_key(request)
    if target.profile.cache_models and matches(target.model, target.profile.cache_models):
        mark = request.cache_control or cache_control(request.body)
        out |= {"cache_control": msgspec.Raw(mark)} if mark else {}
    return out


def _thinking(request: Request, target: Target, offered: Offer, notes: list[Note]) -> Json:
    wish = wanted(request)
    profile = target.profile
    if "tools" in offered.parameters and matches(target.model, profile.tools_without_reasoning):
        if wish != "none":
            notes.append(degraded("effort-limited", f"{target.model} takes tools without reasoning only, in this API"))
        return {"reasoning_effort": "none"}
    field = _effort_field(target) if profile.effort_fields else profile.effort_field
    if field == "thinking.type":
        return _switch(request, target, offered, notes)
    return _level(request, target, field, notes) if wish else {}


def _level(request: Request, target: Target, field: str, notes: list[Note]) -> Json:
    """Of a client that said how hard to think."""
    off = wanted(request) == "none"
    if field == "chat_template":
        notes += _levelless(request, target)
        return {"chat_template_kwargs": {"enable_thinking": not off, "thinking": not off}}
    if field == "reasoning.effort" and off:
        return {"reasoning": {"enabled": False}}
    level, limited = effort(request, target.profile, target.model)
    notes += limited
    if not level:
        return {}
    return {"reasoning": {"effort": level}} if field == "reasoning.effort" else {"reasoning_effort": level}


def _effort_field(target: Target) -> str:
    own = (name for pattern, name in target.profile.effort_fields if matches(target.model, (pattern,)))
    return next(own, target.profile.effort_field)


def _switch(request: Request, target: Target, offered: Offer, notes: list[Note]) -> Json:
    """`thinking: {type}` beside an effort, which is refused when thinking is off."""
    wish = wanted(request)
    always = matches(target.model, target.profile.always_thinks)
    if offered.forced and not always and not target.profile.forced_while_thinking:
        if wish != "none":
            notes.append(degraded("effort-limited", f"{target.model} cannot think when it has to call a tool"))
        return {"thinking": {"type": "disabled"}}
    if not wish:
        return {}
    if wish == "none" and not always:
        return {"thinking": {"type": "disabled"}}
    out: Json = {} if always else {"thinking": {"type": "enabled"}}
    if scale(target.profile, target.model):
        level, limited = effort(request, target.profile, target.model)
        notes += limited
        out["reasoning_effort"] = level
    elif wish == "none":
        notes.append(degraded("effort-limited", f"{target.model} always thinks"))
    else:
        notes += _levelless(request, target)
    return out


def _levelless(request: Request, target: Target) -> list[Note]:
    if not request.effort:
        return []
    what = f"{target.model} thinks or does not; {request.effort} was asked for"
    return [degraded("effort-limited", what)]


def _structure(request: Request, target: Target, notes: list[Note]) -> Json:
    schema = object_schema(request.output_schema) or (request.output_schema if target.profile.any_answers else b"")
    if schema and target.profile.structured == "json_schema":
        schema, lowered = told_schema(schema)
        notes += lowered
        strict = is_strict(schema)
        if not strict:
            what = "output_config.format: not in the strict form, so the upstream follows it without a guarantee"
            notes.append(degraded("structured-loose", what))
        form = {"name": "answer", "schema": msgspec.Raw(schema), "strict": strict}
        return {"response_format": {"type": "json_schema", "json_schema": form}}
    notes.append(
        degraded("structured-output", f"{target.upstream} takes no such schema; the system prompt asks for it")
    )
    mode = schema and target.profile.structured == "json_object"  # which is for objects
    return {"response_format": {"type": "json_object"}} if mode else {}


def _extras(request: Request, target: Target, notes: list[Note]) -> Json:
    """What a chat client said that has no canonical form."""
    extras: Json = msgspec.json.decode(request.extras, type=dict[str, msgspec.Raw])
    if "response_format" in extras and target.profile.structured == "none":
        del extras["response_format"]
        what = f"{target.upstream} takes no response_format; the system prompt asks for it"
        notes.append(degraded("structured-output", what))
    return extras


def _remedied(body: Json, target: Target, notes: list[Note]) -> Json:
    """What this upstream is known to refuse: renamed or left out."""
    refused = target.refused
    if not refused and not target.profile.rename_params:
        return body
    renames, out = dict(target.profile.rename_params), dict[str, Any]()
    for name, value in body.items():
        if name in refused:
            notes.append(degraded("parameter-dropped", f"{target.model} takes no {name}"))
        else:
            out[renames.get(name, name)] = value
    return out
