"""A search that cannot be made is told to the client, and the turn goes on."""

import msgspec
import pytest

from translation.adapter import Target
from translation.adapters import adapter
from translation.errors import InvalidRequest
from translation.events import Event, Failed, Finished, TextDelta, WholeBlock
from translation.providers.profiles import PROFILES
from translation.values import Message, Request, Text, Tool, ToolChoice

SEARCH = Tool("web_search", type="web_search_20250305")
CODE = Tool("code_execution", type="code_execution_20250825")
READ = Tool("Read", schema=b'{"type":"object","properties":{}}')
ANSWER = msgspec.json.encode(
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": "I know this."}, "finish_reason": "stop"}]}
)


def answered(provider: str, body: bytes, *tools: Tool, choice: ToolChoice | None = None) -> list[Event]:
    target = Target(provider, "some-model", PROFILES[provider])
    messages = (Message("user", (Text("search for it"),)),)
    request = Request(model="m", messages=messages, max_tokens=9, tools=tools, tool_choice=choice)
    speaker = adapter(target.profile)
    decoder = speaker.decoder(request, target, speaker.build(request, target), "application/json")
    return [*decoder.feed(body), *decoder.close()]


def kinds(events: list[Event]) -> list[object]:
    return [msgspec.json.decode(event.block)["type"] for event in events if isinstance(event, WholeBlock)]


@pytest.mark.parametrize("provider", ["vllm", "openai", "minimax"])
@pytest.mark.parametrize(
    ("tools", "choice"),
    [
        ((SEARCH,), None),
        ((SEARCH,), ToolChoice("any")),
        ((SEARCH,), ToolChoice("tool", "web_search")),
        ((SEARCH, READ), ToolChoice("tool", "web_search")),
    ],
)
def test_a_request_for_a_search_is_answered_without_it(
    provider: str, tools: tuple[Tool, ...], choice: ToolChoice | None
) -> None:
    events = answered(provider, ANSWER, *tools, choice=choice)
    assert kinds(events) == ["server_tool_use", "web_search_tool_result"]
    first, second = (msgspec.json.decode(event.block) for event in events[:2] if isinstance(event, WholeBlock))
    assert first["id"] == second["tool_use_id"]
    assert second["content"] == {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "I know this."
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize("tools", [(READ, SEARCH), (READ,), (CODE,), ()])
def test_who_has_other_tools_or_no_search_is_not_told(tools: tuple[Tool, ...]) -> None:
    assert kinds(answered("vllm", ANSWER, *tools)) == []


def test_a_failure_comes_alone() -> None:
    events = answered("vllm", b'{"error":{"message":"no","code":500}}', SEARCH)
    assert [type(event) for event in events] == [Failed]


def test_other_server_tools_cannot_be_forced() -> None:
    with pytest.raises(InvalidRequest, match=r"^tool_choice: "):
        answered("vllm", ANSWER, CODE, choice=ToolChoice("any"))
