"""Promise 1: the server is killed in the middle of answers; whatever a client had seen by then is known afterwards.

A stream stands still where its upstream stops talking; the ping that follows tells that everything before was shown.
Many streams stand still at different places, then one SIGKILL hits them all.
"""

import random
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from tests.api.conftest import Connect, Serve, Served
from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import BY_NAME, settings
from tests.e2e.dialects.script import STEPS, TOOLS, Chain, Speech
from tests.servers import chat
from tests.servers.client import CLOCK, TOOL, Client, Event, body, read_events, result
from tests.servers.script import Answer, Silence, sse_answer
from tests.torture.ledger import SCALE, Proof, Trials

BATCH = 40  # streams that one kill ends
DATABASES = pytest.mark.parametrize("database_kind", ["sqlite", "postgres"])
# One of each way to say thoughts, texts and calls; the second step of the script has two calls at once.
SHAPES = ("openai", "openai-responses", "gemini", "anthropic", "minimax", "minimax-m3", "deepseek", "openrouter")
OSLO = ("call_1", "get_weather", {"city": "Oslo ☃"})
TIME = ("call_2", "get_time", {"zone": "CET"})


class Place(NamedTuple):
    """Where the stream of a shape stands still: after so many of its events, or bytes."""

    shape: str
    number: int  # of the stream, which names its conversation
    steps: tuple[bytes, ...]

    @property
    def chain(self) -> Chain:
        return Chain(f"k{self.number:05d}x", "own")

    def answer(self) -> Answer:
        return sse_answer(*self.steps, Silence())


class Shown(NamedTuple):
    place: Place
    events: list[Event]

    @property
    def calls(self) -> list[dict[str, Any]]:
        blocks = [event.data["content_block"] for event in self.events if event.name == "content_block_start"]
        return [block for block in blocks if block["type"] == "tool_use"]


def _path(shape: str) -> str:
    provider = BY_NAME[shape]
    stem = provider.variable.partition("_")[0].lower()
    ends = {"openai-responses": "responses", "anthropic": "messages"}
    if shape == "gemini":
        return f"/{stem}/v1/models/{provider.model}:streamGenerateContent"
    return f"/{stem}/v1/{ends.get(shape, 'chat/completions')}"


def events_of(shape: str, number: int) -> list[bytes]:
    """The upstream's stream, event by event."""
    speech = Speech(shape, Chain(f"k{number:05d}x", "own"), 1, stream=True)
    steps = BY_NAME[shape].dialect.answer(speech).steps
    whole = b"".join(step for step in steps if isinstance(step, bytes))
    return re.findall(rb".+?(?:\r?\n){2}", whole, re.DOTALL)


def at_event_boundaries(shape: str, count: int | None, first: int) -> list[Place]:
    length = len(events_of(shape, 0))
    chosen = (
        range(1, length)
        if count is None
        else sorted(random.Random(shape).sample(range(1, length), min(count, length - 1)))
    )
    return [Place(shape, first + n, tuple(events_of(shape, first + n)[:cut])) for n, cut in enumerate(chosen)]


def at_random_bytes(shape: str, count: int, first: int) -> list[Place]:
    chosen = random.Random(f"{shape} {first}")
    places = []
    for number in range(first, first + count):
        whole = b"".join(events_of(shape, number))
        places.append(Place(shape, number, (whole[: chosen.randrange(1, len(whole))],)))
    return places


@pytest.mark.proves("kill")
@pytest.mark.timeout(240)
@DATABASES
def test_killed_at_every_event_boundary_and_at_any_byte(
    serve: Serve, connect: Connect, request: pytest.FixtureRequest, database_kind: str, proof: Proof, trials: Trials
) -> None:
    """In full size at every boundary of every shape; the suite takes some of each."""
    url = request.getfixturevalue("postgres_url") if database_kind == "postgres" else None
    boundaries = None if SCALE is not None and SCALE >= 0.1 else 4
    bytes_each = max(1, trials(1_000 / len(SHAPES), 2))
    places: list[Place] = []
    for shape in SHAPES:
        places += at_event_boundaries(shape, boundaries, len(places))
        places += at_random_bytes(shape, bytes_each, len(places))
    random.Random(1).shuffle(places)
    with Models() as models:
        models.lenient = True
        served = serve(url, BRIDGE_HOLD_SECONDS="0.05", BRIDGE_PING_SECONDS="0.2", **settings(models.url))
        for start in range(0, len(places), BATCH):
            _kill(served, connect, models, places[start : start + BATCH], proof)
        _none_runs(served)


