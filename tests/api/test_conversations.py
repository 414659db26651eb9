"""`/v1/conversations`: a key's own conversations and mappings, listed, read, forgotten and terminated."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from django.utils import timezone

from tests.api.conftest import BOTH, CHAT, Connect, Serve, Served
from tests.servers import chat
from tests.servers.client import CLOCK, TOOL, Client, folded, names, result, until
from tests.servers.ports import wait_until
from tests.servers.script import Gate, Pause, Silence, sse_answer

NOTHING = {"messages": 0, "turns": 0, "tool_mappings": 0}
CALL = ("call_1", "get_weather", {"city": "Oslo"})


def named(conversation: str) -> dict[str, str]:
    return {"x-conversation-id": conversation}


def talk(client: Client, served: Served, conversation: str) -> str:
    """One turn with one call; the call's id."""
    served.chat(chat.calls(CALL))
    (block,) = client.ask("Weather?", tools=[TOOL], headers=named(conversation)).json()["content"]
    return str(block["id"])


def terminate(client: Client, conversation: str) -> dict[str, object]:
    response = client.http.post(f"/v1/conversations/{quote(conversation, safe='')}/terminate")
    assert response.status_code == 200, response.text
    answer: dict[str, object] = response.json()
    return answer


# ---------------------------------------------------------------- listing and reading


@BOTH
def test_conversations_are_listed_newest_first_in_pages(client: Client, other_client: Client, served: Served) -> None:
    served.upstream.always(CHAT, chat.text("ok"))
    for number in range(5):
        client.ask("Hi", headers=named(f"c-{number}"))
    other_client.ask("Hi", headers=named("not yours"))
    first = client.get("/v1/conversations?limit=2")
    assert [item["id"] for item in first["data"]] == ["c-4", "c-3"]
    assert (first["has_more"], first["first_id"], first["last_id"]) == (True, "c-4", "c-3")
    second = client.get(f"/v1/conversations?limit=2&after_id={first['last_id']}")
    third = client.get(f"/v1/conversations?limit=2&after_id={second['last_id']}")
    assert [item["id"] for item in second["data"] + third["data"]] == ["c-2", "c-1", "c-0"]
    assert (second["has_more"], third["has_more"]) == (True, False)
    empty = client.get("/v1/conversations?after_id=c-0")
    assert empty == {"data": [], "has_more": False, "first_id": None, "last_id": None}


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "limit=-1"])
def test_a_page_has_bounds(client: Client, query: str) -> None:
    response = client.http.get(f"/v1/conversations?{query}")
    assert (response.status_code, response.json()["error"]["type"]) == (400, "invalid_request_error")
    assert "limit" in response.json()["error"]["message"]


def test_who_pages_on_after_what_was_deleted_hears_what_to_do(client: Client, served: Served) -> None:
    served.upstream.always(CHAT, chat.calls(CALL))
    for number in range(3):
        (block,) = client.ask("Weather?", tools=[TOOL], headers=named(f"c-{number}")).json()["content"]
    terminate(client, "c-2")
    response = client.http.get("/v1/conversations?after_id=c-2")
    words = "after_id: conversation c-2 not found; if it was deleted meanwhile, list anew without after_id"
    assert (response.status_code, response.json()["error"]["message"]) == (404, words)
    assert [item["id"] for item in client.get("/v1/conversations")["data"]] == ["c-1", "c-0"]
    response = client.http.get(f"/v1/conversations/c-1/tool-mappings?after_id={block['id']}")
    words = f"after_id: tool mapping {block['id']} not found; if it was deleted meanwhile, list anew without after_id"
    assert (response.status_code, response.json()["error"]["message"]) == (404, words)


