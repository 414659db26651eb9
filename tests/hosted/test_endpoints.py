"""HTTP endpoints as tools: how they are called, and everything that they can do wrong."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from conversations.keys import digest
from tests.hosted.conftest import Tools
from tests.servers import chat
from tests.servers.script import Abort, Answer, Gate, Raw, Silence, json_answer

JSON = {"content-type": "application/json"}


def outcome(tools: Tools, answer: Answer | Raw, arguments: dict[str, Any] | None = None) -> dict[str, Any]:
    """The result that the client and the model get when the tool answers like this."""
    tools.server.queue("/weather", answer)
    given = {"city": "Rome"} if arguments is None else arguments
    tools.served.chat(chat.calls(("a", "weather", given)), chat.text("I see."))
    message = tools.client.ask("Weather?").json()
    use, found, said = message["content"]
    assert (found["type"], found["tool_use_id"], said["text"]) == ("mcp_tool_result", use["id"], "I see.")
    told = tools.served.sent()["messages"][-1]
    assert told["tool_call_id"] == "a"
    assert found["content"][0]["text"] in told["content"] or found["is_error"]
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (json_answer({"message": "no such city"}, 404), 'HTTP 404: {"message": "no such city"}'),
        (json_answer({"message": "broken"}, 500), "HTTP 500"),
        (Answer((b"{not json",), headers=JSON), "not"),
        (Answer((b"x" * 3_000_000,), headers={"content-type": "text/plain"}), "larger than 1048576 bytes"),
        (Answer((b"\x89PNG",), headers={"content-type": "image/png"}), "image/png, which is not text"),
        (Answer((b"\x1f\x8b",), headers={**JSON, "content-encoding": "gzip"}), "encoding that was not asked for"),
        (Answer((), 302, {"location": "http://169.254.169.254/latest/"}), "redirects are not followed"),
        (Answer((), 307, {"location": "/other"}), "redirects are not followed"),
        (Answer((Silence(),)), "did not answer within 2 s"),
        (Answer((b"{", Silence()), headers=JSON), "did not answer within 2 s"),
        (Answer((b"{", Abort()), headers=JSON), "did not answer as HTTP asks"),
        (Raw((b"this is not HTTP\r\n\r\n",)), "did not answer as HTTP asks"),
        (Raw((b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort",)), "did not answer as HTTP asks"),
        (Raw((b"",)), "did not answer as HTTP asks"),
    ],
)
def test_failure_is_a_result_that_says_what_happened(tools: Tools, answer: Answer | Raw, words: str) -> None:
    tools.register()
    found = outcome(tools, answer)
    assert found["is_error"] is True
    assert words in found["content"][0]["text"]
    (run,) = tools.served.records.executions(tools.client.api_key)
    assert (run.status, run.is_error) == ("failed", True)


@pytest.mark.parametrize("announced", [True, False])
def test_a_tool_that_is_too_large_to_read_is_refused_as_a_message_is(tools: Tools, announced: bool) -> None:
    large = b"[" + b" " * 10_000_000 + b"]"
    answer = tools.client.http.post("/v1/hosted-tools", content=large if announced else iter([large]))
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")


def test_tool_that_nobody_serves_is_an_error_result(tools: Tools) -> None:
    tools.register(url="http://127.0.0.1:9/nobody")
    found = outcome(tools, json_answer(1))
    assert "no connection to 127.0.0.1" in found["content"][0]["text"]
    (run,) = tools.served.records.executions(tools.client.api_key)
    assert (run.error, run.attempts) == ("unreachable", 2)


def test_empty_answer_is_told_as_such(tools: Tools) -> None:
    tools.register()
    assert outcome(tools, Answer((), 204))["content"][0]["text"] == "(no output)"


def test_arguments_go_where_the_tool_wants_them(tools: Tools) -> None:
    tools.register(url=tools.server.url + "/cities/{city}/days", method="GET")
    tools.server.queue("/cities/S%C3%A3o%20Paulo%2F..%2Fx/days", json_answer("hot"))
    arguments = {"city": "São Paulo/../x", "days": 3, "exact": True}
    tools.served.chat(chat.calls(("a", "weather", arguments)), chat.text("ok"))
    answer = tools.client.ask("Weather?").json()
    assert answer["content"][1]["content"][0]["text"] == '"hot"'
    request = tools.server.requests[0]
    assert (request.method, request.query, request.body) == ("GET", "days=3&exact=true", b"")


def test_argument_that_the_address_needs_may_be_missing(tools: Tools) -> None:
    tools.register(url=tools.server.url + "/cities/{city}")
    assert "the argument city is missing" in outcome(tools, json_answer(1), {})["content"][0]["text"]
    assert tools.server.requests == []


def test_arguments_that_no_address_can_hold_are_an_error_result(tools: Tools) -> None:
    tools.register(method="GET")
    found = outcome(tools, json_answer(1), {"city": "x" * 70_000})
    assert (found["is_error"], "too long" in found["content"][0]["text"]) == (True, True)
    (run,) = tools.served.records.executions(tools.client.api_key)
    assert run.error == "arguments"


def test_header_that_http_does_not_know_is_an_error_result(tools: Tools) -> None:
    """A secret that an operator entered, or one of a row that is older than the checks."""
    tools.register()
    rows = tools.served.records.rows("HostedTool").filter(owner__digest=digest(tools.client.api_key))
    rows.update(headers="X-Team: naïve")
    tools.register("other", "/other")  # every process reads what is registered anew
    found = outcome(tools, json_answer(1))
    assert (found["is_error"], "a header of the tool" in found["content"][0]["text"]) == (True, True)


def test_secrets_reach_the_tool_and_are_shown_nowhere(tools: Tools) -> None:
    shown = tools.register(headers={"Authorization": "Bearer s3cret-s3cret", "X-Team": "blue"})
    assert shown["headers"] == ["Authorization", "X-Team"]
    outcome(tools, json_answer("ok"))
    request = tools.server.requests[0]
    assert (request.headers["authorization"], request.headers["x-team"]) == ("Bearer s3cret-s3cret", "blue")
    listed = tools.client.get("/v1/hosted-tools")
    assert "s3cret" not in json.dumps(listed)
    values = [bytes(row.value) for row in tools.served.records.rows("ToolSecret")]
    assert values
    assert not any(b"s3cret" in value for value in values)
    assert b"s3cret-s3cret" not in tools.served.records.everything(tools.client.api_key)


def test_secret_stays_with_its_host(tools: Tools) -> None:
    """An operator who points a tool elsewhere does not send its secrets there."""
    tools.register(headers={"Authorization": "Bearer s3cret"})
    records = tools.served.records
    records.rows("HostedTool").filter(owner__digest=digest(tools.client.api_key)).update(
        url=tools.server.url.replace("127.0.0.1", "127.0.0.2") + "/weather"
    )
    tools.register("other", "/other")  # every process reads what is registered anew
    tools.served.chat(chat.text("hi"))
    tools.client.ask("Weather?")
    assert [tool["function"]["name"] for tool in tools.served.sent()["tools"]] == ["other"]
    assert tools.server.requests == []


def test_tools_whose_names_differ_in_case_keep_their_own_secrets(tools: Tools) -> None:
    tools.register(headers={"Authorization": "Bearer s3cret"})
    tools.register("WEATHER", "/other", headers={"Authorization": "Bearer another"})
    assert tools.client.http.delete("/v1/hosted-tools/WEATHER").status_code == 200
    outcome(tools, json_answer("ok"))
    assert tools.server.requests[0].headers["authorization"] == "Bearer s3cret"


def test_tools_are_listed_replaced_and_removed(tools: Tools) -> None:
    tools.register("a", description="one")
    tools.register("b")
    tools.register("a", description="two", method="PUT", timeout=5)
    listed = tools.client.get("/v1/hosted-tools")
    assert [(tool["id"], tool["description"]) for tool in listed["data"]] == [("a", "two"), ("b", "")]
    page = tools.client.get("/v1/hosted-tools?limit=1&after_id=a")
    assert ([tool["id"] for tool in page["data"]], page["has_more"]) == (["b"], False)
    assert tools.client.http.delete("/v1/hosted-tools/a").json() == {"id": "a", "type": "hosted_tool_deleted"}
    assert tools.client.http.delete("/v1/hosted-tools/a").status_code == 404
    assert [tool["id"] for tool in tools.client.get("/v1/hosted-tools")["data"]] == ["b"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": "two words"}, "name:"),
        ({"url": "ftp://127.0.0.1/x"}, "url: the scheme"),
        ({"url": "http://user:pw@127.0.0.1/x"}, "url: the tool's address holds a user name"),
        ({"timeout": 0}, "timeout:"),
        ({"headers": {"X-A": "a\nb"}}, "headers:"),
        ({"headers": {"X A": "a"}}, "headers:"),
        ({"headers": {"X-A": "naïve"}}, "headers:"),
        ({"authorization_token": "tökén"}, "authorization_token:"),
        ({"authorization_token": "a\r\nX-Evil: 1"}, "authorization_token:"),
        ({"headers": {"X" * 200: "a"}}, "headers:"),
        ({"description": "a\0b"}, "description:"),
        ({"surprise": 1}, "surprise"),
        ({"url": None}, "url"),
        ({"url": "http://127.0.0.1/" + "x" * 2000}, "url:"),
    ],
)
def test_wrong_registration_is_refused(tools: Tools, wrong: dict[str, Any], words: str) -> None:
    asked = {"name": "weather", "url": tools.server.url, **wrong}
    answer = tools.client.http.post("/v1/hosted-tools", json=asked)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "The request body is not valid JSON: unexpected end at line 1 column 1 (byte 0)"),
        (b"[]", "The request body is not a JSON object"),
        (b'{"name": "\xff"}', "The request body is not valid JSON: invalid UTF-8 at line 1 column 11 (byte 10)"),
        (b'{"name": "\\ud800"}', "The request body is not valid JSON: lone surrogate in a string at line 1 column 11"),
        (b"{" + b'"input_schema":{' * 3_000, "The request body is not valid JSON: it is nested too deeply"),
        (b'{"name": "t"}', "url: Field required"),
        (b'{"name": "t", "url": null}', "url: Field required"),
        (b'{"name": "t", "url": "u", "timeout": "5"}', "timeout: Input should be a valid number"),
        (b'{"name": "t", "url": "u", "timeout": 1e999}', "timeout: Number out of range"),
        (b'{"name": "t", "url": "u", "headers": {"X": 1}}', "headers: Input should be a valid string"),
        (b'{"name": "t", "url": "u", "surprise": 1}', "surprise: Extra inputs are not permitted"),
        (b'\xef\xbb\xbf{"url": "u"}', "name: Field required"),
    ],
)
def test_registration_that_cannot_be_read_says_why_as_a_message_does(tools: Tools, body: bytes, words: str) -> None:
    answer = tools.client.http.post("/v1/hosted-tools", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(words)


def test_circuit_opens_after_failures_in_a_row_and_says_so(tools: Tools) -> None:
    tools.register(timeout=0.1)
    tools.server.always("/weather", Answer((Silence(),)))
    for _ in range(5):
        tools.served.chat(chat.calls(("a", "weather", {"city": "Rome"})), chat.text("I see."))
        tools.client.ask("Weather?")
    tools.served.chat(chat.calls(("a", "weather", {"city": "Rome"})), chat.text("I see."))
    answer = tools.client.ask("Weather?").json()
    assert "it failed 5 times in a row" in answer["content"][1]["content"][0]["text"]
    assert len(tools.server.requests) == 5
    row = tools.served.records.rows("HostedTool").get(owner__digest=digest(tools.client.api_key))
    assert (row.failures, row.open_until is not None) == (5, True)
    assert "did not answer" in row.last_error
    assert tools.served.records.rows("Change").filter(kind="breaker").exists()


def test_circuit_that_another_process_has_opened_is_open(tools: Tools) -> None:
    tools.register()
    rows = tools.served.records.rows("HostedTool").filter(owner__digest=digest(tools.client.api_key))
    rows.update(failures=7, open_until=timezone.now() + timedelta(seconds=30))
    tools.register("other", "/other")  # every process reads what is registered anew
    assert "it failed 7 times in a row" in outcome(tools, json_answer(1))["content"][0]["text"]
    assert tools.server.requests == []
    rows.update(open_until=timezone.now())
    tools.register("other", "/other")
    assert outcome(tools, json_answer("better"))["is_error"] is False
    row = rows.get(name="weather")
    assert (row.failures, row.open_until, row.last_error) == (0, None, "")


def test_server_gets_eight_calls_at_once_and_the_rest_wait(tools: Tools) -> None:
    tools.register(timeout=10)
    gate = Gate()
    tools.server.always("/weather", Answer((gate, b'"late"'), headers=JSON))
    cities = [(f"c{number}", "weather", {"city": f"Rome {number}"}) for number in range(10)]
    tools.served.chat(chat.streamed_calls(*cities), chat.streamed_text("ok"))
    at_once = 0
    with tools.client.stream("Weather?") as (_, events):
        for event in events:
            if event.name == "ping" and not at_once:  # a second has passed
                at_once = len(tools.server.requests)
                gate.open()
    assert at_once == 8
    assert len(tools.server.requests) == 10


def test_secret_that_a_tool_repeats_is_hidden(tools: Tools) -> None:
    tools.register(headers={"Authorization": "Bearer s3cret-s3cret"})
    for status in (200, 500):
        found = outcome(tools, json_answer({"sent": "Bearer s3cret-s3cret", "bare": "s3cret-s3cret"}, status))
        assert '{"sent": "[hidden]", "bare": "[hidden]"}' in found["content"][0]["text"]
    assert b"s3cret-s3cret" not in tools.served.records.everything(tools.client.api_key)
    assert "s3cret-s3cret" not in tools.served.bridge.log.read_text()


def test_rounds_end_with_pause_turn_and_go_on_when_asked(tools: Tools) -> None:
    tools.register()
    tools.server.always("/weather", json_answer("again"))
    for number in range(20):
        tools.served.chat(chat.calls((f"c{number}", "weather", {"city": f"Rome {number}"})))
    answer = tools.client.ask("Weather?").json()
    assert (answer["stop_reason"], len(answer["content"])) == ("pause_turn", 40)
    tools.served.chat(chat.text("At last."))
    again = tools.client.ask("Weather?", {"role": "assistant", "content": answer["content"]}).json()
    assert (again["stop_reason"], again["content"][0]["text"]) == ("end_turn", "At last.")
    sent = tools.served.sent()["messages"]
    assert [message["role"] for message in sent[1:5]] == ["assistant", "tool", "assistant", "tool"]
    assert sent[-1]["tool_call_id"] == "c19"
