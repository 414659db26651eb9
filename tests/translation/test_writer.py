"""The block writer: whatever order events come in, what goes out is the API's grammar."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from translation.accumulator import Accumulator
from translation.errors import TruncatedStream, UpstreamProtocolError
from translation.events import (
    BlockDelta,
    BlockStart,
    BlockStop,
    Event,
    Failed,
    Finished,
    MessageDelta,
    MessageStart,
    MessageStop,
    Reason,
    TextDelta,
    ThinkingDelta,
    ToolArguments,
    ToolDropped,
    ToolEnded,
    ToolStarted,
    WholeBlock,
    WireEvent,
)
from translation.values import Usage
from translation.writer import BlockWriter, Showing

USAGE = Usage(1, 2)
SEARCH = b'{"type":"server_tool_use","id":"s","name":"web_search","input":{}}'
DELTAS = {
    "text": {"text_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
    "server_tool_use": {"input_json_delta"},
}


def write(
    events: list[Event],
    reason: Reason = "stop",
    *,
    eager: frozenset[str] = frozenset(),
    live: bool = True,
    **more: Any,
) -> list[WireEvent]:
    writer = BlockWriter(signature="sig", eager=eager, live=live, **more)
    out: list[WireEvent] = [writer.start("msg_1", "m", USAGE)]
    for event in events:
        out += writer.feed([event])
    return out + writer.finish(Finished(reason), USAGE)


def check(wire: list[WireEvent]) -> None:
    """The grammar of a stream, checked event by event."""
    assert isinstance(wire[0], MessageStart)
    assert isinstance(wire[-2], MessageDelta)
    assert isinstance(wire[-1], MessageStop)
    started, current = 0, None
    for event in wire[1:-2]:
        match event:
            case BlockStart(index=index, block=block):
                assert current is None
                assert index == started
                started, current = started + 1, json.loads(block)["type"]
            case BlockDelta(index=index, kind=kind, text=text):
                assert current is not None
                assert index == started - 1
                assert kind in DELTAS[current]
                assert text
            case BlockStop(index=index):
                assert current is not None
                assert index == started - 1
                current = None
            case _:
                pytest.fail(f"{event} in the middle")
    assert current is None


def content(wire: list[WireEvent]) -> list[dict[str, Any]]:
    accumulator = Accumulator()
    accumulator.feed(wire)
    blocks: list[dict[str, Any]] = json.loads(accumulator.content)
    return blocks


def call(number: int, arguments: str = "{}") -> list[Event]:
    return [ToolStarted(number, f"tool_{number}", id=f"t{number}"), ToolEnded(number, arguments)]


@st.composite
def interleavings(draw: st.DrawFn) -> list[Event]:
    """Any answer that a decoder may tell: each call started, perhaps streamed, and ended or dropped."""
    tracks: list[list[Event]] = []
    for number in range(draw(st.integers(0, 4))):
        arguments = json.dumps({"n": number, "text": draw(st.text(max_size=6))})
        cuts = sorted(draw(st.lists(st.integers(0, len(arguments)), max_size=3)))
        points = [0, *cuts, len(arguments)]
        fragments = [arguments[start:end] for start, end in itertools.pairwise(points)]
        end: Event = ToolDropped(number) if draw(st.integers(0, 4)) == 0 else ToolEnded(number, arguments)
        started = ToolStarted(number, draw(st.sampled_from(["lazy", "eager"])), id=f"t{number}")
        tracks.append([started, *[ToolArguments(number, fragment) for fragment in fragments], end])
    prose: st.SearchStrategy[Event] = st.one_of(
        st.builds(TextDelta, st.text(max_size=3)),
        st.builds(ThinkingDelta, st.text(max_size=3)),
        st.just(WholeBlock(SEARCH)),
    )
    tracks.append(draw(st.lists(prose, max_size=6)))
    events: list[Event] = []
    while any(tracks):
        track = draw(st.sampled_from([track for track in tracks if track]))
        events.append(track.pop(0))
    return events


@given(interleavings(), st.booleans(), st.sampled_from(["shown", "omitted", "hidden"]))
def test_any_interleaving_gives_legal_grammar(events: list[Event], live: bool, thinking: Showing) -> None:
    check(write(events, eager=frozenset({"eager"}), live=live, thinking=thinking))


@given(interleavings(), st.booleans())
def test_any_interleaving_keeps_everything_in_order(events: list[Event], live: bool) -> None:
    blocks = content(write(events, eager=frozenset({"eager"}), live=live))
    prose = [event for event in events if isinstance(event, TextDelta | ThinkingDelta)]
    for kind, field, event_type in (("text", "text", TextDelta), ("thinking", "thinking", ThinkingDelta)):
        written = "".join(block[field] for block in blocks if block["type"] == kind)
        said = [event.text for event in prose if isinstance(event, event_type)]
        if event_type is ThinkingDelta and any(map(str.isspace, said)):
            assert "".join(written.split()) == "".join("".join(said).split())  # white space alone begins no block
        else:
            assert written == "".join(said)
    calls = [block for block in blocks if block["type"] == "tool_use"]
    ended = {f"t{event.call}": json.loads(event.arguments) for event in events if isinstance(event, ToolEnded)}
    started = [event.id for event in events if isinstance(event, ToolStarted)]
    seen = [block["id"] for block in calls]
    assert [id_ for id_ in seen if id_ in ended] == [id_ for id_ in started if id_ in ended]
    eager = {event.id for event in events if isinstance(event, ToolStarted) and event.name == "eager"}
    assert set(seen) - set(ended) <= (eager if live else set()), "a call that was cut off is left out"
    assert {block["id"]: block["input"] for block in calls if block["id"] in ended} == ended


@given(interleavings(), st.data())
def test_events_of_one_read_are_written_like_those_of_many(events: list[Event], data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=4)))
    writer = BlockWriter(signature="sig")
    wire: list[WireEvent] = []
    points = [0, *cuts, len(events)]
    for start, end in itertools.pairwise(points):
        wire += writer.feed(events[start:end])
    assert content([*wire, *writer.finish(Finished("stop"), USAGE)]) == content(write(events))


def test_interleaved_calls_come_out_one_after_the_other() -> None:
    """T1."""
    wire = write(
        [
            ToolStarted(0, "a", id="t0"),
            ToolStarted(1, "b", id="t1"),
            ToolArguments(0, '{"x":'),
            ToolArguments(1, '{"y":2}'),
            ToolArguments(0, "1}"),
            ToolEnded(0, '{"x":1}'),
            ToolEnded(1, '{"y":2}'),
        ],
        "tool_use",
        eager=frozenset({"a", "b"}),
    )
    assert [(event.index, event.text) for event in wire if isinstance(event, BlockDelta)] == [
        (0, '{"x":'),
        (0, "1}"),
        (1, '{"y":2}'),
    ]
    check(wire)


STARTED = b'{"type":"tool_use","id":"t0","name":"a","input":{}}'
WHOLE_CALL = [BlockDelta(0, "input_json_delta", '{"x":1}'), BlockStop(0)]


def test_a_call_is_written_when_it_is_whole() -> None:
    writer = BlockWriter(signature="")
    held = [writer.holds]
    assert writer.feed([ToolStarted(0, "a", id="t0"), ToolArguments(0, '{"x"')]) == []
    held.append(writer.holds)
    assert writer.feed([ToolEnded(0, '{"x":1}')]) == [BlockStart(0, STARTED), *WHOLE_CALL]
    assert [*held, writer.holds] == [False, True, False]
    assert writer.blocks == 1


def test_a_released_call_starts_and_its_arguments_follow() -> None:
    writer = BlockWriter(signature="")
    writer.feed([ToolStarted(0, "a", id="t0"), ToolStarted(1, "a", id="t1"), ToolArguments(0, '{"x"')])
    assert writer.release() == [BlockStart(0, STARTED)]
    held = [writer.holds]
    assert writer.feed([ToolEnded(0, '{"x":1}')]) == WHOLE_CALL
    assert [*held, writer.holds] == [False, True], "the next one waits for its turn"
    assert writer.feed([ToolDropped(1)]) == []


def test_thinking_stays_open_until_the_call_after_it_is_shown() -> None:
    """Nothing is complete yet: a client that sees an error now asks again."""
    writer = BlockWriter(signature="")
    writer.feed([ThinkingDelta("hm")])
    assert writer.feed([ToolStarted(0, "a", id="t0")]) == []
    wire = writer.feed([ToolEnded(0, "{}")])
    assert wire[:3] == [
        BlockDelta(0, "signature_delta", ""),
        BlockStop(0),
        BlockStart(1, STARTED),
    ]


def test_a_folded_answer_holds_nothing_that_could_be_released() -> None:
    writer = BlockWriter(signature="", live=False)
    writer.feed([ToolStarted(0, "a", id="t0")])
    assert not writer.holds


def test_text_of_one_read_is_one_delta() -> None:
    writer = BlockWriter(signature="")
    events: list[Event] = [TextDelta("a"), TextDelta("b"), TextDelta(""), TextDelta("c"), *call(0), TextDelta("d")]
    deltas = [event for event in writer.feed(events) if isinstance(event, BlockDelta)]
    assert [(delta.index, delta.text) for delta in deltas] == [(0, "a"), (0, "bc"), (1, "{}"), (2, "d")]
    assert writer.feed([TextDelta("")]) == []


def test_text_after_a_call_has_its_own_block_also_in_a_folded_answer() -> None:
    events: list[Event] = [TextDelta("a"), ToolStarted(0, "t", id="t0"), TextDelta("b"), ToolEnded(0, "{}")]
    for live in (True, False):
        kinds = [block.get("text", "call") for block in content(write(events, live=live))]
        assert kinds == ["a", "call", "b"]


def test_thinking_is_signed_before_it_stops() -> None:
    """T22."""
    wire = write([ThinkingDelta("hm"), TextDelta("hi")])
    assert wire[3:5] == [BlockDelta(0, "signature_delta", "sig"), BlockStop(0)]


@pytest.mark.parametrize("thinking", ["shown", "omitted"])
def test_white_space_alone_is_no_thinking(thinking: Showing) -> None:
    """Qwen's models write `<think>\\n\\n</think>` where they are told not to think."""
    blank: list[Event] = [ThinkingDelta("\n"), ThinkingDelta("\n")]
    assert content(write([*blank, TextDelta("a"), *blank, TextDelta("b")])) == [{"type": "text", "text": "ab"}]
    assert [block["type"] for block in content(write([*blank, *call(0)], thinking=thinking))] == ["tool_use"]
    first, second, third = content(write([*blank, ThinkingDelta("hm"), *blank, TextDelta("a"), ThinkingDelta("so")]))
    assert (first["thinking"], second["text"], third["thinking"]) == ("\n\nhm\n\n", "a", "so")


