"""The state store fails for real: the database is locked, or its server is gone. Own faults look like own faults."""

import json
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.api.conftest import Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import TOOL, Client, body, folded, names, result
from tests.servers.ports import wait_until
from tests.servers.postgres import running_postgres
from tests.servers.script import Abort, Gate, Pause, sse_answer
from tests.torture.proxy import Proxy

CALL = ("call_1", "get_weather", {"city": "Oslo"})


@contextmanager
def locked(served: Served) -> Iterator[None]:
    """Nobody else can write while this lasts."""
    connection = sqlite3.connect(served.database_url.removeprefix("sqlite:///"), isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
    finally:
        connection.close()


def heals(client: Client, served: Served) -> None:
    def works() -> bool:
        served.upstream.reset()
        served.chat(chat.text("ok"))
        return client.ask("Again").status_code == 200

    wait_until(works, "the bridge works again")


def overloaded(response: Any) -> None:
    assert (response.status_code, response.json()["error"]["type"]) == (529, "overloaded_error")
    assert int(response.headers["retry-after"]) >= 1


def test_what_is_appended_while_a_broken_answer_is_being_stored_follows_its_question(
    serve: Serve, connect: Connect
) -> None:
    """The database is slow: the client has heard of the error before its turn is closed."""
    served = serve()
    client, gate = connect(served), Gate()
    append = {"x-conversation-id": "slow", "x-conversation-mode": "append"}
    served.chat(chat.streamed_text("It is", gate, Abort()), chat.text("Of the sea."))
    with client.stream("Weather?", headers=append) as (_, events), ThreadPoolExecutor(1) as pool:
        assert next(event for event in events if event.name == "content_block_delta")
        with locked(served):
            gate.open()
            assert list(events)[-1].name == "error"
            appended = pool.submit(client.ask, "In Oslo.", headers=append)
            time.sleep(0.3)  # time to go wrong: to go right it needs none
        assert appended.result().status_code == 200
    assert [message["content"] for message in served.sent()["messages"]] == ["Weather?\nIn Oslo."]


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_cannot_be_stored_is_not_shown(serve: Serve, connect: Connect, stream: bool) -> None:
    served = serve()
    client, gate = connect(served), Gate()
    call = chat.streamed_calls(CALL)
    served.chat(sse_answer(chat.chunk({"content": "Let me see."}), gate, *call.steps))
    if not stream:
        response = _ask_while_locked(served, client, gate)
        overloaded(response)
        assert "toolu_" not in response.text
        return
    with client.stream("Weather?", tools=[TOOL]) as (_, events):
        seen = [next(events), next(events), next(events)]
        with locked(served):
            gate.open()
            seen += list(events)
    assert names(seen)[-1] == "error"
    assert seen[-1].data["error"]["type"] == "overloaded_error"
    assert folded(seen) == [{"type": "text", "text": "Let me see."}]
    heals(client, served)


def test_who_reads_or_ends_a_conversation_hears_of_it_as_soon(serve: Serve, connect: Connect) -> None:
    """Not after the ten seconds for which a page of the admin waits: their client has given up by then."""
    served = serve()
    client = connect(served)
    served.chat(chat.text("ok"))
    client.ask("Weather?", headers={"x-conversation-id": "held up"})
    paths = ("", "/tool-mappings", "/terminate")
    with locked(served):
        for path in paths:
            method = "POST" if path == "/terminate" else "GET"
            overloaded(client.http.request(method, f"/v1/conversations/held%20up{path}", timeout=5))
    assert client.http.post("/v1/conversations/held%20up/terminate").json()["deleted"]["turns"] == 1


@pytest.mark.parametrize("stream", [False, True])
def test_under_warn_it_is_shown_and_said(serve: Serve, connect: Connect, stream: bool) -> None:
    served = serve(BRIDGE_UNSTORED_LINK="warn")
    client, gate = connect(served), Gate()
    call = chat.streamed_calls(CALL)
    served.chat(sse_answer(chat.chunk({"content": "Let me see."}), gate, *call.steps))
    if stream:
        with client.stream("Weather?", tools=[TOOL]) as (_, events):
            seen = [next(events), next(events), next(events)]
            with locked(served):
                gate.open()
                seen += list(events)
        assert [event.data["text"] for event in seen if event.name == "comment"] == ["x-bridge-warning: unstored-link"]
        blocks = folded([event for event in seen if event.name != "comment"])
    else:
        response = _ask_while_locked(served, client, gate)
        assert response.headers["x-bridge-warning"] == "unstored-link"
        blocks = response.json()["content"]
    assert [block["type"] for block in blocks] == ["text", "tool_use"]
    assert "state.unstored" in served.bridge.log.read_text()
    turn = served.records.turns(client.api_key)[:1]
    wait_until(lambda: turn.get().status == "complete", "it is stored at last")
    assert bytes(turn.get().answer_hash), "with its answer"
    assert served.records.usage(client.api_key).filter(request_id=turn.get().request_id).count() == 1
    heals(client, served)
    # This process still knows the call.
    served.chat(chat.text("sunny"))
    asked = [{"role": "assistant", "content": blocks}, result(blocks[1]["id"])]
    assert client.ask("Weather?", *asked, tools=[TOOL]).status_code == 200


def test_a_database_server_that_goes_away_is_529_and_comes_back(serve: Serve, connect: Connect) -> None:
    with running_postgres() as postgres:
        served = serve(postgres.create_database())
        client = connect(served)
        served.chat(chat.streamed_calls(CALL))
        (block,) = folded(client.events("Weather?", tools=[TOOL]))
        postgres.stop()
        for stream in (False, True):
            served.chat(chat.streamed_text("ok"))
            overloaded(client.ask("Hi", stream=stream))
        response = client.http.get("/v1/conversations")
        overloaded(response)
        overloaded(client.http.get("/metrics"))
        page = client.http.get("/admin/", headers={"cookie": "toolbridge_session=somebody"})
        assert (page.status_code, page.headers["content-type"]) == (503, "text/html; charset=utf-8")
        assert int(page.headers["retry-after"]) >= 1
        assert client.http.get("/livez").status_code == 200
        assert client.http.get("/readyz").status_code == 503
        postgres.start()
        heals(client, served)
        served.chat(chat.text("sunny"))
        assert client.ask(result(block["id"]), tools=[TOOL]).status_code == 200
        served.bridge.stop()


@pytest.mark.parametrize("end", [False, True])
def test_what_was_stored_unheard_is_not_stored_again(serve: Serve, connect: Connect, end: bool) -> None:
    """The database commits, and its word for that is lost: the turn is there, and must not get in its own way."""
    with running_postgres() as postgres, Proxy(postgres.port) as between:
        url = postgres.create_database().replace(f":{postgres.port}/", f":{between.port}/")
        served = serve(url, BRIDGE_PREPARED_STATEMENTS="off")
        client, gate = connect(served), Gate()
        served.chat(sse_answer(gate, *chat.streamed_text("ok").steps))
        with ThreadPoolExecutor(1) as pool:
            between.lose = b"" if end else b"COMMIT"
            asking = pool.submit(client.ask, "Hi", stream=True, headers={"X-Conversation-ID": "one"})
            assert gate.reached.wait(10)
            between.lose = b"COMMIT" if end else between.lose
            gate.open()
            response = asking.result()
        assert (response.status_code, between.lose) == (200, b"")
        assert "event: message_stop" in response.text, response.text
        assert served.records.turns(client.api_key).get().status == "complete"
        assert served.records.conversations(client.api_key).get().turn_count == 1
        assert served.records.usage(client.api_key).count() == 1
        served.bridge.stop()


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_whose_client_left_while_it_could_not_be_stored_is_stored_later(
    serve: Serve, connect: Connect, stream: bool
) -> None:
    """It stayed `running` in a process that lived on, and whoever asked the same again waited for it."""
    with running_postgres() as postgres, Proxy(postgres.port) as between:
        url = postgres.create_database().replace(f":{postgres.port}/", f":{between.port}/")
        served = serve(url)
        client, gate = connect(served), Gate()
        pieces = chat.streamed_text("ok").steps
        served.chat(sse_answer(gate, *pieces) if stream else sse_answer(*pieces))
        if not stream:  # opened and closed at once
            between.hold = b"COMMIT"
        with socket.create_connection(("127.0.0.1", served.bridge.port), timeout=10) as leaving:
            asked = json.dumps(body("Hi", stream=stream)).encode()
            head = "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            leaving.sendall(
                f"{head}x-api-key: {client.api_key}\r\ncontent-length: {len(asked)}\r\n\r\n".encode() + asked
            )
            if stream:
                assert gate.reached.wait(10)
                wait_until(lambda: served.records.turns(client.api_key).exists(), "the turn is stored")
                between.hold = b"COMMIT"
                gate.open()
            assert between.held.wait(10)
        between.refuse()
        between.cut()
        wait_until(lambda: "state.write" in served.bridge.log.read_text(), "it could not be stored")
        between.accept()
        served.records.reconnect()
        wait_until(lambda: served.records.usage(client.api_key).exists(), "the turn is counted")
        assert served.records.turns(client.api_key).get().status == "complete"
        served.bridge.stop()


