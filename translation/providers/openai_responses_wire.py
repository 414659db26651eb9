"""The Responses API's wire: the parts of its events and objects that the decoder reads."""

from collections.abc import Container

import msgspec
from msgspec import Raw, Struct

from translation.events import Reason
from translation.fitting import NOTHING, Spare, fitted
from translation.unicode import Halves
from translation.values import Usage

INCOMPLETE: dict[str, Reason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "refusal",
    "": "length",  # servers that do not say why: the one reason that all of them have
}


class Part(Struct, frozen=True):
    type: str = ""
    text: str | None = None
    refusal: str | None = None
    annotations: tuple[Raw, ...] | None = None


class OutputItem(Struct, frozen=True):
    type: str = ""
    id: str | None = None
    status: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | dict[str, Raw] | None = None  # some servers send the object itself
    content: tuple[Part, ...] | None = None
    summary: tuple[Part, ...] | None = None
    encrypted_content: str | None = None
    phase: str | None = None

    @property
    def text(self) -> str:
        return "".join([part.text or "" for part in self.content or ()])

    @property
    def length(self) -> int:
        """Of its text."""
        return sum(len(part.text or "") for part in self.content or ())


class Cut(Struct, frozen=True):
    reason: str | None = None


class Details(Spare, frozen=True):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


NO_DETAILS = Details()


class Tokens(Spare, frozen=True):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: Details | None = None
    output_tokens_details: Details | None = None


class Response(Struct, frozen=True):
    id: str | None = None
    model: str | None = None
    status: str | None = None
    error: Raw = Raw()
    incomplete_details: Cut | None = None
    usage: Tokens | None = None
    output: tuple[Raw, ...] | None = None

    @property
    def failed(self) -> bool:
        return is_error(self.error)


def is_error(told: Raw) -> bool:
    return bytes(told) not in (b"", *NOTHING)


class Frame(Struct, frozen=True):
    type: str = ""
    output_index: int | None = None
    item_id: str | None = None
    delta: str | None = None
    text: str | None = None  # the whole of what came in pieces
    refusal: str | None = None
    arguments: str | dict[str, Raw] | None = None
    item: Raw = Raw()
    response: Raw = Raw()
    annotation: Raw = Raw()
    error: Raw = Raw()


class Named(Struct, frozen=True):
    """A frame of which nothing else can be read."""

    type: str = ""


FRAME = msgspec.json.Decoder(Frame)
NAMED = msgspec.json.Decoder(Named)
ITEM = msgspec.json.Decoder(OutputItem)
RESPONSE = msgspec.json.Decoder(Response)


def item_of(raw: Raw) -> OutputItem:
    try:
        return ITEM.decode(raw)
    except msgspec.ValidationError:
        return ITEM.decode(fitted(bytes(raw), OutputItem))


def response_of(raw: Raw | bytes) -> Response:
    try:
        return RESPONSE.decode(raw)
    except msgspec.ValidationError:
        return RESPONSE.decode(fitted(bytes(raw), Response))


def odd_frame(data: bytes, halves: Halves, known: Container[str]) -> Frame:
    """An event that cannot be read as it stands; only its name where its kind, whose fields have other types, is none
    of those that are `known`."""
    joined = halves.joined(data)
    try:
        return FRAME.decode(joined)
    except msgspec.ValidationError:
        frame = Frame(type=NAMED.decode(data).type)
        return FRAME.decode(fitted(joined, Frame)) if frame.type in known else frame


def written(arguments: str | dict[str, Raw] | None) -> str:
    return msgspec.json.encode(arguments).decode() if isinstance(arguments, dict) else arguments or ""


def exclusive(usage: Tokens | None, searches: int) -> Usage | None:
    """OpenAI counts cached tokens inside the input, Anthropic's three fields are exclusive. Zeros: it did not count."""
    if usage is None:
        return None
    prompt, output = max(usage.input_tokens or 0, 0), max(usage.output_tokens or 0, 0)
    if not prompt and not output:
        return None
    given, spent = usage.input_tokens_details or NO_DETAILS, usage.output_tokens_details or NO_DETAILS
    read = max(0, min(given.cached_tokens or 0, prompt))
    write = max(0, min(given.cache_write_tokens or 0, prompt - read))
    return Usage(
        input_tokens=prompt - read - write,
        output_tokens=output,
        cache_read=read,
        cache_write=write,
        thinking_tokens=max(spent.reasoning_tokens or 0, 0),
        searches=searches,
    )
