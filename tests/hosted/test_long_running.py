"""Tools that run on a worker: they outlive the request, the web process and the worker itself."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.api.conftest import Serve, Served
from tests.hosted.conftest import Tools
from tests.hosted.test_loop import held, kinds
from tests.servers import chat
from tests.servers.bridge import PROJECT, clean_environment
from tests.servers.client import Client, folded
from tests.servers.ports import wait_until
from tests.servers.script import Gate, json_answer
from tests.servers.upstream import ScriptedUpstream


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve(BRIDGE_TOOL_HOSTS="127.0.0.1", BRIDGE_TOOL_TURN_SECONDS="3", BRIDGE_PING_SECONDS="1")


@pytest.fixture
def tools(served: Served, tool_server: ScriptedUpstream) -> Iterator[Tools]:
    tool_server.reset()
    client = Client(served.bridge.url, served.records.issue(hosted_tools=True))
    given = Tools(served, tool_server, client)
    given.register(long_running=True)
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
            self.process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)

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


def test_worker_runs_the_tool_while_the_turn_waits(tools: Tools) -> None:
    tools.server.queue("/weather", json_answer("sunny"))
    tools.served.chat(chat.streamed_calls(("a", "weather", {"city": "Rome"})), chat.streamed_text("ok"))
    with working(tools.served):
        blocks = folded([event for event in tools.client.events("Weather?") if event.name != "ping"])
    # A worker that starts takes longer than this turn may: then it is the next turn that picks the result up.
    assert kinds(blocks)[0] == "mcp_tool_use"


def test_turn_pauses_and_the_next_one_picks_the_result_up(tools: Tools) -> None:
    tools.server.queue("/weather", json_answer("sunny"))
    tools.served.chat(chat.calls(("a", "weather", {"city": "Rome"})))
    paused = tools.client.ask("Weather?").json()
    assert (paused["stop_reason"], kinds(paused["content"])) == ("pause_turn", ["mcp_tool_use"])
    history = ["Weather?", {"role": "assistant", "content": paused["content"]}]
    with working(tools.served):
        runs = tools.served.records.executions(tools.client.api_key)
        wait_until(lambda: runs.get().status == "complete", "the worker has run the tool")
    tools.served.chat(chat.text("It is sunny."))
    answer = tools.client.ask(*history).json()
    assert kinds(answer["content"]) == ["mcp_tool_result", "text"]
    assert answer["content"][0]["tool_use_id"] == paused["content"][0]["id"]
    assert tools.served.sent()["messages"][-1]["content"] == '"sunny"'
    tools.served.chat(chat.text("Bye."))
    tools.client.ask(*history, {"role": "assistant", "content": answer["content"]}, "Thanks")
    assert [message["role"] for message in tools.served.sent()["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]


def test_question_in_between_is_answered_with_what_is_known(tools: Tools) -> None:
    tools.server.queue("/weather", json_answer("sunny"))
    tools.served.chat(chat.calls(("a", "weather", {"city": "Rome"})))
    paused = tools.client.ask("Weather?").json()
    tools.served.chat(chat.text("I do not know yet."))
    tools.client.ask("Weather?", {"role": "assistant", "content": paused["content"]}, "And?")
    told = tools.served.sent()["messages"]
    assert told[-2]["role"] == "tool"
    assert "no result" in told[-2]["content"]


def test_result_survives_the_death_of_the_web_process(tools: Tools) -> None:
    gate = Gate()
    tools.server.queue("/weather", held(gate, b'"sunny"'))
    tools.served.chat(chat.streamed_calls(("a", "weather", {"city": "Rome"})))
    runs = tools.served.records.executions(tools.client.api_key)
    with working(tools.served):
        with tools.client.stream("Weather?") as (_, events):
            seen = [next(events) for _ in range(4)]
            assert gate.reached.wait(30)
            tools.served.bridge.crash()
        gate.open()
        wait_until(lambda: runs.get().status == "complete", "the worker has stored the result")
    tools.served.bridge.start()
    use = next(event.data["content_block"] for event in seen if event.name == "content_block_start")
    tools.served.chat(chat.text("It is sunny."))
    answer = tools.client.ask("Weather?", {"role": "assistant", "content": [{**use, "input": {"city": "Rome"}}]}).json()
    assert kinds(answer["content"]) == ["mcp_tool_result", "text"]


def test_run_survives_the_death_of_its_worker(tools: Tools) -> None:
    gate = Gate()
    tools.server.queue("/weather", held(gate, b"1"), json_answer("sunny"))
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
