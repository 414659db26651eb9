"""What clients call beside the Messages API: answered cleanly, in the shape that they read."""

from typing import Any

import anthropic
import httpx
import pytest

from bridge_project.asgi import HOT
from conversations.api.urls import api
from tests.api.conftest import Serve, Served
from tests.servers import chat
from tests.servers.client import Client, body

PAGE = "https://app.example"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/messages/batches"),
        ("POST", "/v1/messages/batches"),
        ("GET", "/v1/messages/batches/msgbatch_1/results"),
        ("POST", "/v1/messages/batches/msgbatch_1/cancel"),
        ("DELETE", "/v1/messages/batches/msgbatch_1"),
        ("GET", "/v1/files"),
        ("POST", "/v1/files"),
        ("GET", "/v1/files/file_1/content"),
        ("GET", "/v1/skills"),
        ("POST", "/anthropic/v1/complete"),
        ("GET", "/api/claude_cli/bootstrap"),
    ],
)
def test_what_there_is_not_is_a_clean_404(client: Client, method: str, path: str) -> None:
    answer = client.http.request(method, path, json={} if method == "POST" else None)
    assert answer.status_code == 404
    told = answer.json()
    assert (told["type"], told["error"]["type"]) == ("error", "not_found_error")
    assert told["request_id"] == answer.headers["request-id"]


def test_a_path_that_there_is_not_is_told_whatever_was_sent(client: Client) -> None:
    answer = client.http.post("/v1/messages/batches", content=b"[" + b" " * 10_000_000)
    assert (answer.status_code, answer.json()["error"]["type"]) == (404, "not_found_error")


@pytest.mark.parametrize("kind", ["files", "data"])
def test_a_form_that_is_too_large_is_not_taken_for_what_came_of_it(client: Client, kind: str) -> None:
    page = client.http.get("/admin/login/")
    form: dict[str, Any] = {
        "csrfmiddlewaretoken": page.cookies["csrftoken"],
        "username": "x",
        "password": "y" * 4_000_000,
    }
    sent: dict[str, Any] = {kind: {name: (None, value) for name, value in form.items()} if kind == "files" else form}
    cookies = {"cookie": f"csrftoken={form['csrfmiddlewaretoken']}"}
    assert client.http.post("/admin/login/", headers=cookies, **sent).status_code == 400
    assert client.http.post("/v1/files", **sent).status_code == 404


def test_the_sdk_reads_it(served: Served, client: Client) -> None:
    sdk = anthropic.Anthropic(base_url=served.bridge.url, api_key=client.api_key, max_retries=0)
    with pytest.raises(anthropic.NotFoundError):
        sdk.messages.batches.list()


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/messages", "POST"),
        ("PUT", "/anthropic/v1/messages/count_tokens", "POST"),
        ("POST", "/v1/models", "GET"),
    ],
)
def test_a_method_that_a_path_does_not_have(client: Client, method: str, path: str, allowed: str) -> None:
    answer = client.http.request(method, path)
    assert (answer.status_code, answer.json()["error"]["type"]) == (405, "invalid_request_error")
    assert allowed in answer.headers["allow"]


def test_event_logging_is_taken_and_not_kept(served: Served) -> None:
    answer = httpx.post(f"{served.bridge.url}/api/event_logging/batch", json={"events": [{}]})
    assert (answer.status_code, answer.json()) == (200, {})


def test_who_looks_whether_the_api_can_be_reached_is_greeted(served: Served) -> None:
    answer = httpx.get(f"{served.bridge.url}/api/hello")
    assert (answer.status_code, answer.json()) == (200, {"message": "hello"})


def test_who_knocks_is_answered_and_who_looks_is_led_to_the_admin(served: Served) -> None:
    assert httpx.head(served.bridge.url).status_code == 200
    looked = httpx.get(served.bridge.url)
    assert (looked.status_code, looked.headers["location"]) == (302, "/admin/")


# ---------------------------------------------------------------- pages of other origins


def preflight(url: str, origin: str, path: str = "/v1/messages") -> httpx.Response:
    headers = {"origin": origin, "access-control-request-method": "POST"}
    return httpx.options(url + path, headers=headers | {"access-control-request-headers": "x-api-key, content-type"})


def test_other_origins_are_not_allowed_by_default(served: Served, client: Client) -> None:
    served.chat(chat.text("Hi."))
    answer = client.http.post("/v1/messages", json=body("Hello"), headers={"origin": PAGE})
    assert not any(name.startswith("access-control-") for name in answer.headers)
    refused = preflight(served.bridge.url, PAGE)
    assert refused.status_code == 405
    assert not any(name.startswith("access-control-") for name in refused.headers)


def test_an_origin_that_the_operator_names_may_call_the_api(serve: Serve) -> None:
    served = serve(BRIDGE_CORS_ORIGINS=f"https://other.example,{PAGE}")
    client = Client(served.bridge.url, served.bridge.api_key)
    for path in ("/v1/messages", "/anthropic/v1/messages", "/v1/chat/completions", "/models", "/v1/conversations"):
        allowed = preflight(served.bridge.url, PAGE, path)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (204, PAGE)
        assert allowed.headers["access-control-allow-headers"] == "x-api-key, content-type"
        assert "POST" in allowed.headers["access-control-allow-methods"]
    served.chat(chat.text("Hi."), chat.streamed_text("Hi."), chat.error(400, "no"))
    for fields in ({}, {"stream": True}, {}):
        answer = client.http.post("/v1/messages", json=body("Hello", **fields), headers={"origin": PAGE})
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert answer.headers["vary"] == "origin"
        assert "x-conversation-id" in answer.headers["access-control-expose-headers"]
    listed = client.http.get("/v1/models", headers={"origin": PAGE})
    assert listed.headers["access-control-allow-origin"] == PAGE
    client.close()


@pytest.mark.parametrize("origin", ["https://evil.example", "null", f"{PAGE}.evil.example"])
def test_everyone_else_is_not(serve: Serve, origin: str) -> None:
    served = serve(BRIDGE_CORS_ORIGINS=PAGE)
    assert preflight(served.bridge.url, origin).status_code == 405
    answers = [
        httpx.get(f"{served.bridge.url}/v1/models", headers={"origin": origin}),
        httpx.get(f"{served.bridge.url}/admin/login/", headers={"origin": PAGE}),
        httpx.options(f"{served.bridge.url}/v1/messages", headers={"origin": PAGE}),
    ]
    assert not any("access-control-allow-credentials" in answer.headers for answer in answers)
    assert [answer.headers.get("access-control-allow-origin") for answer in answers] == [None, None, PAGE]


def test_what_the_lean_handler_runs_is_what_ninja_documents() -> None:
    operations = {
        f"{prefix}{path}": operation.view_func
        for prefix, router in api._routers
        for path, view in router.path_operations.items()
        for operation in view.operations
        if operation.methods == ["POST"]
    }
    assert HOT
    assert {path: function for path, (function, _) in HOT.items()} == {path: operations[path] for path in HOT}
