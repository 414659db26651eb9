"""Tools that system messages add and withdraw, at models that get one list of them."""

from typing import Any

import msgspec
import pytest

from tests.validators import responses
from translation.adapter import Target, UpstreamRequest
from translation.adapters import adapter
from translation.client.parse import parse
from translation.history import repair
from translation.providers.profiles import PROFILES
from translation.values import Note

Json = dict[str, Any]
TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("Read", "Bash")]


def addition(name: str) -> Json:
    return {"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}


def definition(name: Any) -> Json:
    tool = {"name": name, "description": "new", "input_schema": {"type": "object"}}
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}}


def removal(name: str) -> Json:
    return {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}


def sent(provider: str, *system: Json, tools: list[Json] = TOOLS) -> tuple[UpstreamRequest, tuple[Note, ...]]:
    profile = PROFILES[provider]
    turns: list[Json] = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "x"}]
    turns += [{"role": "system", "content": [block]} for block in system]
    body = {"model": "m", "max_tokens": 9, "tools": tools, "messages": [*turns, {"role": "user", "content": "go"}]}
    request, notes = repair(parse(msgspec.json.encode(body), "", ()), profile)
    return adapter(profile).build(request, Target(provider, "m", profile)), notes


def names(request: UpstreamRequest) -> list[str]:
    return [tool.get("name") or tool["function"]["name"] for tool in msgspec.json.decode(request.body)["tools"]]


@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_tools_are_offered_as_the_conversation_left_them(provider: str) -> None:
    request, notes = sent(provider, definition("New"), removal("Bash"), removal("Read"), addition("Read"))
    assert names(request) == ["Read", "New"]
    assert "tools-changed" in {note.rule for note in notes}
    for said in (b"[tool available: New]", b"[tool withdrawn: Bash]"):
        assert said in request.body
    if provider == "openai-responses":
        assert responses.validate(request.body) == []


def test_a_tool_that_was_added_is_within_the_limit() -> None:
    many = [{"name": f"t{index}", "input_schema": {"type": "object"}} for index in range(150)]
    request, _ = sent("openai", definition("New"), addition("t149"), tools=many)
    assert names(request)[125:] == ["t125", "t149", "New"]


def test_a_change_names_a_tool_as_it_is_offered() -> None:
    long = "mcp__" + "long_" * 14
    request, _ = sent("openai", definition(long))
    offered = names(request)[-1]
    assert len(offered) == 64
    assert f"[tool available: {offered}]".encode() in request.body


def test_an_addition_loads_a_tool_that_was_deferred() -> None:
    deferred = [{**tool, "defer_loading": True} for tool in TOOLS]
    request, _ = sent("openai", addition("Bash"), tools=deferred)
    assert names(request) == ["Bash"]


def test_a_change_that_names_no_tool_is_told_and_changes_nothing() -> None:
    odd = {"type": "tool_addition", "tool": {"type": "mcp_toolset_reference", "server_name": "s"}}
    request, notes = sent("openai-responses", odd, definition(5))
    assert names(request) == ["Read", "Bash"]
    assert "tools-changed" not in {note.rule for note in notes}
    assert b"mcp_toolset_reference" not in request.body
    assert b"[tool_addition: " in request.body


def test_to_anthropic_they_go_as_they_are() -> None:
    request, notes = sent("anthropic", definition("New"), removal("Bash"))
    assert (names(request), notes) == (["Read", "Bash"], ())
    assert b'"tool_removal"' in request.body


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "gemini"])
def test_a_compaction_changes_the_tools_as_the_messages_did_that_it_stands_for(provider: str) -> None:
    summary = "They spoke. " * 2_000
    made = [removal("Bash"), definition("New"), removal("Later"), {"type": "odd", "tool": {"name": "Read"}}]
    compaction = {"type": "compaction", "content": summary, "signature": "s", "tool_changes": made}
    request, notes = compacted(provider, compaction)
    assert [name for name in ("Read", "Bash", "New") if f'"{name}"'.encode() in request.body] == ["Read", "New"]
    assert "tools-changed" in {note.rule for note in notes}
    assert summary.encode() in request.body


@pytest.mark.parametrize("made", [None, [], {}, [7]])
def test_a_compaction_without_changes_leaves_the_tools_alone(made: object) -> None:
    for kind in ("compaction", "odd"):
        block = {"type": kind, "content": None, "tool_changes": made}
        request, notes = compacted("openai", block)
        assert names(request) == ["Read", "Bash"]
        assert "tools-changed" not in {note.rule for note in notes}


def compacted(provider: str, block: Json) -> tuple[UpstreamRequest, tuple[Note, ...]]:
    profile = PROFILES[provider]
    turns = [{"role": "assistant", "content": [block]}, {"role": "user", "content": "go"}]
    body = {"model": "m", "max_tokens": 9, "tools": TOOLS, "messages": turns}
    request, notes = repair(parse(msgspec.json.encode(body), "", ()), profile)
    return adapter(profile).build(request, Target(provider, "m", profile)), notes