@BOTH
def test_mappings_tell_everything_and_page(client: Client, served: Served) -> None:
    calls = [
        ("call_1", "get_weather", {"city": "Oslo"}),
        ("call_2", "get_time", {}),
        ("", "get_weather", {"city": "R"}),
    ]
    served.chat(chat.calls(*calls), chat.text("ok"))
    blocks = client.ask("Go", tools=[TOOL, CLOCK], headers=named("m")).json()["content"]
    ids = [block["id"] for block in blocks]
    results = [
        {"type": "tool_result", "tool_use_id": ids[0], "content": "sunny"},
        {"type": "tool_result", "tool_use_id": ids[1], "content": "broken", "is_error": True},
    ]
    client.ask({"role": "user", "content": results}, tools=[TOOL, CLOCK], headers=named("m"))
    page = client.get("/v1/conversations/m/tool-mappings?limit=2")
    assert [item["tool_use_id"] for item in page["data"]] == ids[:2]
    assert (page["has_more"], page["last_id"]) == (True, ids[1])
    rest = client.get(f"/v1/conversations/m/tool-mappings?after_id={ids[1]}")
    assert ([item["tool_use_id"] for item in rest["data"]], rest["has_more"]) == (ids[2:], False)
    first, second, third = page["data"] + rest["data"]
    assert set(first) == {
        "tool_use_id", "tool_name", "status", "upstream", "upstream_call_id", "arguments", "is_error", "created_at",
        "answered_at",
    }  # fmt: skip
    assert (first["tool_name"], first["status"], first["upstream"], first["upstream_call_id"], first["arguments"]) == (
        "get_weather", "answered", "openai", "call_1", {"city": "Oslo"},
    )  # fmt: skip
    assert (second["status"], second["is_error"], second["arguments"]) == ("failed", True, {})
    assert (third["status"], third["answered_at"], third["upstream_call_id"]) == ("pending", None, None)
    assert client.get(f"/v1/conversations/m/tool-mappings/{ids[0]}") == first


@BOTH
def test_a_forgotten_mapping_is_unknown_at_once(client: Client, served: Served) -> None:
    tool_use_id = talk(client, served, "forgetful")
    path = f"/v1/conversations/forgetful/tool-mappings/{tool_use_id}"
    assert client.http.delete(path).status_code == 200
    assert client.http.get(path).status_code == 404
    assert client.http.delete(path).status_code == 404
    assert client.get("/v1/conversations/forgetful")["tool_mappings"] == 0
    assert client.ask(result(tool_use_id), tools=[TOOL], headers=named("forgetful")).status_code == 400


@BOTH
def test_a_call_that_is_forgotten_while_it_is_written_ends_its_stream(client: Client, served: Served) -> None:
    """It was said that the conversation had ended, which goes on."""
    gate = Gate()
    head, *rest = chat.call_chunks(CALL)
    served.chat(sse_answer(head, gate, *rest, *chat.ending("tool_calls")), chat.text("Sunny."))
    eager = TOOL | {"eager_input_streaming": True}
    with client.stream("Weather?", tools=[eager], headers=named("forgetful")) as (_, events):
        seen = until(events, "content_block_start")
        id_ = seen[-1].data["content_block"]["id"]
        assert client.http.delete(f"/v1/conversations/forgetful/tool-mappings/{id_}").status_code == 200
        gate.open()
        seen += events
    error = seen[-1].data["error"]
    assert (error["type"], error["message"]) == ("conflict_error", f"{id_} was deleted while it was being written")
    (turn,) = served.records.ended(client.api_key, 1)
    assert (turn.status, client.get("/v1/conversations/forgetful")["tool_mappings"]) == ("error", 0)
    assert client.ask("Weather?", tools=[TOOL], headers=named("forgetful")).status_code == 200


def test_what_belongs_to_another_key_is_not_found(client: Client, other_client: Client, served: Served) -> None:
    tool_use_id = talk(client, served, "mine")
    for method, path in (
        ("GET", "/v1/conversations/mine"),
        ("GET", "/v1/conversations/mine/tool-mappings"),
        ("GET", f"/v1/conversations/mine/tool-mappings/{tool_use_id}"),
        ("DELETE", f"/v1/conversations/mine/tool-mappings/{tool_use_id}"),
    ):
        response = other_client.http.request(method, path)
        assert (response.status_code, response.json()["error"]["type"]) == (404, "not_found_error")
    assert other_client.http.get("/v1/conversations?after_id=mine").status_code == 404
    assert client.get(f"/v1/conversations/mine/tool-mappings/{tool_use_id}")["status"] == "pending"


ODD = ["a/b", "a/b/terminate", "100%", "%2F", "a b", "../x", "tool-mappings", "a?b#c", "~!@$&'()*+,;=:[]", "x" * 255]


@pytest.mark.parametrize("prefix", ["", "/anthropic"])
@pytest.mark.parametrize("name", ODD)
def test_an_id_may_hold_anything_printable(client: Client, served: Served, name: str, prefix: str) -> None:
    tool_use_id = talk(client, served, name)
    path = f"{prefix}/v1/conversations/{quote(name, safe='')}"
    assert client.get(path)["id"] == name
    assert [m["tool_use_id"] for m in client.get(f"{path}/tool-mappings")["data"]] == [tool_use_id]
    assert client.get(f"{path}/tool-mappings/{tool_use_id}")["tool_name"] == "get_weather"
    assert client.http.post(f"{path}/terminate").json()["id"] == name
    assert client.http.get(path).status_code == 404


