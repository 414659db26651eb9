"""R3 and read-only intent."""

import pytest
from msgspec.structs import replace

from tests.translation.policies.requests import (
    AGENTIC,
    CONSERVATIVE,
    answer,
    asked,
    call,
    fired,
    result,
    switched,
    under,
    user,
)
from translation.values import Message, Tool, ToolChoice

CHAIN = (user("Fix the typo in README."), answer(call(0)), user(result(0)))


def test_agentic_leaves_the_choice_of_tools_to_the_client() -> None:
    request = asked(*CHAIN)
    assert under(AGENTIC, request) == (request, ())


def test_conservative_allows_no_tools_after_a_result() -> None:
    governed, notes = under(CONSERVATIVE, replace(asked(*CHAIN), tool_choice=ToolChoice("any")))
    assert governed.tool_choice == ToolChoice("none")
    assert len(governed.tools) == 5
    assert "R3" in fired(notes)
    assert "any" in notes[0].what


def test_conservative_leaves_the_choice_alone_before_and_after_the_results() -> None:
    for messages in (CHAIN[:1], (*CHAIN, answer("Fixed."), user("Thanks.")), (*CHAIN, Message("system", ()))[:1]):
        governed, notes = under(CONSERVATIVE, asked(*messages))
        assert governed.tool_choice is None
        assert "R3" not in fired(notes)


def test_without_tools_there_is_no_choice() -> None:
    governed, _ = under(CONSERVATIVE, asked(*CHAIN, tools=()))
    assert governed.tool_choice is None


@pytest.mark.parametrize(
    "text",
    [
        "Read README and summarize.",
        "please EXPLAIN this",
        "summarizing what is in the thread is enough",
        "解释一下这个文件",
        "总结 README",
    ],
)
def test_a_text_that_only_asks_to_read_leaves_the_tools_that_read(text: str) -> None:
    governed, notes = under(CONSERVATIVE, asked(user(text)))
    assert [tool.name for tool in governed.tools] == ["Glob", "Read"]
    assert fired(notes)[0] == "Read-only"
    assert "Edit, Write, Bash" in notes[0].what


@pytest.mark.parametrize(
    "text",
    [
        "Read README and update it",
        "read it, then edit the title",
        "总结之后修改文件",
        "解释并写一个测试",
        "the thread is ready",
        "hello",
    ],
)
def test_a_text_that_asks_for_more_keeps_all_tools(text: str) -> None:
    governed, _ = under(CONSERVATIVE, asked(user(text)))
    assert len(governed.tools) == 5


def test_the_newest_text_counts_through_the_whole_chain() -> None:
    governed, _ = under(CONSERVATIVE, asked(user("Summarize README."), answer(call(0)), user(result(0))))
    assert [tool.name for tool in governed.tools] == ["Glob", "Read"]


def test_agentic_offers_all_tools_to_readers_unless_switched() -> None:
    request = asked(user("Read README."))
    assert under(AGENTIC, request)[0] is request
    assert len(under(switched(AGENTIC, narrow_to_reading=True), request)[0].tools) == 2


def test_cues_and_allow_list_are_the_routes() -> None:
    policy = replace(CONSERVATIVE, read_cues=("lies",), write_cues=(), read_only_tools=("edit",))
    governed, _ = under(policy, asked(user("Lies das, edit")))
    assert [tool.name for tool in governed.tools] == ["Edit"]


def test_a_tool_that_the_client_insists_on_is_offered() -> None:
    governed, _ = under(CONSERVATIVE, replace(asked(user("Read it.")), tool_choice=ToolChoice("tool", "Bash")))
    assert [tool.name for tool in governed.tools] == ["Glob", "Read", "Bash"]


def test_when_no_tool_only_reads_none_is_offered() -> None:
    request = replace(asked(user("Read it."), tools=(Tool("Bash"),)), tool_choice=ToolChoice("any"))
    governed, _ = under(CONSERVATIVE, request)
    assert (governed.tools, governed.tool_choice) == ((), None)


def test_readers_alone_stay_as_they_are() -> None:
    request = asked(user("Read it."), tools=(Tool("Read"), Tool("web_search")))
    assert under(CONSERVATIVE, request)[0].tools == request.tools


def test_a_request_without_user_text_asks_for_nothing() -> None:
    governed, _ = under(CONSERVATIVE, asked(Message("system", ())))
    assert len(governed.tools) == 5
    governed, _ = under(CONSERVATIVE, asked(user(result(0))))
    assert len(governed.tools) == 5
