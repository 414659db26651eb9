"""More tools than a provider takes: the conversation's own come before the others."""

import pytest
from msgspec.structs import replace

from tests.translation.adapters import Trial, trials
from tests.translation.policies.requests import answer, asked, call, result, user
from translation.history import repair
from translation.providers.profiles import PROFILES
from translation.values import Message, Note, Request, Text, Tool, ToolChoice, ToolReference, ToolResult, ToolUse

MANY = tuple(Tool(f"t{index}", schema=b'{"type":"object"}') for index in range(600))
SEARCH = Tool("web_search", type="web_search_20250305")


def kept(request: Request, provider: str = "openai") -> tuple[list[str], list[Note]]:
    repaired, notes = repair(request, PROFILES[provider])
    return [tool.name for tool in repaired.tools], [note for note in notes if note.rule == "tools-limited"]


LIMITED = [trial for trial in trials() if trial.target.profile.tool_limit]


@pytest.mark.parametrize("trial", LIMITED, ids=lambda trial: trial.id)
def test_no_provider_gets_more_tools_than_it_takes(trial: Trial) -> None:
    request = repair(asked(Message("user", (Text("q"),)), tools=MANY), trial.target.profile)[0]
    assert trial.validate(trial.adapter.build(request, trial.target).body) == []
    whole = replace(request, tools=MANY)
    assert len(trial.validate(trial.adapter.build(whole, trial.target).body)) == 1


def test_the_first_tools_stay_and_the_operator_is_told_of_the_others() -> None:
    names, (note,) = kept(asked(user("q"), tools=MANY[:131]))
    assert names == [tool.name for tool in MANY[:128]]
    assert note.what == "tools: no more than 128 are taken, so 3 were left out: t128, t129, t130"
    assert kept(asked(user("q"), tools=MANY))[1][0].what.endswith("t147, ...")


@pytest.mark.parametrize("provider", ["xai", "xai-responses"])
def test_grok_gets_two_hundred(provider: str) -> None:
    """`You can call a maximum of 200 tools with function calling`; its refusal names neither the field nor a number."""
    names, (note,) = kept(asked(user("q"), tools=MANY[:201]), provider)
    assert names == [tool.name for tool in MANY[:200]]
    assert note.what == "tools: no more than 200 are taken, so 1 were left out: t200"


def test_what_the_conversation_needs_stays_in_its_place() -> None:
    found = ToolResult("toolu_1", (ToolReference("t140"),))
    request = asked(
        user("q"),
        answer(call(0, name="t130"), ToolUse("toolu_1", "t0", b"{}")),
        user(result(0), found),
        tools=MANY[:150],
    )
    names, _ = kept(replace(request, tool_choice=ToolChoice("tool", "t149")))
    assert names == [*(tool.name for tool in MANY[:125]), "t130", "t140", "t149"]


def test_a_member_of_a_toolset_that_the_conversation_needs_stays() -> None:
    browser = Tool("browser", type="browser_toolset_20260801", raw=b'{"type":"browser_toolset_20260801"}')
    request = replace(asked(user("q"), tools=(*MANY[:150], browser)), tool_choice=ToolChoice("tool", "navigate"))
    repaired, _ = repair(request, PROFILES["openai"])
    assert [tool.name for tool in repaired.tools[126:]] == ["t126", "browser.navigate"]
    assert repaired.tool_choice == ToolChoice("tool", "browser.navigate")


def test_tools_that_wait_for_a_search_give_way() -> None:
    """Anthropic's own search finds them; elsewhere they are offered at once."""
    search = Tool("tool_search_tool_bm25", type="tool_search_tool_bm25_20251119")
    waiting = tuple(replace(tool, defer_loading=True) for tool in MANY[:300])
    names, _ = kept(asked(user("q"), tools=(search, *waiting, *MANY[300:310])))
    assert names == [search.name, *(tool.name for tool in MANY[:118]), *(tool.name for tool in MANY[300:310])]


def test_only_functions_count() -> None:
    assert kept(asked(user("q"), tools=(*MANY[:128], SEARCH))) == (
        [*(tool.name for tool in MANY[:128]), "web_search"],
        [],
    )
    assert len(kept(asked(user("q"), tools=(*MANY[:129], SEARCH)))[0]) == 129
    assert (
        len(kept(asked(user("q"), tools=MANY), "vllm")[0])
        == len(kept(asked(user("q"), tools=MANY), "anthropic")[0])
        == 600
    )
