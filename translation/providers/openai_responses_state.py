"""What the Responses API needs back and an Anthropic client cannot carry: encrypted reasoning, at its place.

A reasoning item belongs to the item that follows it; if that is a search of the provider's own, both belong to the
next. Each call's state holds what came since the call before it, so it is known before the call is complete; the
message's state holds what came after the last call. A text is known by its length, since adjacent ones reach the client
as one block.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import replace

from translation.values import Message, Origin, Text, ToolUse


class TextState(Struct, frozen=True, omit_defaults=True):
    length: int  # in characters
    id: str = ""
    phase: str = ""  # `commentary` or `final_answer`, on models that tell
    reasoning: tuple[Raw, ...] = ()  # right before it


class State(Struct, frozen=True, omit_defaults=True):
    """Of a call, or of the message after its last call, which has only texts."""

    id: str = ""  # of the item; sent only after its reasoning, since OpenAI checks that both come together
    reasoning: tuple[Raw, ...] = ()  # right before the call
    texts: tuple[TextState, ...] = ()  # since the call before


NOTHING = State()
PHASES = ("commentary", "final_answer")


class _Summary(Struct):
    type: Literal["summary_text"]
    text: str


class _Thought(Struct):
    type: Literal["reasoning_text"]
    text: str


Blob = Annotated[str, Meta(min_length=1)]  # without it nothing can go back: the upstream kept nothing (`store: false`)


class _Bare(Struct):
    type: Literal["reasoning"]
    encrypted_content: Blob
    id: str | UnsetType | None = UNSET


class _Reasoning(Struct):
    """What the API takes back as a reasoning item: it refuses one without a summary, and unknown fields."""

    type: Literal["reasoning"]
    summary: tuple[_Summary, ...]
    encrypted_content: Blob
    id: str | UnsetType | None = UNSET
    content: tuple[_Thought, ...] | UnsetType | None = UNSET
    status: str | UnsetType | None = UNSET


class _ExactSummary(_Summary, forbid_unknown_fields=True):
    pass


class _ExactThought(_Thought, forbid_unknown_fields=True):
    pass


class _ExactReasoning(_Reasoning, forbid_unknown_fields=True):
    summary: tuple[_ExactSummary, ...]
    content: tuple[_ExactThought, ...] | UnsetType | None = UNSET


class _Action(Struct, omit_defaults=True):
    """Without the sources that it found: of some kinds the API only tells them."""

    type: str
    query: str | None = None
    queries: tuple[str, ...] | None = None
    url: str | None = None
    pattern: str | None = None


class _Search(Struct, omit_defaults=True, tag_field="type", tag="web_search_call"):
    status: str
    action: _Action
    id: str | None = None


class _Named(Struct):
    id: str | None = None


_name = msgspec.json.Decoder(_Named).decode
_reasoning = msgspec.json.Decoder(_Reasoning).decode
_exact = msgspec.json.Decoder(_ExactReasoning).decode
_blob = msgspec.json.Decoder(_Bare).decode
_search = msgspec.json.Decoder(_Search).decode
_fields = msgspec.json.Decoder(dict[str, Raw]).decode


def replayable(raw: Raw) -> Raw | None:
    """An item as it can go back: as it came, unless the API would refuse it; None for what is no such item."""
    try:
        _exact(raw)
    except msgspec.ValidationError:
        return _searched(raw) or _mended(raw)
    return raw.copy()


def _searched(raw: Raw) -> Raw | None:
    """A search of the provider's own."""
    try:
        return Raw(msgspec.json.encode(_search(raw)))
    except msgspec.ValidationError:
        return None


def _mended(raw: Raw) -> Raw | None:
    try:
        return Raw(msgspec.json.encode(_reasoning(raw)))
    except msgspec.ValidationError:
        return _bare(raw)


def _bare(raw: Raw) -> Raw | None:
    """What matters of it, where the rest is in another shape."""
    try:
        blob = _blob(raw)
    except msgspec.ValidationError:
        return None
    return Raw(msgspec.json.encode(_Reasoning(blob.type, (), blob.encrypted_content, blob.id)))


def once(item: Raw, taken: set[str]) -> Raw:
    """An item, without its id where an earlier one has it: `taken` are theirs."""
    id_ = _name(item).id or ""
    if id_ not in taken:
        taken.add(id_)
        return item
    return Raw(msgspec.json.encode({name: value for name, value in _fields(item).items() if name != "id"}))


def pack(state: State) -> bytes:
    """b"" when there is nothing that would be missed."""
    if not any(text.reasoning or text.phase for text in state.texts):
        state = replace(state, texts=())
    return b"" if state == NOTHING else msgspec.json.encode(state)


def states(message: Message, upstream: str) -> list[State]:
    """One for each call of an assistant message and one for its end; empty ones where `upstream` made none."""
    found: list[State] = []
    length = 0  # of the texts since the last call
    for block in message.blocks:
        if isinstance(block, Text):
            length += len(block.text)
        elif isinstance(block, ToolUse):
            found.append(_read(block.link.origin if block.link else None, upstream, length))
            length = 0
    return [*found, _read(message.origin, upstream, length)]


def _read(origin: Origin | None, upstream: str, length: int) -> State:
    if origin is None or origin.upstream != upstream or not origin.state:
        return NOTHING
    state = msgspec.json.decode(origin.state, type=State)
    fits = length == sum(text.length for text in state.texts)
    return state if fits else replace(state, texts=())
