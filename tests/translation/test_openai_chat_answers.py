"""Answers of the chat family, from captures: whole, byte by byte and at random cuts."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.translation.captures import Case, cases, check, check_cut, points
from translation.events import Failed
from translation.providers.openai_chat import OpenAIChat
from translation.providers.profiles import PROFILES
from translation.sse import MAX_EVENT

FAMILY = tuple(name for name, profile in PROFILES.items() if profile.dialect == "openai_chat")
CASES = cases(*FAMILY)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_answer_gives_its_events_whole_and_byte_by_byte(case: Case) -> None:
    check(OpenAIChat(), case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_an_answer_gives_the_same_events_wherever_it_is_cut(case: Case, data: st.DataObject) -> None:
    check_cut(OpenAIChat(), case, data.draw(points(case)))


@pytest.mark.parametrize("provider", FAMILY)
def test_every_provider_of_the_family_has_a_capture(provider: str) -> None:
    assert any(case.provider == provider for case in CASES)


def test_an_answer_without_end_is_cut_off() -> None:
    case = next(case for case in CASES if case.id == "openai/whole_text")
    decoder = OpenAIChat().decoder(case.request, case.target, OpenAIChat().build(case.request, case.target), "")
    assert decoder.feed(b'{"choices":') == []
    (failed,) = decoder.feed(b" " * MAX_EVENT)
    assert isinstance(failed, Failed)
    assert decoder.feed(b"more") == []
    assert decoder.close() == []


@pytest.mark.parametrize(
    "delta", [b'"reasoning_details":["x"]', b'"tool_calls":[{"id":"t","function":{"name":"f","arguments":"\\ud800"}}]']
)
@pytest.mark.parametrize("stream", [True, False])
def test_values_that_cannot_be_read_are_the_upstreams_fault(delta: bytes, stream: bool) -> None:
    case = next(case for case in CASES if case.id == "deepseek/reasoning_then_parallel_calls")
    decoder = OpenAIChat().decoder(case.request, case.target, OpenAIChat().build(case.request, case.target), "")
    answer = b'{"choices":[{"%b":{%b},"finish_reason":"stop"}]}' % (b"delta" if stream else b"message", delta)
    events = decoder.feed(b"data: %b\n\n" % answer if stream else answer) + decoder.close()
    assert isinstance(events[-1], Failed)
    assert events[-1].error.message.startswith(("not a chat answer", "the upstream sent tool arguments that are not"))


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_lines_of_json_that_end_before_a_finish_reason_are_cut_off(cut: int) -> None:
    case = next(case for case in CASES if case.id == "vllm/json_lines")
    decoder = OpenAIChat().decoder(case.request, case.target, OpenAIChat().build(case.request, case.target), "")
    said = b"".join(case.upstream.splitlines(keepends=True)[:cut])
    (*_, failed) = [*decoder.feed(said), *decoder.close()]
    assert isinstance(failed, Failed)