def test_omitted_thinking_is_a_signed_block_without_text() -> None:
    (block,) = content(write([ThinkingDelta("secret")], thinking="omitted"))
    assert block == {"type": "thinking", "thinking": "", "signature": "sig"}


def test_hidden_thinking_leaves_no_trace() -> None:
    wire = write([ThinkingDelta("secret"), TextDelta("a"), ThinkingDelta("more"), TextDelta("b")], thinking="hidden")
    assert content(wire) == [{"type": "text", "text": "ab"}]


REASONS: list[tuple[Reason, list[Event], str]] = [
    ("stop", [], "end_turn"),
    ("stop", call(0), "tool_use"),
    ("tool_use", [], "end_turn"),
    ("tool_use", call(0), "tool_use"),
    ("stop_sequence", call(0), "tool_use"),
    ("stop_sequence", [], "stop_sequence"),
    ("length", call(0), "max_tokens"),
    ("tool_use", [ToolStarted(0, "a", id="t"), ToolDropped(0)], "end_turn"),
    ("refusal", [TextDelta("no")], "refusal"),
    ("context_window", [], "model_context_window_exceeded"),
    ("pause", [WholeBlock(SEARCH)], "pause_turn"),
]


@pytest.mark.parametrize(("reason", "events", "stop_reason"), REASONS)
def test_stop_reason_follows_from_what_was_written(reason: Reason, events: list[Event], stop_reason: str) -> None:
    """T4."""
    delta = write(events, reason)[-2]
    assert isinstance(delta, MessageDelta)
    assert delta.stop_reason == stop_reason


