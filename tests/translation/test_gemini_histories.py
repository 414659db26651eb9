"""Whatever part of a conversation a client sends, the repaired request is one that Gemini's rules allow."""

from itertools import pairwise

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.validators.gemini import validate
from translation.adapter import Target
from translation.history import repair
from translation.providers.gemini import Gemini
from translation.providers.gemini_models import abilities
from translation.providers.gemini_state import Piece, State, write
from translation.providers.profiles import PROFILES
from translation.values import (
    Block,
    Image,
    Link,
    Message,
    Origin,
    Request,
    Text,
    Thinking,
    Tool,
    ToolResult,
    ToolUse,
)

PROFILE = PROFILES["gemini"]
TARGETS = st.sampled_from([Target("gemini", model, PROFILE) for model in ("gemini-3-pro-preview", "gemini-2.5-flash")])
TOOLS = (Tool("Read", "Read", b'{"properties":{"path":{"type":"string"}}}'), Tool("mcp__x__" + "y" * 70, "long"))


@st.composite
def turns(draw: st.DrawFn, number: int) -> tuple[Message, Message]:
    """An answer with some calls, and the user's answer to it: results in any order, text, images."""
    origin = Origin(
        draw(st.sampled_from(["gemini", "openai"])), draw(st.sampled_from(["gemini-3-pro-preview", "other"]))
    )
    text = draw(st.sampled_from(["", "Let me see. "]))
    count = draw(st.integers(0, 3))
    blocks: list[Block] = [Thinking("hm", "sig")] if draw(st.booleans()) else []
    blocks += [Text(text)] if text else []
    pieces = [Piece("text", length=len(text), signature=draw(st.sampled_from(["", "dHM="])))]
    results: list[Block] = []
    for call in range(count):
        id_, name = f"toolu_{number}_{call}", draw(st.sampled_from(TOOLS)).name
        signature = "Y3M=" if call == 0 and draw(st.booleans()) else ""
        link = Link(
            id_,
            name,
            name,
            f"up{call}",
            b"{}",
            msgspec.structs.replace(origin, state=write(State(signature=signature))),
        )
        blocks.append(ToolUse(id_, name, b"{}", link if draw(st.booleans()) else None))
        pieces.append(Piece("call", signature=signature))
        inner = draw(st.sampled_from([(), (Text("ok"),), (Text("shot"), Image("base64", "QQ==", "image/png"))]))
        results.append(ToolResult(id_, inner, is_error=draw(st.booleans())))
    pieces.append(Piece("text", signature=draw(st.sampled_from(["", "bGF0ZQ=="]))))
    pieces = [piece for piece in pieces if piece.kind == "call" or piece.length or piece.signature]
    known = msgspec.structs.replace(origin, state=write(State(tuple(pieces)))) if draw(st.booleans()) else None
    extra: list[Block] = [Text("and then?")] if not results or draw(st.booleans()) else []
    answers = tuple(draw(st.permutations([*results, *extra])))
    return Message("assistant", tuple(blocks), origin=known), Message("user", answers)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    messages = [Message("user", (Text("hello"),))]
    for number in range(draw(st.integers(1, 4))):
        messages += draw(turns(number))
    return messages


def build(messages: tuple[Message, ...], target: Target) -> bytes:
    request, _ = repair(Request(model="m", messages=messages, max_tokens=100, tools=TOOLS), PROFILE)
    return Gemini().build(request, target).body


@settings(max_examples=150, deadline=None)
@given(conversations(), TARGETS, st.data())
def test_any_part_of_a_conversation_is_legal(messages: list[Message], target: Target, data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(messages), max_size=len(messages)))
    some = tuple(message for message, keep in zip(messages, kept, strict=True) if keep) or (messages[0],)
    assert validate(build(some, target), signatures=abilities(target.model).signatures) == []
    assert validate(build(tuple(messages), target), signatures=abilities(target.model).signatures) == []


@settings(max_examples=50, deadline=None)
@given(conversations(), TARGETS)
def test_a_request_is_a_prefix_of_the_next(messages: list[Message], target: Target) -> None:
    bodies = [build(tuple(messages[:end]), target) for end in range(1, len(messages) + 1, 2)]
    for shorter, longer in pairwise(bodies):
        assert longer.startswith(shorter.removesuffix(b"]}"))
