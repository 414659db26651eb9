"""Tools that run on a worker: they outlive the request, the web process and the worker itself."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from conversations.hosted import worker
from conversations.models import ToolExecution
from conversations.store.hosted import FinishExecution
from tests.api.conftest import Serve, Served
from tests.hosted.conftest import Tools
from tests.hosted.test_loop import held, kinds
from tests.servers import chat
from tests.servers.bridge import PROJECT, clean_environment
from tests.servers.client import Client, folded, names
from tests.servers.keeper import kept
from tests.servers.ports import wait_until
from tests.servers.script import Answer, Gate, Silence, json_answer
from tests.servers.upstream import ScriptedUpstream
from translation.errors import StoreUnavailable


@pytest.fixture(scope="module")
def served(serve_shared: Serve) -> Served:
    return serve_shared(BRIDGE_TOOL_HOSTS="127.0.0.1", BRIDGE_TOOL_TURN_SECONDS="3", BRIDGE_PING_SECONDS="1")


class Long(Tools):
    """With a tool at a path of the test's own: a later worker may still run what an earlier test left."""

    path = ""


@pytest.fixture
def tools(served: Served, tool_server: ScriptedUpstream, shared_upstream: ScriptedUpstream) -> Iterator[Long]:
    shared_upstream.reset()
    tool_server.reset()
    client = Client(served.bridge.url, served.records.issue(hosted_tools=True))
    given = Long(served, tool_server, client)
    given.path = f"/weather-{client.api_key[-8:]}"
    given.register(path=given.path, long_running=True)
    yield given
    client.close()


class Worker:
    def __init__(self, served: Served) -> None:
        home: Path = served.bridge.home
        environment = clean_environment(home, 1) | {
            "DATABASE_URL": served.database_url,
            "BRIDGE_TOOL_HOSTS": "127.0.0.1",
        }
        command = [sys.executable, "-m", "bridge_project.up.background"]
        with home.with_name("worker.log").open("ab") as log:
            self.process = kept(subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)


@contextmanager
def working(served: Served) -> Iterator[Worker]:
    worker = Worker(served)
    try:
        yield worker
    finally:
        worker.kill()