def _ask_while_locked(served: Served, client: Client, gate: Gate) -> Any:
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(client.ask("Weather?", tools=[TOOL])))
    asking.start()
    assert gate.reached.wait(10)
    # The turn itself is stored before its calls are.
    wait_until(lambda: served.records.turns(client.api_key).exists(), "the turn is stored")
    with locked(served):
        gate.open()
        asking.join()
    return answers[0]


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_stream_goes_on_beside_a_store_that_is_only_slow(client: Client, served: Served) -> None:
    """Each call is stored in time; that all of them together take longer than anyone waits is no outage."""
    pieces = [chat.call_chunk(n, '{"city": "Oslo"}', f"call_{n}", "get_weather") for n in range(4)]
    served.chat(sse_answer(*(step for piece in pieces for step in (piece, Pause(0.7))), *chat.ending("tool_calls")))
    with psycopg.connect(served.database_url, autocommit=True) as db:
        db.execute("""CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql
            AS 'BEGIN PERFORM pg_sleep(0.2); RETURN NULL; END'""")
        db.execute("""CREATE TRIGGER slow AFTER INSERT OR UPDATE ON conversations_toolmapping
            FOR EACH STATEMENT EXECUTE FUNCTION slow()""")
        try:
            response = client.ask("Weather?", stream=True, tools=[TOOL])
        finally:
            db.execute("DROP FUNCTION slow CASCADE")
    assert response.text.count("event: content_block_stop") == 4
    assert "event: message_stop" in response.text