def test_sequence_and_explanation_go_with_their_reasons_only() -> None:
    told = Finished("stop_sequence", sequence="END", explanation="why")
    assert BlockWriter(signature="").finish(told, USAGE)[0] == MessageDelta("stop_sequence", USAGE, "END", "")
    refused = Finished("refusal", sequence="END", explanation="why")
    assert BlockWriter(signature="").finish(refused, USAGE)[0] == MessageDelta("refusal", USAGE, "", "why")


@pytest.mark.parametrize("live", [True, False])
def test_a_dropped_call_is_left_out(live: bool) -> None:
    events: list[Event] = [ToolStarted(0, "a", id="t0"), *call(1), ToolDropped(0), TextDelta("x")]
    assert [block["type"] for block in content(write(events, "length", live=live))] == ["tool_use", "text"]


def test_a_call_that_was_shown_without_its_arguments_is_not_closed_when_it_is_cut() -> None:
    """Claude Code runs what is closed, with no arguments then, whatever the stop reason says."""
    writer = BlockWriter(signature="")
    writer.feed([ToolStarted(0, "a", id="t0"), ToolArguments(0, '{"x"')])
    writer.release()
    with pytest.raises(UpstreamProtocolError, match="cut off inside a tool call that had been shown"):
        writer.feed([ToolDropped(0)])


