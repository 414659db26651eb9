"""What goes wrong at an upstream, in each dialect, through the real bridge: right status, right type, one end."""

from typing import Any

import pytest

from tests.e2e.dialects.models import Models
from tests.e2e.dialects.providers import BY_NAME
from tests.e2e.dialects.script import TOOLS
from tests.e2e.dialects.wire import WIRES, Wire
from tests.servers.client import Client, folded, names
from tests.servers.records import Records
from tests.servers.script import Abort, Answer, Raw, json_answer, sse_answer

Faults = dict[str, tuple[Any, int, str, dict[str, str]]]

HTML = b"<html><body>502 Bad Gateway secret</body></html>"


def html(status: int) -> Answer:
    return Answer((HTML,), status, {"content-type": "text/html"})


def faults(wire: Wire) -> Faults:
    """Name -> what the upstream says, and the status, error type and headers that the client gets to see."""
    return {
        "400": (wire.refusal(400, "too odd"), 400, "invalid_request_error", {}),
        "401": (wire.refusal(401, "bad secret"), 502, "api_error", {"x-should-retry": "false"}),
        "404": (wire.refusal(404, "no such model"), 404, "not_found_error", {}),
        "429": (wire.refusal(429, "slow down", retry_after="7"), 429, "rate_limit_error", {"retry-after": "7"}),
        "500": (wire.refusal(500, "broken"), 502, "api_error", {}),
        "503": (wire.refusal(503, "busy"), 529, "overloaded_error", {}),
        "529": (wire.refusal(529, "busy"), 529, "overloaded_error", {}),
        "html 502": (html(502), 502, "api_error", {}),
        "html 200": (html(200), 502, "api_error", {}),
        "nothing": (Answer(()), 502, "api_error", {}),
        "an empty stream": (sse_answer(), 502, "api_error", {}),
        "closed": (Raw(()), 502, "api_error", {}),
        "an empty object": (json_answer({}), 502, "api_error", {}),
        "overloaded in band": (sse_answer(wire.overloaded), 529, "overloaded_error", {}),
        "limited in band": (sse_answer(wire.limited), 429, "rate_limit_error", {}),
        "an error as 200": (json_answer(wire.error(429, "slow down")), 429, "rate_limit_error", {}),
    }


CASES = [(name, fault) for name in WIRES for fault in faults(WIRES[name])]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_fault_before_anything_is_shown_has_a_real_status(
    name: str, fault: str, stream: bool, client: Client, models: Models
) -> None:
    wire = WIRES[name]
    answer, status, kind, headers = faults(wire)[fault]
    # An answer of Gemini's that holds nothing is asked for once more.
    times = 2 if (name, fault) == ("gemini", "an empty object") else 1
    models.queue(wire.path if stream else wire.whole_path, *[answer] * times)
    response = client.ask("Hi", model=BY_NAME[name].route, stream=stream)
    found = response.json()
    assert (response.status_code, found["type"], found["error"]["type"]) == (status, "error", kind), found
    assert {header: response.headers.get(header) for header in headers} == headers
    assert "secret" not in response.text
    assert found["error"]["message"]
    assert len(models.requests) == times


def cuts(wire: Wire) -> dict[str, tuple[tuple[Any, ...], str]]:
    return {
        "closed": ((), "api_error"),
        "reset": ((Abort(),), "api_error"),
        "overloaded": ((wire.overloaded,), "overloaded_error"),
        "limited": ((wire.limited,), "rate_limit_error"),
        "garbage": ((b"data: {not json\n\n",), "api_error"),
        "html": ((HTML,), "api_error"),
        "half an event": ((wire.end[0][:20],), "api_error"),
    }


@pytest.mark.parametrize("cut", list(cuts(WIRES["openai"])))
@pytest.mark.parametrize("name", WIRES)
def test_a_stream_that_breaks_ends_in_one_error(
    name: str, cut: str, client: Client, models: Models, records: Records
) -> None:
    wire = WIRES[name]
    frames, kind = cuts(wire)[cut]
    models.queue(wire.path, sse_answer(*wire.text, *frames))
    events = client.events("Hi", model=BY_NAME[name].route)
    said = [block["text"] for block in folded(events) if block["type"] == "text"]
    assert said == ["Hel"]
    assert names(events).count("error") == 1
    assert names(events)[-1] == "error"
    assert events[-1].data["error"]["type"] == kind
    (turn,) = records.ended(client.api_key, 1)
    assert (turn.status, turn.error_type) == ("error", kind)


@pytest.mark.parametrize("cut", ["closed", "reset", "overloaded"])
@pytest.mark.parametrize("name", WIRES)
def test_a_broken_stream_is_no_whole_answer(name: str, cut: str, client: Client, models: Models) -> None:
    """Servers stream to who did not ask for it: half of an answer is an error then, too."""
    wire = WIRES[name]
    frames, kind = cuts(wire)[cut]
    models.queue(wire.whole_path, sse_answer(*wire.text, *frames))
    response = client.ask("Hi", model=BY_NAME[name].route)
    assert (response.status_code >= 400, response.json()["error"]["type"]) == (True, kind)


@pytest.mark.parametrize("name", WIRES)
def test_a_call_that_is_cut_off_is_never_complete(name: str, client: Client, models: Models) -> None:
    wire = WIRES[name]
    models.queue(wire.path, sse_answer(*wire.text, *wire.call))
    events = client.events("Hi", model=BY_NAME[name].route, tools=TOOLS)
    blocks = folded(events)
    assert names(events)[-1] == "error"
    stopped = {event.data["index"] for event in events if event.name == "content_block_stop"}
    assert not [number for number in stopped if blocks[number]["type"] == "tool_use"]


@pytest.mark.parametrize("name", WIRES)
def test_the_pieces_of_these_tests_make_an_answer(name: str, client: Client, models: Models) -> None:
    wire = WIRES[name]
    models.queue(wire.path, sse_answer(*wire.text, *wire.end))
    events = client.events("Hi", model=BY_NAME[name].route)
    assert [block["text"] for block in folded(events) if block["type"] == "text"] == ["Hello"]
    assert names(events)[-1] == "message_stop"


@pytest.mark.parametrize("name", WIRES)
def test_what_comes_after_the_end_is_not_said(name: str, client: Client, models: Models) -> None:
    wire = WIRES[name]
    models.queue(wire.path, sse_answer(*wire.text, *wire.end, *wire.text, wire.overloaded))
    events = client.events("Hi", model=BY_NAME[name].route)
    assert names(events).count("message_stop") + names(events).count("error") == 1
    assert names(events)[-1] in ("message_stop", "error")
