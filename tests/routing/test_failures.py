"""Upstreams that fail in every way before anything was shown: another try, another target, the right status."""

import json
from typing import Any

import pytest

from tests.routing.lab import Lab, timed
from tests.servers.chat import chunk, error, sse, streamed_text, text
from tests.servers.client import folded, names
from tests.servers.ports import free_port
from tests.servers.script import Abort, Answer, Raw, Silence, json_answer, sse_answer

HTML = {"content-type": "text/html"}
WAYS: dict[str, Answer | Raw] = {
    "limited": error(429, "slow down"),
    "limited for long": error(429, "slow down", {"retry-after": "60"}),
    "overloaded": error(529, "overloaded"),
    "unavailable": error(503, "no capacity"),
    "broken": error(500, "oops"),
    "bad gateway in HTML": Answer((b"<html>502</html>",), 502, HTML),
    "HTML with 200": Answer((b"<html>login</html>",), 200, HTML),
    "not JSON": Answer((b"{",), 200, {"content-type": "application/json"}),
    "no choices": json_answer({"id": "c", "choices": []}),
    "reset before the head": Raw((Abort(),)),
    "cut in the head": Raw((b"HTTP/1.1 200",)),
    "cut before content": sse_answer(chunk({"role": "assistant"}), Abort()),
    "ended before content": sse_answer(chunk({"role": "assistant"})),
    "error in the stream": sse_answer(sse({"error": {"message": "overloaded", "code": 503}})),
    "silent": sse_answer(chunk({"role": "assistant"}), Silence()),
    "silent from the start": Raw((Silence(),)),
    "key refused": error(401, "bad key"),
    "key forbidden": error(403, "not yours"),
    "model missing": error(404, "no such model"),
}
FINAL = ("key refused", "key forbidden", "model missing", "limited for long")  # no second try would help


@pytest.mark.parametrize("way", WAYS)
def test_any_failure_before_the_first_block_leads_to_the_fallback(lab: Lab, way: str) -> None:
    a, b = lab.upstream("a"), lab.upstream("b")
    lab.always(a, WAYS[way])
    lab.answers(b, streamed_text("from b"))
    events = lab.client.events("hi", model=lab.route(f"{a}/one", f"{b}/two"))
    assert folded(events) == [{"type": "text", "text": "from b"}]
    assert names(events).count("message_start") == 1
    tries = 1 if way in FINAL else 2
    assert lab.attempts() == lab.ledger() == [("a", "error")] * tries + [("b", "complete")]
    assert len(lab.requests(a)) == tries
    assert lab.requests(b)[0].json()["model"] == "two"
    turn = lab.turn()
    assert (turn.upstream, turn.resolved_model, turn.status) == (b, "two", "complete")
    assert [note["rule"] for note in lab.notes()] == ["fallback"]


STATUSES = {
    "limited": (429, "rate_limit_error"),
    "limited for long": (429, "rate_limit_error"),
    "overloaded": (529, "overloaded_error"),
    "unavailable": (529, "overloaded_error"),
    "broken": (502, "api_error"),
    "bad gateway in HTML": (502, "api_error"),
    "reset before the head": (502, "api_error"),
    "silent from the start": (504, "timeout_error"),
    "key refused": (502, "api_error"),
    "model missing": (404, "not_found_error"),
}


@pytest.mark.parametrize("way", STATUSES)
def test_without_a_fallback_the_client_gets_the_upstreams_own_fault(lab: Lab, way: str) -> None:
    a = lab.upstream("a")
    lab.always(a, WAYS[way])
    response = lab.ask(lab.route(f"{a}/one"))
    assert (response.status_code, response.json()["error"]["type"]) == STATUSES[way]
    assert response.headers.get("retry-after") == ("60" if way == "limited for long" else None)
    assert lab.turn().status == "error"
    assert len(lab.ledger()) == len(lab.requests(a)) == (1 if way in FINAL else 2)


def test_when_everything_fails_the_client_hears_of_its_own_target(lab: Lab) -> None:
    a, b = lab.upstream("a"), lab.upstream("b")
    lab.always(a, error(429, "slow down", {"retry-after": "60"}))
    lab.always(b, error(404, "no such model"))
    response = lab.ask(lab.route(f"{a}/one", f"{b}/two"))
    assert (response.status_code, response.headers["retry-after"]) == (429, "60")
    assert lab.attempts() == [("a", "error"), ("b", "error")]


def test_a_request_that_the_upstream_finds_wrong_is_not_sent_elsewhere(lab: Lab) -> None:
    a, b = lab.upstream("a"), lab.upstream("b")
    lab.always(a, error(400, "messages: too rude"))
    response = lab.ask(lab.route(f"{a}/one", f"{b}/two"))
    assert (response.status_code, "too rude" in response.text) == (400, True)
    assert (len(lab.requests(a)), len(lab.requests(b))) == (1, 0)


def test_once_something_was_shown_nothing_is_tried_again(lab: Lab) -> None:
    a, b = lab.upstream("a"), lab.upstream("b")
    lab.answers(a, sse_answer(chunk({"content": "Well, "}), Abort()))
    events = lab.client.events("hi", model=lab.route(f"{a}/one", f"{b}/two"))
    assert names(events)[-1] == "error"
    assert (len(lab.requests(a)), len(lab.requests(b))) == (1, 0)


def test_the_second_try_waits_as_long_as_the_upstream_says(lab: Lab) -> None:
    a = lab.upstream("a")
    lab.answers(a, error(429, "slow down", {"retry-after": "1"}), text("there you are"))
    model = lab.route(f"{a}/one")
    elapsed, response = timed(lambda: lab.ask(model))
    assert response.json()["content"][0]["text"] == "there you are"
    assert elapsed >= 1
    assert lab.attempts() == lab.ledger() == [("a", "error"), ("a", "complete")]


