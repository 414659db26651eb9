"""Conversations as they happen: through the real server's WebSocket, fed by real streams of a scripted upstream."""

import threading
from collections.abc import Callable, Iterator

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.admin import browser as browsing
from tests.admin.sockets import sign_in, watching
from tests.api.conftest import Connect, Serve, Served, connect, serve, serve_shared, shared_upstream
from tests.hosted import mcp_peer
from tests.servers import chat
from tests.servers.bridge import Bridge
from tests.servers.client import TOOL, Client, result
from tests.servers.ports import wait_until
from tests.servers.script import Gate, Pause, sse_answer
from tests.servers.upstream import ScriptedUpstream

__all__ = ["connect", "serve", "serve_shared", "shared_upstream"]

Ask = Callable[..., threading.Thread]


def operator(bridge: Bridge, name: str = browsing.USER) -> None:
    bridge.manage("createsuperuser", "--noinput", DJANGO_SUPERUSER_USERNAME=name,
                  DJANGO_SUPERUSER_PASSWORD=browsing.PASSWORD, DJANGO_SUPERUSER_EMAIL="o@example.org")  # fmt: skip


@pytest.fixture(scope="module")
def lived(serve_shared: Serve) -> Served:
    found = serve_shared()
    operator(found.bridge)
    operator(found.bridge, "outsider")
    user = found.records.alias
    from django.contrib.auth.models import User  # noqa: PLC0415 - models after set-up

    User.objects.using(user).filter(username="outsider").update(is_superuser=False)
    return found


@pytest.fixture
def watched(lived: Served, shared_upstream: ScriptedUpstream) -> Served:
    shared_upstream.reset()
    return lived


@pytest.fixture
def cookies(watched: Served) -> str:
    return sign_in(watched.bridge)


@pytest.fixture
def asking() -> Iterator[Ask]:
    """Streams that run beside the test."""
    threads: list[threading.Thread] = []

    def ask(client: Client, *messages: object, name: str, **fields: object) -> threading.Thread:
        headers = {"x-conversation-id": name}
        thread = threading.Thread(target=lambda: client.events(*messages, headers=headers, **fields))
        thread.start()
        threads.append(thread)
        return thread

    yield ask
    for thread in threads:
        thread.join(10)


def conversation(served: Served, name: str) -> int:
    rows = served.records.rows("Conversation").filter(external_id=name)
    wait_until(rows.exists, f"{name} is stored")
    return int(rows.get().pk)


def test_a_turn_is_seen_as_it_streams(watched: Served, connect: Connect, cookies: str, asking: Ask) -> None:
    first, second = Gate(), Gate()
    watched.chat(chat.streamed_text("Once upon", first, " a time", second, " there was"))
    asking(connect(watched), "Tell me", name="tale")
    with watching(watched.bridge, conversation(watched, "tale"), cookies) as watcher:
        watcher.until(lambda seen: seen.says("Once upon"))
        assert watcher.last["status"] == "running"
        first.open()
        watcher.until(lambda seen: seen.says("Once upon a time"))
        second.open()
        watcher.until(lambda seen: seen.last["status"] == "complete")
        assert watcher.says("Once upon a time there was")
        assert watcher.numbers == sorted(set(watcher.numbers))
    snapshots = watched.records.rows("LiveSnapshot")
    wait_until(lambda: not snapshots.exists(), "the snapshot is gone")


def test_arguments_are_seen_before_the_client_gets_them(
    watched: Served, connect: Connect, cookies: str, asking: Ask
) -> None:
    gate = Gate()
    heads = [chat.call_chunk(0, "", "call_1", "get_weather"), chat.call_chunk(0, '{"city": "Reyk')]
    heads += [chat.call_chunk(1, "", "call_2", "get_weather"), chat.call_chunk(1, '{"city": "Osl')]
    rest = [chat.call_chunk(0, 'javik"}'), chat.call_chunk(1, 'o"}'), *chat.ending("tool_calls")]
    watched.chat(sse_answer(*heads, gate, *rest))
    asking(connect(watched), "Weather?", name="typing", tools=[TOOL])
    with watching(watched.bridge, conversation(watched, "typing"), cookies) as watcher:
        watcher.until(lambda seen: seen.says('{"city": "Reyk') and seen.says('{"city": "Osl'))
        assert [block["name"] for block in watcher.last["blocks"]] == ["get_weather", "get_weather"]
        gate.open()
        watcher.until(lambda seen: seen.last["status"] == "complete")
        assert [block["text"] for block in watcher.last["blocks"]] == ['{"city":"Reykjavik"}', '{"city":"Oslo"}']


