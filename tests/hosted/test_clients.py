"""Real clients with tools of both kinds in one turn: Claude Code, and both SDKs' MCP helpers."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic
from anthropic.lib.tools.mcp import async_mcp_tool
from mcp import Client as McpClient

from tests.e2e.test_claude_code import folder, run
from tests.e2e.test_typescript_sdk import HOME, node
from tests.hosted.conftest import Tools
from tests.servers import chat
from tests.servers.script import json_answer

__all__ = ["folder", "node"]

SCRIPT = Path(__file__).with_name("mcp_helpers.cjs")
SUM: chat.Call = ("a", "add", {"a": 1, "b": 2})
FAIL: chat.Call = ("b", "fail", {})
WEATHER = ("c", "weather", {"city": "Rome"})


def told(tools: Tools) -> list[tuple[str, str]]:
    """The results that the model has been told."""
    messages = tools.served.sent()["messages"]
    return [(message["tool_call_id"], message["content"]) for message in messages if message["role"] == "tool"]


def mixed(tools: Tools, calls: Any = chat.calls, text: Any = chat.text) -> None:
    """A model that calls two tools of the client's and a hosted one at once, and then one more."""
    tools.register()
    tools.server.always("/weather", json_answer("sunny"))
    tools.served.chat(calls(SUM, FAIL, WEATHER), calls(("d", "add", {"a": 3, "b": 4})), text("All done."))


def check(tools: Tools) -> None:
    results = told(tools)
    assert sorted(id_ for id_, _ in results) == ["a", "b", "c", "d"]
    assert {id_: words for id_, words in results if id_ in "acd"} == {"a": "3", "c": '"sunny"', "d": "7"}
    assert "the disk is on fire" in dict(results)["b"]
    (execution,) = tools.served.records.executions(tools.client.api_key)
    assert (execution.tool_name, execution.status) == ("weather", "complete")


def test_python_helpers_run_an_mcp_servers_tools_beside_hosted_ones(tools: Tools, odd_url: str) -> None:
    mixed(tools)

    async def converse() -> Any:
        sdk = AsyncAnthropic(base_url=tools.served.bridge.url, api_key=tools.client.api_key, max_retries=0)
        async with McpClient(odd_url) as client, sdk:
            listed = (await client.list_tools()).tools
            runner = sdk.beta.messages.tool_runner(
                model="claude-sonnet-5",
                max_tokens=100,
                messages=[{"role": "user", "content": "Add, fail, and the weather?"}],
                tools=[async_mcp_tool(tool, client.session) for tool in listed if tool.name in ("add", "fail")],
            )
            return await runner.until_done()

    message = asyncio.run(converse())
    assert message.content[0].text == "All done."
    check(tools)


def test_typescript_helpers_run_an_mcp_servers_tools_beside_hosted_ones(tools: Tools, odd_url: str, node: str) -> None:
    mixed(tools)
    environment = {"SDK_HOME": str(HOME), "KEY": tools.client.api_key, "URL": tools.served.bridge.url, "MCP": odd_url}
    done = subprocess.run([node, str(SCRIPT)], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["text"] == "All done."
    check(tools)


def test_claude_code_works_with_its_own_tools_and_hosted_ones(tools: Tools, claude_code: str, folder: Path) -> None:
    tools.register()
    tools.server.always("/weather", json_answer("sunny"))
    read = ("b", "Read", {"file_path": str(folder / "notes.txt")})
    tools.served.chat(
        chat.streamed_calls(WEATHER, read),
        chat.streamed_calls(("d", "weather", {"city": "Bari"})),
        chat.streamed_text("Sunny, and the word is xyzzy."),
        chat.streamed_text("Still sunny."),
    )
    answer = run(claude_code, tools.served, tools.client, folder, "Weather and word?")
    assert answer["result"] == "Sunny, and the word is xyzzy."
    results = told(tools)
    assert [id_ for id_, _ in results] == ["c", "b", "d"]
    assert ("xyzzy" in results[1][1], results[0][1], results[2][1]) == (True, '"sunny"', '"sunny"')
    runs = tools.served.records.executions(tools.client.api_key)
    assert [(one.status, one.conversation.external_id) for one in runs] == [("complete", answer["session_id"])] * 2
    again = run(claude_code, tools.served, tools.client, folder, "--resume", answer["session_id"], "And now?")
    assert again["result"] == "Still sunny."
    assert told(tools) == results
