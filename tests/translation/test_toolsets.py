"""Anthropic's toolsets at models that know single tools only."""

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.translation.adapters import Trial, trials
from translation.adapter import UpstreamRequest
from translation.adapters import writer
from translation.client.parse import parse
from translation.errors import InvalidRequest
from translation.events import BlockStart, ToolEnded, ToolStarted
from translation.history import repair
from translation.names import ToolNames
from translation.providers.profiles import PROFILES
from translation.toolset_members import BROWSER, COMPUTER, UNASKED
from translation.values import Request, ToolChoice

Json = dict[str, Any]
BROWSERS: Json = {"type": "browser_toolset_20260801"}
COMPUTERS: Json = {"type": "computer_toolset_20260801"}
OWN: Json = {"name": "screenshot", "input_schema": {"type": "object"}}
OTHERS = [trial for trial in trials() if trial.target.profile.dialect != "anthropic"]


def asked(tools: list[Json], *turns: Json) -> Request:
    messages = [{"role": "user", "content": "Hi"}, *turns]
    return parse(json.dumps({"model": "m", "max_tokens": 9, "tools": tools, "messages": messages}).encode(), "", ())


def repaired(tools: list[Json], *turns: Json, provider: str = "openai") -> Request:
    return repair(asked(tools, *turns), PROFILES[provider])[0]


def called(name: str, **more: Any) -> list[Json]:
    use = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}, **more}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def names(request: Request) -> list[str]:
    return [tool.name for tool in request.tools]


def test_members_are_offered_with_real_schemas() -> None:
    request = repaired([BROWSERS, OWN, COMPUTERS])
    browser = [f"browser.{name}" for name in BROWSER if name not in UNASKED]
    assert names(request) == [*browser, "screenshot", *(f"computer.{name}" for name in COMPUTER)]
    assert len(BROWSER) == 31
    assert len(COMPUTER) == 17
    for tool in request.tools[: len(browser)]:
        assert tool.description
        assert msgspec.json.decode(tool.schema)["type"] == "object"


def test_configs_say_which_members_are_offered() -> None:
    configs = {"zoom": {"enabled": False}, "javascript_exec": {"enabled": True}, "key": None, "read_console": {}}
    found = names(repaired([BROWSERS | {"configs": configs}]))
    assert {"browser.javascript_exec", "browser.key"} <= set(found)
    assert {"browser.zoom", "browser.read_console", "browser.file_upload"}.isdisjoint(found)


def test_configs_that_cannot_be_read_are_named() -> None:
    with pytest.raises(InvalidRequest, match=r"tools\.1"):
        repaired([OWN, BROWSERS | {"configs": {"zoom": {"enabled": "no"}}}])


@pytest.mark.parametrize("trial", OTHERS, ids=lambda trial: trial.id)
def test_every_provider_takes_them_and_the_calls_of_the_history(trial: Trial) -> None:
    on = {name: {"enabled": True} for name in UNASKED}
    tools = [BROWSERS | {"configs": on}, OWN, COMPUTERS]
    turns = called("screenshot", toolset_name="browser")
    request, _ = repair(asked(tools, *turns), trial.target.profile)
    sent: UpstreamRequest = trial.adapter.build(request, trial.target)
    assert trial.validate(sent.body) == []
    alias = ToolNames(()).upstream("browser.screenshot")
    assert (alias, "browser.screenshot") in sent.names
    assert sent.body.count(f'"{alias}"'.encode()) >= 2  # offered, and called


@pytest.mark.parametrize("trial", OTHERS, ids=lambda trial: trial.id)
def test_a_member_can_be_chosen_by_its_name(trial: Trial) -> None:
    request = replace(asked([BROWSERS, OWN, COMPUTERS]), tool_choice=ToolChoice("tool", "navigate"))
    repaired, _ = repair(request, trial.target.profile)
    assert repaired.tool_choice == ToolChoice("tool", "browser.navigate")
    assert trial.validate(trial.adapter.build(repaired, trial.target).body) == []


@pytest.mark.parametrize(
    ("name", "chosen"), [("screenshot", "screenshot"), ("write", "write"), ("zoom", "browser.zoom")]
)
def test_a_clients_own_tool_is_chosen_before_a_member(name: str, chosen: str) -> None:
    request = replace(asked([BROWSERS, OWN, COMPUTERS]), tool_choice=ToolChoice("tool", name))
    assert repair(request, PROFILES["openai"])[0].tool_choice == ToolChoice("tool", chosen)


@pytest.mark.parametrize("more", [{}, {"caller": {"type": "direct"}}, {"toolset_name": "garden"}, {"toolset_name": 7}])
def test_only_a_members_call_is_one(more: Json) -> None:
    request = repaired([BROWSERS, OWN], *called("screenshot", **more))
    (call,) = request.messages[1].blocks
    assert getattr(call, "name", "") == "screenshot"


def test_toward_anthropic_a_toolset_is_left_alone() -> None:
    request = asked([BROWSERS], *called("navigate", toolset_name="browser"))
    assert repair(request, PROFILES["anthropic"])[0] is request


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("browser.screenshot", {"name": "screenshot", "toolset_name": "browser"}),
        ("computer.screenshot", {"name": "screenshot", "toolset_name": "computer"}),
        ("screenshot", {"name": "screenshot"}),
        ("browser.unheard_of", {"name": "browser.unheard_of"}),
    ],
)
def test_the_client_is_told_the_member_and_its_toolset(name: str, expected: Json) -> None:
    said = writer(PROFILES["openai"], repaired([BROWSERS, OWN, COMPUTERS]), "msg_1")
    wire = said.feed([ToolStarted(0, name, id="toolu_1"), ToolEnded(0, "{}")])
    (block,) = [json.loads(event.block) for event in wire if isinstance(event, BlockStart)]
    assert block == {"type": "tool_use", "id": "toolu_1", "input": {}, **expected}
