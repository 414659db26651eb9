"""Messages that are told alike in every request, and anew where a request or its turn has something of its own."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from translation.adapter import Target
from translation.memo import hand_on
from translation.providers.openai_chat import OpenAIChat
from translation.providers.openai_chat_alike import LARGE, alike
from translation.providers.profiles import PROFILES
from translation.values import Block, Image, Link, Message, Origin, Request, Text, Thinking, ToolResult, ToolUse

READ, LOOK = ToolUse("toolu_1", "Read", b'{"path":"\\u2713"}'), ToolUse("toolu_2", "look.at", b"")
ASKS = Message("assistant", (Thinking("hm"), Text("I read."), READ, LOOK))
ANSWERS = Message("user", (ToolResult("toolu_1", (Text("A"),)), ToolResult("toolu_2", (Text("B"),))))
SAYS = Message("assistant", (Text("Done."),))
HISTORY = (Message("user", (Text("Go"),)), ASKS, ANSWERS, SAYS, Message("user", (Text("On"),)))


def told(provider: str, *messages: Message, **profile: Any) -> list[dict[str, Any]]:
    target = Target(provider, "m", replace(PROFILES[provider], **profile))
    sent = OpenAIChat().build(Request(model="claude", max_tokens=100, messages=messages), target)
    found: list[dict[str, Any]] = msgspec.json.decode(sent.body)["messages"]
    return found


def fresh(message: Message) -> Message:
    """Of which nothing is remembered."""
    return replace(message)


def hydrated(upstream: str, state: bytes = b"", whole: bytes = b"") -> Message:
    origin = Origin(upstream, "m", state)
    blocks = [
        replace(block, link=Link(block.id, block.name, block.name, f"call_{block.id}", block.input, origin))
        if isinstance(block, ToolUse)
        else block
        for block in ASKS.blocks
    ]
    return hand_on(ASKS, replace(ASKS, blocks=tuple(blocks), origin=Origin(upstream, "m", whole)))


@pytest.mark.parametrize("provider", [name for name, each in PROFILES.items() if each.dialect == "openai_chat"])
@pytest.mark.parametrize("tool_results", ["tool", "user_text"])
@pytest.mark.parametrize(("state", "whole"), [(b"", b""), (b'{"thought_signature":"s"}', b""), (b"", b'{"field":"x"}')])
def test_what_is_remembered_of_a_message_changes_nothing(
    provider: str, tool_results: str, state: bytes, whole: bytes
) -> None:
    told("openai", *HISTORY)  # from here on it is remembered
    for asks in (ASKS, hydrated(provider, state, whole), hydrated("elsewhere", state, whole)):
        history = [asks if message is ASKS else message for message in HISTORY]
        anew = told(provider, *map(fresh, history), tool_results=tool_results)
        assert told(provider, *history, tool_results=tool_results) == anew
        again = list(map(fresh, history))
        told("openai", *again)  # of which the first that is known has the links
        assert told(provider, *again, tool_results=tool_results) == anew


def test_calls_have_the_ids_and_names_of_their_request() -> None:
    told("openai", *HISTORY)
    calls, first, second = told("openai", HISTORY[0], hydrated("openai"), ANSWERS)[1:]
    assert [call["id"] for call in calls["tool_calls"]] == ["call_toolu_1", "call_toolu_2"]
    assert [first["tool_call_id"], second["tool_call_id"]] == ["call_toolu_1", "call_toolu_2"]
    assert calls["tool_calls"][0]["function"] == {"name": "Read", "arguments": '{"path":"\\u2713"}'}
    assert calls["tool_calls"][1]["function"]["name"].startswith("look_at_")
    assert calls["content"] == "I read."


@pytest.mark.parametrize(
    ("role", "blocks"),
    [
        ("assistant", (Text("a"), READ, Text("b"))),
        ("assistant", (Text(""), READ)),
        ("assistant", (Image("url", "https://x/y.png"), READ)),
        ("assistant", (ToolUse("toolu_1", "Write", b'"%b"' % (b"x" * LARGE)),)),
        ("user", (READ,)),
        ("user", (ToolResult("toolu_1", (Text("A"),)), Text("Go on."))),
        ("user", (ToolResult("toolu_1", (Text("A"),), is_error=True),)),
        ("user", (ToolResult("toolu_1", (Text("A"), Text("B"))),)),
        ("user", (ToolResult("toolu_1"),)),
        ("user", (Text("a"), Text("b"))),
    ],
)
def test_of_others_nothing_is_remembered(role: Any, blocks: tuple[Block, ...]) -> None:
    assert alike(Message(role, blocks)) is None
