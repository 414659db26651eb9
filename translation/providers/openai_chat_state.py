"""What a chat server needs back of an answer: fields that mean nothing to anybody else, kept as they came.

Google's layer signs a call in its `extra_content`, LiteLLM in its `provider_specific_fields`, others in a bare
`thought_signature`. Of the message are OpenRouter's `reasoning_details`, Claude's `thinking_blocks` (LiteLLM again),
Copilot's `reasoning_opaque`, and the signatures of texts. A signature is of one family of models: a gateway hands it
to another one unseen, which refuses it.
"""

import re
from functools import lru_cache

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from translation.values import Origin

Fields = dict[str, Raw]

NOTHING = Raw(b"")
OF_MESSAGES = (
    "reasoning_details",
    "thinking_blocks",
    "reasoning_text",
    "reasoning_opaque",
    "extra_content",
    "provider_specific_fields",
)
THOUGHTS = {"thinking_blocks", "reasoning_opaque"}  # reasoning itself, which need not be told in words as well
OF_CALLS = ("extra_content", "provider_specific_fields", "thought_signature")
# In a state that has such fields: inside of a string the quotes would be escaped.
IN_A_CALL, IN_A_MESSAGE = b'"call":{', b'"fields":{'
FAMILY = re.compile(r"(?:.*/)?([a-z]+(?:-[0-9]+)?)(?=[-.:@]|$)(?!\.[a-z])")
# Google's word for a signature that is lost: ai.google.dev/gemini-api/docs/thought-signatures. Nobody else knows it.
SENTINEL = Raw(b'{"google":{"thought_signature":"skip_thought_signature_validator"}}')


class State(Struct, frozen=True, omit_defaults=True):
    """What this dialect keeps of an answer, to be given back: `Origin.state`."""

    reasoning_content: str = ""
    reasoning_details: Raw = NOTHING  # OpenRouter's, signatures included
    field: str = ""  # what the server calls its reasoning, where that is not the profile's word
    fields: Fields = {}  # other fields of the message
    call: Fields = {}  # fields of the one call that this is the state of


EMPTY = State()
_decode = msgspec.json.Decoder(State).decode


def write(state: State) -> bytes:
    return b"" if state == EMPTY else msgspec.json.encode(state)


def read(origin: Origin, model: str) -> State:
    """Of what this upstream made. Signatures go to the family that signed; OpenRouter's details say whose they are."""
    state = _decode(origin.state)
    return state if _is_kin(origin.model, model) else replace(state, fields={}, call={})


@lru_cache(maxsize=1024)
def _is_kin(one: str, other: str) -> bool:
    first, second = FAMILY.match(one.lower()), FAMILY.match(other.lower())
    return one == other or (first is not None and second is not None and first[1] == second[1])


def stripped(body: Fields) -> tuple[list[Fields], int]:
    """The messages of a request without all this, and how many had some; Gemini's then say that theirs is lost."""
    messages = msgspec.json.decode(body["messages"], type=list[Fields])
    word = SENTINEL if b"gemini" in bytes(body["model"]).lower() else NOTHING
    return messages, sum([_strip(message, word) for message in messages])


def _strip(message: Fields, word: Raw) -> bool:
    had = [message.pop(name, None) is not None for name in OF_MESSAGES]
    if "tool_calls" in message:
        given = msgspec.json.decode(message["tool_calls"], type=list[Fields])
        calls = [{name: value for name, value in call.items() if name not in OF_CALLS} for call in given]
        if word:
            calls[0]["extra_content"] = word
        had.append(calls != given)
        message["tool_calls"] = Raw(msgspec.json.encode(calls))
    return any(had)
