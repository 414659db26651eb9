"""The Responses decoder: captures at every cut, and what servers do that is not in the book."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.translation.captures import Case, cases, check, check_cut, describe, points
from tests.translation.frames import sse
from translation.adapter import Decoder
from translation.events import Event, Failed, Finished, ToolEnded
from translation.providers.openai_responses import OpenAIResponses
from translation.providers.openai_responses_stream import ResponsesStream
from translation.providers.openai_responses_whole import ResponsesWhole
from translation.sse import MAX_EVENT
from translation.values import Usage

CASES = cases("openai-responses", "xai-responses")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_capture_gives_its_events_whole_and_byte_by_byte(case: Case) -> None:
    check(OpenAIResponses(), case)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_capture_gives_its_events_at_any_cut(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    check_cut(OpenAIResponses(), case, data.draw(points(case)))


def run(*frames: object, decoder: Decoder | None = None) -> list[Event]:
    decoder = decoder or ResponsesStream({})
    return decoder.feed(sse(*frames)) + decoder.close()


def whole(body: bytes) -> list[Event]:
    decoder = ResponsesWhole({})
    return decoder.feed(body[:3]) + decoder.feed(body[3:]) + decoder.close()


def done(**item: object) -> dict[str, object]:
    return {"type": "response.output_item.done", "item": item}


COMPLETED = {"type": "response.completed", "response": {"status": "completed"}}


@pytest.mark.parametrize("code", ["cyber_policy", "bio_policy"])
def test_what_a_classifier_stops_is_a_refusal_and_not_asked_for_again(code: str) -> None:
    """Its answer so far stays, a call that had begun does not."""
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f"}
    begun = {"type": "response.output_item.added", "output_index": 1, "item": call}
    response = {"status": "failed", "error": {"code": code, "message": "It was flagged."}, "usage": {"input_tokens": 9}}
    said = {"type": "response.output_text.delta", "item_id": "m", "delta": "Well"}
    events = run(said, begun, {"type": "response.failed", "response": response})
    *before, finished = describe(events)
    assert [event["type"] for event in before] == ["TextDelta", "ToolStarted", "ToolDropped"]
    assert (finished["reason"], finished["explanation"]) == ("refusal", "It was flagged.")
    assert describe(whole(msgspec.json.encode(response)))[-1]["reason"] == "refusal"


def test_the_sequence_of_a_call_may_be_its_done_item_alone() -> None:
    events = run(done(type="function_call", id="fc_1", call_id="c1", name="f", arguments='{"a":1}'), COMPLETED)
    assert describe(events) == [
        {"type": "ToolStarted", "call": 0, "name": "f", "upstream_id": "c1", "upstream_name": "f"},
        {"type": "ToolEnded", "call": 0, "arguments": '{"a":1}', "state": {"id": "fc_1"}},
        {"type": "Finished", "reason": "tool_use"},
    ]


def test_items_without_an_index_are_told_apart_by_their_id() -> None:
    added = "response.output_item.added"
    fragment = "response.function_call_arguments.delta"
    events = run(
        {"type": added, "item": {"type": "function_call", "id": "a", "call_id": "1", "name": "f"}},
        {"type": added, "item": {"type": "function_call", "id": "b", "call_id": "2", "name": "g"}},
        {"type": fragment, "item_id": "a", "delta": '{"x":1}'},
        {"type": fragment, "item_id": "b", "delta": '{"y":2}'},
        COMPLETED,
    )
    ended = [event for event in describe(events) if event["type"] == "ToolEnded"]
    assert [event["arguments"] for event in ended] == ['{"x":1}', '{"y":2}']


def test_arguments_that_only_come_at_their_end_count_and_placeholders_do_not() -> None:
    events = run(
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "function_call", "id": "a", "call_id": "1", "name": "f"},
        },
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
        {"type": "response.function_call_arguments.done", "output_index": 0, "arguments": '{"x":1}'},
        COMPLETED,
    )
    assert {"type": "ToolEnded", "call": 0, "arguments": '{"x":1}', "state": {"id": "a"}} in describe(events)


def test_fragments_before_the_name_are_kept() -> None:
    events = run(
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "id": "a"}},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"x":1}'},
        done(type="function_call", call_id="1", name="f") | {"output_index": 0},
        COMPLETED,
    )
    assert describe(events)[1] == {"type": "ToolEnded", "call": 0, "arguments": '{"x":1}', "state": {"id": "a"}}


@pytest.mark.parametrize("status", [None, "completed"])
def test_a_call_that_is_not_said_to_be_cut_off_waits_for_the_responses_own_status(status: str | None) -> None:
    half = done(type="function_call", name="f", arguments='{"a', status=status)
    reply = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    events = run(half, {"type": "response.incomplete", "response": reply})
    assert [event["type"] for event in describe(events)] == ["ToolStarted", "ToolDropped", "Finished"]
    failed = run(half, COMPLETED)[-1]
    assert isinstance(failed, Failed)
    assert "not a JSON object" in failed.error.message


def test_mended_arguments_are_told() -> None:
    events = run(done(type="function_call", name="f", arguments='{"a":"b"'), COMPLETED)
    assert describe(events)[1]["arguments"] == '{"a":"b"}'
    assert describe(events)[2]["notes"] == ["arguments were cut short and closed"]


def test_text_and_reasoning_may_come_in_the_done_items_alone() -> None:
    events = run(
        done(type="reasoning", summary=[{"text": "a"}, {"text": "b"}]) | {"output_index": 0},
        done(type="message", content=[{"type": "output_text", "text": "hello"}]) | {"output_index": 1},
        COMPLETED,
    )
    assert describe(events) == [
        {"type": "ThinkingDelta", "text": "a\n\nb"},
        {"type": "TextDelta", "text": "hello"},
        {"type": "Finished", "reason": "stop"},
    ]


def test_an_empty_delta_is_nothing() -> None:
    assert len(run({"type": "response.output_text.delta", "delta": ""}, COMPLETED)) == 1


def test_reasoning_before_an_empty_message_belongs_to_what_comes_next() -> None:
    events = run(
        done(type="reasoning", id="rs", summary=[], encrypted_content="blob") | {"output_index": 0},
        done(type="message", content=[]) | {"output_index": 1},
        done(type="function_call", name="f", call_id="1") | {"output_index": 2},
        COMPLETED,
    )
    state = {"reasoning": [{"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "blob"}]}
    assert describe(events)[1] == {"type": "ToolEnded", "call": 0, "arguments": "{}", "state": state}


SUMMARY = [{"type": "summary_text", "text": "hm"}]
BLOB = {"type": "reasoning", "id": "rs", "encrypted_content": "blob"}
ITEM = BLOB | {"summary": SUMMARY, "content": None}


@pytest.mark.parametrize(
    ("item", "kept"),
    [
        (ITEM, [ITEM]),
        (ITEM | {"idx": 1, "role": "assistant"}, [ITEM]),
        (ITEM | {"summary": [SUMMARY[0] | {"x": 1}]}, [ITEM]),
        (BLOB, [BLOB | {"summary": []}]),
        (ITEM | {"summary": None}, [BLOB | {"summary": []}]),
        (ITEM | {"summary": [{"text": "hm"}]}, [BLOB | {"summary": []}]),
        (ITEM | {"content": [{"type": "output_text", "text": "hm"}]}, [BLOB | {"summary": []}]),
        (ITEM | {"encrypted_content": ""}, []),
        (ITEM | {"encrypted_content": None}, []),
    ],
)
def test_reasoning_is_kept_as_far_as_the_api_takes_it_back(item: dict[str, object], kept: list[object]) -> None:
    call = done(type="function_call", name="f", call_id="1") | {"output_index": 1}
    events = run(done(**item) | {"output_index": 0}, call, COMPLETED)
    (state,) = [event.state for event in events if isinstance(event, ToolEnded)]
    assert (msgspec.json.decode(state).get("reasoning", []) if state else []) == kept


FOUND = {"type": "search", "query": "q", "sources": [{"type": "api", "name": "oai-weather"}]}
SEARCH = {"type": "web_search_call", "id": "ws", "status": "completed", "action": FOUND}


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ([ITEM, SEARCH], [ITEM, SEARCH | {"action": {"type": "search", "query": "q"}}]),
        ([ITEM, SEARCH | {"action": None}], [ITEM]),
        ([SEARCH], []),
    ],
)
def test_a_search_that_reasoning_led_to_is_kept_with_it(items: list[dict[str, object]], kept: list[object]) -> None:
    items = [*items, {"type": "function_call", "name": "f", "call_id": "1"}]
    events = run(*(done(**item) | {"output_index": index} for index, item in enumerate(items)), COMPLETED)
    (state,) = [event.state for event in events if isinstance(event, ToolEnded)]
    assert (msgspec.json.decode(state)["reasoning"] if state else []) == kept


def test_a_phase_that_is_none_is_not_kept() -> None:
    text = {"type": "output_text", "text": "hello"}
    assert describe(run(done(type="message", phase="role", content=[text]), COMPLETED))[-1].get("state") is None


def test_an_item_without_a_counterpart_is_noted() -> None:
    (finished,) = run(done(type="image_generation_call"), COMPLETED)
    assert isinstance(finished, Finished)
    assert "image_generation_call" in finished.notes[0]


def test_sources_may_come_in_the_done_item_alone_and_other_annotations_are_none() -> None:
    annotations = [{"type": "url_citation", "url": "https://a.example", "title": "A"}, {"type": "file_citation"}]
    text = {"type": "output_text", "text": "sunny", "annotations": annotations}
    events = describe(run(done(type="message", content=[text]), COMPLETED))
    assert [event["type"] for event in events] == ["TextDelta", "Citation", "Finished"]


def test_done_alone_ends_the_stream_and_nothing_follows() -> None:
    decoder = ResponsesStream({})
    said = {"type": "response.output_text.delta", "delta": "a"}
    assert describe(run(said, b"[DONE]", decoder=decoder))[1:] == [{"type": "Finished", "reason": "stop"}]
    assert decoder.feed(b"data: {}\n\n") == []
    assert decoder.close() == []


def test_events_after_the_end_of_the_same_read_are_dropped() -> None:
    assert len(run(COMPLETED, {"type": "response.output_text.delta", "delta": "late"}, COMPLETED)) == 1


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (b"{", "UpstreamProtocolError"),
        (b"[1]", "UpstreamProtocolError"),
        ({"type": "response.output_text.delta", "delta": {"a": 5}}, "UpstreamProtocolError"),
        (done(type="function_call", call_id="1"), "UpstreamProtocolError"),
        (done(type="function_call", name="f", arguments="nonsense"), "UpstreamProtocolError"),
        (
            {"type": "response.incomplete", "response": {"incomplete_details": {"reason": "brand_new"}}},
            "UpstreamProtocolError",
        ),
        ({"type": "response.cancelled", "response": {"status": "cancelled"}}, "UpstreamFailed"),
        ({"type": "response.failed", "response": {"status": "failed"}}, "UpstreamFailed"),
        ({"type": "error", "error": "overloaded", "code": 503}, "UpstreamOverloaded"),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}, "UpstreamRefused"),
        ({"type": "error", "code": "invalid_prompt", "message": "no"}, "UpstreamRefused"),
        ({"type": "error", "code": "bio_policy", "message": "no"}, "UpstreamRefused"),
        ({"type": "error", "code": "slow_down", "message": "later"}, "UpstreamOverloaded"),
        ({"type": "error"}, "UpstreamFailed"),
        ({"type": "response.in_progress"}, "TruncatedStream"),
    ],
)
def test_what_cannot_go_on_ends_in_one_failure(frame: object, error: str) -> None:
    last = run(frame)[-1]
    assert isinstance(last, Failed)
    assert type(last.error).__name__ == error


def test_a_rejected_blob_in_the_stream_says_so() -> None:
    message = "The encrypted content gAAA...DQ== could not be verified."
    (failed,) = run({"type": "error", "code": "invalid_encrypted_content", "message": message})
    assert isinstance(failed, Failed)
    assert failed.error.code == "opaque_state_rejected"


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[1]"])
def test_a_whole_answer_without_output_is_a_protocol_error(body: bytes) -> None:
    (failed,) = whole(body)
    assert isinstance(failed, Failed)
    assert type(failed.error).__name__ == "UpstreamProtocolError"


def test_a_whole_answer_that_failed_is_an_error() -> None:
    (failed,) = whole(b'{"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}}')
    assert isinstance(failed, Failed)
    assert type(failed.error).__name__ == "UpstreamRateLimited"


def test_an_item_that_comes_twice_goes_back_under_its_id_once() -> None:
    call = done(type="function_call", id="fc_1", call_id="c1", name="f", arguments="{}")
    reasoning = done(type="reasoning", id="rs_1", summary=[], encrypted_content="gAAA")
    text = done(type="message", id="msg_1", content=[{"type": "output_text", "text": "a"}])
    states = [event.state for event in run(reasoning, call, reasoning, call, COMPLETED) if isinstance(event, ToolEnded)]
    assert [msgspec.json.decode(state).get("id") if state else None for state in states] == ["fc_1", None]
    assert b"rs_1" not in states[1]
    finished = run(reasoning, text, text, COMPLETED)[-1]
    assert isinstance(finished, Finished)
    assert finished.state.count(b"msg_1") == 1


def test_bytes_that_are_not_utf_8_are_no_answer_wherever_they_are() -> None:
    item = b'{"type":"reasoning","id":"r","encrypted_content":"g","x":"\xff"}'
    strange = b'{"type":"response.output_item.done","item":%b}' % item
    assert isinstance(run(strange, COMPLETED)[-1], Failed)
    assert isinstance(whole(b'{"status":"completed","output":[],"x":"\xff"}')[-1], Failed)


def test_an_answer_without_end_is_cut_off() -> None:
    decoder = ResponsesWhole({})
    assert decoder.feed(b'{"output":') == []
    (failed,) = decoder.feed(b" " * MAX_EVENT)
    assert isinstance(failed, Failed)
    assert decoder.feed(b"more") == []
    assert decoder.close() == []


def test_counts_of_zero_are_none() -> None:
    counted = {"status": "completed", "usage": {"input_tokens": 0, "output_tokens": 0}}
    (finished,) = run({"type": "response.completed", "response": counted})
    assert isinstance(finished, Finished)
    assert finished.usage is None


def test_a_count_of_less_than_nothing_is_none() -> None:
    details = {"output_tokens_details": {"reasoning_tokens": -1}, "input_tokens_details": {"cached_tokens": -1}}
    for told, wanted in (
        ({"input_tokens": 7, "output_tokens": -1}, (7, 0)),
        ({"output_tokens": 3, "input_tokens": -1}, (0, 3)),
    ):
        (finished,) = run({"type": "response.completed", "response": {"status": "completed", "usage": told | details}})
        assert isinstance(finished, Finished)
        assert finished.usage == Usage(*wanted)


def begun(place: int, **item: object) -> dict[str, object]:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def test_reasoning_goes_back_also_where_only_the_closing_event_has_it() -> None:
    """A server that says of no item that it is done: what it streamed is not told twice, and its state is not lost."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    message = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hi"}]}
    calls = [
        {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": "f", "arguments": '{"a":1}'}
        for name in "ab"
    ]
    output = [thought, message, calls[0], {**thought, "id": "rs_2"}, calls[1]]
    pieces = [
        {"type": "response.function_call_arguments.delta", "output_index": place, "delta": '{"a":1}'}
        for place in (2, 4)
    ]
    events = run(
        begun(0, type="reasoning", id="rs_1"),
        {"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "delta": "Hm."},
        {"type": "response.output_text.delta", "item_id": "msg_other", "output_index": 1, "delta": "Hi"},
        begun(2, **{**calls[0], "arguments": ""}),
        pieces[0],
        {"type": "response.reasoning_summary_text.delta", "item_id": "rs_2", "output_index": 3, "delta": "Hm."},
        begun(4, **{**calls[1], "arguments": ""}),
        pieces[1],
        {"type": "response.completed", "response": {"status": "completed", "output": output}},
    )
    assert [type(event).__name__ for event in events if not isinstance(event, Finished)] == [
        "ThinkingDelta", "TextDelta", "ToolStarted", "ToolArguments", "ThinkingDelta", "ToolStarted", "ToolArguments",
        "ToolEnded", "ToolEnded",
    ]  # fmt: skip
    ended = [msgspec.json.decode(event.state) for event in events if isinstance(event, ToolEnded)]
    assert [state["id"] for state in ended] == ["fc_a", "fc_b"]
    assert ended[0]["texts"] == [{"length": 2, "id": "msg_1", "reasoning": [thought]}]
    assert [item["id"] for item in ended[1]["reasoning"]] == ["rs_2"]


def test_a_call_that_the_token_limit_cut_off_is_not_run_where_only_the_closing_event_has_it() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": ""}
    limit = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": [call]}
    events = describe(run(begun(0, **call), {"type": "response.incomplete", "response": limit}))
    assert [event["type"] for event in events] == ["ToolStarted", "ToolDropped", "Finished"]
