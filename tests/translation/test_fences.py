"""Structured output that came in a fence of Markdown."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.translation.adapters import Trial, trials
from translation.adapter import Ending, UpstreamRequest
from translation.events import Event, Finished, TextDelta, ThinkingDelta, ToolStarted
from translation.fences import NOTE, Unfenced, unfenced
from translation.values import Message, Note, Request, Text

FINISHED = Finished("stop")
CALL = ToolStarted(0, "f")


class Said(Ending):
    """A decoder whose chunks are the pieces of a text."""

    def __init__(self, *after: Event) -> None:
        self._after = list(after)

    def feed(self, chunk: bytes) -> list[Event]:
        self.ending = True
        return [TextDelta(chunk.decode())]

    def close(self) -> list[Event]:
        return [*self._after, FINISHED]


def read(pieces: list[str], *after: Event) -> tuple[str, tuple[str, ...]]:
    decoder = Unfenced(Said(*after))
    events = [event for piece in pieces for event in decoder.feed(piece.encode())]
    events += decoder.close()
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert decoder.ending == bool(pieces)
    return "".join(event.text for event in events if isinstance(event, TextDelta)), finished.notes


FENCED = {
    '```json\n{"a": 1}\n```': '{"a": 1}',
    '\n ```JSON\r\n{"a": 1}\r\n```\n\n': '{"a": 1}',
    '```\n[{"a": "`b`"}]```': '[{"a": "`b`"}]',
    '```json {"a": 1} ```': '{"a": 1}',
    '```json\n{"a": "```"}\n```': '{"a": "```"}',
    '```json\n{"a": 1': '{"a": 1',  # cut off by the token limit
    '```json\n{"a": 1}\n```\nThat is all.': '{"a": 1}\n```\nThat is all.',
}
PLAIN = ['{"a": 1}', '{"a": "```json\\n{}\\n```"}', "I look: ```json\n{}\n```", "`a` is it", "```", "", "  ", "``"]


@given(text=st.sampled_from(list(FENCED)), data=st.data())
def test_a_fence_around_the_answer_is_left_out_wherever_it_is_cut(text: str, data: st.DataObject) -> None:
    at = sorted(data.draw(st.sets(st.integers(1, len(text) - 1))))
    pieces = [text[start:end] for start, end in pairwise([0, *at, len(text)])]
    assert read(pieces) == (FENCED[text], (NOTE,))


@pytest.mark.parametrize("text", PLAIN)
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert read([text]) == (text, ())
    assert read(list(text)) == (text, ())


def test_a_text_without_a_fence_is_not_held_back() -> None:
    decoder = Unfenced(Said())
    assert decoder.feed(b'{"a": `') == [TextDelta('{"a": `')]


def test_what_follows_a_text_ends_its_fence() -> None:
    assert read(["```json\n{}", "\n```"], CALL) == ("{}", (NOTE,))
    decoder = Unfenced(Said(CALL))
    decoder.feed(b"``")
    assert decoder.close() == [TextDelta("``"), CALL, FINISHED]
    assert Unfenced(Said(ThinkingDelta("hm"))).close() == [ThinkingDelta("hm"), FINISHED]


def test_only_what_was_asked_for_in_words_is_looked_at() -> None:
    said = Said()
    sent = UpstreamRequest("/", b"", stream=True)
    assert unfenced(said, sent) is said
    noted = msgspec.structs.replace(sent, notes=(Note("degradation", "structured-output", "x"),))
    assert isinstance(unfenced(said, noted), Unfenced)


LIST = b'{"type":"array","items":{"type":"integer"}}'
RESULT = b'"```json\\n[1]\\n```"'
ANSWERS = {
    "openai_chat": b'data: {"choices":[{"delta":{"content":%b},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n' % RESULT,
    "openai_responses": b'data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"delta":%b}\n\n'
    b'data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}\n\n' % RESULT,
    "minimax": b'data: {"choices":[{"delta":{"content":"hm</think>"}}]}\n\n'
    b'data: {"choices":[{"delta":{"content":%b},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n' % RESULT,
}


@pytest.mark.parametrize("trial", trials(), ids=lambda trial: trial.id)
def test_every_dialect_that_asks_in_words_leaves_the_fence_out(trial: Trial) -> None:
    messages = (Message("user", (Text("Count."),)),)
    request = Request(model="m", messages=messages, max_tokens=9, stream=True, output_schema=LIST)
    sent = trial.adapter.build(request, trial.target)
    decoder = trial.adapter.decoder(request, trial.target, sent, "text/event-stream")
    answer = ANSWERS.get(trial.target.profile.dialect)
    if answer is None:
        assert not isinstance(decoder, Unfenced)
        return
    events = [*decoder.feed(answer), *decoder.close()]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).strip() == "[1]"
