"""What chat servers want back as they gave it: signatures of calls and texts, and reasoning that is not words."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from tests.translation.frames import sse
from tests.validators import chat
from translation.adapter import Target, UpstreamRequest
from translation.errors import OPAQUE_STATE_REJECTED, UpstreamProtocolError
from translation.events import Finished, TextDelta, ThinkingDelta
from translation.providers.openai_chat import OpenAIChat
from translation.providers.openai_chat_state import SENTINEL, State
from translation.providers.openai_chat_wire import decode_chunk
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


# ---------------------------------------------------------------- of messages


def answered(provider: str, *deltas: dict[str, Any], model: str = "m", tail: tuple[dict[str, Any], ...] = ()) -> State:
    """What is kept of a stream; `tail` comes after its finish reason."""
    request, target = history(), Target(provider, model, PROFILES[provider])
    reader = OpenAIChat().decoder(request, target, sent(request, provider, model), "")
    finish: dict[str, Any] = {"delta": {}, "finish_reason": "stop"}
    choices = [*({"delta": delta} for delta in deltas), finish, *({"delta": delta} for delta in tail)]
    frames = sse(*({"choices": [choice]} for choice in choices))
    (*_, finished) = [*reader.feed(frames), *reader.close()]
    assert isinstance(finished, Finished)
    assert finished.state != b"{}"
    return msgspec.json.decode(finished.state or b"{}", type=State)


def fields(state: State) -> dict[str, Any]:
    return {name: msgspec.json.decode(value) for name, value in state.fields.items()}


def told(state: bytes, provider: str, model: str = "m", made_by: str = "m", blocks: tuple[Text, ...] = ()) -> Any:
    """The answer with this state as it goes back, of a call unless it has `blocks`."""
    origin = Origin(provider, made_by, state)
    request = history(replace(origin, state=b""))
    answer = replace(request.messages[1], origin=origin, blocks=blocks or request.messages[1].blocks)
    after = Message("user", (Text("and?"),)) if blocks else request.messages[2]
    request = replace(request, messages=(request.messages[0], answer, after))
    return msgspec.json.decode(sent(request, provider, model).body)["messages"][1]


THINKING = [{"type": "thinking", "thinking": "Hm", "signature": "s"}]
BLOCKS = (
    b'{"reasoning_content":"Hm","fields":{"thinking_blocks":[{"type":"thinking","thinking":"Hm","signature":"s"}]}}'
)
OPAQUE = b'{"fields":{"reasoning_text":"Hm","reasoning_opaque":"o"}}'
TEXT = b'{"fields":{"extra_content":{"google":{"thought_signature":"c2ln"}}}}'
DETAILS = b'{"reasoning_details":[{"type":"reasoning.encrypted","data":"d"}]}'


@pytest.mark.parametrize("provider", ["openai", "xai", "vllm", "openrouter", "deepseek"])
def test_signed_reasoning_goes_back_whatever_the_profile_says_of_words(provider: str) -> None:
    assert told(BLOCKS, provider)["thinking_blocks"] == THINKING
    said = told(OPAQUE, provider)
    assert (said["reasoning_text"], said["reasoning_opaque"]) == ("Hm", "o")
    assert told(TEXT, provider, blocks=(Text("Yes."),))["extra_content"] == EXTRA
    assert told(TEXT, provider, blocks=(Text("Yes."), Text("No.")))["extra_content"] == EXTRA


def test_signed_reasoning_stands_for_its_words() -> None:
    assert told(BLOCKS, "vllm").keys() == {"role", "content", "tool_calls", "thinking_blocks"}
    assert told(BLOCKS, "deepseek")["reasoning_content"] == "Hm", "which asks for them"
    assert told(TEXT, "vllm").keys() == {"role", "content", "tool_calls", "extra_content"}


@pytest.mark.parametrize("state", [BLOCKS, OPAQUE, TEXT])
def test_another_model_of_the_upstream_gets_words_at_most(state: bytes) -> None:
    said = told(state, "vllm", "qwen3-vl", "claude-sonnet-4-5")
    assert said.keys() <= {"role", "content", "tool_calls", "reasoning_content"}


def test_reasoning_details_go_back_with_calls_to_whoever_gave_them() -> None:
    """A gateway behind `OPENAI_BASE_URL`."""
    kept = answered("openai", {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]})
    assert msgspec.json.encode(kept) == DETAILS
    assert told(DETAILS, "openai")["reasoning_details"] == [{"type": "reasoning.encrypted", "data": "d"}]
    assert told(DETAILS, "openai", blocks=(Text("Yes."), Text("No."))).keys() == {"role", "content"}


@pytest.mark.parametrize(
    ("pieces", "kept"),
    [
        ([("I ", None), ("see.", None), ("I see.", "s")], [("I see.", "s")]),
        ([("I ", None), ("see.", ""), ("", "s")], [("I see.", "s")]),
        ([("I ", None), ("see.", "s")], [("I see.", "s")]),
        ([("I", "s"), (None, None), ("see", "t")], [("I", "s"), ("see", "t")]),
        ([("I see.", None)], []),
    ],
    ids=["repeated", "signed at the end", "signed with the last piece", "two", "never signed"],
)
def test_thinking_blocks_are_put_together(
    pieces: list[tuple[str | None, str | None]], kept: list[tuple[str, str]]
) -> None:
    blocks = [{"type": "thinking", "thinking": text, "signature": signature} for text, signature in pieces]
    state = answered("vllm", *({"thinking_blocks": [block]} for block in blocks))
    wanted = [{"type": "thinking", "thinking": text, "signature": signature} for text, signature in kept]
    assert fields(state).get("thinking_blocks", []) == wanted
    assert state.reasoning_content == "".join(text for text, _ in kept) or not kept


@pytest.mark.parametrize("name", ["thinking_blocks", "extra_content", "provider_specific_fields", "reasoning_opaque"])
@pytest.mark.parametrize("value", [None, {}, [], "", 1, [{"type": 1}], {"google": 1}, {"thought_signatures": 1}])
def test_what_cannot_be_read_of_it_does_not_cost_the_answer(name: str, value: object) -> None:
    state = answered("vllm", {"content": "a", name: value})
    assert name == "reasoning_opaque" or not state.fields
    assert fields(state).get(name) == (value if name == "reasoning_opaque" else None)


def test_thinking_that_nobody_signed_is_only_words() -> None:
    assert answered("openai", {"thinking_blocks": [{"type": "thinking", "thinking": "Hm"}]}) == State()


def test_what_says_only_that_a_piece_is_a_thought_is_not_the_messages() -> None:
    state = answered("vllm", {"content": "a", "extra_content": {"google": {"thought": True}}})
    assert state == State()
    both = answered("vllm", {"content": "a", "extra_content": {"google": {"thought": True}, "vertex": {"x": 1}}})
    assert fields(both) == {"extra_content": {"vertex": {"x": 1}}}


def test_what_comes_after_the_finish_reason_is_kept_and_an_echo_is_not_told_twice() -> None:
    late = {"extra_content": EXTRA, "reasoning_opaque": "o"}
    assert fields(answered("vllm", {"content": "a"}, tail=(late,))) == {"reasoning_opaque": "o", "extra_content": EXTRA}
    echo = {"reasoning_text": "Hm", "thinking_blocks": THINKING, "reasoning_opaque": "o"}
    state = answered("vllm", echo, tail=(echo,))
    assert (state.reasoning_content, fields(state)["thinking_blocks"]) == ("Hm", THINKING)


@pytest.mark.parametrize("told_before", [True, False])
def test_a_whole_message_after_its_deltas_tells_only_what_they_left_out(told_before: bool) -> None:
    signed = {"reasoning_content": "Hm", "thinking_blocks": THINKING}
    first = signed if told_before else {"reasoning_content": "Hm"}
    whole = {"message": {**signed, "content": "a"}, "finish_reason": "stop"}
    choices = [{"delta": first}, {"delta": {"content": "a"}}, whole]
    request, target = history(), Target("vllm", "m", PROFILES["vllm"])
    reader = OpenAIChat().decoder(request, target, sent(request, "vllm", "m"), "")
    events = reader.feed(sse(*({"choices": [each]} for each in choices)))
    (*said, finished) = [*events, *reader.close()]
    assert said == [ThinkingDelta("Hm"), TextDelta("a")]
    assert isinstance(finished, Finished)
    assert fields(msgspec.json.decode(finished.state, type=State)) == {"thinking_blocks": THINKING}


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


@pytest.mark.parametrize("state", [BLOCKS, OPAQUE, TEXT])
def test_a_message_whose_signature_is_not_taken_goes_back_without(state: bytes) -> None:
    assert failure("messages.1.content.0: Invalid `signature` in `thinking` block") == OPAQUE_STATE_REJECTED
    assert failure("messages.1.content.0.thinking.signature: Field required") == OPAQUE_STATE_REJECTED
    request = history(Origin("vllm", "m"))
    answer = replace(request.messages[1], origin=Origin("vllm", "m", state))
    given = sent(replace(request, messages=(request.messages[0], answer, request.messages[2])), "vllm", "m")
    bare = OpenAIChat().without_state(given)
    assert chat.validate(given.body) != chat.validate(bare.body) == []


def test_what_is_no_text_is_not_kept() -> None:
    """It would go back with every later request, which nobody could read any more."""
    data = b'{"choices":[{"delta":{"content":"a","reasoning_opaque":"4CUQ\xf56Cw"}}]}'
    with pytest.raises(UpstreamProtocolError):
        decode_chunk(data)
