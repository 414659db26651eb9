"""Bad input: a clear 4xx in the API's words, and nothing is stored."""
# ruff: noqa: E501 - a table reads best in its own lines

import http.client
import json
from typing import Any

import httpx
import pytest

from tests.api.conftest import CHAT, Served
from tests.servers import chat
from tests.servers.client import TOOL, Client, body
from tests.servers.ports import wait_until

JSON = {"content-type": "application/json"}
DEEP = b'{"model":"m","max_tokens":1,"messages":' + b"[" * 10_000 + b"]" * 10_000 + b"}"
DEEP_INPUT = (
    b'{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"b","input":'
    + b'{"a":' * 10_000 + b"1" + b"}" * 10_000 + b"}]}]}"
)  # fmt: skip


def said(*blocks: object, role: object = "user") -> dict[str, Any]:
    return body({"role": role, "content": list(blocks)})


# what: (body, how the message begins)
WRONG: dict[str, tuple[object, str]] = {
    "nothing": (b"", ""),
    "not JSON": (b"{'model': 1}", ""),
    "cut off": (b'{"model": "m"', ""),
    "not an object": (b"[1, 2]", ""),
    "two objects": (b"{}{}", ""),
    "raw NUL": (b'{"model": "m\x00"}', ""),
    "raw NUL in text": (b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"a\x00b"}]}', ""),
    "lone surrogate": (b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"\\ud800"}]}', ""),
    "encoded surrogate": (b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"\xed\xa0\x80"}]}', ""),
    "not UTF-8": (b'{"model": "\xff\xfe"}', ""),
    "UTF-16": ('{"model": "m"}'.encode("utf-16"), ""),
    "10,000 deep": (DEEP, ""),
    "10,000 deep where anything goes": (DEEP_INPUT, ""),
    "no model": ({"max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}, "model: Field required"),
    "no max_tokens": ({"model": "m", "messages": [{"role": "user", "content": "x"}]}, "max_tokens: Field required"),
    "no messages": ({"model": "m", "max_tokens": 1}, "messages: Field required"),
    "empty messages": (body(), "messages: at least one message is required"),
    "messages of a wrong type": (body() | {"messages": {}}, "messages: "),
    "unknown role": (said({"type": "text", "text": "x"}, role="robot"), "messages.0.role: "),
    "role of a wrong type": (said(role=7), "messages.0.role: "),
    "no role": (body({"content": "x"}), "messages.0.role: "),
    "no content": (body({"role": "user"}), "messages.0.content: "),
    "text of a wrong type": (said({"type": "text", "text": 1}), "messages.0.content.0.text: "),
    "text without text": (said({"type": "text"}), "messages.0.content.0.text: Field required"),
    "block without type": (said({"text": "x"}), "messages.0.content.0.type: Field required"),
    "result without an id": (said({"type": "tool_result"}), "messages.0.content.0.tool_use_id: Field required"),
    "result with a number as id": (said({"type": "tool_result", "tool_use_id": 1}), "messages.0.content.0.tool_use_id: "),
    "wrong type in a result": (
        said({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": {}}]}),
        "messages.0.content.0.content.0.text: ",
    ),
    "call without a name": (said({"type": "tool_use", "id": "t", "input": {}}, role="assistant"), "messages.0.content.0.name: "),
    "call whose input is a list": (said({"type": "tool_use", "id": "t", "name": "n", "input": []}, role="assistant"), "messages.0.content.0.input: "),
    "max_tokens as text": (body("x") | {"max_tokens": "1"}, "max_tokens: "),
    "negative max_tokens": (body("x") | {"max_tokens": -1}, "max_tokens: "),
    "tools of a wrong type": (body("x", tools="none"), "tools: "),
    "tool without a name": (body("x", tools=[{"input_schema": {}}]), "tools.0.name: "),
    "forced tool that is not there": (body("x", tools=[TOOL], tool_choice={"type": "tool", "name": "y"}), "tool_choice"),
    "temperature of 7": (body("x", temperature=7), "temperature: "),
    "system as a number": (body("x", system=1), "system"),
    "thread of an unknown type": (body("x", thread={"type": "fork"}), "thread"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_bad_input_is_a_clear_400_and_nothing_is_stored(client: Client, served: Served, what: str) -> None:
    given, begins = WRONG[what]
    content = given if isinstance(given, bytes) else json.dumps(given).encode()
    response = client.http.post("/v1/messages", content=content, headers=JSON)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(begins)
    assert len(error["message"]) < 1000
    assert client.conversations() == []
    assert served.upstream.requests == []


def test_what_is_refused_is_told_in_the_log_without_what_it_said(client: Client, served: Served) -> None:
    said = body("x") | {"tool_choice": {"type": "tool", "name": "canary-of-a-tool"}}
    refused = client.http.post("/v1/messages", json=said)
    unknown = client.http.post("/v1/messages", json=body("x", model="mistral/large"))
    log = served.bridge.log.read_text()
    assert f"request_id={refused.headers['request-id']} status=400 error=invalid_request_error what=tool_choice" in log
    assert f"request_id={unknown.headers['request-id']} status=404 error=not_found_error what=model: mistral" in log
    assert "canary-of-a-tool" not in log


@pytest.mark.parametrize("key", ["", "sk-wrong", "sk-ü", "x" * 5000])
def test_without_a_good_key_nothing_is_said(served: Served, key: str) -> None:
    headers = [(b"x-api-key", key.encode())] if key else []
    for method, path in (("POST", "/v1/messages"), ("GET", "/v1/conversations")):
        response = httpx.request(method, served.bridge.url + path, content=json.dumps(body("Hi")), headers=headers)
        assert (response.status_code, response.json()["error"]["type"]) == (401, "authentication_error")
    assert served.upstream.requests == []


def test_a_revoked_key_is_refused_within_a_second(served: Served, client: Client) -> None:
    served.upstream.always(CHAT, chat.text("ok"))
    assert client.ask("Hi").status_code == 200
    served.records.revoke(client.api_key)
    wait_until(lambda: client.ask("Hi").status_code == 401, "the key is refused", seconds=5)


@pytest.mark.parametrize("value", ["", "ü", "x" * 256, "tab\there"])
def test_a_conversations_id_is_1_to_255_printable_characters(client: Client, value: str) -> None:
    headers = [(b"x-conversation-id", value.encode())]
    response = client.http.post("/v1/messages", json=body("Hi"), headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("x-conversation-id: ")
    assert client.conversations() == []


def test_40_mb_are_too_large_declared_or_not(client: Client, served: Served) -> None:
    megabyte = b"x" * 1024 * 1024
    head = b'{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"'
    for declared in (True, False):
        connection = http.client.HTTPConnection("127.0.0.1", served.bridge.port, timeout=30)
        try:
            connection.putrequest("POST", "/v1/messages")
            connection.putheader("x-api-key", client.api_key)
            if declared:
                connection.putheader("content-length", str(40 * len(megabyte)))
            else:
                connection.putheader("transfer-encoding", "chunked")
            connection.endheaders()
            try:
                connection.send(head if declared else b"%x\r\n%b\r\n" % (len(head), head))
                for _ in range(39):
                    connection.send(megabyte if declared else b"%x\r\n%b\r\n" % (len(megabyte), megabyte))
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has heard enough
            response = connection.getresponse()
            error = json.loads(response.read())["error"]
            assert (response.status, error["type"]) == (413, "request_too_large")
        finally:
            connection.close()
    assert client.conversations() == []


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/messages"), ("POST", "/v1/nothing"), ("PUT", "/v1/conversations"), ("GET", "/v1")]
)
def test_what_is_not_there_is_an_error_of_the_api(client: Client, method: str, path: str) -> None:
    response = client.http.request(method, path)
    assert response.status_code in (404, 405)
    assert response.json()["type"] == "error"