def test_turn_waits_pauses_and_the_next_one_picks_the_result_up(tools: Long) -> None:
    gate = Gate()
    tools.server.queue(tools.path, held(gate, b'"sunny"'))
    tools.served.chat(chat.streamed_calls(("a", "weather", {"city": "Rome"})), chat.streamed_text("It is sunny."))
    begun = time.monotonic()
    events = tools.client.events("Weather?")
    assert time.monotonic() - begun >= 3
    assert names(events).count("ping") >= 1
    (stop,) = [data["delta"]["stop_reason"] for name, data in events if name == "message_delta"]
    paused = folded([event for event in events if event.name != "ping"])
    assert (stop, kinds(paused)) == ("pause_turn", ["mcp_tool_use"])
    history: list[Any] = ["Weather?", {"role": "assistant", "content": [{**paused[0], "input": {"city": "Rome"}}]}]
    with working(tools.served):
        assert gate.reached.wait(30)
        seen = []
        with tools.client.stream(*history) as (_, more):
            for event in more:
                seen.append(event)
                if event.name == "ping":
                    gate.open()
    blocks = folded([event for event in seen if event.name != "ping"])
    assert (kinds(blocks), blocks[0]["tool_use_id"]) == (["mcp_tool_result", "text"], paused[0]["id"])
    assert tools.served.sent()["messages"][-1]["content"] == '"sunny"'
    tools.served.chat(chat.text("Bye."))
    tools.client.ask(*history, {"role": "assistant", "content": blocks}, "Thanks")
    roles = [message["role"] for message in tools.served.sent()["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert len([request for request in tools.server.requests if request.path == tools.path]) == 1


def test_tools_have_the_time_that_the_turn_has(tools: Long) -> None:
    """One that could take a minute is told off after the turn's three seconds, and the turn pauses."""
    tools.register(path=tools.path, timeout=60)
    tools.server.queue(tools.path, Answer((Silence(),)))
    tools.served.chat(chat.calls(("a", "weather", {"city": "Rome"})))
    answer = tools.client.ask("Weather?").json()
    assert (answer["stop_reason"], kinds(answer["content"])) == ("pause_turn", ["mcp_tool_use", "mcp_tool_result"])
    assert answer["content"][1]["is_error"] is True
    assert tools.server.requests[-1].abandoned.wait(5)


def test_question_in_between_is_answered_with_what_is_known(tools: Long) -> None:
    tools.server.queue(tools.path, json_answer("sunny"))
    tools.served.chat(chat.calls(("a", "weather", {"city": "Rome"})))
    paused = tools.client.ask("Weather?").json()
    tools.served.chat(chat.text("I do not know yet."))
    tools.client.ask("Weather?", {"role": "assistant", "content": paused["content"]}, "And?")
    told = tools.served.sent()["messages"]
    assert told[-2]["role"] == "tool"
    assert "no result" in told[-2]["content"]


def test_result_survives_the_death_of_the_web_process(tools: Long) -> None:
    gate = Gate()
    records, key = tools.served.records, tools.client.api_key
    tools.server.queue(tools.path, json_answer("rain"), held(gate, b'"sunny"'))
    tools.served.chat(chat.calls(("a", "weather", {"city": "Bari"})), chat.text("It rains."))
    with working(tools.served):
        tools.client.ask("Weather in Bari?")  # by its end the worker may not be there yet
        wait_until(lambda: records.executions(key).get().status == "complete", "the worker works", seconds=60)
        tools.served.upstream.reset()
        tools.served.chat(chat.streamed_calls(("b", "weather", {"city": "Rome"})))
        with tools.client.stream("Weather?") as (_, events):
            seen = [next(events) for _ in range(4)]
            assert gate.reached.wait(30)
            tools.served.bridge.crash()
        assert list(records.turns(key))[-1].status == "running"
        gate.open()
        wait_until(lambda: list(records.executions(key))[-1].status == "complete", "the worker has stored the result")
    tools.served.bridge.start()
    use = next(event.data["content_block"] for event in seen if event.name == "content_block_start")
    tools.served.chat(chat.text("It is sunny."))
    answer = tools.client.ask("Weather?", {"role": "assistant", "content": [{**use, "input": {"city": "Rome"}}]}).json()
    assert kinds(answer["content"]) == ["mcp_tool_result", "text"]


def test_run_survives_the_death_of_its_worker(tools: Long) -> None:
    gate = Gate()
    tools.server.queue(tools.path, held(gate, b"1"), json_answer("sunny"))
    tools.served.chat(chat.calls(("a", "weather", {"city": "Rome"})))
    runs = tools.served.records.executions(tools.client.api_key)
    with working(tools.served) as worker:
        tools.client.ask("Weather?")
        assert gate.reached.wait(30)
        worker.kill()
    assert runs.get().status == "running"
    runs.update(seen_at=timezone.now() - timedelta(minutes=5))
    with working(tools.served):
        # Beat hands it over again.
        wait_until(lambda: runs.get().status == "complete", "another worker has run the tool", seconds=60)
    assert runs.get().attempts == 2


@pytest.mark.parametrize("job", ["outcome", "sign of life"])
async def test_a_store_that_is_away_for_a_moment_costs_no_run(monkeypatch: pytest.MonkeyPatch, job: str) -> None:
    written: list[object] = []

    class Away:
        tries = 0

        async def write(self, write: object) -> None:
            self.tries += 1
            if self.tries <= 2:
                raise StoreUnavailable
            written.append(write)

    store: Any = Away()
    monkeypatch.setattr(worker, "PAUSES", (0.01,) * 5)
    monkeypatch.setattr(worker, "SEEN_SECONDS", 0.01)
    if job == "outcome":
        await worker._keep(store, FinishExecution(conversation=1, tool_use_id="toolu_1", status="complete"))
    else:
        telling = asyncio.create_task(worker._tell(store, ToolExecution(conversation_id=1, tool_use_id="toolu_1")))
        async with asyncio.timeout(30):
            while not written:  # noqa: ASYNC110 - nobody tells of it
                await asyncio.sleep(0.01)
        telling.cancel()
    assert written
