"""What a chat answer looks like on the wire: only what is read from it, typed, so that decoding builds no dicts."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from translation.errors import BridgeError, UpstreamFailed, UpstreamGaveUp, UpstreamOverloaded, UpstreamProtocolError
from translation.events import Reason
from translation.fitting import NOTHING as NO_ERROR
from translation.fitting import Spare, fitted
from translation.providers.openai_chat_state import NOTHING, OF_CALLS
from translation.refusals import in_band, read
from translation.unicode import check_utf8, without_halves
from translation.unreadable import UNREADABLE
from translation.values import Usage

EMPTIES = (b"null", b"{}", b'""')
REASONS: dict[str, Reason] = {
    "stop": "stop",
    "eos": "stop",  # text generation servers
    "eos_token": "stop",
    "stop_sequence": "stop",
    "end": "stop",  # LM Studio
    "normal": "stop",  # Baidu
    "completed": "stop",
    "complete": "stop",  # Cohere
    "end_turn": "stop",  # gateways that pass on what Anthropic says
    "tool_use": "tool_use",
    "tool_calls": "tool_use",
    "tool_call": "tool_use",
    "function_call": "tool_use",
    "length": "length",
    "max_tokens": "length",
    "max_len": "length",
    "max_output_tokens": "length",  # gateways that pass on what the Responses API says
    "max_completion_tokens": "length",
    "token_limit": "length",  # watsonx
    "content_filter": "refusal",
    "sensitive": "refusal",  # GLM
    "refusal": "refusal",
    "guardrail_intervened": "refusal",  # Bedrock
    "content_filtered": "refusal",
    "safety": "refusal",  # gateways that pass on what Gemini says, in capitals
    "recitation": "refusal",
    "blocklist": "refusal",
    "prohibited_content": "refusal",
    "spii": "refusal",
    "model_length": "context_window",  # Mistral
    "model_context_window_exceeded": "context_window",  # GLM
}
GAVE_UP: dict[str, type[BridgeError]] = {
    "error": UpstreamFailed,
    "abort": UpstreamFailed,  # vLLM
    "repetition": UpstreamFailed,  # vLLM stopped a model that had begun to say the same again and again
    "network_error": UpstreamFailed,  # GLM
    "insufficient_system_resource": UpstreamOverloaded,  # DeepSeek
    "malformed_function_call": UpstreamGaveUp,  # Google, also behind `function_call_filter: `
    "unexpected_tool_call": UpstreamGaveUp,
    "malformed_tool_use": UpstreamGaveUp,  # Bedrock
    "malformed_model_output": UpstreamGaveUp,
    "function_call_filter": UpstreamGaveUp,
}


def finish_word(told: str) -> str:
    """A finish reason as the tables have it. Google's compatibility layer tells the kind and then its own word
    (`content_filter: PROHIBITED_CONTENT`), Vercel's SDK writes `tool-calls`."""
    kind, _, word = told.lower().replace("-", "_").partition(": ")
    return word if word in REASONS or word in GAVE_UP else kind


class Function(Struct, gc=False):
    name: str | None = None
    arguments: Raw = NOTHING  # a string, or the object itself


class Call(Struct):
    index: int | None = None
    id: str | int | None = None
    function: Function | None = None
    # What goes back with it as it came.
    extra_content: Raw = NOTHING
    provider_specific_fields: Raw = NOTHING
    thought_signature: Raw = NOTHING

    @property
    def carried(self) -> dict[str, Raw]:
        given = (self.extra_content, self.provider_specific_fields, self.thought_signature)
        return {name: raw for name, raw in zip(OF_CALLS, given, strict=True) if raw and bytes(raw) not in EMPTIES}


class Part(Struct):
    """Content as parts: text, a refusal, an image, or thinking, which has parts of its own."""

    type: str | None = None
    text: str | None = None
    image_url: Raw = NOTHING
    refusal: str | None = None
    thinking: "str | list[Part] | None" = None  # Mistral
    summary: "list[Part] | None" = None  # Databricks


class Delta(Struct):
    content: str | list[Part] | None = None
    reasoning_content: str | list[Part] | None = None
    reasoning: str | list[Part] | None = None
    reasoning_text: str | list[Part] | None = None  # Copilot
    reasoning_details: list[Raw] | None = None
    refusal: str | None = None
    images: list[Raw] | None = None  # OpenRouter, Vercel
    tool_calls: list[Call] | None = None
    function_call: Function | None = None
    # What goes back with the message as it came.
    thinking_blocks: Raw = NOTHING  # LiteLLM in front of Claude
    reasoning_opaque: Raw = NOTHING  # Copilot
    extra_content: Raw = NOTHING  # Google
    provider_specific_fields: Raw = NOTHING  # LiteLLM
    annotations: Raw = NOTHING  # what a web search found: read leniently, since nothing hangs on it


