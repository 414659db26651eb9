"""Gemini's answers: every capture whole, byte by byte and at random cuts, and what captures cannot say."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.translation.captures import Case, cases, check, check_cut, points
from translation.errors import UpstreamProtocolError
from translation.events import Failed, Finished, TextDelta, ToolEnded
from translation.providers.gemini import Gemini
from translation.providers.gemini_stream import GeminiDecoder
from translation.sse import MAX_EVENT

CASES = cases("gemini")
ADAPTER = Gemini()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_each_capture_gives_its_events(case: Case) -> None:
    check(ADAPTER, case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_each_capture_gives_the_same_events_at_any_cut(case: Case, data: st.DataObject) -> None:
    check_cut(ADAPTER, case, data.draw(points(case)))


def test_a_signature_is_kept_whatever_it_looks_like() -> None:
    """It is opaque: who made it knows what it means."""
    for signature in ("c2ln", "c2lnbg==", "sig-1", "not base64"):
        decoder = GeminiDecoder({}, streams=False)
        part = b'{"text":"hi","thoughtSignature":"%b"}' % signature.encode()
        decoder.feed(b'{"candidates":[{"content":{"parts":[%b]},"finishReason":"STOP"}]}' % part)
        finished = decoder.close()[-1]
        assert isinstance(finished, Finished)
        assert signature.encode() in finished.state


def test_nothing_follows_the_last_event() -> None:
    decoder = GeminiDecoder({})
    assert isinstance(decoder.feed(b"data: nonsense\n\n")[-1], Failed)
    assert decoder.feed(b'data: {"candidates":[]}\n\n') == []
    assert decoder.close() == []


def test_the_answer_is_over_when_its_bytes_are() -> None:
    decoder = GeminiDecoder({})
    body = b'data: {"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}\n\n'
    assert decoder.feed(body) == [TextDelta("hi")]
    assert decoder.close() == [Finished("stop")]
    assert decoder.close() == []


def test_an_answer_that_never_ends_is_refused() -> None:
    decoder = GeminiDecoder({}, streams=False)
    block = b" " * MAX_EVENT
    events = [event for _ in range(5) for event in decoder.feed(block)]
    assert [type(event) for event in events] == [Failed]
    assert isinstance(events[0], Failed)
    assert isinstance(events[0].error, UpstreamProtocolError)


def test_a_signature_by_itself_goes_back_on_an_empty_text() -> None:
    decoder = GeminiDecoder({})
    parts = b'{"text":"hi"},{"thoughtSignature":"c2ln"},{}'
    decoder.feed(b'data: {"candidates":[{"content":{"parts":[%b]},"finishReason":"STOP"}]}\n\n' % parts)
    finished = decoder.close()[-1]
    assert isinstance(finished, Finished)
    assert b'"part"' not in finished.state
    assert b"c2ln" in finished.state


def test_arguments_beside_nulls_stay_as_they_were_written() -> None:
    """Gateways write null for what Google leaves out; numbers have more digits than a float."""
    decoder = GeminiDecoder({})
    given = b'{"price":1.10,"id":12345678901234567890.123,"none":null}'
    call = b'{"functionCall":{"id":null,"name":"Buy","args":%b}}' % given
    events = decoder.feed(b'data: {"candidates":[{"content":{"parts":[%b]},"finishReason":"STOP"}]}\n\n' % call)
    assert [event.arguments for event in events if isinstance(event, ToolEnded)] == [given.decode()]
