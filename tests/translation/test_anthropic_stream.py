"""Anthropic's answers: watched, and passed on byte for byte."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.translation.captures import CAPTURES, Case, cases, check, check_cut, cut, decode, load, points
from tests.translation.frames import sse as lines_of
from translation.accumulator import Accumulator
from translation.client.render import message_body, sse
from translation.errors import TruncatedStream, UpstreamProtocolError
from translation.events import (
    BlockStop,
    Event,
    Failed,
    Finished,
    Frame,
    MessageDelta,
    MessageStop,
    TextDelta,
    ToolEnded,
    ToolStarted,
    WireEvent,
)
from translation.hosted_relay import HostedRelay
from translation.providers.anthropic import Anthropic
from translation.providers.anthropic_stream import AnthropicStream
from translation.providers.anthropic_whole import AnthropicWhole
from translation.relay import RelayWriter
from translation.values import Tool, Usage

CASES = cases("anthropic")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_capture_gives_its_events_whole_and_byte_by_byte(case: Case) -> None:
    check(Anthropic(), case)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_capture_gives_its_events_at_any_cut(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    check_cut(Anthropic(), case, data.draw(points(case)))


def relay(reads: list[list[Event]]) -> tuple[bytes, Accumulator]:
    """What a client gets, driven as the bridge does: each read's events, then the end."""
    writer, accumulator = RelayWriter(), Accumulator()
    out: list[WireEvent] = [writer.start("msg_ours", "ours", Usage())]
    for events in reads:
        out += writer.feed(events)
        if events and isinstance(events[-1], Finished):
            out += writer.finish(events[-1], Usage())
    accumulator.feed(out)
    return sse(out), accumulator


def passed(case: Case, chunks: list[bytes]) -> tuple[bytes, Accumulator]:
    decoder = Anthropic().decoder(
        case.request, case.target, Anthropic().build(case.request, case.target), case.content_type
    )
    return relay([*(decoder.feed(chunk) for chunk in chunks), decoder.close()])


COMPLETE = [
    case
    for case in CASES
    if case.upstream.endswith(b'data: {"type":"message_stop"}\n\n') and b"event: error" not in case.upstream
]


@pytest.mark.parametrize("case", COMPLETE, ids=lambda case: case.id)
def test_a_complete_stream_passes_byte_for_byte(case: Case) -> None:
    assert passed(case, [case.upstream])[0] == case.upstream
    assert passed(case, [bytes([byte]) for byte in case.upstream])[0] == case.upstream


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_complete_stream_passes_byte_for_byte_at_any_cut(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(COMPLETE))
    assert passed(case, cut(case.upstream, data.draw(points(case))))[0] == case.upstream


def capture(name: str) -> Case:
    return load(CAPTURES / "anthropic" / name)


def test_what_comes_in_a_delta_that_is_only_carried_is_kept() -> None:
    """A thread goes on from what is kept: a compaction without its content is no summary of anything."""
    case = capture("compaction")
    said, accumulator = passed(case, [case.upstream])
    assert said == case.upstream
    summary = {"content": "They greeted each other.", "encrypted_content": "ZW5j", "signature": "c2ln"}
    assert json.loads(accumulator.content) == [{"type": "compaction", **summary}, {"type": "text", "text": "Hello!"}]


def test_a_delta_that_is_only_carried_passes_where_the_bridge_runs_tools() -> None:
    case = capture("compaction")
    relay = HostedRelay({})
    shown = sse(relay.feed(decode(Anthropic(), case, [case.upstream])))
    blocks = case.upstream[
        case.upstream.index(b"event: content_block_start") : case.upstream.index(b"event: message_delta")
    ]
    assert shown == blocks


def test_a_ping_passes_where_it_stands_inside_of_a_call() -> None:
    case = capture("thinking_and_parallel_calls")
    place = case.upstream.index(b"\n\n", case.upstream.index(b'"partial_json":""')) + 2
    said = case.upstream[:place] + b'event: ping\ndata: {"type":"ping"}\n\n' + case.upstream[place:]
    assert passed(case, [said])[0] == said


def test_what_follows_the_end_does_not_pass() -> None:
    case = capture("message_stop_twice")
    first = case.upstream.index(b"event: message_stop")
    end = case.upstream.index(b"\n\n", first) + 2
    assert passed(case, [case.upstream])[0] == case.upstream[:end]


def test_a_missing_message_stop_is_written_after_a_stop_reason() -> None:
    case = capture("stop_reason_without_message_stop")
    expected = case.upstream + b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    assert passed(case, [case.upstream])[0] == expected


def test_the_end_is_held_back_and_an_error_takes_its_place() -> None:
    case = capture("overloaded_in_the_middle")
    assert b"error" not in passed(case, [case.upstream])[0]
    assert b"message_stop" not in passed(case, [case.upstream])[0]
    broken = capture("text").upstream.replace(
        b"event: message_stop", b'event: error\ndata: {"type":"error"}\n\nevent: x'
    )
    assert b"message_delta" not in passed(capture("text"), [broken])[0]


def test_nothing_is_shown_before_the_first_block_so_that_an_early_error_can_be_tried_again() -> None:
    case = capture("text")
    opening = case.upstream[: case.upstream.index(b"event: content_block_start")]
    decoder, writer = AnthropicStream(), RelayWriter()
    assert writer.feed(decoder.feed(opening)) == []
    assert writer.blocks == 0
    shown = writer.feed(decoder.feed(case.upstream[len(opening) :]))
    assert sse(shown).startswith(opening)
    assert writer.blocks == 1


def test_an_empty_answer_passes_too() -> None:
    case = capture("text")
    blocks = case.upstream.index(b"event: content_block_start"), case.upstream.index(b"event: message_delta")
    empty = case.upstream[: blocks[0]] + case.upstream[blocks[1] :]
    assert passed(case, [empty])[0] == empty


def test_a_calls_events_come_before_its_frames() -> None:
    events = decode(
        Anthropic(), capture("thinking_and_parallel_calls"), [capture("thinking_and_parallel_calls").upstream]
    )
    for index, event in enumerate(events):
        if isinstance(event, ToolStarted):
            assert isinstance(events[index + 1], Frame)
            assert event.id == event.upstream_id
            assert event.id.encode() in events[index + 1].raw  # type: ignore[union-attr]  # a Frame
        if isinstance(event, ToolEnded):
            assert b"content_block_stop" in events[index + 1].raw  # type: ignore[union-attr]  # a Frame