def _kill(served: Served, connect: Connect, models: Models, places: Iterable[Place], proof: Proof) -> None:
    client = connect(served)
    with ExitStack() as streams:
        begun: list[tuple[Place, Iterator[Event]]] = []
        for place in places:
            before = len(models.requests)
            models.queue(_path(place.shape), place.answer())
            thinking = {"type": "enabled", "budget_tokens": 2000}
            asked = body(f"{place.chain.mark} Go.", model=BY_NAME[place.shape].route, tools=TOOLS, stream=True)
            response = streams.enter_context(
                client.http.stream("POST", "/v1/messages", json=asked | {"max_tokens": 4096, "thinking": thinking})
            )
            assert response.status_code == 200, response.read()
            begun.append((place, read_events(response)))
            models.wait_for_requests(before + 1)
        shown = [Shown(place, _until_quiet(events)) for place, events in begun]
        served.bridge.crash()
    client.http.close()
    served.bridge.start()
    again = Client(served.bridge.url, client.api_key)
    for each in shown:
        with proof.trial(f"{each.place.shape}, killed after {len(b''.join(each.place.steps))} bytes"):
            for block in each.calls:
                _resolves(again, models, each.place, block)
    again.close()
    proof.worst("calls that were seen at once", sum(len(each.calls) for each in shown))


def _until_quiet(events: Iterator[Event]) -> list[Event]:
    """Two pings without anything between them: on a slow machine one may come before what was on its way."""
    seen: list[Event] = []
    quiet = 0
    for event in events:
        quiet = quiet + 1 if event.name == "ping" else 0
        if quiet == 2:
            return [shown for shown in seen if shown.name != "ping"]
        seen.append(event)
        if event.name == "message_stop":
            return seen
    raise AssertionError(f"the stream ended by itself: {seen}")


def _resolves(client: Client, models: Models, place: Place, block: dict[str, Any]) -> None:
    """A lone result for it is answered: the upstream gets a legal history with the call's name and that result."""
    before = len(models.requests)
    provider = BY_NAME[place.shape]
    response = client.ask(result(block["id"], "found"), tools=TOOLS, model=provider.route, max_tokens=4096)
    assert response.status_code == 200, response.text
    assert len(models.requests) == before + 1
    sent = models.requests[-1]
    assert provider.dialect.refused(sent.body, long_ids=False) == []
    assert provider.dialect.opening(sent.json()).startswith(place.chain.mark)
    (turn,) = provider.dialect.turns(sent.json())
    names = [name for name, _ in turn.gist.calls]
    assert block["name"] in names, names
    assert names == [call.name for call in STEPS[1].calls][: len(names)]
    assert any("found" in answered.text for answered in turn.results), turn.results


def _none_runs(served: Served) -> None:
    """Nobody waits thirty seconds for the dead in a test: they were last seen long ago."""
    served.records.reconnect()
    served.records.age_processes()
    served.bridge.manage("shell", "-c", "from conversations.tasks import reconcile_turns; reconcile_turns()")
    assert not served.records.rows("Turn").filter(status="running").exists()


def test_an_answer_that_was_complete_is_known_as_a_whole(serve: Serve, connect: Connect) -> None:
    """Killed right after `message_stop`: a continued thread finds everything."""
    served = serve(BRIDGE_HOLD_SECONDS="0.05", BRIDGE_PING_SECONDS="0.2")
    client = connect(served)
    served.chat(chat.streamed_calls(OSLO, TIME), chat.text("ok"))
    events = client.events("Go", tools=[TOOL, CLOCK], thread={"type": "create"})
    served.bridge.crash()
    served.bridge.start()
    start = next(event for event in events if event.name == "message_start")
    ids = [event.data["content_block"]["id"] for event in events if event.name == "content_block_start"]
    results = [block for id_ in ids for block in result(id_)["content"]]
    thread = {"type": "continue", "previous_message_id": start.data["message"]["id"]}
    assert client.ask({"role": "user", "content": results}, thread=thread).status_code == 200
    assert [call["id"] for call in served.sent()["messages"][1]["tool_calls"]] == ["call_1", "call_2"]
