"""Claude Code itself, headless: a two-step tool chain, a resumed session, a sub-agent."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.api.conftest import Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import Client


def run(claude: str, served: Served, client: Client, folder: Path, *arguments: str) -> dict[str, Any]:
    environment = {
        "PATH": served.bridge.environment["PATH"],
        "HOME": str(folder.parent / "claude-home"),
        "ANTHROPIC_BASE_URL": served.bridge.url,
        "ANTHROPIC_API_KEY": client.api_key,
        "ANTHROPIC_MODEL": "claude-sonnet-4-5",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    }
    done = subprocess.run(
        [claude, "-p", *arguments, "--output-format", "json", "--allowedTools", "Bash Write Read Agent Task"],
        cwd=folder, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{served.bridge.log.read_text()}"
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("the secret word is xyzzy\n")
    return work


def tool_results(served: Served) -> list[str]:
    return [str(message["content"]) for message in served.sent()["messages"] if message["role"] == "tool"]


def test_a_two_step_chain_and_a_resumed_session(claude_code: str, serve: Serve, connect: Connect, folder: Path) -> None:
    served = serve()
    client = connect(served)
    served.chat(
        chat.streamed_calls(("call_0", "Read", {"file_path": str(folder / "notes.txt")})),
        chat.streamed_calls(("call_0", "Bash", {"command": "echo second step", "description": "say it"})),
        chat.streamed_text("The word is xyzzy."),
    )
    answer = run(claude_code, served, client, folder, "What is the secret word?")
    assert answer["result"] == "The word is xyzzy."
    results = tool_results(served)
    assert ["xyzzy" in results[0], "second step" in results[1]] == [True, True]
    conversations = client.conversations()
    assert [found["id"] for found in conversations] == [answer["session_id"]]
    mappings = client.mappings(answer["session_id"])
    assert [(m["tool_name"], m["status"], m["upstream_call_id"]) for m in mappings] == [
        ("Read", "answered", "call_0"), ("Bash", "answered", "call_0"),
    ]  # fmt: skip

    served.bridge.stop()
    served.bridge.start()
    served.chat(chat.streamed_text("Still xyzzy."))
    again = run(claude_code, served, client, folder, "--resume", answer["session_id"], "And now?")
    assert again["result"] == "Still xyzzy."
    assert len(tool_results(served)) == 2


def test_a_sub_agent_is_a_conversation_of_its_own(
    claude_code: str, serve: Serve, connect: Connect, folder: Path
) -> None:
    served = serve()
    client = connect(served)
    task = {"description": "look", "prompt": "Read it.", "subagent_type": "general-purpose", "run_in_background": False}
    served.chat(
        chat.streamed_calls(("call_0", "Agent", task)),
        chat.streamed_calls(("call_0", "Read", {"file_path": str(folder / "notes.txt")})),
        chat.streamed_text("The agent says xyzzy."),
        chat.streamed_text("Done: xyzzy."),
    )
    answer = run(claude_code, served, client, folder, "Let an agent look.")
    assert "xyzzy" in answer["result"]
    names = {found["id"] for found in client.conversations()}
    session = answer["session_id"]
    assert session in names
    assert len(names) == 2
    (agent,) = names - {session}
    assert agent.startswith(f"{session}/")
