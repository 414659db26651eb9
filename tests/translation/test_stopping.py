"""Stop sequences that the upstream does not know: the answer ends at them, whatever the cut of its text."""

import json
from collections.abc import Iterable

import pytest

from translation.adapter import Ending, Target
from translation.adapters import adapter
from translation.errors import TruncatedStream
from translation.events import Event, Failed, Finished, TextDelta, ThinkingDelta, ToolEnded, ToolStarted
from translation.providers.profiles import PROFILES
from translation.stopping import stopping
from translation.values import Message, Request, Text, Usage


class Said(Ending):
    """A decoder that gives these events, one list for each feed."""

    def __init__(self, *reads: list[Event]) -> None:
        self._reads = list(reads)

    def feed(self, chunk: bytes) -> list[Event]:
        self.ending = len(self._reads) == 1
        return self._reads.pop(0)

    def close(self) -> list[Event]:
        return self._reads.pop(0) if self._reads else []


def heard(*reads: list[Event], stops: Iterable[str] = ("END", "\n\n")) -> list[Event]:
    decoder = stopping(Said(*reads), stops)
    return [event for _ in reads for event in decoder.feed(b"")] + decoder.close()


def words(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


DONE = Finished("stop", Usage(5, 9), model="m")


@pytest.mark.parametrize("cut", range(1, 12))
def test_an_answer_ends_at_the_sequence_wherever_its_text_is_cut(cut: int) -> None:
    text = "a ENd EN END b"
    events = heard([TextDelta(text[:cut])], [TextDelta(text[cut:])], [DONE])
    assert words(events) == "a ENd EN "
    assert events[-1] == Finished("stop_sequence", None, "END")


def test_of_two_sequences_the_one_that_is_complete_first_counts() -> None:
    assert heard([TextDelta("xaby")], stops=("xaby", "ab"))[-1] == Finished("stop_sequence", None, "ab")


def test_a_sequence_at_the_very_beginning_leaves_no_text() -> None:
    assert heard([TextDelta("END")]) == [Finished("stop_sequence", None, "END")]


def test_a_whole_answer_keeps_its_figures() -> None:
    assert heard([TextDelta("a\n\nb"), DONE])[-1] == Finished("stop_sequence", Usage(5, 9), "\n\n", model="m")


def test_what_only_began_like_a_sequence_is_told_in_its_place() -> None:
    failed = Failed(TruncatedStream("cut"))
    assert heard([TextDelta("a E")], [ThinkingDelta("hm")], [TextDelta("ND\n")], [failed]) == [
        TextDelta("a "),
        TextDelta("E"),
        ThinkingDelta("hm"),
        TextDelta("ND"),
        TextDelta("\n"),
        failed,
    ]


def test_what_follows_a_call_is_not_looked_at() -> None:
    events: list[Event] = [ToolStarted(0, "f"), TextDelta("END"), ToolEnded(0, "{}"), Finished("tool_use")]
    assert heard(events) == events


def test_nothing_is_watched_where_nothing_is_asked_for_and_the_end_is_passed_on() -> None:
    said = Said([DONE])
    assert stopping(said, ("",)) is said
    watched = stopping(said, ("END",))
    watched.feed(b"")
    assert isinstance(watched, Ending)
    assert watched.ending


@pytest.mark.parametrize(
    ("provider", "model", "sequence"),
    [
        ("openai-responses", "gpt-5.5", "END"),
        ("xai", "grok-4.6", "END"),
        ("zai", "glm-4.7", "END"),  # which takes one, the first
        ("gemini", "gemini-3-pro", "END"),  # which takes five
        ("openai", "gpt-4.1", ""),
    ],
)
def test_the_bridge_stops_where_the_model_cannot_be_told_to(provider: str, model: str, sequence: str) -> None:
    target = Target(provider, model, PROFILES[provider])
    stops = ("first", "END") if provider != "gemini" else ("first", "2", "3", "4", "5", "END")
    request = Request(model="m", max_tokens=9, messages=(Message("user", (Text("q"),)),), stop_sequences=stops)
    dialect = adapter(target.profile)
    message = {"type": "message", "content": [{"type": "output_text", "text": "a END b"}]}
    answer = {
        "choices": [{"message": {"content": "a END b"}, "finish_reason": "stop"}],
        "status": "completed",
        "output": [message],
        "candidates": [{"content": {"parts": [{"text": "a END b"}]}, "finishReason": "STOP"}],
    }
    decoder = dialect.decoder(request, target, dialect.build(request, target), "")
    events = [*decoder.feed(json.dumps(answer).encode()), *decoder.close()]
    assert words(events) == ("a " if sequence else "a END b")
    assert isinstance(events[-1], Finished)
    assert events[-1].sequence == sequence
