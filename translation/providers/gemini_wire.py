"""Gemini's answers as they are on the wire: what of them the bridge reads."""

import re
from collections.abc import Callable
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct

from translation.fitting import Spare, fitted
from translation.providers.gemini_errors import Error
from translation.providers.gemini_names import camel
from translation.refusals import in_band, read
from translation.sse import apart
from translation.unicode import Halves, check_utf8, without_halves


class Value(Struct, rename="camel"):
    """A piece of arguments that are streamed."""

    json_path: str = ""
    string_value: str | None = None
    number_value: Raw = Raw(b"null")
    bool_value: bool | None = None

    @property
    def told(self) -> object:
        return next((told for told in (self.string_value, self.bool_value) if told is not None), self.number_value)


class Call(Struct, rename="camel"):
    name: str = ""
    args: Raw = Raw(b"")
    id: str = ""
    thought_signature: str = ""  # belongs beside the call; some gateways put it inside
    partial_args: tuple[Value, ...] = ()
    will_continue: bool = False


class Blob(Struct, rename="camel", gc=False):
    mime_type: str = ""
    data: str = ""


class Part(Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str = ""
    function_call: Call | None = None
    inline_data: Blob | None = None
    tool_call: Raw = Raw(b"")
    tool_response: Raw = Raw(b"")
    executable_code: Raw = Raw(b"")
    code_execution_result: Raw = Raw(b"")


class Content(Struct):
    parts: list[Part] | None = None


class Web(Struct, gc=False):
    uri: str = ""
    title: str = ""


class Source(Spare, frozen=True):
    web: Web | None = None


class Support(Spare, frozen=True, rename="camel"):
    grounding_chunk_indices: tuple[int, ...] = ()


class Grounding(Spare, frozen=True, rename="camel"):
    web_search_queries: tuple[str, ...] = ()
    grounding_chunks: tuple[Source, ...] = ()
    grounding_supports: tuple[Support, ...] = ()


class Candidate(Struct, rename="camel"):
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int = 0
    grounding_metadata: Grounding | None = None


class Tokens(Spare, frozen=True, rename="camel", gc=False):
    prompt_token_count: int = 0
    cached_content_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0
    tool_use_prompt_token_count: int = 0


class Feedback(Struct, rename="camel", gc=False):
    block_reason: str = ""
    block_reason_message: str = ""


class Chunk(Struct, rename="camel"):
    candidates: list[Candidate] = []
    usage_metadata: Tokens | None = None
    prompt_feedback: Feedback | None = None
    model_version: str = ""
    response_id: str = ""
    error: Error | None = None


ANSWER = Chunk | list[Chunk]
_chunk = msgspec.json.Decoder(Chunk).decode
_answer: Callable[[bytes], Chunk | list[Chunk]] = msgspec.json.Decoder(ANSWER).decode
_odd_chunk = msgspec.json.Decoder(Chunk, strict=False).decode
_odd_answer: Callable[[bytes], Chunk | list[Chunk]] = msgspec.json.Decoder(ANSWER, strict=False).decode

CALL = re.compile(rb'"function_?[cC]all"')
HALF_A_TEXT = re.compile(rb'\\u[dD][89abAB][0-9a-fA-F]{2}"')  # which ends in the first half of a character

Read = TypeVar("Read", Chunk, Chunk | list[Chunk])


def decode_chunk(data: bytes, halves: Halves) -> Chunk:
    """A character may be cut in two between the texts of two events, but not in a call, which comes whole."""
    check_utf8(data)
    try:
        return _chunk(camel(data) if b"_" in data else data)
    except msgspec.DecodeError:
        return _odd(data, halves)


def _odd(data: bytes, halves: Halves) -> Chunk:
    try:
        return _read(data, Chunk, _chunk, _odd_chunk)
    except msgspec.DecodeError:
        if len(apart(data)) > 1:
            raise
        if (halves.open or HALF_A_TEXT.search(data)) and not CALL.search(data):
            data = halves.joined(data)
        return _read(without_halves(data), Chunk, _chunk, _odd_chunk)


def decode_answer(data: bytes) -> Chunk | list[Chunk]:
    check_utf8(data)
    try:
        return _read(data, ANSWER, _answer, _odd_answer)
    except msgspec.DecodeError:
        return _read(without_halves(data), ANSWER, _answer, _odd_answer)


def _read(data: bytes, kind: object, decode: Callable[[bytes], Read], decode_odd: Callable[[bytes], Read]) -> Read:
    """Also what gateways write in Google's place. An error in any shape is raised."""
    named = camel(data)
    try:
        return decode(named)
    except msgspec.ValidationError:
        named = fitted(named, kind)
    try:
        return decode_odd(named)
    except msgspec.ValidationError as error:
        complaint = read(data)
        if complaint is None:
            raise
        raise in_band(complaint) from error
