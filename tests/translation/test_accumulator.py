"""The client's stream folded into one message."""

import json

from translation.accumulator import Accumulator, unfolded
from translation.events import BlockDelta, BlockStart, BlockStop, MessageDelta, MessageStart, MessageStop, WireEvent
from translation.values import Usage

CALL = BlockStart(0, b'{"type":"tool_use","id":"t","name":"n","input":{}}')


def folded(*events: WireEvent) -> Accumulator:
    accumulator = Accumulator()
    for event in events:
        accumulator.feed([event])
    return accumulator


def test_nothing_yet_is_an_empty_message() -> None:
    accumulator = Accumulator()
    assert accumulator.content == b"[]"
    assert accumulator.stop_reason is None


def test_every_delta_goes_to_its_field() -> None:
    accumulator = folded(
        MessageStart("msg_1", "m", Usage(1)),
        BlockStart(0, b'{"type":"thinking","thinking":"","signature":""}'),
        BlockDelta(0, "thinking_delta", "h"),
        BlockDelta(0, "thinking_delta", "m"),
        BlockDelta(0, "signature_delta", "s"),
        BlockStop(0),
        BlockStart(1, b'{"type":"text","text":""}'),
        BlockDelta(1, "text_delta", "a"),
        BlockDelta(1, "text_delta", "b"),
        BlockStop(1),
        BlockStart(2, b'{"type":"tool_use","id":"t","name":"n","input":{}}'),
        BlockDelta(2, "input_json_delta", '{"a":'),
        BlockDelta(2, "input_json_delta", "1.0}"),
        BlockStop(2),
        BlockStart(3, b'{"type":"novel", "x":1}'),
        BlockStop(3),
        MessageDelta("refusal", Usage(2), "", "why"),
        MessageStop(),
    )
    assert accumulator.content == (
        b'[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ab"},'
        b'{"type":"tool_use","id":"t","name":"n","input":{"a":1.0}},{"type":"novel", "x":1}]'
    )
    assert (accumulator.id, accumulator.model, accumulator.usage) == ("msg_1", "m", Usage(2))
    assert (accumulator.stop_reason, accumulator.sequence, accumulator.explanation) == ("refusal", "", "why")


def test_its_size_is_that_of_the_content_whether_or_not_that_was_needed() -> None:
    accumulator = folded(BlockStart(0, b'{"type":"text","text":""}'), BlockDelta(0, "text_delta", "Hel"))
    assert accumulator.size == len(accumulator.content) == accumulator.size


def test_call_that_was_cut_off_leaves_readable_content() -> None:
    accumulator = folded(CALL, BlockDelta(0, "input_json_delta", '{"path": "/et'))
    assert json.loads(accumulator.content) == [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]


def test_halves_of_a_character_meet_and_lone_ones_are_replaced() -> None:
    text = BlockStart(0, b'{"type":"text","text":""}')
    halves = [BlockDelta(0, "text_delta", half) for half in ("\ud83d", "\ude00", "\ud83d")]
    assert json.loads(folded(text, *halves).content)[0]["text"] == "😀\ufffd"
    assert json.loads(folded(CALL, BlockDelta(0, "input_json_delta", '{"a":"\ud83d"}')).content)[0]["input"] == {
        "a": "\ufffd"
    }


def test_unfolding_a_message_is_the_inverse() -> None:
    content = (
        b'[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"ab","citations":[{"a":1}]},'
        b'{"type":"tool_use","id":"t","name":"n","input":{"a":1.0}},{"type":"novel","text":"x"},{"type":"text","text":""}]'
    )
    events = unfolded(content)
    assert folded(*events).content == content
    assert [event.index for event in events if isinstance(event, BlockStart)] == [0, 1, 2, 3, 4]
    assert events[1:4] == [BlockDelta(0, "thinking_delta", "hm"), BlockDelta(0, "signature_delta", "s"), BlockStop(0)]


def test_a_stored_message_is_unfolded_into_the_stream_that_made_it() -> None:
    content = (
        b'[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"a"},'
        b'{"type":"tool_use","id":"toolu_1","name":"A","input":{"x":1}},{"type":"server_tool_use","id":"s","input":{}}]'
    )
    folded = Accumulator()
    folded.feed(unfolded(content))
    assert json.loads(folded.content) == json.loads(content)
