"""A Chat Completions request to the canonical `Request`. What is wrong with it is an `InvalidRequest` with its path.

Parameters without a canonical form go on to upstreams that speak chat (`extras`); those that would change the shape of
the answer are refused rather than ignored.
"""

import re
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from translation.caching import cache_control
from translation.client.paths import (
    Fields,
    carried,
    carried_object,
    decode,
    model_of,
    one_of,
    required,
    split,
    wrong,
)
from translation.errors import InvalidRequest, UnknownToolResult
from translation.openai_client.messages import conversation
from translation.openai_client.tools import tool_choice, tools
from translation.places import told
from translation.values import Field, Message, Request, ThinkingConfig

NO_LIMIT = 32_000  # for upstreams that insist on one
MAX_INTEGER = 2**31 - 1
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
FORMATS = ("text", "json_object", "json_schema")
# fmt: off
EXTRAS = (
    "seed", "presence_penalty", "frequency_penalty", "logit_bias", "verbosity", "service_tier", "prediction",
    "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "safety_identifier", "store", "metadata",
    "min_p", "repetition_penalty",
)
CARRIED = frozenset({
    *EXTRAS, "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "stop", "n",
    "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort",
    "user", "logprobs", "top_logprobs", "modalities",
})
REFUSED = {
    "functions": "is the old form of tools",
    "function_call": "is the old form of tool_choice",
    "audio": "is not supported: answers are text",
    "web_search_options": "is not supported",
    "moderation": "is not supported: its results have no place in the answers here",
}
# fmt: on

RESULT = re.compile(r"^(messages\.\d+)\.content\.\d+: .*", re.DOTALL)
T = TypeVar("T")

_STRING = msgspec.json.Decoder(str)
_STRINGS = msgspec.json.Decoder(list[str])
_STOP = msgspec.json.Decoder(str | list[str])
_INTEGER = msgspec.json.Decoder(int)
_NUMBER = msgspec.json.Decoder(float)
_FLAG = msgspec.json.Decoder(bool)


class StreamOptions(Struct):
    include_usage: bool | None = None


class SchemaWire(Struct):
    schema: Raw


class FormatWire(Struct):
    type: str
    json_schema: SchemaWire | None = None


_OPTIONS = msgspec.json.Decoder(StreamOptions)
_FORMAT = msgspec.json.Decoder(FormatWire)


class Chat(Struct, frozen=True):
    request: Request
    include_usage: bool = False  # of a stream: a last chunk tells it
    given: tuple[Message, ...] = ()  # as the client counts its messages

    def placed(self, error: InvalidRequest) -> InvalidRequest:
        """What is wrong with a block, at its place among the client's own messages."""
        found = told(error, self.request.messages, self.given)
        if isinstance(error, UnknownToolResult):
            return InvalidRequest(RESULT.sub(r"\1.tool_call_id: there is no call of this id before it", found.message))
        return found


def parse(body: bytes) -> Chat:
    fields = split(body)
    _refuse(fields)
    said = conversation(required(fields, "messages"))
    offered = tools(fields["tools"]) if "tools" in fields else ()
    limit = _limit(fields)
    effort = _effort(fields)
    schema, extras = _format(fields)
    request = Request(
        model=model_of(fields),
        messages=said.messages,
        max_tokens=NO_LIMIT if limit is None else limit,
        open_ended=limit is None,
        system=said.system,
        raw_system=said.raw_system,
        tools=offered,
        raw_tools=b"[" + b",".join(tool.raw for tool in offered) + b"]" if offered else b"",
        tool_choice=tool_choice(fields.get("tool_choice"), offered, parallel=_parallel(fields)),
        stream=_optional(fields, "stream", _FLAG) or False,
        temperature=_bounded(fields, "temperature", 2),
        top_p=_bounded(fields, "top_p", 1),
        top_k=_natural(_optional(fields, "top_k", _INTEGER), "top_k"),
        stop_sequences=_stop(fields),
        thinking=ThinkingConfig("disabled") if effort == "none" else None,
        effort="" if effort == "none" else effort,
        output_schema=schema,
        extras=extras,
        cache_control=cache_control(body),
        user_id=_optional(fields, "user", _STRING) or "",
        others=tuple(Field(name, bytes(raw)) for name, raw in fields.items() if name not in CARRIED),
        size=len(body),
    )
    options = _optional(fields, "stream_options", _OPTIONS)
    return Chat(request, options is not None and bool(options.include_usage), said.given)


def _refuse(fields: Fields) -> None:
    for name, why in REFUSED.items():
        if name in fields:
            raise wrong(name, f"{name} {why}")
    if _optional(fields, "n", _INTEGER) not in (None, 1):
        raise wrong("n", "Input should be 1: one answer to a request")
    if _optional(fields, "logprobs", _FLAG) or _optional(fields, "top_logprobs", _INTEGER):
        raise wrong("logprobs" if "logprobs" in fields else "top_logprobs", "log probabilities are not supported")
    if _optional(fields, "modalities", _STRINGS) not in (None, ["text"]):
        raise wrong("modalities", "Input should be ['text']: answers are text")


def _optional(fields: Fields, name: str, decoder: msgspec.json.Decoder[T]) -> T | None:
    return decode(decoder, fields[name], name) if name in fields else None


def _limit(fields: Fields) -> int | None:
    for name in ("max_completion_tokens", "max_tokens"):
        if name in fields:
            limit = _natural(decode(_INTEGER, fields[name], name), name)
            if not limit:
                raise wrong(name, "Input should be greater than or equal to 1")
            return limit
    return None


def _natural(value: int | None, path: str) -> int | None:
    if value is not None and not 0 <= value <= MAX_INTEGER:
        raise wrong(path, f"Input should be from 0 to {MAX_INTEGER}")
    return value


def _bounded(fields: Fields, name: str, most: float) -> float | None:
    value = _optional(fields, name, _NUMBER)
    if value is not None and not 0 <= value <= most:
        raise wrong(name, f"Input should be from 0 to {most}")
    return value


def _stop(fields: Fields) -> tuple[str, ...]:
    stop = _optional(fields, "stop", _STOP)
    return (stop,) if isinstance(stop, str) else tuple(stop or ())


def _effort(fields: Fields) -> str:
    effort = _optional(fields, "reasoning_effort", _STRING) or ""
    if effort and effort not in EFFORTS:
        raise one_of("reasoning_effort", EFFORTS, effort)
    return effort


def _parallel(fields: Fields) -> bool:
    return _optional(fields, "parallel_tool_calls", _FLAG) is not False


def _format(fields: Fields) -> tuple[bytes, bytes]:
    """The schema of the answer, and what goes on to chat upstreams as it is."""
    extras: dict[str, Raw] = {name: Raw(carried(fields[name], name)) for name in EXTRAS if name in fields}
    wire = _optional(fields, "response_format", _FORMAT) or FormatWire("text")
    schema = b""
    match wire.type:
        case "text":
            pass
        case "json_object":
            extras["response_format"] = Raw(b'{"type":"json_object"}')
        case "json_schema":
            if wire.json_schema is None:
                raise wrong("response_format.json_schema", "Field required")
            schema = carried_object(wire.json_schema.schema, "response_format.json_schema.schema")
        case other:
            raise one_of("response_format.type", FORMATS, other)
    return schema, msgspec.json.encode(extras) if extras else b""
