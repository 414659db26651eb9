"""What a key may do, on every path, and for how long."""

import secrets
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.api.conftest import BOTH, Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import Client, body, names, until
from tests.servers.ports import wait_until
from tests.servers.script import Gate, Silence, sse_answer


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens", "/anthropic/v1/messages/count_tokens"])
def test_a_model_that_a_key_may_not_use_is_403_on_every_path(client: Client, served: Served, path: str) -> None:
    served.records.change(client.api_key, allowed_routes="claude-haiku-*")
    served.chat(chat.text("Hello."))
    response = client.http.post(path, json=body("Hi"))
    assert (response.status_code, response.json()["error"]["type"]) == (403, "permission_error")
    assert response.json()["error"]["message"] == "model: this key may not use claude-sonnet-4-5"
    served.records.change(client.api_key, allowed_routes="claude-*")

    def may() -> bool:
        return client.http.post(path, json=body("Hi")).status_code == 200

    wait_until(may, "the key may use it")


@BOTH
def test_streams_of_a_key_that_was_revoked_end_within_seconds(
    client: Client, other_client: Client, served: Served, serve: Serve
) -> None:
    """In every process, and nobody else's."""
    there = Client(serve(served.database_url).bridge.url, client.api_key)
    gate = Gate()
    silent = sse_answer(chat.chunk({"content": "Hel"}), Silence())
    served.chat(silent, silent, sse_answer(chat.chunk({"content": "Hel"}), gate, *chat.ending("stop")))
    with (
        client.stream("Hi") as (_, here),
        there.stream("Hi") as (_, elsewhere),
        other_client.stream("Hi") as (_, others),
    ):
        for events in (here, elsewhere, others):
            until(events, "content_block_delta")
        served.records.revoke(client.api_key)
        revoked = time.monotonic()
        for events in (here, elsewhere):
            left = list(events)
            assert names(left).count("error") == 1
            assert left[-1].data["error"]["type"] == "authentication_error"
        assert time.monotonic() - revoked < 5
        gate.open()
        assert list(others)[-1].name == "message_stop"
    assert all(request.abandoned.wait(5) for request in served.upstream.requests[:2])
    assert {turn.status for turn in served.records.ended(client.api_key, 2)} == {"error"}
    assert client.ask("Hi").status_code == 401
    there.close()


@BOTH
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_retry_that_waits_for_a_turn_ends_with_its_key(
    client: Client, served: Served, serve: Serve, elsewhere: bool
) -> None:
    """In another process it took over, and asked the upstream once more."""
    there = Client(serve(served.database_url).bridge.url, client.api_key) if elsewhere else client
    named = {"x-conversation-id": "awaited"}
    served.chat(*[sse_answer(chat.chunk({"content": "Hel"}), Silence())] * 2)
    with ThreadPoolExecutor() as pool, client.stream("Hi", headers=named) as (_, events):
        until(events, "content_block_delta")
        again = pool.submit(there.ask, "Hi", stream=True, headers=named)
        time.sleep(0.5)
        served.records.revoke(client.api_key)
        assert list(events)[-1].name == "error"
        assert "authentication_error" in again.result(10).text
    assert len(served.upstream.requests) == 1
    there.close()


def test_a_change_that_leaves_a_key_valid_ends_nothing(served: Served, connect: Connect) -> None:
    client = connect(served)
    gate = Gate()
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, *chat.ending("stop")))
    with client.stream("Hi") as (_, events):
        until(events, "content_block_delta")
        served.records.change(client.api_key, requests_per_minute=1)
        wait_until(lambda: client.ask("Hi").status_code == 429, "the change is known")
        time.sleep(1)
        gate.open()
        assert list(events)[-1].name == "message_stop"


def test_an_answer_that_is_waited_for_is_refused_when_its_key_is(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(sse_answer(gate, Silence()))
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Hi")
        assert gate.reached.wait(10)
        served.records.change(client.api_key, digest=secrets.token_hex(32))  # it is given another secret
        response = asked.result(10)
    assert (response.status_code, response.json()["error"]["type"]) == (401, "authentication_error")
