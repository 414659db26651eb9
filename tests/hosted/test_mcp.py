"""The MCP connector: `mcp_servers` in a request, with any model behind the bridge."""

import json
import re
from typing import Any

import pytest
from anthropic import Anthropic

from tests.hosted import mcp_peer
from tests.hosted.conftest import Tools
from tests.hosted.test_loop import kinds
from tests.servers import chat
from tests.servers.client import Client, folded
from tests.servers.ports import wait_until
from tests.servers.script import Abort, Answer, Raw, json_answer

NOON = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
NEW = "mcp-client-2025-11-20"
BETA = {"anthropic-beta": NEW}


def server(url: str, name: str = "odd", **more: Any) -> dict[str, Any]:
    return {"type": "url", "name": name, "url": url, **more}


def toolset(name: str = "odd", **more: Any) -> dict[str, Any]:
    return {"type": "mcp_toolset", "mcp_server_name": name, **more}


def offered(tools: Tools, number: int = 0) -> list[str]:
    return [tool["function"]["name"] for tool in tools.served.sent(number).get("tools", [])]


def test_tools_of_a_server_are_offered_called_and_told(tools: Tools, time_url: str) -> None:
    call = ("call_1", "time__convert_time", NOON)
    tools.served.chat(chat.streamed_calls(call), chat.streamed_text("It is evening there."))
    ask: dict[str, Any] = {"mcp_servers": [server(time_url, "time")], "tools": [toolset("time")], "headers": BETA}
    blocks = folded(tools.client.events("Noon in Tokyo?", **ask))
    assert kinds(blocks) == ["mcp_tool_use", "mcp_tool_result", "text"]
    assert (blocks[0]["name"], blocks[0]["server_name"]) == ("convert_time", "time")
    assert "21:00" in blocks[1]["content"][0]["text"]
    assert sorted(offered(tools)) == ["time__convert_time", "time__get_current_time"]
    assert "21:00" in tools.served.sent()["messages"][-1]["content"]


def test_official_sdk_reads_the_blocks(tools: Tools, odd_url: str) -> None:
    tools.served.chat(chat.streamed_calls(("call_1", "odd__add", {"a": 1, "b": 2})), chat.streamed_text("Three."))
    sdk = Anthropic(base_url=tools.served.bridge.url, api_key=tools.client.api_key, max_retries=0)
    with sdk.beta.messages.stream(
        model="claude-sonnet-next",
        max_tokens=100,
        messages=[{"role": "user", "content": "1 + 2?"}],
        mcp_servers=[{"type": "url", "name": "odd", "url": odd_url}],
        tools=[{"type": "mcp_toolset", "mcp_server_name": "odd"}],
        betas=["mcp-client-2025-11-20"],
    ) as stream:
        message = stream.get_final_message()
    use, found, said = message.content
    assert use.type == "mcp_tool_use"
    assert (use.input, use.server_name) == ({"a": 1, "b": 2}, "odd")
    assert found.type == "mcp_tool_result"
    assert isinstance(found.content, list)
    assert (found.content[0].text, found.tool_use_id) == ("3", use.id)
    assert said.type == "text"


def test_toolset_narrows_what_is_offered(tools: Tools, odd_url: str) -> None:
    tools.served.chat(chat.text("hi"))
    one = toolset(default_config={"enabled": False}, configs={"add": {"enabled": True}})
    answer = tools.client.ask("Hello", mcp_servers=[server(odd_url)], tools=[one], headers=BETA)
    assert answer.status_code == 200, answer.text
    assert offered(tools) == ["odd__add"]


@pytest.mark.parametrize(
    ("call", "arguments", "words"),
    [
        ("fail", {}, "the disk is on fire"),
        ("slow", {"seconds": 30}, "did not answer within 2 s"),
        ("flood", {"size": 3_000_000}, "too large"),
        ("add", {"a": "one"}, ""),
        ("add", {}, ""),
    ],
)
def test_failure_is_a_result_and_the_model_goes_on(
    tools: Tools, odd_url: str, call: str, arguments: dict[str, Any], words: str
) -> None:
    tools.served.chat(chat.calls(("call_1", f"odd__{call}", arguments)), chat.text("I see."))
    answer = tools.client.ask("Go", mcp_servers=[server(odd_url)]).json()
    use, found, said = answer["content"]
    assert (found["tool_use_id"], found["is_error"]) == (use["id"], True)
    assert words in found["content"][0]["text"]
    assert said["text"] == "I see."


