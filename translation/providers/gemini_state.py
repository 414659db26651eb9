"""What Gemini needs back: how an answer was cut into parts, and the thought signature of each part that had one.

An Anthropic client keeps the text and the calls of an answer, not where one part ended and the next began. That layout
is the opaque state of a message; a call's own signature is kept with the call too, since it is known before the rest.
"""

from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from translation.providers.gemini_models import abilities
from translation.unreadable import UNREADABLE
from translation.values import Origin


class Piece(Struct, frozen=True, omit_defaults=True):
    """One part of an answer; adjacent text without signatures is one piece."""

    kind: Literal["text", "call", "thought", "part"]
    length: int = 0  # of a text, in characters
    signature: str = ""
    text: str = ""  # of a signed thought: clients may not send thinking back
    part: Raw = Raw(b"")  # a part that the bridge only carries, whole


class State(Struct, frozen=True, omit_defaults=True):
    pieces: tuple[Piece, ...] = ()  # of a message
    signature: str = ""  # of a call


NOTHING = State()
_decoder = msgspec.json.Decoder(State)


def read(origin: Origin | None, upstream: str, model: str) -> State:
    """The state that may go to this model: only what the same upstream made, with a model of the same kind."""
    if origin is None or not origin.state or origin.upstream != upstream:
        return NOTHING
    if abilities(origin.model).signatures != abilities(model).signatures:
        return NOTHING
    try:
        return _decoder.decode(origin.state)
    except UNREADABLE:
        return NOTHING


def write(state: State) -> bytes:
    return msgspec.json.encode(state) if state.signature or any(map(_worth_keeping, state.pieces)) else b""


def _worth_keeping(piece: Piece) -> bool:
    return bool(piece.signature) or piece.kind == "part"


def restored(pieces: tuple[Piece, ...], texts: list[str], calls: list[dict[str, object]]) -> list[object] | None:
    """The parts as they came. `texts` is what the client sent before, between and after the calls.

    None when there are other calls than in the answer: then nothing is known about the places of the rest.
    """
    groups: list[list[Piece]] = [[]]
    for piece in pieces:
        groups[-1].append(piece)
        if piece.kind == "call":
            groups.append([])
    if len(groups) != len(texts):
        return None
    out: list[object] = []
    waiting = iter(calls)
    for group, text in zip(groups, texts, strict=True):
        out += _texts([piece for piece in group if piece.kind != "call"], text)
        if group and group[-1].kind == "call":
            out.append(signed(next(waiting), group[-1].signature))
    return out


def _texts(group: list[Piece], text: str) -> Iterable[object]:
    """Text that the client changed is sent in one piece and without its signature, which would not fit it any more."""
    unchanged = sum(piece.length for piece in group) == len(text)
    position = 0
    rest = "" if unchanged else text
    for piece in group:
        if piece.kind == "part":
            yield piece.part
        elif piece.kind == "thought":
            yield signed({"text": piece.text, "thought": True}, piece.signature)
        elif unchanged or not piece.length:
            yield signed({"text": text[position : position + piece.length]}, piece.signature)
            position += piece.length
        elif rest:
            yield {"text": rest}
            rest = ""
    if rest:
        yield {"text": rest}


def signatures(pieces: Iterable[Piece]) -> int:
    """How many parts have to be signed; what is carried whole has its own inside."""
    return sum(bool(piece.signature) and piece.kind != "part" for piece in pieces)


def signed(part: dict[str, object], signature: str) -> dict[str, object]:
    """The signature is a sibling of what it signs."""
    return {**part, "thoughtSignature": signature} if signature else part
