"""What is known of each message, whatever request it comes in."""

from msgspec.structs import replace

from translation.chain import chain
from translation.outline import Outline, outline
from translation.state import Snapshot, hydrate
from translation.values import (
    Block,
    Link,
    Message,
    Origin,
    Request,
    ServerToolUse,
    Text,
    Thinking,
    ToolReference,
    ToolResult,
    ToolUse,
)

CALL = ToolUse("toolu_1", "look", b"{}")
RESULT = ToolResult("toolu_1", (Text("seen"),))
MCP = ServerToolUse("mcptoolu_1", "look", b"{}", "mcp_tool_use")


def outlined(role: str, *blocks: Block) -> Outline:
    return outline(Message(role, blocks))  # type: ignore[arg-type]  # a string for short


def test_one_text_is_all_that_a_message_says() -> None:
    text = Text("Hello")
    assert outlined("user", text) == Outline(None, (), lone=text)
    assert outlined("assistant", text) == Outline((), None, lone=text)
    assert outlined("system", text) == Outline(None, None, lone=text)
    assert outlined("user", text, text) == Outline(None, ())


def test_an_answer_names_and_makes_its_calls() -> None:
    second = ToolUse("toolu_2", "read", b'{"a":1}')
    calls = (("look", b"{}"), ("read", b'{"a":1}'))
    assert outlined("assistant", Text("Now."), CALL, second) == Outline(
        ("toolu_1", "toolu_2"), None, ("toolu_1", "toolu_2"), calls
    )


def test_a_call_that_a_server_ran_is_named_but_not_asked_for() -> None:
    assert outlined("assistant", MCP, CALL) == Outline(
        ("toolu_1",), None, ("mcptoolu_1", "toolu_1"), (("look", b"{}"),)
    )
    assert outlined("assistant", ServerToolUse("srvtoolu_1", "web_search", b"{}")) == Outline((), None)


def test_a_user_message_names_what_it_answers() -> None:
    assert outlined("user", RESULT, Text("Go on")) == Outline(None, ("toolu_1",), ("toolu_1",))
    assert outlined("user", CALL) == Outline(None, None, ("toolu_1",))  # but does not call


def test_what_is_not_legal_as_it_is_is_neither_asked_nor_answered() -> None:
    assert outlined("assistant").asked is None
    assert outlined("assistant", Text(" ")).asked is None
    assert outlined("assistant", Thinking("hm")).asked is None
    assert outlined("assistant", RESULT).asked is None
    assert outlined("assistant", CALL, CALL).asked is None
    assert outlined("user").answered is None
    assert outlined("user", Text("")).answered is None
    assert outlined("user", Thinking("hm")).answered is None
    assert outlined("user", Text("Go on"), RESULT).answered is None
    assert outlined("user", replace(RESULT, blocks=())).answered is None
    assert outlined("user", replace(RESULT, blocks=(Text(" "),))).answered is None
    assert outlined("user", replace(RESULT, blocks=(ToolReference("look"),))).answered is None


def test_a_message_keeps_its_outline_when_the_store_adds_what_it_knows() -> None:
    messages = (Message("user", (Text("Hello"),)), Message("assistant", (CALL,)), Message("assistant", (Text("So."),)))
    request = Request(model="m", messages=messages, max_tokens=1)
    known = outline.all(messages)
    hashes = chain(messages)
    link = Link("toolu_1", "look", "look", "call_1", b"{}", Origin("openai", "gpt"), 7)
    snapshot = Snapshot({"toolu_1": link}, {hashes[2]: 8}, {8: Origin("openai", "gpt", b"{}")})
    hydrated = hydrate(request, hashes, snapshot)
    assert hydrated.messages[1].blocks == (replace(CALL, link=link),)
    assert hydrated.messages[2].origin == Origin("openai", "gpt", b"{}")
    for old, new in zip(known, outline.all(hydrated.messages), strict=True):
        assert new is old
