"""The official TypeScript SDK's tool runner, threaded, also over a restart of the server between turns."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.api.conftest import Connect, Serve
from tests.servers import chat
from tests.servers.bridge import PROJECT

HOME = PROJECT / ".claude-code"
SCRIPT = Path(__file__).with_name("tool_runner.cjs")


@pytest.fixture(scope="session")
def node() -> str:
    command = shutil.which("node")
    if command is None or not (HOME / "node_modules" / "@anthropic-ai" / "sdk").exists():
        pytest.skip("no TypeScript SDK: `make claude` could not install it")
    return command


@pytest.mark.parametrize("stream", ["0", "1"])
def test_the_threaded_tool_runner_over_a_restart(node: str, serve: Serve, connect: Connect, stream: str) -> None:
    served = serve()
    client = connect(served)
    calls = [("call_1", "get_weather", {"city": city}) for city in ("Oslo", "Rome")]
    served.chat(*(chat.streamed_calls(call) for call in calls), chat.streamed_text("Done."))
    environment = {"SDK_HOME": str(HOME), "KEY": client.api_key, "URL": served.bridge.url, "STREAM": stream}
    with subprocess.Popen(
        [node, str(SCRIPT)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for turn in range(3):
            assert running.stdout.readline() == "turn\n"
            if turn == 0:
                served.bridge.stop()
                served.bridge.start()
            running.stdin.write("go\n")
            running.stdin.flush()
        assert json.loads(running.stdout.readline())[0]["text"] == "Done."
    sent = served.sent()["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "tool", "assistant", "tool"]
    assert [m["content"] for m in sent if m["role"] == "tool"] == ["sunny in Oslo", "sunny in Rome"]
    assert len(served.upstream.requests) == 3
