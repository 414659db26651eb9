"""The seed's experiments E1 to E5 under both profiles: a real client and bridge, the upstream request expected."""

from typing import Any

import pytest
from anthropic import Anthropic
from anthropic.types import MessageParam, ToolParam

from tests.conftest import StartBridge
from tests.servers.chat import calls, streamed_calls, streamed_text, text
from tests.servers.upstream import ScriptedUpstream
from translation.policies.policy import GUARDRAIL

PATH = "/v1/chat/completions"
READ = ("call_0", "Read", {"path": "README"})
ASK = "Read README and summarize."
README = "# Toolbridge"
SUMMARY = "It is about a bridge."
TOOLS: list[ToolParam] = [
    {"name": name, "description": f"{name} a file", "input_schema": {"type": "object", "properties": {}}}
    for name in ("Glob", "Read", "Edit")
]
BOTH = pytest.mark.parametrize("profile", ["agentic", "conservative"])
SYSTEM = {"role": "system", "content": f"Be brief.\n\n{GUARDRAIL}"}


class Session:
    """One client at one bridge in front of one upstream."""

    def __init__(self, start_bridge: StartBridge, upstream: ScriptedUpstream, profile: str) -> None:
        bridge = start_bridge(
            OPENAI_BASE_URL=f"{upstream.url}/v1",
            OPENAI_API_KEY="sk-up",
            MODEL_MAP_DEFAULT="openai/gpt-4.1",
            BRIDGE_POLICY=profile,
        )
        self.client = Anthropic(base_url=bridge.url, api_key=bridge.api_key, max_retries=0)
        self.upstream = upstream
        self.messages: list[MessageParam] = []

    def user(self, *content: Any) -> None:
        self.messages.append({"role": "user", "content": content[0] if len(content) == 1 else list(content)})

    def answer(self) -> Any:
        """The model's answer, which joins the history as clients do it."""
        message = self.client.messages.create(
            model="claude", max_tokens=100, system="Be brief.", tools=TOOLS, messages=self.messages
        )
        self.messages.append({"role": "assistant", "content": message.content})
        return message

    def sent(self, index: int = -1) -> dict[str, Any]:
        body: dict[str, Any] = self.upstream.requests[index].json()
        return body


def result(message: Any, content: str = README) -> dict[str, Any]:
    use = next(block for block in message.content if block.type == "tool_use")
    return {"type": "tool_result", "tool_use_id": use.id, "content": content}


def system(profile: str) -> dict[str, str]:
    return SYSTEM if profile == "conservative" else {"role": "system", "content": "Be brief."}


def user(words: str) -> dict[str, str]:
    return {"role": "user", "content": words}


def call(id_: str = "call_0", path: str = "README") -> dict[str, Any]:
    function = {"name": "Read", "arguments": f'{{"path":"{path}"}}'}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id_, "type": "function", "function": function}]}


def tool(id_: str = "call_0", content: str = README) -> dict[str, str]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def names(body: dict[str, Any]) -> list[str]:
    return [offered["function"]["name"] for offered in body["tools"]]


@BOTH
def test_e1_minimal_tool_chain(start_bridge: StartBridge, upstream: ScriptedUpstream, profile: str) -> None:
    session = Session(start_bridge, upstream, profile)
    upstream.queue(PATH, calls(READ), text(SUMMARY))
    session.user(ASK)
    first = session.answer()
    assert first.stop_reason == "tool_use"
    session.user([result(first)])
    assert session.answer().content[0].text == SUMMARY
    assert session.sent(0)["messages"] == [system(profile), user(ASK)]
    assert session.sent(1)["messages"] == [system(profile), user(ASK), call(), tool()]
    if profile == "conservative":
        assert [session.sent(n).get("tool_choice") for n in (0, 1)] == ["auto", "none"]
        assert names(session.sent(0)) == names(session.sent(1)) == ["Glob", "Read"]
    else:
        assert [session.sent(n).get("tool_choice") for n in (0, 1)] == ["auto", "auto"]
        assert names(session.sent(0)) == names(session.sent(1)) == ["Glob", "Read", "Edit"]


@BOTH
def test_e2_mixed_turn(start_bridge: StartBridge, upstream: ScriptedUpstream, profile: str) -> None:
    session = Session(start_bridge, upstream, profile)
    upstream.queue(PATH, calls(READ), text(SUMMARY))
    session.user(ASK)
    session.user([result(session.answer()), {"type": "text", "text": ASK}])
    session.answer()
    assert session.sent()["messages"] == [system(profile), user(ASK), call(), tool()]


@BOTH
def test_e3_history_replay(start_bridge: StartBridge, upstream: ScriptedUpstream, profile: str) -> None:
    session = Session(start_bridge, upstream, profile)
    upstream.queue(PATH, calls(READ), text(SUMMARY), text("As I said."))
    session.user(ASK)
    session.user([result(session.answer())])
    session.answer()
    session.user(ASK)
    session.answer()
    again = ASK if profile == "agentic" else "(the user says the same again)"
    assert session.sent()["messages"] == [
        system(profile),
        user(ASK),
        call(),
        tool(),
        {"role": "assistant", "content": SUMMARY},
        user(again),
    ]


@BOTH
def test_e4_intentional_refresh(start_bridge: StartBridge, upstream: ScriptedUpstream, profile: str) -> None:
    session = Session(start_bridge, upstream, profile)
    upstream.queue(PATH, calls(READ), text(SUMMARY), calls(("call_1", "Read", {"path": "README"})))
    session.user(ASK)
    session.user([result(session.answer())])
    session.answer()
    session.user("Please re-read README.")
    assert session.answer().stop_reason == "tool_use"
    assert session.sent()["messages"][-1] == user("Please re-read README.")
    assert session.sent().get("tool_choice") == "auto"


@BOTH
def test_e5_streaming(start_bridge: StartBridge, upstream: ScriptedUpstream, profile: str) -> None:
    session = Session(start_bridge, upstream, profile)
    upstream.queue(PATH, streamed_calls(READ), streamed_text("It is ", "about a bridge."))
    session.user(ASK)
    deltas, found = _streamed(session)
    assert deltas == []
    assert found.stop_reason == "tool_use"
    session.messages.append({"role": "assistant", "content": found.content})
    session.user([result(found)])
    deltas, found = _streamed(session)
    assert deltas == ["It is ", "about a bridge."]
    assert found.stop_reason == "end_turn"
    assert session.sent()["messages"] == [system(profile), user(ASK), call(), tool()]


def _streamed(session: Session) -> tuple[list[str], Any]:
    with session.client.messages.stream(
        model="claude", max_tokens=100, system="Be brief.", tools=TOOLS, messages=session.messages
    ) as stream:
        deltas = [
            event.delta.text
            for event in stream
            if event.type == "content_block_delta" and event.delta.type == "text_delta"
        ]
        return deltas, stream.get_final_message()


def test_a_loop_is_broken_by_one_more_try_under_conservative(
    start_bridge: StartBridge, upstream: ScriptedUpstream
) -> None:
    session = Session(start_bridge, upstream, "conservative")
    upstream.queue(PATH, *(calls((f"call_{n}", "Read", {"path": "README"})) for n in range(4)), text(SUMMARY))
    session.user("Go on.")
    for _ in range(3):
        session.user([result(session.answer())])
    assert session.answer().content[0].text == SUMMARY
    reminder = user(f"<system-reminder>\n{GUARDRAIL}\n</system-reminder>")
    assert session.sent()["messages"] == [*session.sent(-2)["messages"], reminder]