def test_a_live_call_that_is_cut_off_is_closed_with_half_of_its_arguments() -> None:
    events: list[Event] = [ToolStarted(0, "a", id="t"), ToolArguments(0, '{"x":'), ToolDropped(0)]
    out = write(events, "length", eager=frozenset({"a"}))
    check(out)
    assert [event.text for event in out if isinstance(event, BlockDelta)] == ['{"x":']


def test_eager_arguments_that_change_are_an_error() -> None:
    writer = BlockWriter(signature="", eager=frozenset({"a"}))
    writer.feed([ToolStarted(0, "a", id="t"), ToolArguments(0, '{"x":1')])
    with pytest.raises(UpstreamProtocolError, match="not the JSON that had been streamed"):
        writer.feed([ToolEnded(0, '{"y":1}')])


def test_eager_arguments_may_end_in_white_space() -> None:
    events: list[Event] = [ToolStarted(0, "a", id="t"), ToolArguments(0, '{"x":1}\n'), ToolEnded(0, '{"x":1}')]
    assert content(write(events, eager=frozenset({"a"})))[0]["input"] == {"x": 1}


def test_ends_of_an_answer_are_left_to_the_bridge() -> None:
    assert BlockWriter(signature="").feed([Finished("stop"), Failed(TruncatedStream("x"))]) == []


def test_finishing_twice_or_inside_a_call_is_an_error() -> None:
    writer = BlockWriter(signature="")
    writer.finish(Finished("stop"), USAGE)
    with pytest.raises(UpstreamProtocolError, match="twice"):
        writer.finish(Finished("stop"), USAGE)
    inside = BlockWriter(signature="")
    inside.feed([ToolStarted(0, "a", id="t")])
    with pytest.raises(UpstreamProtocolError, match="inside a tool call"):
        inside.finish(Finished("stop"), USAGE)


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800"])
def test_a_name_that_no_client_could_send_back_is_an_error(name: str) -> None:
    with pytest.raises(UpstreamProtocolError, match="by a name that is none"):
        BlockWriter(signature="").feed([ToolStarted(0, name, id="t")])
