"""The official Python SDK against the real bridge over a scripted upstream."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import anthropic
import pytest
from anthropic import beta_tool
from anthropic.lib.tools._toolsets._runnable import BetaRunnableToolset, BetaToolsetCallContext
from anthropic.types.beta import BetaBrowserToolset20260801Param

from tests.api.conftest import Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import CLOCK, TOOL, Client
from translation.names import ToolNames

MODEL = "claude-sonnet-5"
CALL = ("call_1", "get_weather", {"city": "Oslo"})
TIME = ("call_2", "get_time", {"zone": "CET"})


@pytest.fixture
def sdk(served: Served, client: Client) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key=client.api_key, base_url=served.bridge.url, max_retries=0) as connected:
        yield connected


def ask(sdk: anthropic.Anthropic, words: str = "Hi") -> anthropic.types.Message:
    return sdk.messages.create(model=MODEL, max_tokens=100, messages=[{"role": "user", "content": words}])


def test_a_whole_message(sdk: anthropic.Anthropic, served: Served) -> None:
    served.chat(chat.text("Hello."))
    message = ask(sdk)
    assert message.content[0].type == "text"
    assert message.content[0].text == "Hello."
    assert (message.stop_reason, message.usage.output_tokens) == ("end_turn", 7)
    assert message._request_id is not None
    assert message._request_id.startswith("req_")


def test_a_stream_with_parallel_tools(sdk: anthropic.Anthropic, served: Served) -> None:
    served.chat(chat.streamed_calls(CALL, TIME))
    with sdk.messages.stream(
        model=MODEL,
        max_tokens=100,
        messages=[{"role": "user", "content": "Go"}],
        tools=[TOOL, CLOCK],  # type: ignore[list-item]
    ) as stream:
        message = stream.get_final_message()
    calls = [(block.name, block.input) for block in message.content if block.type == "tool_use"]
    assert calls == [CALL[1:], TIME[1:]]
    assert message.stop_reason == "tool_use"


ERRORS = [
    (400, anthropic.BadRequestError), (404, anthropic.NotFoundError), (429, anthropic.RateLimitError),
    (500, anthropic.InternalServerError), (401, anthropic.InternalServerError), (529, anthropic.InternalServerError),
]  # fmt: skip


@pytest.mark.parametrize(("status", "kind"), ERRORS)
def test_errors_are_the_sdks_own_classes(
    sdk: anthropic.Anthropic, served: Served, status: int, kind: type[anthropic.APIStatusError]
) -> None:
    served.chat(chat.error(status, "no"))
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(sdk)
    assert isinstance(caught.value, kind)
    assert caught.value.request_id is not None


def test_a_wrong_key_and_a_cut_stream(sdk: anthropic.Anthropic, served: Served) -> None:
    stranger = anthropic.Anthropic(api_key="sk-wrong", base_url=served.bridge.url)
    with stranger, pytest.raises(anthropic.AuthenticationError):
        ask(stranger)
    cut = chat.streamed_text("Hel")
    served.chat(type(cut)(cut.steps[:2], headers=cut.headers))
    with (
        pytest.raises(anthropic.APIError),
        sdk.messages.stream(model=MODEL, max_tokens=100, messages=[{"role": "user", "content": "Hi"}]) as stream,
    ):
        stream.get_final_message()


@beta_tool
def get_weather(city: str) -> str:
    """The weather of a city.

    Args:
        city: its name
    """
    return f"sunny in {city}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("restart", [False, True])
def test_the_threaded_tool_runner_also_over_a_restart(
    serve: Serve, connect: Connect, stream: bool, restart: bool
) -> None:
    """It sends only what is new: history, system and tools come from the store."""
    served = serve()
    client = connect(served)
    answers = [chat.streamed_calls(CALL), chat.streamed_calls(("call_1", "get_weather", {"city": "Rome"}))]
    served.chat(*answers, chat.streamed_text("Done."))
    with anthropic.Anthropic(api_key=client.api_key, base_url=served.bridge.url) as sdk:
        runner = sdk.beta.messages.tool_runner(
            model=MODEL, max_tokens=100, tools=[get_weather], system="Be brief.", stream=stream,
            messages=[{"role": "user", "content": "Weather in Oslo and Rome?"}],
        )  # fmt: skip
        last: Any = None
        for number, turn in enumerate(cast("Iterator[Any]", runner)):
            last = turn.get_final_message() if stream else turn
            if restart and number == 0:
                served.bridge.stop()
                served.bridge.start()
    assert last is not None
    assert last.content[0].text == "Done."
    sent = served.sent()["messages"]
    roles = [message["role"] for message in sent]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert [m["content"] for m in sent if m["role"] == "tool"] == ["sunny in Oslo", "sunny in Rome"]
    assert len(served.upstream.requests) == 3
    (conversation,) = client.conversations()
    assert (conversation["turns"], conversation["tool_mappings"]) == (3, 2)


class Browser(BetaRunnableToolset):
    toolset_name = "browser"

    def to_dict(self) -> BetaBrowserToolset20260801Param:
        return {"type": "browser_toolset_20260801", "configs": {"zoom": {"enabled": False}}}

    def call(self, context: BetaToolsetCallContext, name: str, input: Mapping[str, object]) -> str:  # noqa: A002
        return f"{name} {input['url']}"


@pytest.mark.parametrize("stream", [False, True])
def test_a_toolset_is_offered_by_its_members_and_run_by_the_tool_runner(
    sdk: anthropic.Anthropic, served: Served, stream: bool
) -> None:
    navigate = ToolNames(()).upstream("browser.navigate")
    served.chat(
        *(chat.streamed_calls((id_, navigate, {"url": id_})) for id_ in ("a.test", "b.test")),
        chat.streamed_text("Done."),
    )
    runner = sdk.beta.messages.tool_runner(
        model=MODEL, max_tokens=100, tools=[Browser()], stream=stream, messages=[{"role": "user", "content": "Look."}]
    )
    turns = [turn.get_final_message() if stream else turn for turn in cast("Iterator[Any]", runner)]
    calls = [(block.name, block.toolset_name) for turn in turns[:2] for block in turn.content]
    assert calls == [("navigate", "browser")] * 2
    sent = served.sent()
    offered = {tool["function"]["name"] for tool in sent["tools"]}
    assert navigate in offered
    assert ToolNames(()).upstream("browser.zoom") not in offered
    assert [m["content"] for m in sent["messages"] if m["role"] == "tool"] == ["navigate a.test", "navigate b.test"]
