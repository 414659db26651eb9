"""Effort: one scale for thinking budgets, effort levels and what each model takes."""

import pytest

from translation.effort import changed, effort, is_reasoning, nearest, scale
from translation.providers.profiles import PROFILES
from translation.values import Message, Request, Text, ThinkingConfig, ToolResult

OPENAI = PROFILES["openai-responses"]
XAI = PROFILES["xai"]


def asking(thinking: ThinkingConfig | None = None, level: str = "") -> Request:
    return Request(model="m", messages=(), max_tokens=1, thinking=thinking, effort=level)


@pytest.mark.parametrize(
    ("request_", "model", "level"),
    [
        (asking(), "gpt-5.5", ""),
        (asking(level="xhigh"), "gpt-5.5", "xhigh"),
        (asking(level="max"), "gpt-5.5", "xhigh"),
        (asking(level="brand-new"), "gpt-5.5", "xhigh"),
        (asking(level="max"), "gpt-5.1", "high"),
        (asking(level="max"), "gpt-5.6-sol", "max"),
        (asking(level="max"), "gpt-6.1-sol", "max"),
        (asking(ThinkingConfig("disabled")), "gpt-6-astra", "low"),
        (asking(level="low"), "gpt-5-pro", "high"),
        (asking(level="high"), "o3", "high"),
        (asking(ThinkingConfig("disabled")), "gpt-5", "minimal"),
        (asking(ThinkingConfig("disabled"), "high"), "gpt-5.1", "none"),
        (asking(ThinkingConfig("adaptive")), "o3", "medium"),
        (asking(ThinkingConfig("enabled", 1024)), "o3", "low"),
        (asking(ThinkingConfig("enabled", 10000)), "o3", "medium"),
        (asking(ThinkingConfig("enabled", 31999)), "o3", "high"),
        (asking(level="high"), "gpt-4.1", ""),
    ],
)
def test_the_level_is_the_nearest_that_the_model_knows(request_: Request, model: str, level: str) -> None:
    assert effort(request_, OPENAI, model)[0] == level


@pytest.mark.parametrize(
    ("wish", "model", "level"),
    [
        ("medium", "deepseek-v4-pro", "high"),
        ("xhigh", "deepseek-v4-pro", "max"),
        ("none", "deepseek-v4-pro", "low"),
        ("max", "deepseek-v4-pro", "max"),
    ],
)
def test_of_two_levels_that_are_as_near_it_is_the_higher(wish: str, model: str, level: str) -> None:
    """DeepSeek's own table: what it has no `medium` for is `high`, which is its default."""
    assert nearest(wish, scale(PROFILES["deepseek"], model)) == level
    assert nearest("minimal", scale(OPENAI, "gpt-5.1")) == "low", "who wants to think does"


def test_a_changed_wish_is_noted_and_a_granted_one_is_not() -> None:
    assert effort(asking(level="high"), OPENAI, "gpt-5.5")[1] == ()
    (note,) = effort(asking(level="max"), OPENAI, "gpt-5.5")[1]
    assert (note.kind, note.rule) == ("degradation", "effort-limited")
    assert "max became xhigh" in note.what


def test_a_model_without_a_dial_gets_no_level_and_only_a_lost_wish_is_noted() -> None:
    assert effort(asking(level="high"), XAI, "grok-4-fast-reasoning")[0] == ""
    assert len(effort(asking(level="high"), XAI, "grok-4")[1]) == 1
    assert len(effort(asking(ThinkingConfig("disabled")), XAI, "grok-4")[1]) == 1, "it thinks all the same"
    assert effort(asking(ThinkingConfig("disabled")), OPENAI, "gpt-4.1") == ("", ())


def test_reasoning_models_are_known_by_pattern_in_any_letter_case() -> None:
    assert is_reasoning(OPENAI, "GPT-5.5")
    assert is_reasoning(PROFILES["openai"], "gpt-6-luna")
    assert not is_reasoning(OPENAI, "gpt-4.1")


ASK, ANSWER = Message("user", (Text("q"),)), Message("assistant", (Text("a"),))
RESULT = Message("user", (ToolResult("t"),))
LOW, MAX, TOLD = Message("system", (), effort="low"), Message("system", (), effort="max"), Message("system", ())


@pytest.mark.parametrize(
    ("messages", "level"),
    [
        ((ASK,), "high"),
        ((ASK, LOW), "low"),
        ((ASK, TOLD, LOW), "low"),
        ((LOW, ASK), "low"),
        ((ASK, ANSWER, LOW), "high"),
        ((ASK, ANSWER, LOW, ASK), "low"),
        ((ASK, ANSWER, LOW, RESULT), "high"),
        ((ASK, ANSWER, RESULT, LOW), "high"),
        ((ASK, ANSWER, RESULT, LOW, ANSWER, ASK), "low"),
        ((ASK, ANSWER, RESULT, ASK, LOW), "low"),
        ((ASK, LOW, ANSWER, ASK, ANSWER, ASK), "low"),
        ((ASK, LOW, ANSWER, MAX, ASK), "max"),
        ((ASK, LOW, MAX), "max"),
    ],
)
def test_an_effort_of_a_system_message_begins_with_the_users_new_input(
    messages: tuple[Message, ...], level: str
) -> None:
    assert changed(messages, "high") == level