@BOTH
def test_an_id_that_nothing_can_have_is_nobodys(client: Client, served: Served) -> None:
    talk(client, served, "a")
    for path in (
        "/%00",
        "/a%00/tool-mappings",
        "/a/tool-mappings/%00",
        "?after_id=%00",
        "/a/tool-mappings?after_id=%00",
    ):
        assert client.http.get(f"/v1/conversations{path}").status_code == 404
    assert terminate(client, "a\0")["deleted"] == NOTHING
    assert client.get("/v1/conversations/a")["turns"] == 1


# ---------------------------------------------------------------- terminating


@BOTH
def test_terminating_deletes_everything_and_the_id_is_free_again(client: Client, served: Served) -> None:
    tool_use_id = talk(client, served, "short")
    served.chat(chat.text("ok"))
    client.ask(result(tool_use_id), tools=[TOOL], headers=named("short"))
    deleted = {"messages": 4, "turns": 2, "tool_mappings": 1}
    assert terminate(client, "short") == {"id": "short", "status": "terminated", "deleted": deleted}
    assert served.records.conversations(client.api_key).count() == 0
    assert served.records.turns(client.api_key).count() == 0
    assert served.records.usage(client.api_key).count() == 2, "the ledger stays"
    assert terminate(client, "short") == {"id": "short", "status": "terminated", "deleted": NOTHING}

    # Neither the store nor a cache knows the call any more.
    assert client.ask(result(tool_use_id), tools=[TOOL], headers=named("short")).status_code == 400
    assert client.ask(result(tool_use_id), tools=[TOOL]).status_code == 400
    assert client.conversations() == []
    again = talk(client, served, "short")
    assert [mapping["tool_use_id"] for mapping in client.mappings("short")] == [again]
    assert served.sent()["messages"][0]["content"] == "Weather?"


def test_terminating_what_is_not_ones_own_deletes_nothing(client: Client, other_client: Client, served: Served) -> None:
    talk(client, served, "mine")
    assert terminate(other_client, "mine")["deleted"] == NOTHING
    assert terminate(other_client, "never heard of")["deleted"] == NOTHING
    assert client.get("/v1/conversations/mine")["turns"] == 1


def test_a_held_conversation_cannot_be_terminated(client: Client, served: Served) -> None:
    talk(client, served, "evidence")
    served.records.conversations(client.api_key).update(held=True)
    response = client.http.post("/v1/conversations/evidence/terminate")
    assert (response.status_code, response.json()["error"]["type"]) == (409, "conflict_error")
    assert client.get("/v1/conversations/evidence")["status"] == "held"


@BOTH
def test_running_turns_end_in_an_error_event_and_nothing_comes_back(client: Client, served: Served) -> None:
    gate = Gate()
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, *chat.streamed_calls(CALL).steps))
    with client.stream("Hi", tools=[TOOL], headers=named("running")) as (_, events):
        seen = [next(events), next(events), next(events)]
        assert terminate(client, "running")["deleted"] == {"messages": 1, "turns": 1, "tool_mappings": 0}
        gate.open()
        seen += list(events)
    assert names(seen)[-1] == "error"
    assert "toolu_" not in str(seen)
    assert served.records.conversations(client.api_key).count() == 0
    assert served.records.turns(client.api_key).count() == 0
    # The ledger counts what was used.
    wait_until(lambda: served.records.usage(client.api_key).count() == 1, "the ledger has an entry")


@pytest.mark.parametrize("stream", [False, True])
def test_a_turn_that_waits_for_its_upstream_ends_too(client: Client, served: Served, stream: bool) -> None:
    gate = Gate()
    served.chat(sse_answer(gate, Silence()))
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.ask, "Hi", stream=stream, headers=named("waiting"))
        assert gate.reached.wait(10)
        wait_for_turn(served, client)
        assert terminate(client, "waiting")["deleted"] == {"messages": 1, "turns": 1, "tool_mappings": 0}
        response = asked.result(20)
    assert (response.status_code, response.json()["error"]["type"]) == (409, "conflict_error")
    assert response.headers["x-should-retry"] == "false"  # that would bring it back
    assert served.upstream.requests[0].abandoned.wait(5)
    assert client.conversations() == []


@BOTH
def test_a_retry_that_waits_for_a_turn_of_another_process_ends_with_it(
    client: Client, served: Served, serve: Serve
) -> None:
    there = Client(serve(served.database_url).bridge.url, client.api_key)
    gate = Gate()
    served.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, Silence()))
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(client.events, "Hi", headers=named("awaited"))
        assert gate.reached.wait(10)
        again = pool.submit(there.ask, "Hi", stream=True, headers=named("awaited"))
        time.sleep(0.5)  # it looks for the stored answer by now
        terminate(client, "awaited")
        assert names(asked.result(20))[-1] == "error"
        assert (again.result(20).status_code, again.result().json()["error"]["type"]) == (409, "conflict_error")
    assert len(served.upstream.requests) == 1
    assert client.conversations() == []
    there.close()