def test_the_message_that_is_kept_is_the_one_that_was_shown() -> None:
    _, kept = passed(capture("server_tools_and_citations"), [capture("server_tools_and_citations").upstream])
    blocks = msgspec.json.decode(kept.content)
    assert blocks[0]["input"] == {"query": "x"}
    assert blocks[2]["citations"][0]["url"] == "https://a.example"
    assert (kept.id, kept.model) == ("msg_01XFDUDYJgAACzvnptvVoYEL", "claude-sonnet-4-5-20250929")
    assert (kept.stop_reason, kept.usage.searches) == ("end_turn", 1)


def test_signatures_are_kept_and_a_cut_call_is_kept_as_json() -> None:
    _, kept = passed(capture("thinking_and_parallel_calls"), [capture("thinking_and_parallel_calls").upstream])
    assert msgspec.json.decode(kept.content)[0]["signature"].startswith("EqQBC")
    _, kept = passed(capture("call_cut_by_max_tokens"), [capture("call_cut_by_max_tokens").upstream])
    assert msgspec.json.decode(kept.content)[0]["input"] == {}


def test_a_whole_answer_passes_byte_for_byte_and_is_kept() -> None:
    case = capture("whole")
    written, kept = passed(case, [case.upstream])
    assert written == case.upstream
    assert message_body(kept) == case.upstream
    assert msgspec.json.decode(kept.content) == msgspec.json.decode(case.upstream)["content"]
    assert kept.id == "msg_01X"


def test_a_whole_answer_becomes_a_stream_for_a_client_that_wants_one() -> None:
    case = capture("whole_for_a_stream")
    written, kept = passed(case, [case.upstream])
    again, copy = passed(case, [case.upstream])
    assert written == again
    assert written.endswith(b'event: message_stop\ndata: {"type":"message_stop"}\n\n')
    assert msgspec.json.decode(copy.content) == msgspec.json.decode(case.upstream)["content"]
    decoder, writer, relayed = AnthropicStream(), RelayWriter(), Accumulator()
    events = decoder.feed(written)
    relayed.feed(writer.feed(events))
    assert isinstance(events[-1], Finished)
    assert relayed.content == kept.content


@pytest.mark.parametrize("name", ["text", "whole", "whole_for_a_stream"])
@pytest.mark.parametrize("content_type", ["text/event-stream", "application/json", "text/plain", ""])
def test_the_bytes_tell_what_an_answer_is_whatever_its_content_type(name: str, content_type: str) -> None:
    case = capture(name)
    assert passed(replace(case, content_type=content_type), [case.upstream])[0] == passed(case, [case.upstream])[0]


def frames(*events: dict[str, Any] | bytes) -> list[Event]:
    decoder = AnthropicStream()
    return decoder.feed(lines_of(*events)) + decoder.close()


START: dict[str, object] = {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}
BLOCK: dict[str, object] = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
DELTA: dict[str, object] = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}}
STOP: dict[str, object] = {"type": "content_block_stop", "index": 0}
CALL: dict[str, object] = BLOCK | {"content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}}
HALF: dict[str, object] = DELTA | {"delta": {"type": "input_json_delta", "partial_json": '{"a":'}}
END: dict[str, object] = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}
LAST: dict[str, object] = {"type": "message_stop"}


@pytest.mark.parametrize(
    "events",
    [
        [START, BLOCK, STOP, START],
        [BLOCK],
        [START, BLOCK, BLOCK | {"index": 1}, DELTA],
        [START, BLOCK, STOP, BLOCK | {"index": 5}, DELTA | {"index": 4}],
        [START, DELTA],
        [START, BLOCK, DELTA | {"index": 1}],
        [START, STOP],
        [START, BLOCK, STOP, STOP],
        [START, BLOCK, STOP, DELTA],
        [START, CALL, HALF, END],
        [START, CALL, HALF, BLOCK | {"index": 1}, STOP | {"index": 1}, END],
        [START, CALL, DELTA, END],
        [START, CALL, DELTA | {"delta": {"type": "thinking_delta", "thinking": "hm"}}, END],
        [START, CALL, HALF, DELTA, END],
        [START, BLOCK, HALF, END],
        [END],
        [START, LAST],
        [START, END | {"delta": {}}, LAST],
        [START, END, BLOCK],
        [START, BLOCK | {"content_block": {"type": "tool_use", "id": "t"}}],
        [START, BLOCK | {"content_block": {"type": "tool_use", "id": "t", "name": "a\0b"}}],
        [START, BLOCK | {"content_block": {"text": ""}}],
        [START, BLOCK, DELTA | {"delta": {"text": "a"}}],
        [START, b"{"],
        [START, b'{"index":"x"}'],
        [START, b'{"type":"ping","nobody":"looks \xff"}'],
        [START, {"type": "ping\n\nevent: message_stop"}],
    ],
)
def test_a_stream_that_breaks_its_grammar_ends_in_one_error(events: list[dict[str, object] | bytes]) -> None:
    out = frames(*events, LAST)
    (failed,) = (event for event in out if isinstance(event, Failed | Finished))
    assert isinstance(failed, Failed)
    assert type(failed.error) is UpstreamProtocolError
    assert out[-1] is failed


def test_an_open_block_at_the_end_is_a_cut_even_after_a_stop_reason() -> None:
    (failed,) = (event for event in frames(START, BLOCK) if isinstance(event, Failed))
    assert type(failed.error) is TruncatedStream


def test_several_message_deltas_add_up() -> None:
    more: dict[str, object] = {"type": "message_delta", "delta": {}}
    last = frames(START, END, more | {"usage": {"output_tokens": 9}}, more, LAST)[-1]
    assert isinstance(last, Finished)
    assert (last.reason, last.usage) == ("stop", Usage(input_tokens=1, output_tokens=9))


def test_a_message_delta_that_has_none_counts_and_is_not_shown() -> None:
    out = frames(START, END, {"type": "message_delta", "usage": {"output_tokens": 9}}, LAST)
    assert sum(isinstance(event, Frame) and isinstance(event.event, MessageDelta) for event in out) == 1
    last = out[-1]
    assert isinstance(last, Finished)
    assert (last.reason, last.usage) == ("stop", Usage(input_tokens=1, output_tokens=9))