def test_calls_wait_until_they_are_answered(watched: Served, connect: Connect, cookies: str) -> None:
    watched.chat(chat.streamed_calls(("call_1", "get_weather", {"city": "Rome"})))
    client = connect(watched)
    client.events("Weather?", headers={"x-conversation-id": "wait"}, tools=[TOOL])
    (call,) = client.mappings("wait")
    with watching(watched.bridge, conversation(watched, "wait"), cookies) as watcher:
        watcher.until(lambda seen: seen.waiting)
        assert watcher.waiting[0]["name"] == "get_weather"
        assert watcher.last["blocks"][0]["kind"] == "tool_use"
        assert "Rome" in watcher.last["blocks"][0]["text"]
        watched.chat(chat.streamed_text("Sunny."))
        said = [{"role": "user", "content": "Weather?"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": call["tool_use_id"],
                                                   "name": "get_weather", "input": {"city": "Rome"}}]},
                result(call["tool_use_id"])]  # fmt: skip
        client.events(*said, headers={"x-conversation-id": "wait"}, tools=[TOOL])
        watcher.until(lambda seen: not seen.waiting and seen.says("Sunny."))


def test_progress_of_a_hosted_tool_is_seen_as_it_runs(serve: Serve, asking: Ask) -> None:
    served = serve(BRIDGE_TOOL_HOSTS="127.0.0.1")
    operator(served.bridge)
    cookies = sign_in(served.bridge)
    call = chat.streamed_calls(("call_1", "odd__steps", {"count": 40}))
    clients = {level: Client(served.bridge.url, served.records.issue(hosted_tools=True, storage=level))
               for level in ("full", "metadata")}  # fmt: skip
    with mcp_peer.running("odd") as url:
        for level, client in clients.items():
            served.chat(call, chat.streamed_text("Done."))
            servers = [{"type": "url", "name": "odd", "url": url}]
            asking(client, "Go", name=level, mcp_servers=servers)
            with watching(served.bridge, conversation(served, level), cookies) as watcher:
                watcher.until(lambda seen: len({step["progress"] for step in seen.progress}) > 1)
                watcher.until(lambda seen: seen.last["status"] == "complete")
                watcher.until(lambda seen: not seen.running)
            first, steps = watcher.progress[0], [step["progress"] for step in watcher.progress]
            assert (first["total"], first["message"]) == (40, "working" if level == "full" else "")
            assert steps == sorted(steps)
            assert 0 < steps[0] < steps[-1] <= 40
            mapping = client.mappings(level)[0]
            assert first["id"] == mapping["tool_use_id"]
            client.close()


def test_nothing_is_written_while_nobody_watches(watched: Served, connect: Connect, asking: Ask) -> None:
    gate = Gate()
    watched.chat(chat.streamed_text("Alone", Pause(0.8), gate, "."))
    asking(connect(watched), "Hello", name="alone")
    assert gate.reached.wait(30)
    assert not watched.records.rows("LiveSnapshot").filter(conversation=conversation(watched, "alone")).exists()
    gate.open()


def test_who_comes_back_has_missed_nothing(watched: Served, connect: Connect, cookies: str, asking: Ask) -> None:
    gate = Gate()
    watched.chat(chat.streamed_text("Before", gate, " and after"))
    client = connect(watched)
    asked = asking(client, "Hello", name="back")
    pk = conversation(watched, "back")
    with watching(watched.bridge, pk, cookies) as watcher:
        watcher.until(lambda seen: seen.says("Before"))
        known = watcher.last["id"]
    gate.open()
    asked.join(30)
    watched.chat(chat.streamed_text("Another one"))
    client.events("More", headers={"x-conversation-id": "back"})
    with watching(watched.bridge, pk, cookies, after=known) as watcher:
        watcher.until(lambda seen: seen.says("Another one"))
        assert watcher.turns[known]["status"] == "complete"
        assert watcher.turns[known]["blocks"][0]["text"] == "Before and after"