@BOTH
def test_who_asks_after_the_end_is_not_ended_with_it(served: Served, connect: Connect, serve: Serve) -> None:
    """Another process hears of the end while it serves a request that came later."""
    client = connect(served, storage="metadata")  # without a claim its opening is held for a moment
    there = Client(serve(served.database_url).bridge.url, client.api_key)
    served.upstream.always(CHAT, sse_answer(Pause(0.04), *chat.streamed_text("ok").steps))
    for number in range(60):
        assert client.ask(f"Hi {number}", headers=named("again")).status_code == 200
        terminate(there, "again")
        response = client.ask(f"And {number}", headers=named("again"))
        assert response.status_code == 200, response.text
    there.close()


@BOTH
def test_a_request_can_be_made_again_while_its_conversation_is_being_deleted(client: Client, served: Served) -> None:
    """Out of sight, but not yet gone."""
    served.upstream.always(CHAT, chat.text("ok"))
    client.ask("Hi", headers=named("going"))
    ended = served.records.conversations(client.api_key)
    ended.update(ended_at=timezone.now(), external_id="ended:1")
    served.records.rows("Change").create(kind="conversation", ref=str(ended.get().pk), created_at=timezone.now())

    def answered_anew() -> bool:
        """Until the process has heard of the end, the same request again gets the stored answer."""
        return client.ask("Hi", headers=named("going")).status_code == 200 and len(served.upstream.requests) == 2

    wait_until(answered_anew, "it is answered anew")
    assert [found["turns"] for found in client.conversations()] == [1]


def wait_for_turn(served: Served, client: Client) -> None:
    wait_until(lambda: served.records.turns(client.api_key).exists(), "the turn is stored")


def test_another_process_hears_of_it(serve: Serve, connect: Connect, postgres_url: str) -> None:
    """Two web processes on one database: one runs the turn, the other terminates, both forget."""
    first, second = serve(postgres_url), serve(postgres_url)
    here = connect(first)
    there = Client(second.bridge.url, here.api_key)
    tool_use_id = talk(here, first, "shared")
    first.chat(chat.text("ok"))
    # The other process knows nothing but the database.
    assert there.ask(result(tool_use_id), tools=[TOOL], headers=named("shared")).status_code == 200
    first.chat(sse_answer(chat.chunk({"content": "Hel"}), Silence()))
    with here.stream("More", headers=named("shared")) as (_, events):
        next(events)
        terminate(there, "shared")
        assert list(events)[-1].name == "error"
    # Not even an answer that ends before the news has come is shown as one.
    gate = Gate()
    first.chat(sse_answer(chat.chunk({"content": "Hel"}), gate, *chat.ending("stop")))
    with here.stream("More", headers=named("shared")) as (_, events):
        next(events)
        terminate(there, "shared")
        gate.open()
        assert list(events)[-1].name == "error"
    wait_until(lambda: first.records.usage(here.api_key).count() == 4, "the ledger counts all of them")
    for client in (here, there):
        assert client.ask(result(tool_use_id), tools=[TOOL], headers=named("shared")).status_code == 400
        first.chat(chat.text("fresh"))
        assert client.ask("Hi", headers=named("shared")).status_code == 200
        terminate(client, "shared")
    there.close()


# ---------------------------------------------------------------- many at once


@BOTH
def test_fifty_requests_at_once_under_one_id_lose_nothing(client: Client, served: Served) -> None:
    served.upstream.always(CHAT, chat.streamed_calls(CALL, ("call_2", "get_time", {})))
    ready = threading.Barrier(50)

    def ask(number: int) -> list[str]:
        ready.wait(30)
        events = client.events(f"Question {number}", tools=[TOOL, CLOCK], headers=named("crowd"))
        return [block["id"] for block in folded(events)]

    with ThreadPoolExecutor(50) as pool:
        ids = [id_ for found in pool.map(ask, range(50)) for id_ in found]
    assert len(set(ids)) == 100
    (conversation,) = client.conversations()
    assert (conversation["turns"], conversation["tool_mappings"]) == (50, 100)
    assert {mapping["tool_use_id"] for mapping in client.mappings("crowd")} == set(ids)
    assert {turn.status for turn in served.records.turns(client.api_key)} == {"complete"}
