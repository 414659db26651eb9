"""The capture runner itself."""

from tests.translation.captures import cut, describe
from translation.errors import TruncatedStream
from translation.events import Event, Failed, Finished, TextDelta, ThinkingDelta, ToolArguments
from translation.values import Usage


def test_cuts_lose_no_byte() -> None:
    assert cut(b"abcdef", [4, 2, 2, 99]) == [b"ab", b"cd", b"ef", b""]


def test_adjacent_deltas_are_one_and_defaults_are_left_out() -> None:
    events: list[Event] = [
        ThinkingDelta("a"),
        ThinkingDelta("b"),
        TextDelta("c"),
        TextDelta("d"),
        ToolArguments(0, "{"),
        ToolArguments(0, "}"),
        ToolArguments(1, "{}"),
        Finished("stop", Usage(input_tokens=3), state=b'{"x":1}'),
    ]
    assert describe(events) == [
        {"type": "ThinkingDelta", "text": "ab"},
        {"type": "TextDelta", "text": "cd"},
        {"type": "ToolArguments", "call": 0, "fragment": "{}"},
        {"type": "ToolArguments", "call": 1, "fragment": "{}"},
        {"type": "Finished", "reason": "stop", "usage": {"input_tokens": 3}, "state": {"x": 1}},
    ]


def test_a_failure_shows_its_class_and_message() -> None:
    failed = {"type": "Failed", "error": "TruncatedStream", "message": "cut"}
    assert describe([Failed(TruncatedStream("cut"))]) == [failed]