def outcome(tools: Tools, url: str, call: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """The result of one call; the model goes on after it."""
    tools.served.chat(chat.calls(("call_1", call, arguments or {})), chat.text("I see."))
    answer = tools.client.ask("Go", mcp_servers=[server(url, **more)])
    assert answer.status_code == 200, answer.text
    use, found, said = answer.json()["content"]
    assert (found["type"], found["tool_use_id"], said["text"]) == ("mcp_tool_result", use["id"], "I see.")
    return found  # type: ignore[no-any-return]


def test_what_a_result_cannot_hold_is_named(tools: Tools, odd_url: str) -> None:
    found = outcome(tools, odd_url, "odd__mixture")
    assert (found["is_error"], found["content"][0]["text"].splitlines()) == (
        False,
        [
            "words",
            "[image/png image left out]",
            "[audio/wav audio left out]",
            "a page",
            "[application/octet-stream resource left out: file:///b.bin]",
            "[more](https://example.com/more)",
        ],
    )
    assert json.loads(outcome(tools, odd_url, "odd__shape")["content"][0]["text"]) == {"sides": 4}


def test_names_that_no_model_takes_are_made_legal(tools: Tools, odd_url: str) -> None:
    tools.served.chat(chat.text("hi"))
    name = "my odd/server"
    tools.client.ask("Hi", mcp_servers=[server(odd_url, name)])
    (alias,) = [one for one in offered(tools) if "spaces" in one]
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", alias)
    tools.served.chat(chat.calls(("call_1", alias, {})), chat.text("I see."))
    use, found, _ = tools.client.ask("Go", mcp_servers=[server(odd_url, name)]).json()["content"]
    assert (use["name"], use["server_name"]) == ("odd.name/with spaces", name)
    assert found["content"][0]["text"] == "called"


def test_clients_tool_of_the_same_name_is_the_clients(tools: Tools, odd_url: str) -> None:
    own = {"name": "odd__add", "input_schema": {"type": "object"}}
    tools.served.chat(chat.calls(("call_1", "odd__add", {"a": 1, "b": 2})))
    answer = tools.client.ask("Go", mcp_servers=[server(odd_url)], tools=[own]).json()
    assert (answer["stop_reason"], kinds(answer["content"])) == ("tool_use", ["tool_use"])
    assert offered(tools).count("odd__add") == 1
    assert b"hosted-tool-hidden" in bytes(tools.served.records.turns(tools.client.api_key).get().notes)


def test_secret_that_a_server_repeats_is_hidden(tools: Tools, odd_url: str) -> None:
    found = outcome(tools, odd_url, "odd__repeat", authorization_token="t0ken-s3cret")
    assert found["content"][0]["text"] == "[hidden]"
    assert b"t0ken-s3cret" not in tools.served.records.everything(tools.client.api_key)
    assert "t0ken-s3cret" not in tools.served.bridge.log.read_text()


def test_server_that_changes_its_list_and_dies_is_a_result_each_time(tools: Tools) -> None:
    with mcp_peer.running("odd") as url:
        assert outcome(tools, url, "odd__vanish")["content"][0]["text"] == "gone"
        gone = outcome(tools, url, "odd__vanish")  # it is still in the list that is kept
        assert gone["is_error"]
        assert "vanish" in gone["content"][0]["text"]
        assert outcome(tools, url, "odd__later")["content"][0]["text"] == "here"
        dead = outcome(tools, url, "odd__die")
        assert (dead["is_error"], "127.0.0.1 did not answer" in dead["content"][0]["text"]) == (True, True)
    (run, *_) = tools.served.records.executions(tools.client.api_key).order_by("-id")
    assert (run.status, run.error) == ("failed", "protocol")
    refused = tools.client.ask("Go", mcp_servers=[server(url)])
    assert (refused.status_code, "odd: no connection" in refused.text) == (400, True)


def test_server_is_told_that_the_client_has_left(tools: Tools, odd_url: str) -> None:
    tools.served.chat(chat.streamed_calls(("call_1", "odd__slow", {"seconds": 55})))
    with tools.client.stream("Go", mcp_servers=[server(odd_url)]) as (_, events):
        for event in events:
            if event.name == "ping":  # it has been running for a while
                break
    (turn,) = tools.served.records.ended(tools.client.api_key, 1)
    assert turn.status == "aborted"
    runs = tools.served.records.executions(tools.client.api_key)
    wait_until(lambda: runs.get().status == "cancelled", "the run is known to be over")
    assert "55" in outcome(tools, odd_url, "odd__cancellations")["content"][0]["text"]


def test_progress_is_kept_with_the_run(tools: Tools, odd_url: str) -> None:
    tools.served.chat(chat.calls(("call_1", "odd__steps", {"count": 3})), chat.text("ok"))
    tools.client.ask("Go", mcp_servers=[server(odd_url)])
    (run,) = tools.served.records.executions(tools.client.api_key)
    assert (run.status, json.loads(run.progress)) == ("complete", {"progress": 3, "total": 3, "message": "working"})


def test_listing_is_asked_for_once(tools: Tools, odd_url: str) -> None:
    tools.served.chat(chat.text("hi"), chat.text("hi"))
    first = tools.client.ask("One", mcp_servers=[server(odd_url)])
    second = tools.client.ask("Two", mcp_servers=[server(odd_url)])
    assert (first.status_code, second.status_code) == (200, 200)
    assert offered(tools, 0) == offered(tools, 1)


def test_server_that_is_away_is_named(tools: Tools) -> None:
    answer = tools.client.ask("Hello", mcp_servers=[server("http://127.0.0.1:9/mcp")])
    assert answer.status_code == 400
    assert "odd: no connection to 127.0.0.1" in answer.json()["error"]["message"]


def test_token_reaches_the_server_and_nothing_else(tools: Tools) -> None:
    tools.client.ask("Hello", mcp_servers=[server(tools.server.url + "/mcp", authorization_token="t0ken-s3cret")])
    assert {request.headers.get("authorization") for request in tools.server.requests} == {"Bearer t0ken-s3cret"}
    assert b"t0ken-s3cret" not in tools.served.records.everything(tools.client.api_key)


def test_key_without_the_switch_may_not_name_servers(tools: Tools, odd_url: str) -> None:
    client = Client(tools.served.bridge.url, tools.served.records.issue())
    answer = client.ask("Hello", mcp_servers=[server(odd_url)])
    assert (answer.status_code, answer.json()["error"]["type"]) == (403, "permission_error")
    assert client.http.get("/v1/hosted-tools").status_code == 403
    client.close()


def test_registered_server_offers_its_tools_to_its_key_only(tools: Tools, odd_url: str) -> None:
    asked = {"name": "sums", "type": "mcp", "url": odd_url}
    assert tools.client.http.post("/v1/hosted-tools", json=asked).status_code == 200
    tools.served.chat(chat.calls(("a", "sums__add", {"a": 2, "b": 2})), chat.text("Four."), chat.text("hi"))
    answer = tools.client.ask("2 + 2?").json()
    assert json.loads(answer["content"][1]["content"][0]["text"]) == 4
    other = Client(tools.served.bridge.url, tools.served.records.issue(hosted_tools=True))
    other.ask("Hello")
    assert offered(tools, -1) == []
    other.close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_to_another_server_is_not_followed(tools: Tools, odd_url: str, status: int) -> None:
    tools.server.always("/mcp", Answer((), status, {"location": odd_url}))
    answer = tools.client.ask("Hello", mcp_servers=[server(tools.server.url + "/mcp")])
    assert answer.status_code == 400
    assert tools.served.upstream.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        json_answer({"jsonrpc": "2.0", "id": 99, "result": {}}),
        json_answer([1, 2, 3]),
        Answer((b"<html>",), headers={"content-type": "text/html"}),
        Answer((b"event: message\ndata: {broken\n\n",), headers={"content-type": "text/event-stream"}),
        Answer((b"",), 202),
        json_answer({}, 500),
        json_answer({}, 401),
        Answer((b"\x1f\x8b",), headers={"content-type": "application/json", "content-encoding": "gzip"}),
        Answer((b"{", Abort()), headers={"content-type": "application/json"}),
        Raw((b"nonsense\r\n\r\n",)),
    ],
)
def test_server_that_does_not_speak_mcp_is_named(tools: Tools, answer: Answer | Raw) -> None:
    tools.server.always("/mcp", answer)
    refused = tools.client.ask("Hello", mcp_servers=[server(tools.server.url + "/mcp")])
    assert refused.status_code == 400
    assert refused.json()["error"]["message"].startswith("mcp_servers: odd: ")
