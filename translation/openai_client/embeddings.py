"""Embeddings requests: only the model is the bridge's matter; everything else is passed on as it is."""

import msgspec
from msgspec import Raw, Struct

from translation.client.paths import Fields, decode, named, split, wrong
from translation.errors import UpstreamProtocolError
from translation.unreadable import UNREADABLE
from translation.values import Usage

_STRING = msgspec.json.Decoder(str)


class Asked(Struct, frozen=True):
    model: str
    fields: Fields


class Counts(Struct):
    prompt_tokens: int | None = None


class Wire(Struct):
    data: list[Raw]
    model: str | None = None
    usage: Counts | None = None


class Answered(Struct, frozen=True):
    model: str
    usage: Usage | None  # None: the upstream did not tell


_ANSWER = msgspec.json.Decoder(Wire)


def parse(body: bytes) -> Asked:
    fields = split(body)
    for name in ("model", "input"):
        if name not in fields:
            raise wrong(name, "Field required")
    return Asked(named(decode(_STRING, fields["model"], "model"), "model"), fields)


def outgoing(asked: Asked, model: str) -> bytes:
    return msgspec.json.encode({"model": model} | {name: raw for name, raw in asked.fields.items() if name != "model"})


def answered(body: bytes) -> Answered:
    try:
        wire = _ANSWER.decode(body)
    except UNREADABLE as error:
        raise UpstreamProtocolError(f"the upstream's answer is not a list of embeddings: {error}") from None
    tokens = wire.usage.prompt_tokens if wire.usage else None
    return Answered(wire.model or "", Usage(input_tokens=tokens) if tokens else None)
