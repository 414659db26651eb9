"""MiniMax: its captures, the seed's two round trips, what its template wants."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.translation.captures import Case, cases, check, check_cut, decode, describe, points
from translation.accumulator import Accumulator
from translation.adapter import Target
from translation.errors import InvalidRequest, UpstreamKeyRefused
from translation.events import Finished, ToolEnded
from translation.providers.minimax import MiniMax
from translation.providers.profile import Profile
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
    Usage,
)
from translation.writer import BlockWriter

ADAPTER = MiniMax()
CASES = {case.id: case for case in cases("minimax", "minimax-m3")}
M2 = PROFILES["minimax"]
SEED = replace(M2, thinking_style="verbatim", tool_results="user_text")
SCHEMA = (
    b'{"type":"object","properties":{"location":{"type":"string"},'
    b'"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["location","unit"]}'
)
WEATHER = Tool("get_weather", "Get weather", SCHEMA)
ASKED = Message("user", (Text("What's the weather in SF?"),))
INPUT = b'{"location":"San Francisco, CA","unit":"celsius"}'
RESULT = Message("user", (ToolResult("toolu_1", (Text("Temperature: 18°C, Sunny"),)),))
OWN = Origin("minimax", "MiniMax-M2", b'{"reasoning_content":"I look it up."}')


def target(profile: Profile = M2) -> Target:
    return Target(profile.provider, "MiniMax-M2", profile)


def asked(*messages: Message, tools: tuple[Tool, ...] = (WEATHER,)) -> Request:
    return Request(model="claude-x", messages=messages, max_tokens=4096, tools=tools)


def sent(request: Request, profile: Profile = M2) -> dict[str, object]:
    body: dict[str, object] = msgspec.json.decode(ADAPTER.build(request, target(profile)).body)
    return body


def called(*before: Block, origin: Origin | None = None) -> Message:
    return Message("assistant", (*before, ToolUse("toolu_1", "get_weather", INPUT)), origin=origin)


def folded(case: Case, profile: Profile) -> tuple[list[object], str | None]:
    """The message that a client gets."""
    writer = BlockWriter(signature="sig", live=False)
    message = Accumulator()
    events = decode(ADAPTER, case, [case.upstream], target(profile))
    message.feed(writer.feed(events))
    finished = events[-1]
    assert isinstance(finished, Finished)
    message.feed(writer.finish(finished, Usage()))
    content: list[object] = msgspec.json.decode(message.content)
    return content, message.stop_reason


@pytest.mark.parametrize("name", CASES)
def test_captures(name: str) -> None:
    check(ADAPTER, CASES[name])


@given(st.data())
def test_captures_at_random_cuts(data: st.DataObject) -> None:
    case = CASES[data.draw(st.sampled_from(sorted(CASES)))]
    check_cut(ADAPTER, case, data.draw(points(case)))


# ---------------------------------------------------------------- the seed's two round trips


def test_seed_step_2_the_request() -> None:
    body = sent(asked(ASKED), SEED)
    assert body["messages"] == [{"role": "user", "content": "What's the weather in SF?"}]
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "Get weather",
                "parameters": msgspec.json.decode(SCHEMA),
            },
        }
    ]
    assert body["max_tokens"] == 4096


@pytest.mark.parametrize("name", ["minimax/seed_call", "minimax/seed_call_whole"])
def test_seed_step_9_the_call(name: str) -> None:
    content, stop_reason = folded(CASES[name], SEED)
    assert content == [
        {
            "type": "text",
            "text": "<think>\nThe user wants weather for San Francisco. "
            "I'll use the get_weather tool with celsius units.\n</think>",
        },
        {
            "type": "tool_use",
            "id": "",
            "name": "get_weather",
            "input": {"location": "San Francisco, CA", "unit": "celsius"},
        },
    ]
    assert stop_reason == "tool_use"


def test_seed_round_trip_2_the_result() -> None:
    body = sent(asked(ASKED, called(Text("<think>\nhm\n</think>")), RESULT), SEED)
    assert body["messages"] == [
        {"role": "user", "content": "What's the weather in SF?"},
        {
            "role": "assistant",
            "content": "<think>\nhm\n</think>",
            "tool_calls": [
                {
                    "id": "toolu_1",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": INPUT.decode()},
                }
            ],
        },
        {"role": "user", "content": "Tool Result (get_weather):\nTemperature: 18°C, Sunny"},
    ]


@pytest.mark.parametrize("name", ["minimax/seed_answer", "minimax/seed_answer_whole"])
def test_seed_round_trip_2_the_answer(name: str) -> None:
    content, stop_reason = folded(CASES[name], SEED)
    assert content == [
        {
            "type": "text",
            "text": "<think>\nGreat! I have the weather data. Let me respond naturally.\n</think>\n\n"
            "The current weather in San Francisco is 18°C and sunny!",
        }
    ]
    assert stop_reason == "end_turn"


def test_thinking_is_a_block_of_its_own_unless_verbatim() -> None:
    content, stop_reason = folded(CASES["minimax/seed_answer"], M2)
    assert content == [
        {
            "type": "thinking",
            "thinking": "Great! I have the weather data. Let me respond naturally.",
            "signature": "sig",
        },
        {"type": "text", "text": "The current weather in San Francisco is 18°C and sunny!"},
    ]
    assert stop_reason == "end_turn"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("structured", "<think>\nLet me see.\n\n</think>\n\nI write."),
        ("tags_in_parsed_content", "<think>\nHm.\n</think>\n\nText about </think> and <think>."),
        ("structured_cut_by_length", "<think>\nHm.\n</think>"),
        ("never_closed_thinking_whole", "Just an answer."),
    ],
)
def test_verbatim_thinking_of_a_server_that_parses(name: str, text: str) -> None:
    content, _ = folded(CASES[f"minimax/{name}"], SEED)
    assert content[0] == {"type": "text", "text": text}


def test_verbatim_keeps_no_state() -> None:
    for event in decode(ADAPTER, CASES["minimax/seed_call"], [CASES["minimax/seed_call"].upstream], target(SEED)):
        if isinstance(event, ToolEnded | Finished):
            assert event.state == b""


# ---------------------------------------------------------------- requests


def test_results_are_tool_messages_where_the_template_knows_them() -> None:
    messages = sent(asked(ASKED, called(), RESULT))["messages"]
    assert isinstance(messages, list)
    assert messages[-1] == {"role": "tool", "tool_call_id": "toolu_1", "content": "Temperature: 18°C, Sunny"}


def test_a_failed_result_as_text_says_so() -> None:
    failed = Message("user", (ToolResult("toolu_1", (Text("no network"),), is_error=True), Text("go on")))
    messages = sent(asked(ASKED, called(), failed), SEED)["messages"]
    assert isinstance(messages, list)
    assert messages[-2:] == [
        {"role": "user", "content": "Tool Result (get_weather):\nError: no network"},
        {"role": "user", "content": "go on"},
    ]


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (called(origin=OWN), "<think>\nI look it up.\n</think>"),
        (called(Text("Wait."), origin=OWN), "<think>\nI look it up.\n</think>\n\nWait."),
        (called(Thinking("client's copy"), origin=OWN), "<think>\nI look it up.\n</think>"),
        (called(Thinking("client's copy"), origin=replace(OWN, state=b"")), "<think>\nclient's copy\n</think>"),
        (called(Thinking("another's"), origin=replace(OWN, upstream="deepseek")), None),
        (called(Thinking("Claude's", "EqQB")), None),
        (called(Thinking("only the client knows")), "<think>\nonly the client knows\n</think>"),
        (called(Text("<think>\nverbatim\n</think>"), origin=OWN), "<think>\nverbatim\n</think>"),
    ],
)
def test_thinking_goes_back_inside_the_content(message: Message, content: str | None) -> None:
    messages = sent(asked(ASKED, message, RESULT))["messages"]
    assert isinstance(messages, list)
    assert messages[1]["content"] == content
    assert "reasoning_content" not in messages[1]


def test_thinking_goes_back_from_the_call_when_the_message_is_not_known() -> None:
    link = Link("toolu_1", "get_weather", "get_weather", "", INPUT, OWN)
    message = Message("assistant", (ToolUse("toolu_1", "get_weather", INPUT, link),))
    messages = sent(asked(ASKED, message, RESULT))["messages"]
    assert isinstance(messages, list)
    assert messages[1]["content"] == "<think>\nI look it up.\n</think>"


def test_thinking_goes_back_in_its_field_where_the_server_wants_that() -> None:
    messages = sent(asked(ASKED, called(origin=OWN), RESULT), replace(M2, think_tags=None))["messages"]
    assert isinstance(messages, list)
    assert messages[1]["content"] is None
    assert messages[1]["reasoning_content"] == "I look it up."


def test_what_a_decoder_keeps_is_what_the_next_request_gives_back() -> None:
    case = CASES["minimax/seed_call"]
    events = decode(ADAPTER, case, [case.upstream])
    states = [event.state for event in events if isinstance(event, ToolEnded | Finished)]
    assert states[0] == states[1]
    messages = sent(asked(ASKED, called(origin=replace(OWN, state=states[0])), RESULT))["messages"]
    assert isinstance(messages, list)
    assert messages[1]["content"].startswith("<think>\nThe user wants weather for San Francisco.")


def test_a_profile_that_replays_nothing_keeps_nothing() -> None:
    case = CASES["minimax/seed_call"]
    events = decode(ADAPTER, case, [case.upstream], target(replace(M2, replay_reasoning="never")))
    assert not any(event.state for event in events if isinstance(event, ToolEnded | Finished))


def test_an_image_is_refused_by_its_place() -> None:
    message = Message("user", (Text("see"), Image("base64", "aGk=", "image/png")))
    with pytest.raises(InvalidRequest, match=r"^messages\.0\.content\.1: .*image"):
        ADAPTER.build(asked(message), target())


def test_a_tool_without_parameters_has_an_empty_object() -> None:
    tools = sent(asked(ASKED, tools=(Tool("ping"),)))["tools"]
    assert isinstance(tools, list)
    assert tools[0]["function"]["parameters"] == {"type": "object", "properties": {}}


def test_a_longer_history_begins_with_the_bytes_of_the_shorter() -> None:
    first = ADAPTER.build(asked(ASKED), target()).body
    second = ADAPTER.build(asked(ASKED, called(origin=OWN), RESULT), target()).body
    assert second.startswith(first.removesuffix(b"]}"))


def test_a_refusal_is_told_as_the_chat_dialect_tells_it() -> None:
    assert isinstance(ADAPTER.failure(target(), 401, {}, b"{}"), UpstreamKeyRefused)


# ---------------------------------------------------------------- names


@pytest.mark.parametrize("told", ["the alias", "the client's name"])
def test_a_tool_under_an_alias_is_called_by_its_own_name(told: str) -> None:
    """Which of them the model writes is its choice: Claude Code's reminders name tools as the client does."""
    case = CASES["minimax/two_wrappers"]
    tools = (Tool("a tool with blanks", schema=SCHEMA), Tool("web_search", type="web_search_20250305"))
    request = replace(case.request, tools=tools)
    alias = ADAPTER.build(request, target()).names[0][0]
    name = alias if told == "the alias" else "a tool with blanks"
    text = f'</think><invoke name="{name}"><parameter name="location">5</parameter></invoke>'
    chunk = {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}
    upstream = b"data: " + msgspec.json.encode(chunk) + b"\n\ndata: [DONE]\n\n"
    events = describe(decode(ADAPTER, replace(case, request=request, upstream=upstream), [upstream]))
    assert events[:2] == [
        {"type": "ToolStarted", "call": 0, "name": "a tool with blanks", "upstream_name": name},
        {"type": "ToolEnded", "call": 0, "arguments": '{"location":"5"}'},
    ]