def test_only_operators_of_this_server_may_watch(watched: Served, connect: Connect, cookies: str) -> None:
    watched.chat(chat.streamed_text("Secret"))
    connect(watched).events("Hello", headers={"x-conversation-id": "secret"})
    pk = conversation(watched, "secret")
    strangers = (
        (pk, "", ""),  # nobody
        (pk, sign_in(watched.bridge, "outsider"), ""),  # may sign in, may not read
        (pk, cookies, "https://evil.example"),  # another page
        (pk, cookies, "null"),
        (pk + 1, cookies, ""),  # no such conversation
    )
    for number, given, origin in strangers:
        with pytest.raises(InvalidStatus), watching(watched.bridge, number, given, origin=origin):
            pass
    with watching(watched.bridge, pk, cookies) as watcher:
        watcher.until(lambda seen: seen.says("Secret"))


def test_who_loses_the_permission_is_shown_the_door(watched: Served, connect: Connect) -> None:
    from django.contrib.auth.models import User  # noqa: PLC0415 - models after set-up

    watched.chat(chat.streamed_text("Hello"))
    connect(watched).events("Hello", headers={"x-conversation-id": "door"})
    pk = conversation(watched, "door")
    operator(watched.bridge, "leaver")
    with watching(watched.bridge, pk, sign_in(watched.bridge, "leaver")) as watcher:
        watcher.until(lambda seen: seen.says("Hello"))
        User.objects.using(watched.records.alias).filter(username="leaver").update(is_staff=False)
        with pytest.raises(ConnectionClosed) as closed:
            watcher.until(lambda seen: False)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4403


def test_a_terminated_conversation_is_over(watched: Served, connect: Connect, cookies: str, asking: Ask) -> None:
    gate = Gate()
    watched.chat(chat.streamed_text("Going", gate, " on"))
    client = connect(watched)
    asking(client, "Hello", name="over")
    with watching(watched.bridge, conversation(watched, "over"), cookies) as watcher:
        watcher.until(lambda seen: seen.says("Going"))
        assert client.http.post("/v1/conversations/over/terminate").status_code == 200
        with pytest.raises(ConnectionClosed) as closed:
            watcher.until(lambda seen: False)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4404
    gate.open()
    assert not watched.records.rows("LiveSnapshot").exists()


def test_a_key_that_keeps_no_text_shows_none(watched: Served, connect: Connect, cookies: str, asking: Ask) -> None:
    gate = Gate()
    watched.chat(chat.streamed_text("Private words", gate))
    asking(connect(watched, storage="metadata"), "Hello", name="private")
    pk = conversation(watched, "private")
    with watching(watched.bridge, pk, cookies) as watcher:
        watcher.until(lambda seen: seen.last["blocks"])
        assert watcher.last["blocks"][0]["text"] == ""
        assert b"Private" not in bytes(watched.records.rows("LiveSnapshot").get(conversation=pk).content)
        gate.open()
        watcher.until(lambda seen: seen.last["status"] == "complete")


@pytest.mark.parametrize("shared", ["sqlite", "postgres", "redis"])
def test_another_process_shows_what_this_one_runs(
    shared: str, serve: Serve, connect: Connect, asking: Ask, request: pytest.FixtureRequest
) -> None:
    environment = {"REDIS_URL": request.getfixturevalue("redis_url")} if shared == "redis" else {}
    runs = serve(request.getfixturevalue("postgres_url") if shared == "postgres" else None, **environment)
    shows = serve(runs.database_url, **environment)
    operator(runs.bridge)
    gate = Gate()
    runs.chat(chat.streamed_text("Far", gate, " away"))
    asking(connect(runs), "Hello", name="far")
    with watching(shows.bridge, conversation(runs, "far"), sign_in(shows.bridge)) as watcher:
        watcher.until(lambda seen: seen.says("Far"))
        gate.open()
        watcher.until(lambda seen: seen.last["status"] == "complete")
