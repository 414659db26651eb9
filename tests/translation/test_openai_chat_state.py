"""What chat servers want back as they gave it: signatures of calls."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from tests.validators import chat
from translation.adapter import Target, UpstreamRequest
from translation.errors import OPAQUE_STATE_REJECTED
from translation.providers.openai_chat import OpenAIChat
from translation.providers.openai_chat_state import SENTINEL
from translation.providers.profiles import PROFILES
from translation.values import Link, Message, Origin, Request, Text, Tool, ToolResult, ToolUse

READ = Tool("Read", "Reads a file.", b'{"type":"object","properties":{}}')
SIGNED = b'{"call":{"extra_content":{"google":{"thought_signature":"c2ln"}}}}'
EXTRA = {"google": {"thought_signature": "c2ln"}}
MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly."
)


def link(number: int, origin: Origin) -> Link:
    return Link(f"toolu_{number}", "Read", "Read", f"call_{number}", b"{}", origin)


def history(*origins: Origin) -> Request:
    """An answer with a call for each origin, and the results."""
    calls = [ToolUse(f"toolu_{n}", "Read", b"{}", link(n, origin)) for n, origin in enumerate(origins)]
    results = [ToolResult(f"toolu_{n}", (Text("A"),)) for n in range(len(origins))]
    messages = (
        Message("user", (Text("q"),)),
        Message("assistant", tuple(calls)),
        Message("user", tuple(results)),
    )
    return Request(model="claude", max_tokens=100, messages=messages, tools=(READ,))


def sent(request: Request, provider: str, model: str) -> UpstreamRequest:
    return OpenAIChat().build(request, Target(provider, model, PROFILES[provider]))


def calls(request: UpstreamRequest) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = msgspec.json.decode(request.body)["messages"][1]["tool_calls"]
    return found


@pytest.mark.parametrize("provider", ["openai", "vllm", "openrouter", "deepseek"])
def test_a_call_that_was_signed_goes_back_signed_and_no_other_does(provider: str) -> None:
    """Parallel calls share the signature of the first; whoever has it is known by what it sent, not by its profile."""
    mine = Origin(provider, "gemini-3-pro")
    first, second = calls(sent(history(replace(mine, state=SIGNED), mine), provider, "gemini-3-pro"))
    assert first["extra_content"] == EXTRA
    assert second.keys() == {"id", "type", "function"}


@pytest.mark.parametrize(
    ("made_by", "model", "goes_back"),
    [
        ("gemini-3-pro-preview", "gemini-3.1-flash", True),
        ("google/gemini-3-pro", "google/gemini-3-flash:free", True),
        ("Gemini-3-Pro", "gemini-3-flash", True),
        ("fast", "fast", True),
        ("gemini-2.5-pro", "gemini-3-pro", False),
        ("google/gemini-3-pro", "anthropic/claude-sonnet-4.5", False),
        ("us.amazon.nova-pro", "us.anthropic.claude-3-7", False),
        ("01-ai", "02-ai", False),
    ],
)
def test_a_gateways_other_models_do_not_see_a_signature(made_by: str, model: str, goes_back: bool) -> None:
    (call,) = calls(sent(history(Origin("vllm", made_by, SIGNED)), "vllm", model))
    assert ("extra_content" in call) is goes_back


def test_a_strict_server_sees_none_of_it() -> None:
    asked = sent(history(Origin("vllm", "gemini-3-pro", SIGNED)), "openai", "gemini-3-pro")
    assert chat.validate(asked.body) == []


# ---------------------------------------------------------------- refusals


def failure(message: str) -> str | None:
    error = [{"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}]
    target = Target("vllm", "gemini-3-pro", PROFILES["vllm"])
    return OpenAIChat().failure(target, 400, {}, msgspec.json.encode(error)).code


@pytest.mark.parametrize("state", [b"", SIGNED])
def test_gemini_is_told_in_its_own_word_that_signatures_are_lost(state: bytes) -> None:
    """Once: of calls that another model made, and of those whose signature it does not take."""
    assert failure(MISSING) == OPAQUE_STATE_REJECTED
    given = sent(history(Origin("vllm", "gemini-3-pro", state), Origin("elsewhere", "m")), "vllm", "gemini-3-pro")
    again = OpenAIChat().without_state(given)
    first, second = calls(again)
    assert first["extra_content"] == msgspec.json.decode(SENTINEL)
    assert "extra_content" not in second
    assert again.notes[-1].rule == "opaque-state-dropped"
    assert OpenAIChat().without_state(again) is again


@pytest.mark.parametrize("name", ["extra_content", "provider_specific_fields", "thought_signature"])
def test_another_model_gets_its_calls_bare(name: str) -> None:
    state = msgspec.json.encode({"call": {name: Raw(b'"s"')}})
    given = sent(history(Origin("vllm", "claude-5", state)), "vllm", "claude-5")
    assert name in calls(given)[0]
    bare = OpenAIChat().without_state(given)
    assert chat.validate(bare.body) == []
    assert OpenAIChat().without_state(bare) is bare