class PromptDetails(Spare, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_creation_tokens: int | None = None  # LiteLLM
    cached_creation_tokens: int | None = None  # New API


class CompletionDetails(Spare, frozen=True):
    reasoning_tokens: int | None = None


NO_PROMPT_DETAILS = PromptDetails()


class Counts(Spare, frozen=True):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None
    prompt_cache_hit_tokens: int | None = None  # DeepSeek
    cached_tokens: int | None = None  # Kimi
    cache_read_input_tokens: int | None = None  # LiteLLM in front of Claude, inside of `prompt_tokens`
    cache_creation_input_tokens: int | None = None
    input_tokens: int | None = None  # gateways that count in the words of the Responses API
    output_tokens: int | None = None
    input_tokens_details: PromptDetails | None = None
    output_tokens_details: CompletionDetails | None = None


class Choice(Struct):
    index: int | None = None
    delta: Delta | None = None
    message: Delta | None = None
    text: str | None = None  # gateways in front of servers that complete texts
    finish_reason: str | None = None
    stop_reason: str | int | None = None  # vLLM: the stop string, or a token
    matched_stop: str | int | None = None  # SGLang: the same
    usage: Counts | None = None  # Kimi
    error: Raw = NOTHING  # OpenRouter


class Groq(Spare, frozen=True):
    usage: Counts | None = None
    error: Raw = NOTHING  # why it stopped the stream early


class Chunk(Struct):
    choices: list[Choice] | None = None
    usage: Counts | None = None
    model: str | None = None
    error: Raw = NOTHING
    x_groq: Groq | None = None


class Detail(Struct):
    text: str | None = None
    summary: str | None = None


_decode = msgspec.json.Decoder(Chunk).decode
_detail = msgspec.json.Decoder(Detail).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode


def decode_chunk(data: bytes) -> Chunk:
    """One chunk. An error that came in its place is raised."""
    try:
        if not data.isascii():
            check_utf8(data)
        chunk = _decode(data)
    except UNREADABLE as error:
        chunk = _odd_chunk(data, error)
    if chunk.choices is None or (chunk.error and bytes(chunk.error) not in NO_ERROR):
        complaint = read(data)
        if complaint:
            raise in_band(complaint)
    if chunk.x_groq is not None:
        heed(chunk.x_groq.error)
        chunk.usage = chunk.usage or chunk.x_groq.usage
    return chunk


def heed(error: Raw) -> None:
    """What a part of an answer says went wrong."""
    complaint = read(b'{"error":%b}' % bytes(error)) if bytes(error) not in NO_ERROR else None
    if complaint:
        raise in_band(complaint)


def plain_text(chunk: Chunk, model: str) -> str:
    """What a chunk of this model says that says nothing but text, as nearly all do; "" for every other one."""
    choices = chunk.choices
    if not choices or (delta := choices[0].delta) is None or type(text := delta.content) is not str:
        return ""
    return text if chunk == Chunk([Choice(0, Delta(text))], None, model) else ""


def decode_whole(data: bytes) -> Chunk:
    """The whole answer, which has to say something, if only that there is nothing to say."""
    try:
        chunk = decode_chunk(data)
    except UpstreamProtocolError:
        chunk = decode_chunk(without_halves(data))
    choices = chunk.choices or []
    choice = first(choices)
    if choice is not None and choice.message is None and choice.delta is None and not choice.text:
        raise UpstreamProtocolError("the upstream's answer holds no message")
    if choice is not None and choice.message is not None and len(choices) > 1:
        _gather(choice.message, [each.message for each in choices if each is not choice and each.message])
    return chunk


def _gather(message: Delta, others: list[Delta]) -> None:
    """One answer was asked for: Copilot in front of Claude, and LiteLLM, tell each of its parts in a choice of its own.
    The calls are all its own; another text is only one if it has none."""
    for other in others:
        message.content = message.content or other.content
        message.tool_calls = [*(message.tool_calls or ()), *(other.tool_calls or ())]


def first(choices: list[Choice]) -> Choice | None:
    """The one that was asked for, wherever it stands among others."""
    for choice in choices:
        if not choice.index:
            return choice
    return None


def _odd_chunk(data: bytes, error: Exception) -> Chunk:
    """An error, if no answer can be read: gateways put an empty `error`, or a `msg`, beside one."""
    try:
        check_utf8(data)
        return _decode(fitted(data, Chunk))
    except UNREADABLE:
        if complaint := read(data):
            raise in_band(complaint) from error
        raise UpstreamProtocolError(f"not a chat answer: {error}") from error


def words(text: str | list[Part]) -> str:
    """Reasoning, which some servers send in parts, as others send content."""
    return text if isinstance(text, str) else "".join([part.text or "" for part in text])


def thought_of(details: list[Raw]) -> str:
    """The words of reasoning details. What cannot be read, or given back, is none."""
    for raw in details:
        _object(raw)  # also what has no words, which a decoder of words does not look at
    return "".join([detail.text or detail.summary or "" for detail in map(_detail, details)])


def arguments_of(function: Function) -> str:
    """Arguments come as a string, or (some servers) as the object itself."""
    raw = bytes(function.arguments)
    if raw.startswith(b'"'):
        return msgspec.json.decode(raw, type=str)
    return "" if raw == b"null" else raw.decode()


def usage_of(counts: Counts) -> Usage | None:
    """Anthropic's way of counting. All zero is a server that does not count."""
    prompt = max(counts.prompt_tokens or counts.input_tokens or 0, 0)
    output = max(counts.completion_tokens or counts.output_tokens or 0, 0)
    if not prompt and not output:
        return None
    details = counts.prompt_tokens_details or counts.input_tokens_details or NO_PROMPT_DETAILS
    cached = details.cached_tokens or counts.prompt_cache_hit_tokens or counts.cached_tokens
    cached = cached or counts.cache_read_input_tokens
    cached = min(max(cached, 0), prompt) if cached else 0
    written = details.cache_write_tokens or details.cache_creation_tokens or details.cached_creation_tokens
    written = written or counts.cache_creation_input_tokens
    written = min(max(written, 0), prompt - cached) if written else 0
    spent = counts.completion_tokens_details or counts.output_tokens_details
    if spent is None or not spent.reasoning_tokens:
        return Usage(prompt - cached - written, output, cached, written)
    thinking = max(spent.reasoning_tokens, 0)
    if thinking and counts.total_tokens == prompt + output + thinking:
        output += thinking  # xAI counts them apart
    return Usage(prompt - cached - written, output, cached, written, thinking)