# ---------------------------------------------------------------- servers that only speak like Anthropic

WHOLE_START: dict[str, object] = {
    "type": "message_start",
    "message": {"id": "m", "model": "theirs", "content": [], "usage": {"input_tokens": 3, "output_tokens": 1}},
}


def shown(*events: dict[str, Any]) -> tuple[list[dict[str, Any]], Accumulator, Finished]:
    """What the client reads, when the bridge's own counts are 7 and 8."""
    out = frames(*events)
    finished = out[-1]
    assert isinstance(finished, Finished)
    writer, kept = RelayWriter(), Accumulator()
    wire: list[WireEvent] = [writer.start("msg_ours", "ours", Usage(7, 1))]
    wire += [*writer.feed(out), *writer.finish(finished, finished.usage or Usage(7, 8, estimated=True))]
    kept.feed(wire)
    lines = [line.removeprefix(b"data: ") for line in sse(wire).split(b"\n") if line.startswith(b"data: ")]
    return [msgspec.json.decode(line) for line in lines], kept, finished


def test_a_start_without_what_the_sdks_look_into_is_completed() -> None:
    read, kept, finished = shown({"type": "message_start", "message": {}}, BLOCK, DELTA, STOP, END, LAST)
    message = read[0]["message"]
    assert (message["id"], message["model"], message["content"]) == ("msg_ours", "ours", [])
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (7, 1)
    assert (kept.id, finished.usage) == ("msg_ours", Usage(output_tokens=1))
    told = {"id": "m", "content": [], "usage": {"input_tokens": 2}}
    read, _, _ = shown({"type": "message_start", "message": told}, BLOCK, DELTA, STOP, END, LAST)
    assert (read[0]["message"]["id"], read[0]["message"]["usage"]["input_tokens"]) == ("m", 2)


NULLS: dict[str, Any] = dict.fromkeys(("index", "message", "content_block", "delta", "usage"))


def test_a_start_that_comes_again_before_anything_else_is_not_shown() -> None:
    read, _, _ = shown(WHOLE_START, WHOLE_START, WHOLE_START, BLOCK, DELTA, STOP, END, LAST)
    assert [event["type"] for event in read] == [
        event["type"] for event in (WHOLE_START, BLOCK, DELTA, STOP, END, LAST)
    ]


def test_nulls_for_all_that_an_event_has_not_are_nothing() -> None:
    start = NULLS | {"type": "message_start", "message": {"id": None, "model": None, "content": []}}
    none = {"id": None, "name": None, "text": None, "thinking": None}
    block = NULLS | BLOCK | {"content_block": {"type": "text"} | none}
    read, kept, _ = shown(start, NULLS | {"type": "ping"}, block, NULLS | DELTA, NULLS | STOP, NULLS | END, LAST)
    assert (read[0]["message"]["id"], read[0]["message"]["model"]) == ("msg_ours", "ours")
    assert [event["content_block"] for event in read if "content_block" in event] == [{"type": "text", "text": ""}]
    assert msgspec.json.decode(kept.content) == [{"type": "text", "text": "a"}]
    call = {"type": "tool_use", "id": "t", "name": "f", "text": None, "input": {"x": None}}
    _, kept, _ = shown(WHOLE_START, BLOCK | {"content_block": call}, STOP, END, LAST)
    assert msgspec.json.decode(kept.content)[0]["input"] == {"x": None}, "what a call is given stays"
    decoder = AnthropicWhole(streams=False)
    body = {"id": None, "type": "message", "content": [call, {"type": "text", "text": None}], "stop_reason": "tool_use"}
    decoder.feed(msgspec.json.encode(body))
    _, kept = relay([decoder.close()])
    content = msgspec.json.decode(message_body(kept))["content"]
    assert (content[0]["input"], content[1]) == ({"x": None}, {"type": "text", "text": ""})


ARGUMENTS: dict[str, object] = DELTA | {"delta": {"type": "input_json_delta", "partial_json": '{"a":1}'}}


@pytest.mark.parametrize("late", [False, True])
def test_a_block_without_an_end_ends_where_the_next_event_tells_it(late: bool) -> None:
    """Kimi's server leaves the ends of blocks out; others send them late."""
    second = [event | {"index": 1} for event in (CALL, ARGUMENTS)]
    ends = [STOP] if late else []
    read, kept, finished = shown(WHOLE_START, BLOCK, DELTA, second[0], *ends, second[1], END, LAST)
    assert [event["type"] for event in read] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop",
        "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop",
    ]  # fmt: skip
    assert [event["index"] for event in read if "index" in event] == [0, 0, 0, 1, 1, 1]
    assert [block["type"] for block in json.loads(kept.content)] == ["text", "tool_use"]
    assert json.loads(kept.content)[1]["input"] == {"a": 1}
    assert finished.reason == "tool_use"


FIRST, SECOND, THIRD = ([event | {"index": at} for event in (CALL, ARGUMENTS, STOP)] for at in (0, 1, 2))
MIXED = {
    "begun at once": [FIRST[0], SECOND[0], THIRD[0], *FIRST[1:], *SECOND[1:], *THIRD[1:]],
    "piece by piece": [*[each[at] for at in (0, 1, 2) for each in (FIRST, SECOND, THIRD)]],
    "the last one first": [FIRST[0], SECOND[0], THIRD[0], *THIRD[1:], *SECOND[1:], *FIRST[1:]],
    "without ends": [FIRST[0], SECOND[0], THIRD[0], FIRST[1], SECOND[1], THIRD[1]],
    "ends at the end": [FIRST[0], SECOND[0], FIRST[1], THIRD[0], SECOND[1], THIRD[1], SECOND[2], FIRST[2], THIRD[2]],
    "in halves": [FIRST[0], HALF, *SECOND, FIRST[1] | {"delta": {"type": "input_json_delta", "partial_json": "1}"}},
                  FIRST[2], *THIRD],
}  # fmt: skip