def test_a_fallback_gets_the_request_in_its_own_dialect(lab: Lab) -> None:
    a, b = lab.upstream("a"), lab.upstream("b", "gemini")
    lab.always(a, error(500, "oops"))
    part = {"candidates": [{"content": {"parts": [{"text": "from b"}]}, "finishReason": "STOP"}]}
    lab.answers(b, json_answer(part), path="/models/two:generateContent")
    response = lab.ask(lab.route(f"{a}/one", f"{b}/two"))
    assert response.json()["content"] == [{"type": "text", "text": "from b"}]
    assert lab.requests(b)[0].json()["contents"] == [{"role": "user", "parts": [{"text": "hi"}]}]
    turn = lab.turn()
    assert (turn.upstream, json.loads(bytes(turn.sent_meta))["path"]) == (b, "/models/two:generateContent")


def test_a_fallback_that_cannot_take_the_request_is_passed_over(lab: Lab) -> None:
    a, blind, b = lab.upstream("a"), lab.upstream("blind", "deepseek"), lab.upstream("b")
    lab.always(a, error(500, "oops"))
    lab.answers(b, text("I see"))
    pixel = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    model = lab.route(f"{a}/one", f"{blind}/x", f"{b}/two")
    response = lab.client.ask({"role": "user", "content": [pixel]}, model=model)
    assert response.json()["content"][0]["text"] == "I see"
    assert [note["what"].partition(" ")[0] for note in lab.notes()] == [f"{blind}/x", f"{a}/one"]


def test_an_upstream_that_cannot_be_reached_rests_while_others_can(lab: Lab) -> None:
    dead = lab.upstream("dead", base_url=f"http://127.0.0.1:{free_port()}/v1")
    b = lab.upstream("b")
    lab.always(b, text("from b"))
    model = lab.route(f"{dead}/one", f"{b}/two")
    for _ in range(3):
        lab.ask(model)
        assert lab.attempts()[0] == ("dead", "error")
    assert lab.ask(model).json()["content"][0]["text"] == "from b"
    assert lab.attempts() == [("b", "complete")]
    assert "rests" in lab.notes()[0]["what"]
    rest = lab.records.rows("Rest").get(upstream=dead)
    assert (rest.key, rest.is_over, rest.reason) == (0, False, "the upstream could not be reached")


def test_what_rests_is_the_last_resort(lab: Lab) -> None:
    port = free_port()
    a, b = lab.upstream("a", base_url=f"http://127.0.0.1:{port}/v1"), lab.upstream("b")
    lab.always(b, text("from b"))
    model = lab.route(f"{a}/one", f"{b}/two")
    for _ in range(3):
        lab.ask(model)
    lab.always(b, error(500, "oops"))
    assert lab.ask(model).status_code == 502
    assert lab.attempts() == [("b", "error")] * 2 + [("a", "error")] * 2


FRAMES: tuple[dict[str, Any], ...] = (
    {"type": "message_start", "message": {
        "id": "msg_up", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "from claude"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
)  # fmt: skip
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def frame(data: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (data["type"].encode(), json.dumps(data).encode())


def test_from_anthropic_to_another_model(lab: Lab) -> None:
    claude, b = lab.upstream("claude", "anthropic"), lab.upstream("b")
    lab.always(claude, sse_answer(frame(FRAMES[0]), frame(OVERLOADED)), path="/messages")
    lab.answers(b, streamed_text("from b"))
    events = lab.client.events("hi", model=lab.route(f"{claude}/one", f"{b}/two"))
    assert folded(events) == [{"type": "text", "text": "from b"}]
    assert names(events).count("message_start") == 1
    assert "msg_up" not in str(events)
    assert lab.attempts() == [("claude", "error")] * 2 + [("b", "complete")]


def test_from_another_model_to_anthropic(lab: Lab) -> None:
    a, claude = lab.upstream("a"), lab.upstream("claude", "anthropic", keys=["sk-ant"])
    lab.always(a, error(529, "overloaded"))
    lab.answers(claude, sse_answer(*map(frame, FRAMES)), path="/messages")
    model = lab.route(f"{a}/one", f"{claude}/claude-opus-5", guidance="Be kind.")
    events = lab.client.events("hi", model=model, system="x-anthropic-billing-header: cch=1;")
    assert folded(events) == [{"type": "text", "text": "from claude"}]
    request = lab.requests(claude)[0]
    assert (request.headers["x-api-key"], request.json()["model"]) == ("sk-ant", "claude-opus-5")
    assert request.json()["system"] == "x-anthropic-billing-header: cch=1;"
    assert [note["kind"] for note in lab.notes()] == ["degradation"]


def test_without_another_target_it_is_tried_every_time(lab: Lab) -> None:
    dead = lab.upstream("dead", base_url=f"http://127.0.0.1:{free_port()}/v1")
    model = lab.route(f"{dead}/one")
    for _ in range(4):
        assert lab.ask(model).status_code == 502
    assert lab.attempts() == [("dead", "error")] * 2


def test_one_bad_request_never_puts_an_upstream_to_rest(lab: Lab) -> None:
    a, b = lab.upstream("a"), lab.upstream("b")
    lab.always(b, text("from b"))
    model = lab.route(f"{a}/one", f"{b}/two")
    for _ in range(4):
        lab.answers(a, error(500, "this prompt crashes me"), error(500, "this prompt crashes me"))
        lab.ask(model)
    lab.answers(a, text("from a"))
    assert lab.ask(model).json()["content"][0]["text"] == "from a"