@pytest.mark.parametrize("mixed", MIXED.values(), ids=MIXED)
def test_calls_that_are_told_at_the_same_time_come_one_after_the_other(mixed: list[dict[str, Any]]) -> None:
    read, kept, finished = shown(WHOLE_START, *mixed, END, LAST)
    assert [event["index"] for event in read if event["type"] == "content_block_start"] == [0, 1, 2]
    order = [event["index"] for event in read if "index" in event]
    assert order == sorted(order)
    assert [block["input"] for block in json.loads(kept.content)] == [{"a": 1}] * 3
    assert finished.reason == "tool_use"


def test_a_call_without_arguments_or_an_end_keeps_its_place() -> None:
    read, kept, _ = shown(WHOLE_START, CALL, BLOCK | {"index": 1}, DELTA | {"index": 1}, END, LAST)
    assert [block["type"] for block in json.loads(kept.content)] == ["tool_use", "text"]
    assert [event["index"] for event in read if "index" in event] == [0, 0, 1, 1, 1]


def test_a_call_whose_start_holds_its_arguments_needs_no_end_either() -> None:
    whole = CALL | {"content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}}}
    _, kept, _ = shown(WHOLE_START, whole, END, LAST)
    assert json.loads(kept.content)[0]["input"] == {"a": 1}


def test_layout_inside_of_a_call_is_not_shown() -> None:
    """SGLang's server writes the line end between two calls into the first: Claude Code breaks off at such a delta."""
    blank = DELTA | {"delta": {"type": "text_delta", "text": "\n"}}
    read, kept, _ = shown(WHOLE_START, CALL, ARGUMENTS, blank, STOP, END, LAST)
    assert [event["delta"]["type"] for event in read if event["type"] == "content_block_delta"] == ["input_json_delta"]
    assert json.loads(kept.content)[0]["input"] == {"a": 1}


THOUGHT: dict[str, object] = DELTA | {"delta": {"type": "thinking_delta", "thinking": "hm"}}
SIGNED: dict[str, object] = DELTA | {"delta": {"type": "signature_delta", "signature": "s"}}
THINKING: dict[str, object] = BLOCK | {"content_block": {"type": "thinking", "thinking": "", "signature": ""}}
NOTHING: dict[str, object] = DELTA | {"delta": {"type": "text_delta", "text": ""}}


@pytest.mark.parametrize(
    ("events", "blocks"),
    [
        ([BLOCK, DELTA, THOUGHT, SIGNED, DELTA, STOP], [("text", "a"), ("thinking", "hm", "s"), ("text", "a")]),
        ([THINKING, THOUGHT, DELTA, SIGNED, STOP], [("thinking", "hm", ""), ("text", "a")]),
        ([THINKING, THOUGHT, NOTHING, THOUGHT, STOP], [("thinking", "hmhm", "")]),
        ([CALL, ARGUMENTS, SIGNED, STOP], [("tool_use", "t", "f", {"a": 1})]),
        ([CALL, ARGUMENTS, DELTA, STOP], [("tool_use", "t", "f", {"a": 1}), ("text", "a")]),
    ],
    ids=["thinking in a text", "text in thinking", "no text in thinking", "a signature in a call", "text in a call"],
)
def test_deltas_of_another_kind_than_their_block_have_blocks_of_their_own(
    events: list[dict[str, object]], blocks: list[tuple[object, ...]]
) -> None:
    """LiteLLM thinks inside of a text that it has opened, SGLang speaks inside of a call: Claude Code breaks off."""
    second = [event | {"index": 1} for event in (BLOCK, DELTA, STOP)]
    read, kept, _ = shown(WHOLE_START, *events, *second, END, LAST)
    content = msgspec.json.decode(kept.content)
    assert [tuple(block.values()) for block in content] == [*blocks, ("text", "a")]
    kinds = {event["index"]: event["content_block"]["type"] for event in read if "content_block" in event}
    told = {(kinds[event["index"]], event["delta"]["type"]) for event in read if event["type"] == DELTA["type"]}
    assert told <= {("text", "text_delta"), ("thinking", "thinking_delta"), ("thinking", "signature_delta"),
                    ("tool_use", "input_json_delta")}  # fmt: skip
    assert [event["index"] for event in read if event["type"] == STOP["type"]] == [*range(len(blocks) + 1)]


def test_blocks_that_are_numbered_from_one_are_numbered_from_zero() -> None:
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    args = {"type": "input_json_delta", "partial_json": '{"x":1}'}
    blocks = [BLOCK, DELTA, STOP, BLOCK | {"content_block": call}, DELTA | {"delta": args}, STOP]
    numbered = [event | {"index": 1 + place // 3} for place, event in enumerate(blocks)]
    strange = numbered[1] | {"delta": {"type": "new_delta"}}
    read, kept, _ = shown(WHOLE_START, *numbered[:2], strange, *numbered[2:], END, LAST)
    assert [event["index"] for event in read if "index" in event] == [0, 0, 0, 1, 1, 1]
    assert [block.get("input", block.get("text")) for block in msgspec.json.decode(kept.content)] == ["a", {"x": 1}]
    assert read[-1]["type"] == "message_stop"


@pytest.mark.parametrize("number", [str, float])
def test_numbers_as_text_are_numbers(number: Callable[[int], object]) -> None:
    usage = {"input_tokens": number(3), "output_tokens": number(1), "cache_read_input_tokens": None}
    start = {"type": "message_start", "message": {"id": "m", "model": "theirs", "content": [], "usage": usage}}
    block, delta, stop = ({**event, "index": number(0)} for event in (BLOCK, DELTA, STOP))
    read, _, finished = shown(start, block, delta, stop, END | {"usage": usage}, LAST | {"usage": usage})
    assert [event["type"] for event in read] == [
        "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
        "message_stop",
    ]  # fmt: skip
    assert (read[0]["message"]["usage"]["input_tokens"], read[-2]["usage"]["output_tokens"]) == (3, 1)
    assert {event["index"] for event in read if "index" in event} == {0}
    assert all(type(event["index"]) is int for event in read if "index" in event)
    assert finished.usage == Usage(3, 1)
    decoder = AnthropicWhole(streams=False)
    body = {"type": "message", "id": "m", "content": [], "stop_reason": "end_turn", "usage": usage}
    decoder.feed(msgspec.json.encode(body))
    last = decoder.close()[-1]
    assert isinstance(last, Finished)
    assert last.usage == Usage(3, 1)


@pytest.mark.parametrize(
    ("code", "status"), [(429, 429), ("529", 529), (503, 529), (422, 400), (500, 502), (1000, 502), ("²", 502)]
)
def test_an_error_that_has_only_a_number_is_what_that_says(code: object, status: int) -> None:
    failed = frames(WHOLE_START, {"type": "error", "error": {"code": code, "message": "slow"}})[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.status, failed.error.message) == (status, "slow")


def test_an_error_without_a_type_is_read() -> None:
    error = {"error": {"type": "rate_limit_error", "message": "slow"}}
    failed = frames(WHOLE_START, error)[-1]
    decoder = AnthropicWhole(streams=False)
    decoder.feed(msgspec.json.encode(error))
    for found in (failed, *decoder.close()):
        assert isinstance(found, Failed)
        assert (found.error.status, found.error.message) == (429, "slow")


@pytest.mark.parametrize("usage", [{}, {"usage": None}, {"usage": {}}])
def test_an_end_without_usage_gets_what_is_known(usage: dict[str, Any]) -> None:
    end: dict[str, Any] = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}} | usage
    read, _, finished = shown(WHOLE_START, BLOCK, DELTA, STOP, end, LAST)
    assert (read[-2]["delta"]["stop_reason"], read[-2]["usage"]["output_tokens"]) == ("end_turn", 1)
    assert finished.usage == Usage(3, 1)
    if not usage.get("usage"):
        start = {"type": "message_start", "message": {"id": "m", "content": []}}
        read, _, finished = shown(start, BLOCK, DELTA, STOP, {**end, "usage": None}, LAST)
        assert finished.usage is None  # the bridge estimates, and says so
        assert (read[-2]["usage"]["input_tokens"], read[-2]["usage"]["output_tokens"]) == (7, 8)


ZEROS = {"input_tokens": 0, "output_tokens": 0}


def test_usage_of_zeros_is_none() -> None:
    start = {"type": "message_start", "message": WHOLE_START["message"] | {"usage": ZEROS}}  # type: ignore[operator]
    read, _, finished = shown(start, BLOCK, DELTA, STOP, END | {"usage": ZEROS}, LAST)
    assert finished.usage is None  # the bridge estimates, and says so
    assert (read[0]["message"]["usage"]["input_tokens"], read[-2]["usage"]["input_tokens"]) == (7, 7)
    assert read[-2]["usage"]["output_tokens"] == 8
    read, _, finished = shown(start, BLOCK, DELTA, STOP, END | {"usage": {"input_tokens": 3, "output_tokens": 2}}, LAST)
    assert (finished.usage, read[-2]["usage"]) == (Usage(3, 2), {"input_tokens": 3, "output_tokens": 2})


def test_a_reason_that_is_taken_back_stays() -> None:
    end = {"type": "message_delta", "delta": {"stop_reason": "stop_sequence", "stop_sequence": "X"}}
    last = {"type": "message_delta", "delta": {"stop_reason": None}, "usage": {"output_tokens": 9}}
    read, kept, _ = shown(WHOLE_START, end | {"usage": {"output_tokens": 4}}, last, LAST)
    assert read[-2]["delta"] == {"stop_reason": "stop_sequence", "stop_sequence": "X"}
    assert (kept.stop_reason, kept.sequence, kept.usage.output_tokens) == ("stop_sequence", "X", 9)


def test_a_message_delta_that_says_nothing_is_not_shown() -> None:
    nothing = {"type": "message_delta", "delta": {"stop_reason": None}}
    read, _, _ = shown(WHOLE_START, nothing, END, LAST)
    assert [event["type"] for event in read] == ["message_start", "message_delta", "message_stop"]


EARLY = [
    ({"type": "text", "text": "a", "citations": None}, ["text_delta"], "text", "a"),
    ({"type": "thinking", "thinking": "hm", "signature": "s"}, ["thinking_delta", "signature_delta"], "signature", "s"),
    ({"type": "thinking", "thinking": "hm", "signature": ""}, ["thinking_delta"], "thinking", "hm"),
    ({"type": "thinking", "thinking": "", "signature": "s"}, ["signature_delta"], "signature", "s"),
    ({"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}, ["input_json_delta"], "input", {"x": 1}),
]


@pytest.mark.parametrize(("block", "deltas", "field", "value"), EARLY)
def test_what_a_blocks_start_says_is_said_in_deltas(
    block: dict[str, object], deltas: list[str], field: str, value: object
) -> None:
    """Claude Code reads these fields from deltas only."""
    read, kept, _ = shown(WHOLE_START, BLOCK | {"content_block": block}, STOP, END, LAST)
    assert not read[1]["content_block"][field]
    assert [event["delta"]["type"] for event in read[2:-3]] == deltas
    assert msgspec.json.decode(kept.content) == [block]
    assert msgspec.json.decode(kept.content)[0][field] == value


def test_arguments_in_the_start_are_the_calls_unless_deltas_bring_them() -> None:
    start = BLOCK | {"content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}}
    (ended,) = (event for event in frames(WHOLE_START, start, STOP, END, LAST) if isinstance(event, ToolEnded))
    assert ended.arguments == '{"x":1}'
    delta: dict[str, object] = {**DELTA, "delta": {"type": "input_json_delta", "partial_json": '{"y":2}'}}
    out = frames(WHOLE_START, start, delta, STOP, END, LAST)
    assert [event.arguments for event in out if isinstance(event, ToolEnded)] == ['{"y":2}']
    _, kept, _ = shown(WHOLE_START, start, delta, STOP, END, LAST)
    assert msgspec.json.decode(kept.content)[0]["input"] == {"y": 2}
    bare = {"type": "tool_use", "id": "t", "name": "f"}
    for none in (bare, bare | {"input": None}):
        read, kept, _ = shown(WHOLE_START, BLOCK | {"content_block": none}, STOP, END, LAST)
        assert (read[1]["content_block"]["input"], read[2]["type"]) == ({}, "content_block_stop")
        assert msgspec.json.decode(kept.content)[0]["input"] == {}


def fragment(text: str) -> dict[str, object]:
    return {**DELTA, "delta": {"type": "input_json_delta", "partial_json": text}}


CALLED = BLOCK | {"content_block": {"type": "tool_use", "id": "t", "name": "f", "input": {}}}


@pytest.mark.parametrize(
    ("pieces", "read", "arguments"),
    [
        (["null"], [], "{}"),
        (['""'], [], "{}"),
        (["[", "]"], [], "{}"),
        (["{}"], ["{}"], "{}"),
        (["{}", "{}"], ["{}"], "{}"),
        (["null", " {}"], ["{}"], "{}"),
        (["", ""], ["", ""], "{}"),
        (["{}", '{"y":2}'], ['{"y":2}'], '{"y":2}'),
        (["nu", "ll", ' {"y"', ":2}"], ['{"y"', ":2}"], '{"y":2}'),
        (["", "{", '"y":2', "}"], ["", "{", '"y":2', "}"], '{"y":2}'),
    ],
)
def test_placeholders_of_arguments_are_not_shown(pieces: list[str], read: list[str], arguments: str) -> None:
    stream = WHOLE_START, CALLED, *map(fragment, pieces), STOP, END, LAST
    events, kept, _ = shown(*stream)
    assert [event["delta"]["partial_json"] for event in events if event["type"] == "content_block_delta"] == read
    assert [event.arguments for event in frames(*stream) if isinstance(event, ToolEnded)] == [arguments]
    assert msgspec.json.decode(kept.content)[0]["input"] == msgspec.json.decode(arguments)


@pytest.mark.parametrize("pieces", [[], [""], ["{}"], ["null"]])
def test_arguments_as_text_in_the_start_are_the_calls(pieces: list[str]) -> None:
    block = {"type": "tool_use", "id": "t", "name": "f", "input": ' {"x": 1}'}
    stream = WHOLE_START, BLOCK | {"content_block": block}, *map(fragment, pieces), STOP, END, LAST
    assert [event.arguments for event in frames(*stream) if isinstance(event, ToolEnded)] == ['{"x": 1}']
    whole = {"id": "m", "type": "message", "content": [block], "stop_reason": "tool_use"}
    reading = AnthropicWhole(streams=False)
    reading.feed(msgspec.json.encode(whole))
    assert [event.arguments for event in reading.close() if isinstance(event, ToolEnded)] == ['{"x": 1}']


def test_thinking_begins_with_a_signature_as_in_the_real_api() -> None:
    thinking = BLOCK | {"content_block": {"type": "thinking", "thinking": ""}}
    delta = {**DELTA, "delta": {"type": "thinking_delta", "thinking": "hm"}}
    read, kept, _ = shown(WHOLE_START, thinking, delta, STOP, END, LAST)
    assert read[1]["content_block"] == {"type": "thinking", "thinking": "", "signature": ""}
    assert msgspec.json.decode(kept.content) == [{"type": "thinking", "thinking": "hm", "signature": ""}]


@pytest.mark.parametrize(
    "indexes",
    [((0, 0, 0), (0, 0, 0)), ((0, 0, 0), (2, 2, 2)), ((3, 3, 3), (7, 7, 7)), ((0, None, None), (1, None, None)),
     ((None, None, None), (None, None, None)), ((0, 0, None), (0, None, 0))],
    ids=["one number for all", "a hole", "any numbers", "none but at the start", "none", "some"],
)  # fmt: skip
def test_blocks_are_numbered_whatever_the_server_calls_them(indexes: tuple[tuple[int | None, ...], ...]) -> None:
    named: list[dict[str, object]] = []
    for numbers in indexes:
        for event, number in zip((BLOCK, DELTA, STOP), numbers, strict=True):
            rest = {key: value for key, value in event.items() if key != "index"}
            named.append(rest if number is None else {**rest, "index": number})
    read, kept, _ = shown(WHOLE_START, *named, END, LAST)
    assert [event["index"] for event in read if "index" in event] == [0, 0, 0, 1, 1, 1]
    assert [block["text"] for block in msgspec.json.decode(kept.content)] == ["a", "a"]


def ended(reason: str) -> dict[str, object]:
    return {**END, "delta": {"stop_reason": reason}}


@pytest.mark.parametrize("arguments", ['{"x": "a', '{"x": a}', "[1]", '{"x":1}{"y":2}'])
@pytest.mark.parametrize("after", [[ended("tool_use")], [ended("end_turn")], [BLOCK | {"index": 1}]])
def test_a_call_with_broken_arguments_is_not_shown_as_complete(arguments: str, after: list[dict[str, object]]) -> None:
    out = frames(START, CALL, fragment(arguments), STOP, *after, LAST)
    assert isinstance(out[-1], Failed)
    assert type(out[-1].error) is UpstreamProtocolError
    assert "not a JSON object" in out[-1].error.message
    said = [event.event for event in out if isinstance(event, Frame)]
    assert not [event for event in said if isinstance(event, BlockStop | MessageDelta)]


def test_a_call_that_the_token_limit_cuts_off_passes_as_it_came() -> None:
    cut_off = (START, CALL, fragment('{"x": "a'), STOP, {**END, "delta": {}}, ended("max_tokens"), LAST)
    said = [event.event for event in frames(*cut_off) if isinstance(event, Frame)]
    assert [type(event) for event in said[-4:]] == [MessageDelta, BlockStop, MessageDelta, MessageStop]


def test_who_asked_for_arguments_as_they_come_gets_them_as_they_are() -> None:
    lines = lines_of(START, CALL, fragment('{"x": a}'), STOP, ended("tool_use"), LAST)
    assert isinstance(AnthropicStream((Tool("f", eager=True),)).feed(lines)[-1], Finished)
    assert isinstance(AnthropicStream((Tool("f"), Tool("g", eager=True))).feed(lines)[-1], Failed)


@pytest.mark.parametrize("stream", [False, True])
def test_only_a_stream_brings_arguments_as_they_come(stream: bool) -> None:
    case = next(case for case in CASES if case.id.endswith("text"))
    tools = (Tool("f", "", b"{}", eager=True),)
    request = replace(case.request, stream=stream, tools=tools)
    decoder = Anthropic().decoder(request, case.target, Anthropic().build(request, case.target), "")
    lines = lines_of(START, CALL, fragment('{"x": a}'), STOP, ended("tool_use"), LAST)
    assert isinstance([*decoder.feed(lines), *decoder.close()][-1], Finished if stream else Failed)


WHOLE: dict[str, Any] = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [{"type": "text", "text": "a"}],
    "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip


def shown_whole(message: dict[str, Any] | bytes) -> tuple[dict[str, Any], Accumulator, Finished]:
    """What a client without a stream reads."""
    decoder = AnthropicWhole(streams=False)
    decoder.feed(message if isinstance(message, bytes) else msgspec.json.encode(message))
    out = decoder.close()
    finished = out[-1]
    assert isinstance(finished, Finished)
    writer, kept = RelayWriter(), Accumulator()
    wire: list[WireEvent] = [writer.start("msg_ours", "ours", Usage(7, 1))]
    kept.feed([*wire, *writer.feed(out), *writer.finish(finished, Usage(7, 8))])
    return msgspec.json.decode(message_body(kept)), kept, finished


@pytest.mark.parametrize(
    ("said", "calls", "shown_as"),
    [
        ("end_turn", True, "tool_use"),
        ("tool_use", False, "end_turn"),
        ("tool_calls", True, "tool_use"),
        ("stop", False, "end_turn"),
        ("length", False, "max_tokens"),
        ("content_filter", False, "refusal"),
        ("max_tokens", True, "max_tokens"),
        ("pause_turn", True, "pause_turn"),
        ("brand_new", False, "brand_new"),
    ],
)
def test_the_stop_reason_fits_what_was_shown(said: str, calls: bool, shown_as: str) -> None:
    """Clients go on by it: some ask again for a call that is announced and never comes."""
    block = CALL if calls else BLOCK
    read, _, finished = shown(WHOLE_START, block, STOP, ended(said), LAST)
    assert read[-2]["delta"]["stop_reason"] == shown_as
    message = WHOLE | {"content": [block["content_block"]], "stop_reason": said}
    whole, _, of_whole = shown_whole(message)
    assert whole["stop_reason"] == shown_as
    assert finished.reason == of_whole.reason


LETTER = msgspec.json.encode({**DELTA, "delta": {"type": "text_delta", "text": "Z"}})


def test_a_character_that_is_cut_in_two_is_one() -> None:
    """Servers in JavaScript cut a text by its length."""
    pieces = [LETTER.replace(b"Z", escape) for escape in (b"a\\ud83d", b"\\ude00b")]
    out = frames(WHOLE_START, BLOCK, *pieces, STOP, END, LAST)
    assert "".join(event.text for event in out if isinstance(event, TextDelta)) == "a\U0001f600b"
    assert isinstance(out[-1], Finished)
    call = [msgspec.json.encode(fragment(part)).replace(b"Z", b"\\ud83d") for part in ('{"x":1}Z', '{"x":1}')]
    for part, end in zip(call, (Failed, Finished), strict=True):
        assert isinstance(frames(WHOLE_START, CALL, part, STOP, ended("tool_use"), LAST)[-1], end)
    message = msgspec.json.encode(WHOLE).replace(b'"a"', b'"a\\ud83d"')
    assert shown_whole(message)[0]["content"] == [{"type": "text", "text": "a\ufffd"}]


LEFT_OUT: dict[str, dict[str, object]] = {
    "role": {"role": ...},
    "model": {"model": ...},
    "type": {"type": ...},
    "text": {"content": [{"type": "text"}]},
    "input": {"content": [{"type": "tool_use", "id": "t", "name": "f"}], "stop_reason": "tool_use"},
    "null": {"content": [{"type": "tool_use", "id": "t", "name": "f", "input": None}], "stop_reason": "tool_use"},
}


@pytest.mark.parametrize("left_out", LEFT_OUT)
def test_what_a_whole_answer_leaves_out_is_put_in(left_out: str) -> None:
    message = {name: value for name, value in (WHOLE | LEFT_OUT[left_out]).items() if value is not ...}
    read, kept, _ = shown_whole(message)
    assert (read["type"], read["role"], bool(read["model"])) == ("message", "assistant", True)
    (block,) = read["content"]
    assert block.get("text", block.get("input")) in ("", "a", {})
    assert msgspec.json.decode(kept.content) == [block]


@pytest.mark.parametrize("usage", [{}, {"usage": ZEROS}])
@pytest.mark.parametrize("streams", [False, True])
def test_a_whole_answer_without_usage_is_completed(streams: bool, usage: dict[str, Any]) -> None:
    decoder = AnthropicWhole(streams=streams)
    body = {"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}
    decoder.feed(msgspec.json.encode(body | usage))
    out = decoder.close()
    finished = out[-1]
    assert isinstance(finished, Finished)
    assert finished.usage is None
    writer, kept = RelayWriter(), Accumulator()
    wire: list[WireEvent] = [writer.start("msg_ours", "ours", Usage(7, 1))]
    kept.feed([*wire, *writer.feed(out), *writer.finish(finished, Usage(7, 8))])
    message = msgspec.json.decode(message_body(kept))
    assert (message["id"], message["model"], message["stop_reason"]) == ("msg_ours", "ours", "end_turn")
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (7, 8)
    assert message["content"] == [{"type": "text", "text": "a"}]


def test_a_done_marker_is_no_event() -> None:
    assert isinstance(frames(WHOLE_START, BLOCK, DELTA, STOP, END, b"[DONE]")[-1], Finished)
    assert isinstance(frames(WHOLE_START, b"", BLOCK, b" ", DELTA, STOP, END, b"[DONE]")[-1], Finished)
    assert isinstance(frames(WHOLE_START, BLOCK, DELTA, STOP, b"[DONE]")[-1], Failed)


def test_thinking_without_a_signature_gets_an_empty_one() -> None:
    """The AI SDK refuses an answer whose thinking has none."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    thought = {"type": "thinking", "thinking": "hm"}
    body = {"id": "m", "type": "message", "content": [thought], "stop_reason": "end_turn", "usage": usage}
    decoder = AnthropicWhole(streams=False)
    decoder.feed(msgspec.json.encode(body))
    _, kept = relay([decoder.close()])
    assert msgspec.json.decode(message_body(kept))["content"] == [thought | {"signature": ""}]


def test_input_of_a_servers_call_in_a_whole_answer_is_a_delta_for_a_stream() -> None:
    call = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "x"}}
    usage = {"input_tokens": 1, "output_tokens": 1}
    body = {"id": "m", "type": "message", "content": [call], "stop_reason": "end_turn", "usage": usage}
    decoder = AnthropicWhole(streams=True)
    decoder.feed(msgspec.json.encode(body))
    written, kept = relay([decoder.close()])
    assert b'"input":{}' in written
    assert b'"partial_json":"{\\"query\\":\\"x\\"}"' in written
    assert msgspec.json.decode(kept.content) == [call]


# ---------------------------------------------------------------- what is read


def test_a_frame_is_named_by_what_it_says() -> None:
    decoder = AnthropicStream()
    (ping,) = decoder.feed('event: message_stop\ndata: {"type":"ping","é":1}\n\n'.encode())
    assert ping == Frame('event: ping\ndata: {"type":"ping","é":1}\n\n'.encode())


def test_a_frame_without_its_name_gets_it_and_data_of_several_lines_stays_whole() -> None:
    decoder = AnthropicStream()
    (ping,) = decoder.feed(b'data: {"type":\ndata: "ping"}\n\n')
    assert ping == Frame(b'event: ping\ndata: {"type":\ndata: "ping"}\n\n')


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"<html>", "UpstreamProtocolError"),
        (b"{}", "UpstreamProtocolError"),
        (b'{"type":"message","content":[]}', "UpstreamProtocolError"),
        (b'{"type":"other","content":[],"stop_reason":"end_turn"}', "UpstreamProtocolError"),
        (
            b'{"type":"message","content":[{"type":"tool_use","id":"t","name":"n","input":1}],"stop_reason":"x"}',
            "UpstreamProtocolError",
        ),
        (b'{"type":"message","content":[{"type":[]}],"stop_reason":"end_turn"}', "UpstreamProtocolError"),
        (b'{"type":"message","content":[],"stop_reason":"end_turn","x":"\xff"}', "UpstreamProtocolError"),
        (b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "UpstreamOverloaded"),
    ],
)
def test_a_whole_answer_that_is_none_is_an_error(body: bytes, error: str) -> None:
    decoder = AnthropicWhole(streams=False)
    (failed,) = [*decoder.feed(body), *decoder.close()]
    assert isinstance(failed, Failed)
    assert type(failed.error).__name__ == error


# ---------------------------------------------------------------- ids that are not the upstream's


def renamed(events: list[Event], id_: str) -> list[Event]:
    """As the bridge does with a call whose id another one has."""
    return [replace(event, id=id_) if isinstance(event, ToolStarted) else event for event in events]


def test_a_message_of_a_thread_has_the_bridges_own_id() -> None:
    upstream = capture("text").upstream
    lines = upstream.replace(b'{"type":"message_start"', b'{\ndata: "type":"message_start"')
    writer, kept = RelayWriter("msg_ours"), Accumulator()
    out = writer.feed(AnthropicStream().feed(lines))
    kept.feed(out)
    theirs, ours = (json.loads(raw.split(b"data: ")[1].split(b"\n\n")[0]) for raw in (upstream, sse(out)))
    assert ours == {**theirs, "message": {**theirs["message"], "id": "msg_ours"}}
    assert kept.id == "msg_ours"


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("usage", [{"input_tokens": 1, "output_tokens": 2}, None])
def test_a_whole_answer_has_them_too(streams: bool, usage: dict[str, int] | None) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Oslo"}}
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": usage, "container": None,
        "content": [{"type": "text", "text": "toolu_1"}, call], "stop_reason": "tool_use", "stop_sequence": None,
    }  # fmt: skip
    decoder, writer, kept = AnthropicWhole(streams=streams), RelayWriter("msg_ours"), Accumulator()
    decoder.feed(json.dumps(message).encode())
    events = renamed(decoder.close(), "toolu_ours")
    kept.feed([writer.start("msg_ours", "m", Usage())])
    out = writer.feed(events)
    assert isinstance(events[-1], Finished)
    kept.feed([*out, *writer.finish(events[-1], Usage())])
    assert (kept.id, [block.get("id") for block in json.loads(kept.content)]) == ("msg_ours", [None, "toolu_ours"])
    if streams:
        assert b"msg_ours" in sse(out)
        assert b"toolu_ours" in sse(out)
    elif usage:
        told = [{"type": "text", "text": "toolu_1"}, {**call, "id": "toolu_ours"}]
        assert json.loads(kept.body) == {**message, "id": "msg_ours", "content": told}


def test_a_call_of_a_stream_has_the_id_that_it_is_given() -> None:
    decoder = AnthropicStream()
    events = decoder.feed(capture("thinking_and_parallel_calls").upstream)
    first = next(index for index, event in enumerate(events) if isinstance(event, ToolStarted))
    theirs = [event.id for event in events if isinstance(event, ToolStarted)]
    accumulator = Accumulator()
    accumulator.feed(RelayWriter().feed([*renamed(events[: first + 1], "toolu_ours"), *events[first + 1 :]]))
    ids = [block["id"] for block in json.loads(accumulator.content) if block["type"] == "tool_use"]
    assert ids == ["toolu_ours", *theirs[1:]]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("named", [{}, {"id": ""}, {"id": None}, {"id": "a\0b"}])
def test_a_call_without_an_id_gets_one(named: dict[str, object], streams: bool) -> None:
    """Servers that only speak like Anthropic may leave it out, or send what no client could send back."""
    block = {"type": "tool_use", **named, "name": "f", "input": {}}
    if streams:
        events = frames(WHOLE_START, CALL | {"content_block": block}, STOP, ended("tool_use"), LAST)
    else:
        decoder = AnthropicWhole(streams=False)
        decoder.feed(msgspec.json.encode(WHOLE | {"content": [block], "stop_reason": "tool_use"}))
        events = decoder.close()
    assert [event.upstream_id for event in events if isinstance(event, ToolStarted)] == [""]
    writer, kept = RelayWriter(), Accumulator()
    kept.feed([writer.start("msg_ours", "m", Usage()), *writer.feed(renamed(events, "toolu_ours"))])
    assert isinstance(events[-1], Finished)
    kept.feed(writer.finish(events[-1], Usage()))
    call = {"type": "tool_use", "id": "toolu_ours", "name": "f", "input": {}}
    assert json.loads(kept.content) == json.loads(kept.body or message_body(kept))["content"] == [call]
